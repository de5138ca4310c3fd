"""Divan: `cargo bench` of Rust projects.

Source: the --help of a program with its benchmarks, https://docs.rs/divan
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ajuste.study.job import Argv
from ajuste_ci.harnesses.base import BuiltProject, Harness, HarnessBenchmark
from ajuste_ci.harnesses.cargo import BUILD, cargo_programs, depends_on
from ajuste_ci.harnesses.clock import with_clock

_LEAF: Final = re.compile(r"^((?:│  |   )*)(?:├─ |╰─ )(.+?)\s*$")


def read_tree(text: str) -> Iterator[str]:
    """Yield the paths of all leaves of a tree that divan printed."""
    path: list[str] = []
    leaf = False
    for line in text.splitlines():
        if match := _LEAF.match(line):
            depth, name = len(match[1]) // 3 + 1, match[2]
        elif line.strip():
            depth, name = 0, line.strip()
        else:
            continue
        if leaf and depth <= len(path) - 1:
            yield "::".join(path)
        path = [*path[:depth], name]
        leaf = True
    if leaf and len(path) > 1:
        yield "::".join(path)


class Divan(Harness):
    """Benchmarks of divan, one for each argument."""

    name = "divan"
    build = BUILD

    def benchmarks(self, built: BuiltProject) -> tuple[HarnessBenchmark, ...]:
        """List each program's benchmarks, by a run of each: --list has no arguments."""
        listed: list[HarnessBenchmark] = []
        for program in cargo_programs(built):
            tree = built.output((str(program.place), "--test", "--color", "never"), program.place.parent.parent)
            listed += [HarnessBenchmark(id_, program.name, program.directory, program.files) for id_ in read_tree(tree)]
        return tuple(listed)

    def command(self, benchmark: HarnessBenchmark, level: int) -> Argv:
        """Return a run of one sample."""
        size = ("--sample-count", "1", "--sample-size", f"{2**level:08d}", "--timer", "os")
        return with_clock(1000, (f".ajuste/{benchmark.target}", "--bench", "--exact", benchmark.id, *size))

    def is_used(self, project: Path) -> bool:
        """Return whether a manifest names it."""
        return depends_on(project, "divan", "codspeed-divan-compat")
