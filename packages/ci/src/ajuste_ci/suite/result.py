"""The results of a suite: those of its members side by side, and the geometric means of their ratios."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ajuste.analysis.assembly import Source, put_together
from ajuste.model.continuation import REPRODUCE
from ajuste.model.explained import EXPLAINED
from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Results, Tally
from ajuste.model.verdict import Verdict, is_extreme
from ajuste_ci.suite.model import SuiteEntry, SuiteMean, SuiteMember, SuiteRecord, SuiteResult
from ajuste_stats.terms import Direction, Word

FEWEST: Final = 2
"""A mean of fewer ratios is none."""
ONLY: Final = "mean"
"""The configuration where nothing is compared: a study calls it after its workload."""
_COUNTS: Final = ("trials", "clean", "warm_up", "flagged", "failed")
_DIRECTIONS: Final[tuple[Direction, ...]] = ("lower", "higher")


def suite_result(record: SuiteRecord, by_member: Mapping[str, Results]) -> SuiteResult:
    """Return the result of the suite ``record``, whose measured members have ``by_member``."""
    members = tuple(_member(entry, by_member.get(entry.name)) for entry in record.entries)
    results = _together(record, {member.name: by_member[member.name] for member in members if member.name in by_member})
    return SuiteResult(
        id=record.id,
        name=record.name,
        state="complete" if record.finished else "partial",
        comparisons=len(results.verdicts),
        members=members,
        means=tuple(_mean_rows(members, results)),
        results=results,
    )


def _member(entry: SuiteEntry, results: Results | None) -> SuiteMember:
    if results is None:
        return SuiteMember(name=entry.name, run=entry.run, reason=entry.reason)
    return SuiteMember(
        name=entry.name,
        run=results.run,
        reason=entry.reason,
        metrics=tuple(_called(entry.name, metric.name, results) for metric in _deciding(results)),
        clock=results.clock,
        blocks=results.blocks,
        stopped=results.stopped or "",
        digest=results.digest,
    )


def _deciding(results: Results) -> Sequence[Metric]:
    # Return the metrics that decide; the first measured one where nothing is compared.
    judged = {verdict.metric for verdict in results.verdicts if verdict.deciding}
    bounded = {
        name
        for measured in results.configurations
        for name, summary in measured.metrics.items()
        if summary.low is not None
    }
    chosen = [metric for metric in results.metrics if metric.name in (judged or bounded)]
    return chosen or results.metrics[:1]


def _called(member: str, metric: str, results: Results) -> str:
    return member if len(_deciding(results)) == 1 else f"{member} {metric}"


def _together(record: SuiteRecord, by_member: Mapping[str, Results]) -> Results:
    every = list(by_member.values())
    verdicts: list[Verdict] = []
    metrics: list[Metric] = []
    measured: dict[str, Measured] = {}
    for name, results in by_member.items():
        names = {metric.name: _called(name, metric.name, results) for metric in _deciding(results)}
        metrics += [
            metric.model_copy(update={"name": names[metric.name], "title": f"{name}: {metric.title}"})
            for metric in _deciding(results)
        ]
        verdicts += [
            verdict.model_copy(update={"metric": names[verdict.metric], "level": record.level})
            for verdict in results.verdicts
            if verdict.metric in names
        ]
        for configuration in results.configurations:
            summaries = {names[metric]: summary for metric, summary in configuration.metrics.items() if metric in names}
            called = configuration.name if results.factors else ONLY
            before = measured.get(
                called, Measured(name=called, levels=configuration.levels, baseline=configuration.baseline)
            )
            measured[called] = before.model_copy(update={"metrics": before.metrics | summaries})
    first = every[0] if every else None
    digests = "\n".join(f"{name} {results.digest}" for name, results in by_member.items())
    source = Source(
        study=f"suite-{record.name}",
        title=record.title,
        question="",
        level=record.level,
        smallest_effect=first.smallest_effect if first else 0.0,
        digest=hashlib.sha256(digests.encode()).hexdigest(),
        run=record.id,
        seed=first.seed if first else None,
        clock=first.clock if first else None,
        factors=first.factors if first else (),
        environment={**first.environment, **_workloads(by_member)} if first else {},
        reproduce=REPRODUCE.of(first) if first else (),
        created=record.created,
        ajuste=first.ajuste if first else "",
    )
    return put_together(
        source,
        answer="",
        correction=f"Bonferroni: {len(verdicts)} comparisons of {len(by_member)} members" if len(verdicts) > 1 else "",
        blocks=min((results.blocks for results in every), default=0),
        verdicts=verdicts,
        configurations=tuple(measured.values()),
        metrics=metrics,
        trials=(),
        tally=Tally(**{name: sum(getattr(results.tally, name) for results in every) for name in _COUNTS}),
        notes=tuple(note for results in every for note in results.notes),
        facets=EXPLAINED.document(EXPLAINED.of(first) if first else ()),
    )


def _workloads(by_member: Mapping[str, Results]) -> dict[str, dict[str, str]]:
    lines: dict[str, str] = {}
    for name, results in by_member.items():
        workload = results.environment.get("workload", {})
        commands = workload if isinstance(workload, Mapping) else {"": workload}
        lines |= {f"{name} {configuration}".rstrip(): line for configuration, line in commands.items()}
    return {"workload": lines} if lines else {}


def _mean_rows(members: Sequence[SuiteMember], results: Results) -> Iterator[SuiteMean]:
    # Yield the geometric means of ratios of metrics with the same better direction, one for each member.
    metrics = {metric.name: metric for metric in results.metrics}
    first = {member.metrics[0]: member.name for member in members if member.metrics}
    for configuration in results.configurations:
        for direction in _DIRECTIONS:
            verdicts = [
                verdict
                for verdict in results.verdicts
                if verdict.configuration == configuration.name
                and verdict.metric in first
                and metrics[verdict.metric].direction == direction
                and verdict.scale == "ratio"
                and (verdict.estimate or 0) > 0
            ]
            if len(verdicts) >= FEWEST and not any(is_extreme(verdict.estimate) for verdict in verdicts):
                yield _mean(
                    verdicts, tuple(first[verdict.metric] for verdict in verdicts), direction, results.smallest_effect
                )


def _mean(verdicts: Sequence[Verdict], members: tuple[str, ...], direction: Direction, smallest: float) -> SuiteMean:
    estimate = geometric([verdict.estimate for verdict in verdicts])
    low, high = geometric([verdict.low for verdict in verdicts]), geometric([verdict.high for verdict in verdicts])
    return SuiteMean(
        configuration=verdicts[0].configuration,
        direction=direction,
        members=members,
        estimate=1.0 if estimate is None else estimate,
        low=low,
        high=high,
        verdict=_word(low, high, direction, smallest),
    )


def geometric(ratios: Sequence[float | None]) -> float | None:
    """Return the geometric mean; ``None`` unless all are known and positive."""
    known = [ratio for ratio in ratios if ratio is not None and 0 < ratio < math.inf]
    return math.exp(math.fsum(map(math.log, known)) / len(known)) if known and len(known) == len(ratios) else None


def _word(low: float | None, high: float | None, direction: Direction, smallest: float) -> Word:
    # Ratios between 1/(1+δ) and 1+δ are equivalent, as in the verdicts.
    if low is not None and high is not None and 1 / (1 + smallest) < low and high < 1 + smallest:
        return "equivalent"
    if low is not None and low > 1:
        return "improves" if direction == "higher" else "worsens"
    if high is not None and high < 1:
        return "improves" if direction == "lower" else "worsens"
    return "undecided"
