"""The benchmarks of Rust itself: #[bench] of nightly compilers.

It repeats rounds of 50 samples of n and 50 of 5 n iterations, doubling n, until three seconds have passed.
Source: https://github.com/rust-lang/rust/blob/1.95.0/library/test/src/bench.rs
"""

from __future__ import annotations

from pathlib import Path

from ajuste.study.job import Argv
from ajuste_ci.harnesses.base import BuiltProject, Harness, HarnessBenchmark
from ajuste_ci.harnesses.cargo import BUILD, cargo_programs, target_filter
from ajuste_ci.harnesses.clock import with_clock

# Nanoseconds after which the harness stops, and readings of the clock that are part of a round, at least.
_ENOUGH_NS = 3_000_000_000
_READINGS = 200


class Libtest(Harness):
    """Benchmarks of Rust's own test harness."""

    name = "libtest"
    build = BUILD
    most = 12

    def benchmarks(self, built: BuiltProject) -> tuple[HarnessBenchmark, ...]:
        """List each program's benchmarks."""
        listed: list[HarnessBenchmark] = []
        for program in cargo_programs(built):
            listing = built.output((str(program.place), "--bench", "--list", "--format", "terse"), program.place.parent)
            ids = filter(None, map(target_filter, listing.splitlines()))
            listed += [HarnessBenchmark(id_, program.name, program.directory, program.files) for id_ in ids]
        return tuple(listed)

    def command(self, benchmark: HarnessBenchmark, level: int) -> Argv:
        """Return a run of one round more at each level."""
        step = int(_ENOUGH_NS / (_READINGS * (level + 0.5)))
        command = (f".ajuste/{benchmark.target}", "--bench", "--exact", benchmark.id, "--test-threads", "1")
        return with_clock(step, command)

    def is_used(self, project: Path) -> bool:
        """Return whether a file has a benchmark of it."""
        return any("#[bench]" in _text(file) for place in ("benches", "src") for file in (project / place).glob("*.rs"))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
