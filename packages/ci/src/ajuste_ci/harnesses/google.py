"""Google Benchmark, for C++.

Source: https://github.com/google/benchmark/blob/main/docs/user_guide.md
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path, PurePosixPath

from ajuste.model.error import RunError
from ajuste.study.job import Argv
from ajuste_ci.harnesses.base import ADDED, BuiltProject, Harness, HarnessBenchmark


class GoogleBenchmark(Harness):
    """Benchmarks of Google Benchmark, in the programs that the build made."""

    name = "google-benchmark"
    build = ()

    def benchmarks(self, built: BuiltProject) -> tuple[HarnessBenchmark, ...]:
        """List the benchmarks of all programs of the project that name the library's own option."""
        listed: list[HarnessBenchmark] = []
        for program in _programs(built.directory):
            listing = built.output((str(program), "--benchmark_list_tests"), program.parent)
            try:
                built.output((str(program), "--benchmark_filter=^$", "--benchmark_min_time=1x"), program.parent)
            except RunError:
                raise built.rejects(
                    f"{program.name} has a Google Benchmark without a fixed number of iterations",
                    "build it with Google Benchmark 1.8 or later",
                ) from None
            shutil.copy2(program, built.add_directory(built.directory) / program.name)
            files = (f"{ADDED}/{program.name}",)
            ids = [line for line in listing.splitlines() if line]
            listed += [HarnessBenchmark(id_, program.name, PurePosixPath(), files) for id_ in ids]
        return tuple(listed)

    def command(self, benchmark: HarnessBenchmark, level: int) -> Argv:
        """Return a run with a fixed number of iterations."""
        name = f"^{re.escape(benchmark.id)}$"
        flags = (f"--benchmark_filter={name}", f"--benchmark_min_time={2**level:08d}x")
        return (f"{ADDED}/{benchmark.target}", *flags)

    def is_used(self, project: Path) -> bool:
        """Return whether a file of CMake names the library."""
        files = (file for depth in ("", "*/") for file in project.glob(f"{depth}CMakeLists.txt"))
        return any("benchmark::benchmark" in file.read_text(encoding="utf-8", errors="replace") for file in files)


def _programs(directory: Path) -> list[Path]:
    files = (file for file in directory.rglob("*") if file.is_file() and not file.is_symlink())
    candidates = (
        file for file in files if os.access(file, os.X_OK) and ADDED not in file.parts and ".git" not in file.parts
    )
    return sorted(file for file in candidates if _is_program(file))


def _is_program(file: Path) -> bool:
    content = file.read_bytes()
    return content.startswith(b"\x7fELF") and b"benchmark_list_tests" in content and not file.name.endswith(".so")
