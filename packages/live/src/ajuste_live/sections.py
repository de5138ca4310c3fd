"""Sections of an experiment on a running service besides its verdicts: guards, and the metrics over time.

Each metric is coloured by the configuration of the slice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from ajuste.model.live import duration
from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.wording import count_of, visible_line
from ajuste.report.document import Block, Paragraph, Picture, Section
from ajuste.report.format import Labels, NumberFormat, common_format
from ajuste.report.plots.plot import LegendEntry, Mark, Plot, figure, plain, scatter, variable
from ajuste.report.plots.trials import configuration_legend, configuration_marks
from ajuste_live.record import RECORD, LiveLine, LiveRecord, LiveSlice

PLACE: Final = "answer"
MORE_BLOCKS: Final = False  # slices of time are not added to

_HEIGHT: Final = 260
_UNITS: Final = (
    (172_800.0, 86_400.0, "days"),
    (7200.0, 3600.0, "hours"),
    (180.0, 60.0, "minutes"),
    (0.0, 1.0, "seconds"),
)


def live_plots(results: Results, labels: Labels) -> tuple[Plot, ...]:
    """Return a plot of each metric of an experiment on a running service."""
    if (live := RECORD.of(results)) is None:
        return ()
    metrics = {metric.name: metric for metric in results.metrics}
    lines = (line for line in live.lines if line.metric in metrics and line.at_s)
    return tuple(
        _plot(results, live, line, metrics[line.metric], labels, f"live-{place}") for place, line in enumerate(lines)
    )


def _plot(results: Results, live: LiveRecord, line: LiveLine, metric: Metric, labels: Labels, name: str) -> Plot:
    marks = configuration_marks(results)
    short = labels.by_name(results)
    fmt = common_format((value for value in line.values if value is not None), metric.unit)
    last_s = line.at_s[-1]
    size, axis_unit = next((size, unit) for least, size, unit in _UNITS if last_s >= least)
    flagged = [part for part in live.slices if part.flag]
    traces = [
        _trace(line, live.slices, configuration, marks[configuration], short[configuration], fmt, size)
        for configuration in marks
    ]
    unit = f" in {fmt.unit}" if fmt.unit else ""
    legend = [*configuration_legend(results, labels, "line")]
    legend += [LegendEntry("left out of the verdicts", "area", "warning-line")] if flagged else []
    return Plot(
        name=name,
        title=f"{metric.title} over time",
        description=f"{metric.title}{unit} in {len(live.slices)} slices of {duration(live.slice_s)}, coloured by the "
        f"configuration of each slice; {len(flagged)} slices are left out of the verdicts.",
        figure=figure(
            traces,
            margin={"t": 10, "b": 40},
            xaxis={"title": {"text": f"{axis_unit} since the start"}, "range": [0, last_s / size]},
            yaxis={"title": {"text": plain(f"{metric.title}{unit}")}, "nticks": 6},
            shapes=[_band(part, size) for part in flagged],
        ),
        height=_HEIGHT,
        legend=tuple(legend),
        wide=True,
    )


def _trace(
    line: LiveLine,
    slices: tuple[LiveSlice, ...],
    configuration: str,
    mark: Mark,
    label: str,
    fmt: NumberFormat,
    size: float,
) -> dict[str, Any]:
    # Gaps are where another configuration was tried.
    x: list[float | None] = []
    y: list[float | None] = []
    place = 0
    for at_s, value in zip(line.at_s, line.values, strict=True):
        while place < len(slices) - 1 and at_s > slices[place].end_s + 0.5:
            place += 1
        is_active = slices[place].configuration == configuration
        x.append(at_s / size)
        y.append(fmt.scaled(value) if is_active and value is not None and math.isfinite(value) else None)
    return scatter(
        "lines",
        x,
        y,
        f"<b>{plain(label)}</b>",
        connectgaps=False,
        line={"color": mark.colour, "width": 1.6},
        hoverinfo="x+y+text",
    )


def _band(part: LiveSlice, size: float) -> dict[str, Any]:
    return {
        "type": "rect",
        "xref": "x",
        "yref": "paper",
        "x0": part.begin_s / size,
        "x1": max(part.end_s, part.begin_s + 1) / size,
        "y0": 0,
        "y1": 1,
        "fillcolor": variable("warning-line"),
        "opacity": 0.25,
        "line": {"width": 0},
        "layer": "below",
    }


def sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Return the section with the timeline; empty without a slice."""
    live = RECORD.of(results)
    if live is None or not live.slices:
        return ()
    pictures = (Picture(plot) for plot in live_plots(results, labels))
    return (Section("Over time", (*_sentences(live), *pictures), "live", "Over time"),)


def _sentences(live: LiveRecord) -> Iterator[Block]:
    left = sum(bool(part.flag) for part in live.slices)
    noun = "slice"
    yield Paragraph(
        f"{count_of(len(live.slices), noun)} of {duration(live.slice_s)}; the first {duration(live.washout_s)} of "
        f"each did not count.{f' {count_of(left, noun)} left out of the verdicts.' if left else ''}"
    )
    for name, why in live.breaches.items():
        yield Paragraph(f"{visible_line(name)}: {visible_line(why)}. The old values were restored at once.")
    if live.guards and not live.breaches:
        yield Paragraph(f"No guard was broken: {visible_line('; '.join(live.guards))}.")
