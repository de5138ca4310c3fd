"""The words of a verdict and how they look: a sign, a colour role, and what they mean."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from rich.text import Text

from ajuste.model.metric import Metric, Scale
from ajuste.model.results import Measured, Results
from ajuste.model.verdict import FactorEffect, Finding, Verdict, Word
from ajuste.model.wording import visible_line
from ajuste.report.format import NOTHING, ShownNumber, number, shown_as, signed, significant
from ajuste.report.labels import Labels
from ajuste.report.metric_table import verdicts_of
from ajuste.report.sheet import INDENT, Sheet, plain_table


@dataclass(frozen=True)
class Look:
    """``sign`` tells the words apart without colour; ``style`` is for the terminal, ``meaning`` for the legend."""

    sign: str
    style: str
    meaning: str


LOOKS: Final[dict[Word, Look]] = {
    "improves": Look("▲", "bold green", "better than the baseline: the interval excludes no effect"),
    "worsens": Look("▼", "bold red", "worse than the baseline: the interval excludes no effect"),
    "differs": Look("≠", "bold blue", "differs from the baseline; the metric has no better direction"),
    "equivalent": Look("≈", "cyan", "so close to the baseline that the difference does not matter"),
    "undecided": Look("?", "yellow", "the measurements do not decide it"),
}
ORDER: Final[tuple[Word, ...]] = ("improves", "worsens", "differs", "equivalent", "undecided")


def verdict_text(verdict: Finding, smallest_effect: float) -> str:
    """``improves``, ``equivalent within ±5 %``, ``undecided, about 12 more blocks``."""
    if verdict.verdict == "equivalent":
        return f"equivalent within {effect_band(smallest_effect)}"
    if verdict.depends_on_machine:
        return "depends on the machine"
    if verdict.verdict == "undecided" and verdict.more_blocks is not None:
        noun = "block" if verdict.more_blocks == 1 else "blocks"
        return f"undecided, about {verdict.more_blocks:,} more {noun}"
    return verdict.verdict


def effect_band(smallest_effect: float) -> str:
    """``±5 %``; ``±0.5 %``."""
    percent = 100 * smallest_effect
    decimals = next((d for d in range(3) if abs(round(percent, d) - percent) < 1e-9), 2)
    return f"±{number(percent, decimals)} %"


def tally(verdicts: Iterable[Finding]) -> list[tuple[Word, int]]:
    """How often each word was said, in the order of ``ORDER``; words that were not said are left out."""
    counts = Counter(verdict.verdict for verdict in verdicts)
    return [(word, counts[word]) for word in ORDER if counts[word]]


# Effects against the baseline in figures: percentages, factors or differences, alike within one metric.


Kind = Literal["percent", "factor", "difference"]

_PERCENT_FROM: Final = 0.5  # ratios from one half to double are said in percent, others as factors
_PERCENT_TO: Final = 2.0
_NO_LIMITS: Final = "no limits yet"


@dataclass(frozen=True)
class EffectStyle:
    """How all the effects of one metric are said."""

    kind: Kind
    shown: ShownNumber

    @property
    def unit(self) -> str:
        return "%" if self.kind == "percent" else "" if self.kind == "factor" else self.shown.unit

    def estimate(self, verdict: Finding) -> str:
        value = known(verdict.estimate)
        return NOTHING if value is None else self._with_unit(self.figure(value))

    def interval(self, verdict: Finding) -> str:
        """``−52.1 … −50.4 %``; ``at least …`` or ``at most …`` where one side is not known."""
        low, high = known(verdict.low), known(verdict.high)
        if low is None and high is None:
            return _NO_LIMITS
        if low is None or high is None:
            return self._with_unit(f"at least {self.figure(low)}" if low is not None else self._at_most(high))
        return self._with_unit(f"{self.figure(low)} … {self.figure(high)}")

    def figure(self, value: float) -> str:
        """One ratio or difference without its unit."""
        if self.kind == "factor":
            return f"×{significant(value, 3)}"
        if self.kind == "percent":
            return signed(100 * (value - 1), self.shown.decimals)
        return self.shown.signed(value)

    def _at_most(self, high: float | None) -> str:
        return NOTHING if high is None else f"at most {self.figure(high)}"

    def _with_unit(self, text: str) -> str:
        return f"{text} {self.unit}".rstrip()


def effect_style(verdicts: Iterable[Finding], unit: str) -> dict[Scale, EffectStyle]:
    """The style for each scale among the verdicts of one metric (a ratio metric can fall back to differences)."""
    by_scale: dict[Scale, list[Finding]] = {}
    for verdict in verdicts:
        by_scale.setdefault(verdict.scale, []).append(verdict)
    return {scale: _style(scale, group, unit) for scale, group in by_scale.items()}


def known(value: float | None) -> float | None:
    """``None`` for what is not a finite figure."""
    return value if value is not None and math.isfinite(value) else None


def _style(scale: Scale, verdicts: Sequence[Finding], unit: str) -> EffectStyle:
    figures = [
        value for v in verdicts for value in (known(v.estimate), known(v.low), known(v.high)) if value is not None
    ]
    widths = [
        (high - low) / 2 for v in verdicts if (low := known(v.low)) is not None and (high := known(v.high)) is not None
    ]
    if scale == "difference":
        return EffectStyle("difference", shown_as(figures, unit, widths))
    estimates = [value for v in verdicts if (value := known(v.estimate)) is not None]
    if any(not _PERCENT_FROM <= value <= _PERCENT_TO for value in estimates):
        return EffectStyle("factor", ShownNumber(""))
    return EffectStyle("percent", ShownNumber("%", decimals=_percent_decimals(widths)))


def _percent_decimals(widths: Sequence[float]) -> int:
    """One decimal; more, up to three, where intervals are narrower than that shows."""
    narrowest = min((100 * width for width in widths if width > 0), default=1.0)
    return next((decimals for decimals in (1, 2) if narrowest >= 10.0**-decimals), 3)


# Effects of factors in the terminal: which matter, in which direction, how surely.


MOST_INTERACTIONS: Final = 12
"""Of more than these only interactions that are there, or are undecided, stand in the terminal."""


def effect_name(effect: FactorEffect, labels: Labels) -> str:
    """``nice 0 → 10``; of an interaction both steps with a cross between."""
    steps = zip(effect.factors, effect.against, effect.levels, strict=True)
    return " × ".join(
        f"{visible_line(factor)} {labels.level(factor, old)} → {labels.level(factor, new)}"
        for factor, old, new in steps
    )


def effects_of(results: Results, metric: str) -> tuple[FactorEffect, ...]:
    """The effects on one metric: main effects first, then interactions, each from the largest to the smallest."""
    mine = [effect for effect in results.effects if effect.metric == metric]
    return tuple(sorted(mine, key=lambda effect: (effect.kind != "main", -effect_size(effect))))


def effect_size(effect: FactorEffect) -> float:
    """How far it is from none, whatever the direction; for sorting effects on one metric."""
    estimate = known(effect.estimate)
    if estimate is None:
        return 0.0
    return max(estimate, 1 / estimate) if effect.scale == "ratio" else abs(estimate)


def print_factor_effects(out: Sheet, results: Results, labels: Labels) -> None:
    """A table for each metric; nothing where there are no effects of factors."""
    if not results.effects:
        return
    out.heading("Effects of the factors, each averaged over the levels of all others")
    for metric in results.metrics:
        found = effects_of(results, metric.name)
        if found:
            _print_metric(out, results, metric, found, labels)


def _print_metric(
    out: Sheet, results: Results, metric: Metric, found: tuple[FactorEffect, ...], labels: Labels
) -> None:
    styles = effect_style(found, metric.unit)
    interactions = [effect for effect in found if effect.kind == "interaction"]
    few = len(interactions) <= MOST_INTERACTIONS
    shown = [e for e in found if few or e.kind == "main" or e.verdict not in ("equivalent", "undecided")]
    out.blank()
    out.say(visible_line(metric.title), style="bold", indent=INDENT)
    table = plain_table()
    for head, justify in (("", "left"), ("effect", "right"), ("interval", "right"), ("", "left")):
        table.add_column(head, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for effect in shown:
        style = styles[effect.scale]
        word = Text(verdict_text(effect, results.smallest_effect), style=LOOKS[effect.verdict].style)
        name = Text(effect_name(effect, labels))
        table.add_row(name, Text(style.estimate(effect)), Text(style.interval(effect)), word)
    out.table(table, indent=INDENT)
    if len(shown) < len(found):
        out.say(f"{len(found) - len(shown)} more interactions are in the report.", indent=INDENT, style="dim")


# Tables of verdicts and of effects as text ready to be laid out.


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
