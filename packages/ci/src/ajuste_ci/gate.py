"""The gate: each benchmark of a project in two revisions side by side, and the commit that brought a regression."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import scipy

from ajuste.model.cost import function_words
from ajuste.model.error import AjusteError, RunError
from ajuste.model.explanation import EXPLANATIONS
from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste_ci.bench import BenchRequest, RevisionBench
from ajuste_ci.model import (
    OF_LIMIT,
    GateFigure,
    GateResult,
    GateRevision,
    GateWord,
    GrownCall,
    GrownFunction,
    NoopFigure,
    NoopResult,
    ProjectCommit,
    worst,
)
from ajuste_ci.project import CONFIDENCE, SIDES, BenchmarkTable, ReproducerTable
from ajuste_ci.rows import BenchmarkRow, RowMeasurement, rows_of
from ajuste_stats.bisection import Outcome, confidence_of_each, culprits, next_candidate, steps_needed
from ajuste_stats.terms import LimitWord

_OUTCOMES: Final[dict[LimitWord, Outcome]] = {"beyond": "there", "within": "absent", "undecided": "undecided"}


@dataclass(frozen=True)
class CommitSearch:
    """Searches the commits after ``base`` up to ``head`` for the first with ``metric`` beyond its limit.

    Each commit is compared with the base, side by side as in a gate; the confidence holds for all tests together.
    """

    base: GateRevision
    head: GateRevision
    benchmark: BenchmarkTable
    metric: str
    bench: RevisionBench

    def carry_out(self) -> tuple[ProjectCommit, ...]:
        """Return the commits one of which brought the regression: a single one unless some are undecided. Raises
        RunError if none of the head's commits did: the base improved after both parted.
        """
        repository, base, head = self.bench.request.repository, self.base.commit, self.head.commit
        parting = ProjectCommit(commit=repository.parting(base, head))
        # The commit where two branches part must be within the limit, or the base itself improved.
        parted = (parting,) if parting.commit not in ("", base) else ()
        uncommitted = (ProjectCommit(commit=""),) if not self.head.revision and repository.is_changed() else ()
        line = (ProjectCommit(commit=base), *parted, *repository.commits(f"{base}..{head}"), *uncommitted)
        tests = steps_needed(len(line))
        outcomes: dict[int, Outcome] = {}
        while (place := next_candidate(len(line), outcomes)) is not None:
            of_about = f"test {len(outcomes) + 1} of about {max(tests, len(outcomes) + 1)}"
            self.bench.request.options.say(f"testing {line[place].short} ({of_about})")
            outcomes[place] = self._test(line[place], confidence_of_each(CONFIDENCE, tests))
        commits = tuple(line[place] for place in culprits(len(line), outcomes))
        if commits[0] == parting:
            raise RunError(
                f"{parting.short}, where base and head part, is beyond the limit already: the base got better"
            )
        return commits

    def _test(self, commit: ProjectCommit, confidence: float) -> Outcome:
        try:
            self.bench.switch(SIDES[1], GateRevision(revision=commit.short, commit=commit.commit))
            results, _ = self.bench.judge(self.benchmark, confidence)
        except AjusteError as error:
            if not error.of_candidate:
                raise
            return "unusable"
        verdict = next(verdict for verdict in results.verdicts if verdict.deciding and verdict.metric == self.metric)
        return _OUTCOMES[verdict.against_limit or "undecided"]


MOST_FUNCTIONS: Final = 3
"""Maximum number of functions named as the cause of a regression."""

LEAST_PART: Final = 0.05
"""Minimum instructions of a named function, as a share of the first one's."""


@dataclass(frozen=True)
class RevisionGate:
    """Judges ``head`` against ``base``; ``bisect`` finds the commit of each regression."""

    request: BenchRequest
    base: GateRevision
    head: GateRevision
    bisect: bool = False

    def carry_out(self) -> GateResult:
        """Judge all benchmarks; one that cannot be measured does not stop the others."""
        with self.request.bench(dict(zip(SIDES, (self.base, self.head), strict=True))) as bench:
            figures = self.request.each(lambda benchmark: self._figures(benchmark, bench), self._unmeasured)
            if self.bisect:
                figures = [self._located(figure, bench) for figure in figures]
            figures += [figure for test in self.request.reproducers for figure in self._reproduced(test, bench)]
        return GateResult(
            result=worst(figures), file=self.request.file, base=self.base, head=self.head, benchmarks=tuple(figures)
        )

    def _figures(self, benchmark: BenchmarkTable, bench: RevisionBench) -> Sequence[GateFigure]:
        if benchmark.harness is not None:
            return [figure for row in rows_of(bench, benchmark) for figure in self._of_row(row, benchmark, bench)]
        results, uncounted = bench.judge(benchmark, explained=SIDES[1])
        return list(self._judged(results, benchmark, uncounted))

    def _of_row(self, row: BenchmarkRow, table: BenchmarkTable, bench: RevisionBench) -> list[GateFigure]:
        metrics, line = ", ".join(table.metric), self.request.project.line(table)
        if only := [side for side in row.sides if len(row.sides) == 1]:
            word: GateWord = "removed" if only == [SIDES[0]] else "new"
            return [GateFigure(name=row.name, metric=metrics, verdict=word, limit=table.limit, line=line)]
        try:
            results, uncounted = RowMeasurement(bench, table, row).judge(explained=SIDES[1])
        except AjusteError as failure:
            self.request.failed(row.name, failure)
            return [self._unmeasured(table, metrics, failure.message, row.name)]
        return list(self._judged(results, table, uncounted, row.name))

    def _reproduced(self, test: ReproducerTable, bench: RevisionBench) -> Iterator[GateFigure]:
        line = self.request.project.line(test)
        try:
            results, expectations = bench.reproduce(test, SIDES[1])
        except AjusteError as failure:
            self.request.failed(test.name, failure)
            reason = str(failure).replace(f"{bench.trees.directory / bench.trees.place(SIDES[1])}/", "")
            yield GateFigure(name=test.name, metric=test.study, verdict="failed", line=line, reason=reason)
            return
        for expectation in expectations:
            yield GateFigure(
                name=test.name,
                metric=expectation.subject,
                verdict="pass" if expectation.holds else "regression",
                expected=expectation.what,
                found=expectation.actual,
                blocks=results.blocks,
                clock=results.clock,
                run=results.run,
                digest=results.digest,
                line=line,
            )

    def _located(self, figure: GateFigure, bench: RevisionBench) -> GateFigure:
        # A failed search does not undo the regression.
        if figure.verdict != "regression":
            return figure
        (benchmark,) = self.request.project.chosen((figure.name,))
        search = CommitSearch(self.base, self.head, benchmark, figure.metric, bench)
        try:
            return figure.model_copy(update={"culprits": search.carry_out()})
        except AjusteError as failure:
            reason = f"{figure.reason.rstrip('.')}. " if figure.reason else ""
            return figure.model_copy(update={"reason": f"{reason}its commit was not found: {failure.message}"})

    def _judged(
        self, results: Results, benchmark: BenchmarkTable, uncounted: str, name: str = ""
    ) -> Iterator[GateFigure]:
        metrics = {configuration.name: configuration.metrics for configuration in results.configurations}
        for verdict in results.verdicts:
            if not verdict.deciding:
                continue
            base, head = (metrics[side].get(verdict.metric) for side in SIDES)
            word = OF_LIMIT[verdict.against_limit or "undecided"]
            more = f"; it takes {verdict.about_more}" if verdict.about_more else ""
            undecided = f"{results.stopped_because}{more}"
            reasons: dict[GateWord, str] = {"undecided": undecided, "regression": uncounted}
            yield GateFigure(
                **{field: getattr(verdict, field) for field in _SHARED},
                name=name or benchmark.name,
                verdict=word,
                base=verdict.old if verdict.old is not None or not base else base.mean,
                head=verdict.new if verdict.new is not None or not head else head.mean,
                limit=benchmark.limit,
                clock=results.clock,
                run=results.run,
                digest=results.digest,
                layouts=benchmark.layouts is not None,
                line=self.request.project.line(benchmark),
                **(grown(results) if word == "regression" else {}),
                reason=reasons.get(word, ""),
            )

    def _unmeasured(self, benchmark: BenchmarkTable, metrics: str, reason: str, name: str = "") -> GateFigure:
        line = self.request.project.line(benchmark)
        return GateFigure(
            name=name or benchmark.name,
            metric=metrics,
            verdict="failed",
            limit=benchmark.limit,
            line=line,
            reason=reason,
        )


@dataclass(frozen=True)
class NoopGate:
    """Judges ``revision`` against itself ``runs`` times with different seeds: every change is a false one."""

    request: BenchRequest
    revision: GateRevision
    runs: int

    def carry_out(self) -> NoopResult:
        """Judge all benchmarks; one that cannot be measured does not stop the others."""
        with self.request.bench(dict.fromkeys(SIDES, self.revision)) as bench:
            figures = self.request.each(lambda benchmark: self._figures(benchmark, bench), _unjudged)
        measured = max(1, sum(not figure.reason for figure in figures))
        return NoopResult(
            file=self.request.file,
            revision=self.revision,
            promised=1 - CONFIDENCE,
            benchmarks=tuple(_rated(figure, (1 - CONFIDENCE) / measured) for figure in figures),
        )

    def _figures(self, benchmark: BenchmarkTable, bench: RevisionBench) -> Sequence[NoopFigure]:
        figures: dict[str, NoopFigure] = {}
        for run in range(self.runs):
            self.request.options.say(f"{benchmark.name}: run {run + 1} of {self.runs}")
            results, _ = bench.judge(benchmark, again=run)
            for verdict in results.verdicts:
                if verdict.deciding:
                    before = figures.get(verdict.metric, _unjudged(benchmark, verdict.metric, ""))
                    figures[verdict.metric] = _with_run(before, verdict)
        return list(figures.values())


def _unjudged(benchmark: BenchmarkTable, metrics: str, reason: str) -> NoopFigure:
    return NoopFigure(name=benchmark.name, metric=metrics, limit=benchmark.limit, reason=reason)


def _with_run(figure: NoopFigure, verdict: Verdict) -> NoopFigure:
    none = 1.0 if verdict.scale == "ratio" else 0.0
    low = -math.inf if verdict.low is None else verdict.low
    high = math.inf if verdict.high is None else verdict.high
    both = [value for value in (figure.largest, verdict.estimate) if value is not None]
    return figure.model_copy(
        update={
            "unit": verdict.unit,
            "scale": verdict.scale,
            "runs": figure.runs + 1,
            "changed": figure.changed + (not low <= none <= high),
            "regressions": figure.regressions + (verdict.against_limit == "beyond"),
            "undecided": figure.undecided + (verdict.against_limit == "undecided"),
            "largest": max(both, key=lambda value: abs(value - none), default=None),
        }
    )


def wilson(count: int, of: int) -> tuple[float, float]:
    """Return the interval of the share ``count`` / ``of`` (Wilson 1927, Journal of the American Statistical Association
    22).
    """
    z = float(scipy.special.ndtri((1 + CONFIDENCE) / 2))
    share, whole = count / of, 1 + z * z / of
    middle = share + z * z / (2 * of)
    half = z * math.sqrt(share * (1 - share) / of + (z / (2 * of)) ** 2)
    return max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole)


def _rated(figure: NoopFigure, alpha: float) -> NoopFigure:
    # `alpha` is the error rate of *too often* (exact binomial test).
    if not figure.runs:
        return figure
    low, high = wilson(figure.changed, figure.runs)
    chance = float(scipy.special.bdtrc(figure.changed - 1, figure.runs, 1 - CONFIDENCE)) if figure.changed else 1.0
    return figure.model_copy(update={"low": low, "high": high, "too_often": chance < alpha})


_SHARED: Final = ("metric", "unit", "direction", "scale", "estimate", "low", "high", "level", "blocks")


def grown(results: Results) -> dict[str, Any]:
    """Return the functions with more instructions in the head, and the system calls it makes more often, largest first;
    empty if they were not counted.
    """
    costs = next(
        (explanation.costs for explanation in EXPLANATIONS.of(results) if explanation.configuration == SIDES[1]), None
    )
    if costs is None:
        return {}
    whole = max(0, costs.total - costs.baseline)
    rows = [row for row in costs.functions if row.difference > 0]
    first = rows[0].difference if rows else 0
    calls = [row for row in costs.entries if row.own_calls > row.baseline_calls and row.difference > 0]
    calls = [row for row in calls if not row.name.endswith(")")]  # exceptions and interrupts
    return {
        "functions": tuple(
            GrownFunction(
                # A stub of the PLT jumps into a library, and the function there is counted with it.
                name="plt (functions of libraries)" if row.name == "plt" else function_words(row.name, row.file),
                more=row.difference,
                of=whole,
            )
            for row in rows[:MOST_FUNCTIONS]
            if row.difference >= LEAST_PART * first
        ),
        "calls": tuple(
            GrownCall(name=row.name, base=row.baseline_calls, head=row.own_calls)
            for row in sorted(calls, key=lambda row: -row.difference)[:MOST_FUNCTIONS]
            if row.difference >= LEAST_PART * whole
        ),
    }
