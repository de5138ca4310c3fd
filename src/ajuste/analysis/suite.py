"""The results of a suite: those of its members side by side, and the geometric means of their ratios."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ajuste.model.metric import Direction, Metric
from ajuste.model.results import Measured, Results, Tally
from ajuste.model.suite import SuiteMean, SuiteMember, SuiteRecord, SuiteResult
from ajuste.model.verdict import Verdict, Word

FEWEST: Final = 2
"""A mean of fewer ratios is none."""
ONLY: Final = "mean"
"""The configuration where nothing is compared: a study calls it after its workload."""
_DIRECTIONS: Final[tuple[Direction, ...]] = ("lower", "higher")


def suite_result(record: SuiteRecord, found: Mapping[str, Results]) -> SuiteResult:
    """What is known of the suite ``record``; ``found`` has the results of those of its members that were measured."""
    members = tuple(_member(record, name, found.get(name)) for name in (one.name for one in record.entries))
    results = _together(record, {one.name: found[one.name] for one in members if one.name in found})
    return SuiteResult(
        id=record.id,
        name=record.name,
        state="complete" if record.finished else "partial",
        comparisons=len(results.verdicts),
        members=members,
        means=tuple(_means(members, results)),
        results=results,
    )


def _member(record: SuiteRecord, name: str, results: Results | None) -> SuiteMember:
    entry = next(one for one in record.entries if one.name == name)
    if results is None:
        return SuiteMember(name=name, run=entry.run, reason=entry.reason)
    return SuiteMember(
        name=name,
        run=results.run,
        reason=entry.reason,
        metrics=tuple(_called(name, metric.name, results) for metric in _deciding(results)),
        clock=results.clock,
        blocks=results.blocks,
        stopped=results.stopped or "",
        digest=results.digest,
    )


def _deciding(results: Results) -> Sequence[Metric]:
    """The metrics that decide, in their order; the first that was measured where nothing is compared."""
    judged = {one.metric for one in results.verdicts if one.deciding}
    bounded = {name for one in results.configurations for name, own in one.metrics.items() if own.low is not None}
    chosen = [one for one in results.metrics if one.name in (judged or bounded)]
    return chosen or results.metrics[:1]


def _called(member: str, metric: str, results: Results) -> str:
    """A member with one metric gives it its name."""
    return member if len(_deciding(results)) == 1 else f"{member} {metric}"


def _together(record: SuiteRecord, found: Mapping[str, Results]) -> Results:
    """The deciding metrics of all members as one: each is named after its member."""
    every = list(found.values())
    verdicts: list[Verdict] = []
    metrics: list[Metric] = []
    measured: dict[str, Measured] = {}
    for name, results in found.items():
        names = {metric.name: _called(name, metric.name, results) for metric in _deciding(results)}
        metrics += [
            metric.model_copy(update={"name": names[metric.name], "title": f"{name}: {metric.title}"})
            for metric in _deciding(results)
        ]
        verdicts += [
            one.model_copy(update={"metric": names[one.metric], "level": record.level})
            for one in results.verdicts
            if one.metric in names
        ]
        for one in results.configurations:
            own = {names[metric]: summary for metric, summary in one.metrics.items() if metric in names}
            called = one.name if results.factors else ONLY
            before = measured.get(called, Measured(name=called, levels=one.levels, baseline=one.baseline))
            measured[called] = before.model_copy(update={"metrics": before.metrics | own})
    first = every[0] if every else None
    return Results(
        study=f"suite-{record.name}",
        title=record.title,
        question="",
        answer="",
        run=record.id,
        seed=first.seed if first else None,
        clock=first.clock if first else None,
        digest=hashlib.sha256("\n".join(f"{name} {one.digest}" for name, one in found.items()).encode()).hexdigest(),
        stopped=None,
        stopped_because="",
        level=record.level,
        smallest_effect=first.smallest_effect if first else 0.0,
        correction=_correction(len(verdicts), len(found)),
        blocks=min((one.blocks for one in every), default=0),
        verdicts=tuple(verdicts),
        configurations=tuple(measured.values()),
        factors=first.factors if first else (),
        metrics=tuple(metrics),
        trials=(),
        tally=_tally(every),
        explained=first.explained if first else (),
        environment=first.environment if first else {},
        reproduce=first.reproduce if first else (),
        notes=tuple(dict.fromkeys(note for one in every for note in one.notes)),
        created=record.created,
        ajuste=first.ajuste if first else "",
    )


def _correction(comparisons: int, members: int) -> str:
    if comparisons < FEWEST:
        return ""
    return f"Bonferroni: {comparisons} comparisons of {members} members"


def _tally(every: Sequence[Results]) -> Tally:
    counts = ("trials", "clean", "warm_up", "flagged", "failed")
    return Tally(**{name: sum(getattr(one.tally, name) for one in every) for name in counts})


# Geometric means: of ratios of metrics with the same better direction, one for each member.


def _means(members: Sequence[SuiteMember], results: Results) -> Iterator[SuiteMean]:
    metrics = {one.name: one for one in results.metrics}
    first = {one.metrics[0]: one.name for one in members if one.metrics}
    for configuration in results.configurations:
        for direction in _DIRECTIONS:
            own = [
                one
                for one in results.verdicts
                if one.configuration == configuration.name
                and one.metric in first
                and metrics[one.metric].direction == direction
                and _is_ratio(one)
            ]
            if len(own) >= FEWEST and not any(is_extreme(one.estimate) for one in own):
                yield _mean(own, tuple(first[one.metric] for one in own), direction, results.smallest_effect)


EXTREME: Final = 10.0


def is_extreme(ratio: float | None) -> bool:
    """Whether a member changed more than ten times: it alone would decide the mean of all."""
    return ratio is not None and not 1 / EXTREME <= ratio <= EXTREME


def _is_ratio(one: Verdict) -> bool:
    return one.scale == "ratio" and one.estimate is not None and one.estimate > 0


def _mean(own: Sequence[Verdict], members: tuple[str, ...], direction: Direction, smallest: float) -> SuiteMean:
    estimate = geometric([one.estimate for one in own])
    low, high = geometric([one.low for one in own]), geometric([one.high for one in own])
    return SuiteMean(
        configuration=own[0].configuration,
        direction=direction,
        members=members,
        estimate=1.0 if estimate is None else estimate,
        low=low,
        high=high,
        verdict=_word(low, high, direction, smallest),
    )


def geometric(ratios: Sequence[float | None]) -> float | None:
    """Their geometric mean; None unless all are known and positive."""
    known = [one for one in ratios if one is not None and 0 < one < math.inf]
    return math.exp(math.fsum(map(math.log, known)) / len(known)) if known and len(known) == len(ratios) else None


def _word(low: float | None, high: float | None, direction: Direction, smallest: float) -> Word:
    """As the verdicts have it: ratios between 1/(1+δ) and 1+δ are equivalent."""
    if low is not None and high is not None and 1 / (1 + smallest) < low and high < 1 + smallest:
        return "equivalent"
    if low is not None and low > 1:
        return "improves" if direction == "higher" else "worsens"
    if high is not None and high < 1:
        return "improves" if direction == "lower" else "worsens"
    return "undecided"
