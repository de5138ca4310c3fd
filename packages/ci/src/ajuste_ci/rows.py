"""Rows of a gate: the benchmarks that a harness lists in both revisions, and how each is measured."""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from ajuste.analysis.pairs import clean_trials
from ajuste.model.error import RunError
from ajuste.model.results import Results
from ajuste.run.experiment import MeasuredExperiment
from ajuste.study.command_line.defaults import IN_GUEST
from ajuste.study.schema import Study
from ajuste_ci.bench import RevisionBench
from ajuste_ci.difference import SHORT, of_difference
from ajuste_ci.harnesses.base import BuiltProject, Harness, HarnessBenchmark
from ajuste_ci.harnesses.registry import HARNESSES
from ajuste_ci.project import CONFIDENCE, BenchmarkTable, RowCommands, RowVariant, Trees

FEWEST_BLOCKS: Final = 6
"""Number of blocks after which a row can be decided; then as many again, until it is."""

ENOUGH: Final = 2**23
"""Instructions of the additional iterations, at least, where so many iterations are supported."""


@dataclass(frozen=True)
class BenchmarkRow:
    """A benchmark of a harness: its ``name`` among all of the table, and what it is in each revision that has it."""

    name: str
    sides: Mapping[str, HarnessBenchmark]


def rows_of(bench: RevisionBench, table: BenchmarkTable) -> tuple[BenchmarkRow, ...]:
    """Build all revisions and return the benchmarks that any of them has. Raises RunError."""
    harness = harness_of(table)
    by_key: dict[tuple[str, str], dict[str, HarnessBenchmark]] = {}
    for side in bench.trees.labels:
        for benchmark in _listed(bench, table, harness, side):
            by_key.setdefault((benchmark.target, benchmark.id), {})[side] = benchmark
    if not by_key:
        labels = " and ".join(dict.fromkeys(bench.trees.labels.values()))
        hint = "check that the build makes its benchmarks, and the field harness"
        raise RunError(f"{harness.name} lists no benchmarks in {labels}", hint=hint, of_candidate=True)
    # The target is part of the name only where it tells two benchmarks apart.
    ids = Counter(id_ for _, id_ in by_key)
    return tuple(
        BenchmarkRow(id_ if ids[id_] == 1 else f"{target or '.'}: {id_}", sides)
        for (target, id_), sides in by_key.items()
    )


def harness_of(table: BenchmarkTable) -> Harness:
    """Return the harness of a table that has one."""
    assert table.harness is not None
    return HARNESSES[table.harness]


def _listed(bench: RevisionBench, table: BenchmarkTable, harness: Harness, side: str) -> tuple[HarnessBenchmark, ...]:
    if build := table.build or harness.build:
        bench.build(build, side)
    checkouts, label = bench.checkouts, bench.trees.labels[side]
    timeout = table.timeout or IN_GUEST.timeout_s
    built = BuiltProject(
        (bench.trees.directory / bench.trees.place(side)).resolve(),
        build or (),
        lambda command, directory: checkouts.output(command, directory, label, timeout),
        label,
        checkouts.repository.caller.give,
        table.commands or "",
    )
    return harness.benchmarks(built)


@dataclass(frozen=True)
class RowMeasurement:
    """Measures the ``row`` of a ``table`` in the revisions of ``bench`` that have it."""

    bench: RevisionBench
    table: BenchmarkTable
    row: BenchmarkRow

    def judge(self, confidence: float = CONFIDENCE, *, explained: str = "") -> tuple[Results, str]:
        """Measure until the limit decides, or the time is over. Return the results, and why the additional
        instructions of the revision ``explained`` could not be counted by function, if so. Raises RunError.
        """
        bench, table = self.bench, self.table
        if not harness_of(table).repeats:
            return bench.measure(self._study(confidence, 0, (*self.row.sides,)), table, explained)
        sides = tuple(self.row.sides)
        names = (*sides, *(f"{side}{SHORT}" for side in sides))
        study = self._study(confidence, self._level(), names)

        def read(measurement: MeasuredExperiment) -> Results:
            measured = measurement.store.measurements(measurement.run)
            return of_difference(measurement.results(), measured, sides, confidence=confidence, limit=table.limit)

        end, blocks = time.monotonic() + table.max_time, FEWEST_BLOCKS
        while True:
            results, uncounted = bench.measure(_with_blocks(study, blocks), table, explained, read)
            if not any(verdict.against_limit == "undecided" for verdict in results.verdicts):
                return results, uncounted
            if time.monotonic() > end or blocks >= IN_GUEST.max_blocks:
                return results, uncounted
            blocks *= 2

    def _level(self) -> int:
        # By trials in the guest, so that it is the same everywhere: a measurement of time would not be. What a program
        # does once varies a little, so few instructions are a reason to look again.
        harness = harness_of(self.table)
        level = harness.finest
        while (more := self._additional(level)) < ENOUGH / 2 and level < harness.most:
            level = min(harness.most, level + max(1, math.ceil(math.log2(ENOUGH / more))))
        return level

    def _additional(self, level: int) -> float:
        first = next(iter(self.row.sides))
        study = self._study(CONFIDENCE, level, (first, f"{first}{SHORT}"))
        counts: list[float] = []

        def read(measurement: MeasuredExperiment) -> Results:
            name = self.table.metric[0]
            clean = clean_trials(measurement.store.measurements(measurement.run))
            long, short = (clean.measured.metrics[name][clean.of(side)] for side in (first, f"{first}{SHORT}"))
            counts.append(float(long[0] - short[0]))
            return measurement.results()

        self.bench.measure(_with_blocks(study, 1), self.table, read=read)
        return max(counts[0], 1.0)

    def _study(self, confidence: float, level: int, names: tuple[str, ...]) -> Study:
        harness, trees = harness_of(self.table), self.bench.trees
        variants = []
        for name in names:
            side, short, _ = name.partition(SHORT)
            benchmark = self.row.sides[side]
            # A short run has the level itself, a long one the next.
            command = harness.command(benchmark, level if short else level + 1)
            directory = PurePosixPath(trees.place(side)) / benchmark.directory
            program = f"{directory}/{command[0]}" if "/" in command[0] and command[0][0] != "/" else command[0]
            variants.append(RowVariant(name, (program, *command[1:]), str(directory)))
        files = tuple(dict.fromkeys(file for side in self.row.sides for file in self._files(side)))
        slug = re.sub(r"[^a-z0-9]+", "-", self.row.name.lower()).strip("-")[:40].strip("-")
        digest = hashlib.sha256(f"{self.table.name}\0{self.row.name}".encode()).hexdigest()[:8]
        commands = RowCommands(f"{slug or 'row'}-{digest}", self.row.name, tuple(variants), files)
        return self.bench.study(self.table, confidence, commands)

    def _files(self, side: str) -> Iterator[str]:
        place, trees = self.bench.trees.place(side), self.bench.trees
        for file in self.row.sides[side].files:
            yield str(place / file)
        for name in self.table.files:
            there = trees.directory / place / name
            if not there.exists():
                message = f"{name} not found in {trees.labels[side]}"
                raise RunError(message, hint="check the field files of the benchmark", of_candidate=True)
            yield from _files_in(there, trees)


def _files_in(there: Path, trees: Trees) -> Iterator[str]:
    files = sorted(file for file in there.rglob("*") if file.is_file()) if there.is_dir() else [there]
    yield from (str(PurePosixPath(file.relative_to(trees.directory))) for file in files)


def _with_blocks(study: Study, blocks: int) -> Study:
    budget = {"min_blocks": blocks, "max_blocks": blocks}
    return study.model_copy(update={"budget": study.budget.model_copy(update=budget)})
