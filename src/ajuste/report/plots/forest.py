"""Estimates and intervals against the baseline, with the band of effects that do not matter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.verdict import Finding, Verdict
from ajuste.report.format import Labels
from ajuste.report.plots.plot import LegendEntry, Plot, figure, level_axis, plain, plain_lines, scatter, variable
from ajuste.report.plots.trials import MOST_MARKED, ROW_HEIGHT
from ajuste.report.tables import metric_verdicts
from ajuste.report.verdicts import (
    EffectStyle,
    effect_band,
    effect_style,
    known,
    tally,
    verdict_text,
)
from ajuste_stats.terms import Scale

SYMBOLS: Final = {
    "improves": "triangle-up",
    "worsens": "triangle-down",
    "differs": "diamond",
    "equivalent": "square",
    "undecided": "circle-open",
}
AnyFinding = TypeVar("AnyFinding", bound=Finding)
BETTER: Final = {"lower": "← better", "higher": "better →"}
# How an interval is drawn towards a side on which nothing limits it yet.
_OPEN: Final = "dot"
_FAR: Final = 20.0  # intervals that reach this many times further than the estimates are cut, with an arrow


@dataclass(frozen=True)
class EffectAxis:
    """The axis of effects: from ratios or differences to places on it."""

    style: EffectStyle
    low: float
    high: float
    band: tuple[float, float]

    def place(self, value: float) -> float:
        """Return where a ratio or difference is on the axis (on a logarithmic one still the ratio itself)."""
        if self.style.kind == "percent":
            return 100 * (value - 1)
        return value if self.style.kind == "factor" else self.style.fmt.scaled(value)

    def interval(self, finding: Finding) -> tuple[float, float]:
        """Return where it begins and ends, cut where it reaches beyond the axis."""
        low, high = known(finding.low), known(finding.high)
        return (
            self.low if low is None else max(self.low, self.place(low)),
            self.high if high is None else min(self.high, self.place(high)),
        )

    def hover_text(self, finding: Finding, name: str, word: str) -> str:
        """Return ``name``, estimate, interval, verdict and reason of a finding."""
        return (
            f"<b>{plain_lines(name, 40)}</b><br>{plain(self.style.estimate(finding))} "
            f"({plain(self.style.interval(finding))})<br>{plain(word)}<br>{plain_lines(finding.reason, 48)}"
        )


def forest_plots(results: Results, metric: Metric, labels: Labels, name: str) -> tuple[Plot, ...]:
    """Return a plot for each scale among the verdicts (some may have fallen back to differences)."""
    return tuple(
        _plot(results, metric, verdicts, labels, f"{name}-{scale}")
        for scale, verdicts in by_scale(metric_verdicts(results, metric.name)).items()
    )


def by_scale(findings: Iterable[AnyFinding]) -> dict[Scale, list[AnyFinding]]:
    """Return the findings that have an estimate, by their scale."""
    groups: dict[Scale, list[AnyFinding]] = {}
    for finding in findings:
        if known(finding.estimate) is not None:
            groups.setdefault(finding.scale, []).append(finding)
    return groups


def _plot(results: Results, metric: Metric, verdicts: list[Verdict], labels: Labels, name: str) -> Plot:
    axis = effect_axis(results, metric, verdicts)
    by_name = {verdict.configuration: verdict for verdict in verdicts}
    rows = [(c, by_name.get(c.name)) for c in results.configurations if c.baseline or c.name in by_name]
    traces: list[dict[str, Any]] = []
    for place, (configuration, verdict) in enumerate(rows):
        wording = "" if verdict is None else verdict_text(verdict, results.smallest_effect)
        traces += finding_traces(len(rows) - 1 - place, labels.short(configuration), verdict, axis, wording)
    ticks = [labels.named(configuration) for configuration, _ in reversed(rows)]
    unlimited = any(known(end) is None for verdict in verdicts for end in (verdict.low, verdict.high))
    return Plot(
        name=name,
        title=f"Effect against the baseline{in_words(axis.style)}",
        description=f"{metric.title}: estimate and {100 * results.level:g} % interval for each configuration against "
        f"the baseline; the band is {effect_band(results.smallest_effect)}, too small to matter. A dotted line with an "
        f"arrow has no limit yet on that side.",
        figure=figure(traces, xaxis=x_axis(axis, metric), yaxis=level_axis(ticks), shapes=zone_shapes(axis)),
        height=340 if len(rows) <= MOST_MARKED else 70 + ROW_HEIGHT * len(rows),
        legend=(
            *words_legend(verdicts, results.smallest_effect),
            *((LegendEntry("no limit yet on this side", "dash", "undecided"),) if unlimited else ()),
        ),
    )


def finding_traces(
    height: int, name: str, verdict: Verdict | None, axis: EffectAxis, wording: str
) -> list[dict[str, Any]]:
    """A finding with its interval, called ``name``, described by ``wording``; without one, the baseline."""
    if verdict is None:
        text = f"<b>{plain_lines(name, 40)}</b><br>baseline"
        return [_point(axis.place(neutral(axis.style)), height, "circle", "series-0", text)]
    text = axis.hover_text(verdict, name, wording)
    low, high = axis.interval(verdict)
    estimate = known(verdict.estimate)
    middle = (low + high) / 2 if estimate is None else axis.place(estimate)
    limits = known(verdict.low), known(verdict.high)
    if None in limits:
        dash_low, dash_high = (_OPEN if limit is None else "solid" for limit in limits)
        traces = [
            _line(low, middle, height, verdict.verdict, text, dash_low),
            _line(middle, high, height, verdict.verdict, text, dash_high),
        ]
    else:
        traces = [_line(low, high, height, verdict.verdict, text)]
    for limit, end, symbol in zip(limits, (low, high), ("triangle-left", "triangle-right"), strict=True):
        if limit is None or axis.place(limit) != end:  # it goes on beyond the axis
            traces.append(_point(end, height, symbol, verdict.verdict, text))
    if estimate is not None:
        traces.append(_point(middle, height, SYMBOLS[verdict.verdict], verdict.verdict, text))
    return traces


def _line(low: float, high: float, height: int, role: str, text: str, dash: str = "solid") -> dict[str, Any]:
    line = {"color": variable(role), "width": 3, **({"dash": dash} if dash != "solid" else {})}
    return scatter("lines", [low, high], [height, height], [text, text], line=line)


def _point(x: float, height: int, symbol: str, role: str, text: str) -> dict[str, Any]:
    hollow = symbol.endswith("-open")
    return scatter(
        "markers",
        [x],
        [height],
        [text],
        marker={
            "symbol": symbol,
            "size": 11,
            "color": variable(role),
            "line": {"width": 2 if hollow else 1, "color": variable(role if hollow else "card")},
        },
    )


def effect_axis(results: Results, metric: Metric, findings: Sequence[Finding]) -> EffectAxis:
    """Return an axis for findings of one scale: wide enough for estimates, and for intervals unless far wider."""
    style = effect_style(findings, metric.unit)[findings[0].scale]
    band = _band(results, metric, style)
    bare = EffectAxis(style, -math.inf, math.inf, band)
    estimates = [bare.place(v) for verdict in findings if (v := known(verdict.estimate)) is not None]
    ends = [
        bare.place(v) for verdict in findings for end in (verdict.low, verdict.high) if (v := known(end)) is not None
    ]
    fixed = [*estimates, bare.place(neutral(style)), *band]
    if style.kind == "factor":
        positive = [value for value in fixed if value > 0]
        least, most = min(positive) / _FAR, max(positive) * _FAR
        near = [*positive, *(max(least, min(most, end)) for end in ends if end > 0)]
        pad = 10 ** (0.06 * max(0.3, math.log10(max(near) / min(near))))
        return EffectAxis(style, min(near) / pad, max(near) * pad, band)
    reach = _FAR * max(abs(value) for value in fixed) or 1.0
    near = [*fixed, *(max(-reach, min(reach, end)) for end in ends)]
    pad = 0.06 * ((max(near) - min(near)) or 1.0)
    return EffectAxis(style, min(near) - pad, max(near) + pad, band)


def _band(results: Results, metric: Metric, style: EffectStyle) -> tuple[float, float]:
    # The effects that do not matter, on the axis: 1/(1+δ) … 1+δ, or ±δ times the baseline's mean.
    delta = results.smallest_effect
    if style.kind == "difference":
        baseline = next((c.metrics.get(metric.name) for c in results.configurations if c.baseline), None)
        width = style.fmt.scaled(delta * abs(baseline.mean)) if baseline else 0.0
        return -width, width
    place = EffectAxis(style, 0, 0, (0, 0)).place
    return place(1 / (1 + delta)), place(1 + delta)


def neutral(style: EffectStyle) -> float:
    """Return the value of no effect: a ratio of 1 or a difference of 0."""
    return 0.0 if style.kind == "difference" else 1.0


def x_axis(axis: EffectAxis, metric: Metric) -> dict[str, Any]:
    """Return ``axis`` as plotly has it, with an arrow to where the metric is better."""
    drawn: dict[str, Any]
    # Somewhat wider than what intervals are cut at: arrows need the room.
    if axis.style.kind == "factor":
        ends = [math.log10(axis.low), math.log10(axis.high)]
        drawn = {"type": "log", "range": _widened(*ends), "tickprefix": "×", "nticks": 7}
    else:
        suffix = " %" if axis.style.kind == "percent" else ""
        drawn = {"range": _widened(axis.low, axis.high), "ticksuffix": suffix, "tickformat": ",~g", "nticks": 7}
    return {**drawn, **({"title": {"text": BETTER[metric.direction]}} if metric.direction in BETTER else {})}


def _widened(low: float, high: float) -> list[float]:
    room = 0.03 * (high - low)
    return [low - room, high + room]


def zone_shapes(axis: EffectAxis) -> list[dict[str, Any]]:
    """Return the zone of effects that do not matter, and the line of no effect."""
    nothing = axis.place(neutral(axis.style))
    common = {"xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    return [
        {
            **common,
            "type": "rect",
            "x0": axis.band[0],
            "x1": axis.band[1],
            "fillcolor": variable("band"),
            "line": {"width": 0},
        },
        {**common, "type": "line", "x0": nothing, "x1": nothing, "line": {"color": variable("muted"), "width": 1}},
    ]


def in_words(style: EffectStyle) -> str:
    """Return the quantity on the axis, to follow a title."""
    if style.kind == "percent":
        return ", in %"
    if style.kind == "factor":
        return ", as a factor, logarithmic"
    return f", difference in {style.unit}" if style.unit else ", difference"


def words_legend(findings: Iterable[Finding], smallest_effect: float) -> tuple[LegendEntry, ...]:
    """Return the verdicts of the findings, and the zone of effects that do not matter."""
    entries = tuple(LegendEntry(word, SYMBOLS[word], word) for word, _ in tally(findings))
    return (*entries, zone_legend(smallest_effect))


def zone_legend(smallest_effect: float) -> LegendEntry:
    """Return the entry of the zone of effects that do not matter."""
    return LegendEntry(f"too small to matter ({effect_band(smallest_effect)})", "band", "band")
