"""Criterion.rs: `cargo bench` of Rust projects.

Its profiling mode warms up for a second, then does as many iterations at once as fit into the time of --profile-time.
Source: https://github.com/bheisler/criterion.rs/blob/0.5.1/src/routine.rs
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ajuste.study.job import Argv
from ajuste_ci.harnesses.base import BuiltProject, Harness, HarnessBenchmark
from ajuste_ci.harnesses.cargo import BUILD, cargo_programs, depends_on, target_filter
from ajuste_ci.harnesses.clock import with_clock

# One call of the clock is more than the second of the warm-up, which is a single iteration then.
_STEP_NS: Final = 1_000_000_001


class Criterion(Harness):
    """Benchmarks of Criterion.rs."""

    name = "criterion"
    build = BUILD
    finest = 4

    def benchmarks(self, built: BuiltProject) -> tuple[HarnessBenchmark, ...]:
        """List each program's benchmarks. Programs of other harnesses list none in this form."""
        listed: list[HarnessBenchmark] = []
        for program in cargo_programs(built):
            listing = built.output((str(program.place), "--bench", "--list", "--format", "terse"), program.place.parent)
            ids = filter(None, map(target_filter, listing.splitlines()))
            listed += [HarnessBenchmark(id_, program.name, program.directory, program.files) for id_ in ids]
        return tuple(listed)

    def command(self, benchmark: HarnessBenchmark, level: int) -> Argv:
        """Return the profiling run: its time, in seconds of the clock, has the same digits at neighbouring levels."""
        # A bench of iterations takes three calls of the clock.
        seconds = f"{3 * 2**level:08d}"
        command = (f".ajuste/{benchmark.target}", "--bench", "--exact", benchmark.id, "--profile-time", seconds)
        return with_clock(_STEP_NS, command, CRITERION_HOME="/tmp/criterion")  # noqa: S108 - of a guest

    def is_used(self, project: Path) -> bool:
        """Return whether a manifest names it."""
        return depends_on(project, "criterion", "codspeed-criterion-compat")
