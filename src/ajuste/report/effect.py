"""Effects against the baseline in figures: percentages, factors or differences, alike within one metric."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ajuste.model.metric import Scale
from ajuste.model.verdict import Finding
from ajuste.report.format import NOTHING, Shown, shown_as, signed, significant

Kind = Literal["percent", "factor", "difference"]

_PERCENT_FROM: Final = 0.5  # ratios from one half to double are said in percent, others as factors
_PERCENT_TO: Final = 2.0
_NO_LIMITS: Final = "no limits yet"


@dataclass(frozen=True)
class EffectStyle:
    """How all the effects of one metric are said."""

    kind: Kind
    shown: Shown

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
        return EffectStyle("factor", Shown(""))
    return EffectStyle("percent", Shown("%", decimals=_percent_decimals(widths)))


def _percent_decimals(widths: Sequence[float]) -> int:
    """One decimal; more, up to three, where intervals are narrower than that shows."""
    narrowest = min((100 * width for width in widths if width > 0), default=1.0)
    return next((decimals for decimals in (1, 2) if narrowest >= 10.0**-decimals), 3)
