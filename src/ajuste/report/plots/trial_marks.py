"""How single trials are marked: clean ones as their configuration, others by what became of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from ajuste.model.metric import Metric
from ajuste.model.results import Point, Results
from ajuste.report.format import Shown, shown_as
from ajuste.report.plots.plot import LegendEntry, plain, plain_lines
from ajuste.report.visible import visible_line

Kind = Literal["clean", "warm-up", "flagged", "failed"]

KINDS: Final[tuple[Kind, ...]] = ("clean", "warm-up", "flagged", "failed")
_LEGEND: Final[dict[Kind, tuple[str, str]]] = {
    "warm-up": ("warm-up, left out", "circle-open"),
    "flagged": ("flagged, left out and repeated", "diamond-cross-open"),
    "failed": ("failed, not measured", "x-thin-open"),
}
_LOG_SPAN: Final = 30.0  # figures that span more than this are drawn on a logarithmic axis


def kind_of(trial: Point) -> Kind:
    if trial.status == "failed":
        return "failed"
    if trial.status != "ok":
        return "flagged"
    return "warm-up" if trial.warm_up else "clean"


def symbol_of(kind: Kind, own: str) -> str:
    """The symbol of a trial whose configuration has the symbol ``own``."""
    return own if kind == "clean" else f"{own}-open" if kind == "warm-up" else _LEGEND[kind][1]


def kind_legend(trials: Iterable[Point]) -> tuple[LegendEntry, ...]:
    """Entries for those kinds other than clean that occur."""
    present = {kind_of(trial) for trial in trials}
    return tuple(LegendEntry(*_LEGEND[kind], "muted") for kind in KINDS if kind != "clean" and kind in present)


def place_word(results: Results) -> str:
    """What a trial's ``block`` counts: blocks, or where results of elsewhere have none the values of a file."""
    return "place in the file" if results.elsewhere is not None and not results.blocks else "block"


def hover_text(trial: Point, label: str, metric: Metric, shown: Shown, place: str = "block") -> str:
    """What a trial says of itself: configuration, block (``place``), seed, figure, and what was wrong with it."""
    value = trial.metrics.get(metric.name)
    lines = [
        f"<b>{plain_lines(label, 40)}</b>",
        f"{place} {trial.block}"
        + (f", place {trial.position}, seed {trial.seed}" if trial.seed is not None else "")
        + (f", attempt {trial.attempt}" if trial.attempt else ""),
        f"{plain(metric.title)}: {plain(shown.with_unit(value)) if value is not None else 'no figure'}",
    ]
    if trial.warm_up:
        lines.append("warm-up: left out of every figure")
    if trial.status != "ok" or trial.reason:
        lines.append(plain_lines(f"{visible_line(trial.status)}: {trial.reason}", 44))
    return "<br>".join(lines)


def exact(metric: Metric, values: Iterable[float]) -> Shown:
    """Unit for an axis and for single figures, which show more digits than means do."""
    shown = shown_as(values, metric.unit)
    return Shown(shown.unit, shown.divisor, shown.decimals if shown.decimals == 0 else min(9, shown.decimals + 2))


def axis_type(values: Iterable[float]) -> Literal["log", "linear"]:
    """Logarithmic where all figures are positive and span more than a decade and a half."""
    found = list(values)
    spans = bool(found) and min(found) > 0 and max(found) / min(found) > _LOG_SPAN
    return "log" if spans else "linear"


def figure_axis(values: Sequence[float]) -> dict[str, Any]:
    """An axis for figures: logarithmic where ``axis_type`` says so, then with labels at powers of ten if they span
    enough of them; room around figures that are all alike.
    """
    if axis_type(values) == "log":
        powers = math.log10(max(values) / min(values))
        return {"type": "log", "dtick": 1 if powers > 1.9 else "D2", "minor": {"ticks": "outside", "ticklen": 2}}
    if values and min(values) == max(values):
        return {"range": [values[0] - (abs(values[0]) / 10 or 1), values[0] + (abs(values[0]) / 10 or 1)]}
    return {}
