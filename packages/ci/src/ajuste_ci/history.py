"""The history of a project's benchmarks: every metric over commits, measured side by side, with its changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ajuste.model.error import AjusteError, RunError
from ajuste.model.history import HISTORIES, History
from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste_ci.bench import BenchRequest, RevisionBench
from ajuste_ci.model import CommitChange, CommitHistory, CommitPoint, GateRevision, HistoryResult, ProjectCommit
from ajuste_ci.project import BenchmarkTable, Trees

FEWEST_COMMITS: Final = 3
"""Minimum number of commits in which a change can be found."""


@dataclass(frozen=True)
class ProjectHistory:
    """Measures ``commits``, oldest first; ``every`` also has the commits between them."""

    request: BenchRequest
    commits: tuple[ProjectCommit, ...]
    every: tuple[ProjectCommit, ...]

    def carry_out(self) -> HistoryResult:
        """Measure all benchmarks; one that cannot be measured does not stop the others."""
        revisions = {commit.short: GateRevision(revision=commit.short, commit=commit.commit) for commit in self.commits}
        with self.request.bench(revisions, in_order=True) as bench:
            trees = bench.trees
            histories = self.request.each(lambda benchmark: self._histories(benchmark, bench, trees), _unmeasured)
        return HistoryResult(file=self.request.file, histories=tuple(histories))

    def _histories(self, benchmark: BenchmarkTable, bench: RevisionBench, trees: Trees) -> Iterator[CommitHistory]:
        # A commit that does not build gets no point, but a reason.
        reasons: dict[str, str] = {}
        for name in trees.labels:
            try:
                bench.prepare(benchmark, name)
            except AjusteError as failure:
                reasons[name] = failure.message.partition("\n")[0]
        usable = {name: label for name, label in trees.labels.items() if name not in reasons}
        if len(usable) < FEWEST_COMMITS:
            whole = f"{len(usable)} of {len(trees.labels)} commits can be measured, a history requires {FEWEST_COMMITS}"
            raise RunError("; ".join((whole, *reasons.values())), hint="check the field build of the benchmark")
        bench.trees = Trees(trees.directory, trees.project, usable, in_order=True)
        results, _ = bench.judge(benchmark)
        yield from self._read(results, benchmark, reasons)

    def _read(self, results: Results, benchmark: BenchmarkTable, reasons: Mapping[str, str]) -> Iterator[CommitHistory]:
        metrics = {metric.name: metric for metric in results.metrics}
        for history in HISTORIES.of(results):
            metric = metrics[history.metric]
            yield CommitHistory(
                name=benchmark.name,
                metric=metric.name,
                unit=metric.unit,
                direction=metric.direction,
                scale=history.scale,
                limit=benchmark.limit,
                points=tuple(self._points(history, reasons)),
                changes=tuple(self._changes(history, metric)),
                known=history.known,
                blocks=history.blocks,
                clock=results.clock,
                run=results.run,
                digest=results.digest,
            )

    def _points(self, history: History, reasons: Mapping[str, str]) -> Iterator[CommitPoint]:
        measured = {point.version: point for point in history.points}
        for commit in self.commits:
            if (point := measured.get(commit.short)) is None:
                yield CommitPoint(commit=commit, reason=reasons.get(commit.short, "every trial failed"))
            else:
                yield CommitPoint(commit=commit, value=point.value, low=point.low, high=point.high)

    def _changes(self, history: History, metric: Metric) -> Iterator[CommitChange]:
        commits = {commit.short: commit for commit in self.commits}
        neutral = 1.0 if history.scale == "ratio" else 0.0
        for change in history.changes:
            before, after = commits[change.before], commits[change.after]
            yield CommitChange(
                before=before,
                after=after,
                change=change.change,
                worse=(change.change > neutral) == (metric.direction == "lower"),
                between=self.every[self.every.index(before) + 1 : self.every.index(after) + 1],
            )


def spread(commits: Sequence[ProjectCommit], most: int) -> tuple[ProjectCommit, ...]:
    """Return at most ``most`` of ``commits``, evenly spaced, with both ends."""
    if len(commits) <= most:
        return tuple(commits)
    last = len(commits) - 1
    return tuple(commits[round(place * last / (most - 1))] for place in range(most))


def _unmeasured(benchmark: BenchmarkTable, metrics: str, reason: str) -> CommitHistory:
    return CommitHistory(name=benchmark.name, metric=metrics, limit=benchmark.limit, points=(), reason=reason)
