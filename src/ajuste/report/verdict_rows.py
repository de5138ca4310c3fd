"""Tables of verdicts and of effects as text ready to be laid out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Results
from ajuste.model.verdict import FactorEffect, Finding, Verdict, Word
from ajuste.report.effect import effect_style
from ajuste.report.factor_effects import effect_name, effects_of
from ajuste.report.labels import Labels
from ajuste.report.rows import verdicts_of
from ajuste.report.verdict_words import LOOKS, tally, verdict_text

F = TypeVar("F", bound=Finding)


@dataclass(frozen=True)
class Badge:
    word: Word
    sign: str
    text: str


@dataclass(frozen=True)
class VerdictRow:
    configuration: str
    estimate: str
    interval: str
    badge: Badge
    reason: str


@dataclass(frozen=True)
class VerdictGroup:
    """The verdicts on one metric."""

    metric: str
    rows: tuple[VerdictRow, ...]


def badges_of(findings: Sequence[Finding]) -> tuple[Badge, ...]:
    """One badge a word, with how many of what was compared it is said of."""
    total = len(findings)
    return tuple(
        Badge(word, LOOKS[word].sign, word if total == 1 else f"{word} {count} of {total}")
        for word, count in tally(findings)
    )


def verdict_groups(results: Results, metrics: Sequence[Metric], labels: Labels) -> tuple[VerdictGroup, ...]:
    """The verdicts on each of ``metrics`` that has any."""
    configurations = {configuration.name: configuration for configuration in results.configurations}

    def name(verdict: Verdict) -> str:
        return named(verdict.configuration, configurations, labels)

    return _groups(results, metrics, verdicts_of, name)


def effect_groups(results: Results, metrics: Sequence[Metric], labels: Labels) -> tuple[VerdictGroup, ...]:
    """The effects of factors on each of ``metrics``."""

    def name(effect: FactorEffect) -> str:
        return effect_name(effect, labels)

    return _groups(results, metrics, effects_of, name)


def named(name: str, configurations: Mapping[str, Measured], labels: Labels) -> str:
    """A configuration shortly, if it is known."""
    return labels.short(configurations[name]) if name in configurations else name


def _groups(
    results: Results,
    metrics: Sequence[Metric],
    found: Callable[[Results, str], tuple[F, ...]],
    name: Callable[[F], str],
) -> tuple[VerdictGroup, ...]:
    groups = (VerdictGroup(m.title, _rows(results, m, found(results, m.name), name)) for m in metrics)
    return tuple(group for group in groups if group.rows)


def _rows(results: Results, metric: Metric, findings: Sequence[F], name: Callable[[F], str]) -> tuple[VerdictRow, ...]:
    styles = effect_style(findings, metric.unit)
    return tuple(
        VerdictRow(
            configuration=name(one),
            estimate=styles[one.scale].estimate(one),
            interval=styles[one.scale].interval(one),
            badge=Badge(one.verdict, LOOKS[one.verdict].sign, verdict_text(one, results.smallest_effect)),
            reason=one.reason,
        )
        for one in findings
    )
