"""The boots of a run across reboots: what differs from boot to boot, every trial by its boot, and every boot."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from ajuste.model.boot import BootFindings, BootSpread, KeptBoot
from ajuste.model.metric import Metric
from ajuste.model.results import Point, Results
from ajuste.model.wording import count_of, percent, visible_line
from ajuste.report.document import Block, Column, Folded, Paragraph, Picture, Row, RowGroup, Section, Table
from ajuste.report.format import NOTHING, Labels, duration, in_unit, shown_as, significant
from ajuste.report.plots.plot import Plot, figure, scatter
from ajuste.report.plots.trials import (
    configuration_legend,
    configuration_marks,
    exact,
    figure_axis,
    hover_text,
    kind_of,
)

_OUTCOMES: Final = {
    "up": "",
    "cut": "went down before its trials were done; repeated",
    "down": "kernel did not come up; repeated",
    "asked": "was asked for",
}
_HEIGHT: Final = 340


def boot_sections(results: Results, decided: list[Metric], labels: Labels) -> tuple[Section, ...]:
    """One section; nothing where the machine did not reboot."""
    found = results.boots
    if found is None:
        return ()
    spread = _spread_table(results, found, labels)
    plots = (_plot(results, found, metric, labels, f"boots-{place}") for place, metric in enumerate(decided))
    blocks: tuple[Block, ...] = (
        Paragraph(_summary(found)),
        *map(Paragraph, found.says),
        *((spread,) if spread else ()),
        *(Picture(plot) for plot in plots if plot is not None),
        Folded("Every boot", (_boot_table(found),)),
    )
    about = "Boots are the units of the verdicts: all trials of one boot share what it drew once."
    return (Section("Boots", blocks, "boots", "Boots", about),)


def _summary(found: BootFindings) -> str:
    boots = found.kept.boots
    up = sum(one.outcome == "up" for one in boots)
    lost = [one for one in boots if one.outcome in ("down", "cut")]
    each = count_of(found.kept.each, "block")
    said = f"{count_of(up, 'boot')} by {visible_line(found.kept.loader)}, {each} in each."
    if not lost:
        return said
    down = sum(one.outcome == "down" for one in lost)
    ways = [
        f"{count_of(count, 'boot')} {what}"
        for count, what in ((down, "did not come up"), (len(lost) - down, "ended too early"))
        if count
    ]
    return f"{said} {' and '.join(ways)}; {'its' if len(lost) == 1 else 'their'} trials were repeated in another boot."


def _spread_table(results: Results, found: BootFindings, labels: Labels) -> Table | None:
    known = [one for one in found.spreads if one.within is not None]
    if not known:
        return None
    titles = {metric.name: metric for metric in results.metrics}
    named = labels.by_name(results)
    groups = [
        RowGroup(
            titles[metric].title,
            tuple(_spread_row(one, named, titles[metric]) for one in known if one.metric == metric),
        )
        for metric in dict.fromkeys(one.metric for one in known)
    ]
    columns = ("Configuration", "Boots", "Values", "SD within a boot", "SD between boots", "Variance due to boots")
    heads = tuple(Column(title, figure=place > 0) for place, title in enumerate(columns))
    return Table(heads, tuple(groups), name="boot-spreads", title="Standard deviations")


def _spread_row(one: BootSpread, named: dict[str, str], metric: Metric) -> Row:
    name = named.get(one.configuration, visible_line(one.configuration))
    what = f"effect of {name}" if one.of_effect else name
    share = percent(round(one.share, 2)) if one.share is not None else NOTHING
    return Row(
        (what, str(one.boots), str(one.values), _sd(one.within, one, metric), _sd(one.between, one, metric), share)
    )


def _sd(value: float | None, one: BootSpread, metric: Metric) -> str:
    if value is None:
        return NOTHING
    if one.scale == "ratio":
        return f"{significant(100 * math.expm1(value), 2)} %"
    return shown_as([value], metric.unit).with_unit(value)


def _boot_table(found: BootFindings) -> Table:
    heads = ("Boot", "State", "Kernel", "Came up after", "Trials")
    columns = tuple(Column(title, figure=place > 2) for place, title in enumerate(heads))
    rows = tuple(_boot_row(one) for one in found.kept.boots)
    return Table.of(columns, rows, name="boots", title="Every boot")


def _boot_row(one: KeptBoot) -> Row:
    took = NOTHING
    if one.came_up:
        took = duration((datetime.fromisoformat(one.came_up) - datetime.fromisoformat(one.asked)).total_seconds())
    kernel = visible_line(one.kernel) or NOTHING
    cells = (str(one.number), visible_line(one.state), kernel, took, str(len(one.trials)))
    return Row(cells, remark=_OUTCOMES[one.outcome])


def _plot(results: Results, found: BootFindings, metric: Metric, labels: Labels, name: str) -> Plot | None:
    """Every clean trial by its boot."""
    boots = found.kept.boot_by_trial()
    placed = [(boot, trial) for trial in results.trials if (boot := _boot(trial, metric, boots)) is not None]
    if not placed:
        return None
    shown = exact(metric, [trial.metrics[metric.name] for _, trial in placed])
    marks = configuration_marks(results)
    traces: list[dict[str, Any]] = []
    for configuration in results.configurations:
        own = [(boot, trial) for boot, trial in placed if trial.configuration == configuration.name]
        label = labels.short(configuration)
        mark = marks[configuration.name]
        traces.append(
            scatter(
                "markers",
                list(_beside(own)),
                [shown.scaled(trial.metrics[metric.name]) for _, trial in own],
                [f"boot {b}<br>{hover_text(t, label, metric, shown)}" for b, t in own],
                name=label,
                marker={"symbol": mark.symbol, "color": mark.colour, "size": 8},
            )
        )
    return Plot(
        name=name,
        title=f"{metric.title} by boot{in_unit(shown.unit)}",
        description=f"{metric.title}: {len(placed)} clean trials by the boot in which they ran.",
        figure=figure(
            traces,
            xaxis={"title": {"text": "boot"}, "dtick": max(1, len(found.kept.boots) // 12), "tick0": 0},
            yaxis=figure_axis([shown.scaled(trial.metrics[metric.name]) for _, trial in placed]),
        ),
        height=_HEIGHT,
        legend=configuration_legend(results, labels),
    )


def _boot(trial: Point, metric: Metric, boots: dict[tuple[int, int, int], int]) -> int | None:
    if trial.position is None or kind_of(trial) != "clean" or metric.name not in trial.metrics:
        return None
    return boots.get((trial.block, trial.position, trial.attempt))


def _beside(own: list[tuple[int, Point]]) -> Iterator[float]:
    """The trials of a boot beside each other, in order."""
    for boot in dict.fromkeys(boot for boot, _ in own):
        count = sum(one == boot for one, _ in own)
        for place in range(count):
            yield boot + 0.3 * (2 * place / (count - 1) - 1 if count > 1 else 0)
