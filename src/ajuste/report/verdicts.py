"""The words of a verdict, with their signs and meanings, and the format of effects."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from ajuste.model.results import Results
from ajuste.model.verdict import EFFECTS, FactorEffect, Finding, LineEffect, Role
from ajuste.model.wording import block_words, factor, is_percentage, visible_line
from ajuste.report.document import Badge, Meanings
from ajuste.report.format import NOTHING, Labels, NumberFormat, common_format, number, signed
from ajuste_stats.terms import Scale, Word

ORDER: Final[tuple[Word, ...]] = ("improves", "worsens", "differs", "equivalent", "undecided")
Kind = Literal["percent", "factor", "difference"]
_NO_LIMITS: Final = "unknown until more blocks"

# Limits that are further apart than this factor tell nothing; the second holds where they include no effect.
_TELLING: Final = 1e6

_TELLING_AROUND_NONE: Final = 100.0


@dataclass(frozen=True)
class Look:
    """``sign`` tells the words apart without colour."""

    sign: str
    meaning: str


LOOKS: Final[dict[Word, Look]] = {
    "improves": Look("▲", "better than the baseline, statistically significant"),
    "worsens": Look("▼", "worse than the baseline, statistically significant"),
    "differs": Look("≠", "differs from the baseline; neither higher nor lower counts as better"),
    "equivalent": Look("≈", "so close to the baseline that the difference does not matter"),
    "undecided": Look("?", "the measurements do not decide it"),
}


def verdict_text(verdict: Finding, smallest_effect: float) -> str:
    """Return ``improves``, ``equivalent within ±5 %``, ``undecided, about 12 more blocks``."""
    if verdict.verdict == "equivalent":
        return f"equivalent within {effect_band(smallest_effect)}{_imprecise(verdict)}"
    if verdict.depends_on_machine:
        return "depends on the machine"
    if words := verdict.within_limit(smallest_effect):
        return words
    if verdict.too_coarse:
        return "undecided: the figures are too coarse"
    if verdict.reverses:
        return "undecided: it does not gain when it stays"
    if verdict.few_trials:
        blocks = block_words(verdict.blocks, of_rounds=verdict.of_rounds)
        return f"undecided: within {effect_band(smallest_effect)} in {blocks}, too few"
    if verdict.verdict == "undecided":
        return ", ".join(filter(None, ("undecided", verdict.about_more)))
    return f"{verdict.verdict}{_imprecise(verdict)}"


def _imprecise(verdict: Finding) -> str:
    return ", less precise than requested" if verdict.precise is False else ""


def effect_band(smallest_effect: float) -> str:
    """Return ``±5 %`` or ``±0.5 %``."""
    percent = 100 * smallest_effect
    decimals = next((d for d in range(3) if abs(round(percent, d) - percent) < 1e-9), 2)
    return f"±{number(percent, decimals)} %"


def tally(verdicts: Iterable[Finding]) -> list[tuple[Word, int]]:
    """Return how often each verdict occurs, in the order of ``ORDER``, without those that do not."""
    counts = Counter(verdict.verdict for verdict in verdicts)
    return [(word, counts[word]) for word in ORDER if counts[word]]


# Effects against the baseline in figures: percentages, factors or differences, alike within one metric.


@dataclass(frozen=True)
class EffectStyle:
    """The wording of all the effects of one metric."""

    kind: Kind
    fmt: NumberFormat

    @property
    def unit(self) -> str:
        return "%" if self.kind == "percent" else "" if self.kind == "factor" else self.fmt.unit

    def estimate(self, verdict: Finding) -> str:
        value = known(verdict.estimate)
        return NOTHING if value is None else self._with_unit(self.figure(value))

    def interval(self, verdict: Finding) -> str:
        """Return ``−52.1 … −50.4 %``; ``at least …`` or ``at most …`` if one side is not known."""
        low, high = known(verdict.low), known(verdict.high)
        if low is not None and high is not None:
            if self._tells_nothing(low, high, verdict):
                return _NO_LIMITS
            return self._with_unit(f"{self.figure(low)} … {self.figure(high)}")
        if low is not None:
            return self._with_unit(f"at least {self.figure(low)}")
        return _NO_LIMITS if high is None else self._with_unit(f"at most {self.figure(high)}")

    def _tells_nothing(self, low: float, high: float, verdict: Finding) -> bool:
        if self.kind == "difference":
            levels = [abs(level) for level in (verdict.old, verdict.new) if level]
            return bool(levels) and low < 0 < high and high - low > _TELLING_AROUND_NONE * max(levels)
        return high > (_TELLING_AROUND_NONE if low < 1 < high else _TELLING) * low

    def figure(self, value: float) -> str:
        """Return a ratio or difference without its unit."""
        if self.kind == "factor":
            return factor(value)
        if self.kind == "percent":
            return signed(100 * (value - 1), self.fmt.decimals)
        return self.fmt.signed(value)

    def _with_unit(self, text: str) -> str:
        return f"{text} {self.unit}".rstrip()


def effect_style(verdicts: Iterable[Finding], unit: str) -> dict[Scale, EffectStyle]:
    """Return the style for each scale among one metric's verdicts (a ratio metric can fall back to differences)."""
    by_scale: dict[Scale, list[Finding]] = {}
    for verdict in verdicts:
        by_scale.setdefault(verdict.scale, []).append(verdict)
    return {scale: _style(scale, group, unit) for scale, group in by_scale.items()}


def known(value: float | None) -> float | None:
    """Return ``None`` for what is not a finite figure."""
    return value if value is not None and math.isfinite(value) else None


def _style(scale: Scale, verdicts: Sequence[Finding], unit: str) -> EffectStyle:
    figures = [
        value for v in verdicts for value in (known(v.estimate), known(v.low), known(v.high)) if value is not None
    ]
    widths = [
        (high - low) / 2 for v in verdicts if (low := known(v.low)) is not None and (high := known(v.high)) is not None
    ]
    if scale == "difference":
        return EffectStyle("difference", common_format(figures, unit, widths))
    estimates = [value for v in verdicts if (value := known(v.estimate)) is not None]
    if not all(map(is_percentage, estimates)):
        return EffectStyle("factor", NumberFormat(""))
    # One decimal; more, up to three, where intervals are narrower than that shows.
    narrowest = min((100 * width for width in widths if width > 0), default=1.0)
    decimals = next((decimals for decimals in (1, 2) if narrowest >= 10.0**-decimals), 3)
    return EffectStyle("percent", NumberFormat("%", decimals=decimals))


# Effects of factors, and of the lines of a profile that was taken apart.


def effect_name(effect: FactorEffect, labels: Labels) -> str:
    """Return ``nice 0 → 10``; both steps of an interaction with a cross between."""
    steps = zip(effect.factors, effect.against, effect.levels, strict=True)
    return " × ".join(
        f"{visible_line(factor)} {labels.level(factor, old)} → {labels.level(factor, new)}"
        for factor, old, new in steps
    )


def metric_effects(results: Results, metric: str) -> tuple[FactorEffect, ...]:
    """Return the effects on one metric: main ones, then interactions, each from the largest to the smallest."""
    mine = [effect for effect in EFFECTS.of(results) if effect.metric == metric]
    return tuple(sorted(mine, key=lambda effect: (effect.kind != "main", -effect.size)))


# Badges: a word with its sign.


def word_meanings(findings: Sequence[Finding]) -> Meanings:
    """Return the words of ``findings``, with what each means."""
    words = {finding.verdict for finding in findings if not finding.is_within_limit}
    return Meanings(tuple((word_badge(word), LOOKS[word].meaning) for word in ORDER if word in words))


def word_badge(word: Word, text: str = "") -> Badge:
    """Return a badge with ``text``, or with the word itself."""
    return Badge(word, LOOKS[word].sign, text or word)


def badge(finding: Finding, smallest_effect: float) -> Badge:
    """Return the verdict as a coloured word."""
    word: Word = "equivalent" if finding.is_within_limit else finding.verdict
    return word_badge(word, verdict_text(finding, smallest_effect))


def counted(findings: Sequence[Finding]) -> tuple[Badge, ...]:
    """Return a badge for each verdict, with how many of the findings have it."""
    total = len(findings)
    if total == 1 and findings[0].is_within_limit:
        return (word_badge("equivalent", "within the limit"),)
    return tuple(
        word_badge(word, word if total == 1 else f"{word} {count} of {total}") for word, count in tally(findings)
    )


def counted_lines(lines: Sequence[LineEffect]) -> tuple[Badge, ...]:
    """Return a badge for each role, with how many of the lines have it."""
    by_role = {role: [line for line in lines if line.role == role] for role in get_args(Role)}
    return tuple(
        word_badge(having[0].verdict, f"{role}: {len(having)} of {len(lines)} lines")
        for role, having in by_role.items()
        if having
    )
