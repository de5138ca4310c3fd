"""Benchmarks of Go: `go test -bench`.

Source: https://pkg.go.dev/cmd/go#hdr-Testing_flags
"""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ajuste.study.job import Argv
from ajuste_ci.harnesses.base import ADDED, BuiltProject, Harness, HarnessBenchmark

_RESULT: Final = re.compile(r"^(Benchmark\S*?)(?:-\d+)?\s+1\s+\S+ ns/op")
_TEST: Final = "bench.test"


def read_results(text: str) -> tuple[str, ...]:
    """Return the benchmarks that a run of one iteration printed."""
    return tuple(dict.fromkeys(match[1] for line in text.splitlines() if (match := _RESULT.match(line))))


class GoBench(Harness):
    """Benchmarks of Go, one for each sub-benchmark."""

    name = "go"
    build = ("go", "test", "-run", "^$", "./...")
    finest = 1  # a run of one iteration has no second round

    def benchmarks(self, built: BuiltProject) -> tuple[HarnessBenchmark, ...]:
        """List each package's benchmarks, by a run of each: only a run knows its sub-benchmarks."""
        listed: list[HarnessBenchmark] = []
        packages = built.output(("go", "list", "-json=Dir,TestGoFiles,XTestGoFiles", "./..."), built.directory)
        for package in _documents(packages):
            directory = Path(package["Dir"])
            names = [*package.get("TestGoFiles", ()), *package.get("XTestGoFiles", ())]
            if not any("func Benchmark" in _text(directory / name) for name in names):
                continue
            built.add_directory(directory)
            # The name of the package's program ends in .test, so that the runtime knows its flags.
            built.output(("go", "test", "-c", "-trimpath", "-o", f"{ADDED}/{_TEST}", "."), directory)
            program = str(directory / ADDED / _TEST)
            flags = ("-test.run=^$", "-test.bench=.", "-test.benchtime=1x", "-test.cpu=1")
            relative = PurePosixPath(directory.relative_to(built.directory.resolve()))
            data = sorted(str(relative / file.relative_to(directory)) for file in _data(directory))
            files = (str(relative / ADDED / _TEST), *data)
            target = "" if str(relative) == "." else str(relative)
            ids = read_results(built.output((program, *flags), directory))
            listed += [HarnessBenchmark(id_, target, relative, files) for id_ in ids]
        return tuple(listed)

    def command(self, benchmark: HarnessBenchmark, level: int) -> Argv:
        """Return a run with a fixed number of iterations."""
        pattern = "/".join(f"^{re.escape(part)}$" for part in benchmark.id.split("/"))
        flags = ("-test.run=^$", f"-test.bench={pattern}", f"-test.benchtime={2**level:08d}x", "-test.cpu=1")
        return (f"{ADDED}/{_TEST}", *flags)

    def is_used(self, project: Path) -> bool:
        """Return whether a test file has a benchmark."""
        tests = (file for depth in ("", "*/", "*/*/") for file in project.glob(f"{depth}*_test.go"))
        return (project / "go.mod").is_file() and any("func Benchmark" in _text(file) for file in tests)


def _documents(text: str) -> list[dict[str, Any]]:
    decoder, place = json.JSONDecoder(), 0
    documents: list[dict[str, Any]] = []
    while (rest := text[place:].lstrip()) != "":
        place = len(text) - len(rest)
        document, place = decoder.raw_decode(text, place)
        documents.append(document)
    return documents


def _data(directory: Path) -> list[Path]:
    # Tests of Go read their files from testdata, by convention.
    return [file for file in (directory / "testdata").rglob("*") if file.is_file()]


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
