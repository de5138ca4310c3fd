"""The boots of a run across reboots: differences between boots, the trials of each boot, and a list of boots."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from ajuste.model.metric import Metric
from ajuste.model.results import Point, Results
from ajuste.model.wording import count_of, percent, visible_line
from ajuste.report.document import Block, Column, Folded, Paragraph, Picture, Row, RowGroup, Section, Table
from ajuste.report.format import NOTHING, Labels, common_format, duration, in_unit, significant
from ajuste.report.plots.plot import Plot, figure, scatter
from ajuste.report.plots.trials import (
    configuration_legend,
    configuration_marks,
    exact,
    figure_axis,
    hover_text,
    trial_kind,
)
from ajuste.report.tables import deciding_metrics
from ajuste_boots.model import FINDINGS, BootFindings, BootSpread, KeptBoot

_OUTCOMES: Final = {
    "up": "",
    "cut": "went down before its trials were done; repeated",
    "down": "kernel did not come up; repeated",
    "asked": "was asked for",
}
_HEIGHT: Final = 340


def sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Return the section on boots; empty if the machine did not reboot."""
    findings = FINDINGS.of(results)
    if findings is None:
        return ()
    deciding = deciding_metrics(results)
    decided = [metric for metric in results.metrics if metric.name in deciding]
    spread = _spread_table(results, findings, labels)
    plots = (_plot(results, findings, metric, labels, f"boots-{place}") for place, metric in enumerate(decided))
    heads = ("Boot", "State", "Kernel", "Came up after", "Trials")
    columns = tuple(Column(title, figure=place > 2) for place, title in enumerate(heads))
    boots = Table.of(columns, map(_boot_row, findings.kept.boots), name="boots", title="Every boot")
    blocks: tuple[Block, ...] = (
        Paragraph(_summary(findings)),
        *map(Paragraph, findings.says),
        *((spread,) if spread else ()),
        *(Picture(plot) for plot in plots if plot is not None),
        Folded("Every boot", (boots,)),
    )
    about = "Boots are the units of the verdicts: all trials of one boot share what it drew once."
    return (Section("Boots", blocks, "boots", "Boots", about),)


def _summary(findings: BootFindings) -> str:
    boots = findings.kept.boots
    up = sum(boot.outcome == "up" for boot in boots)
    lost = [boot for boot in boots if boot.outcome in ("down", "cut")]
    each = count_of(findings.kept.each, "block")
    text = f"{count_of(up, 'boot')} by {visible_line(findings.kept.loader)}, {each} in each."
    if not lost:
        return text
    down = sum(boot.outcome == "down" for boot in lost)
    ways = [
        f"{count_of(count, 'boot')} {what}"
        for count, what in ((down, "did not come up"), (len(lost) - down, "ended too early"))
        if count
    ]
    return f"{text} {' and '.join(ways)}; {'its' if len(lost) == 1 else 'their'} trials were repeated in another boot."


def _spread_table(results: Results, findings: BootFindings, labels: Labels) -> Table | None:
    known = [spread for spread in findings.spreads if spread.within is not None]
    if not known:
        return None
    titles = {metric.name: metric for metric in results.metrics}
    named = labels.by_name(results)
    groups = [
        RowGroup(
            titles[metric].title,
            tuple(_spread_row(spread, named, titles[metric]) for spread in known if spread.metric == metric),
        )
        for metric in dict.fromkeys(spread.metric for spread in known)
    ]
    columns = ("Configuration", "Boots", "Values", "SD within a boot", "SD between boots", "Variance due to boots")
    heads = tuple(Column(title, figure=place > 0) for place, title in enumerate(columns))
    return Table(heads, tuple(groups), name="boot-spreads", title="Standard deviations")


def _spread_row(spread: BootSpread, named: dict[str, str], metric: Metric) -> Row:
    name = named.get(spread.configuration, visible_line(spread.configuration))
    what = f"effect of {name}" if spread.of_effect else name
    share = percent(round(spread.share, 2)) if spread.share is not None else NOTHING
    deviations = (_sd(value, spread, metric) for value in (spread.within, spread.between))
    return Row((what, str(spread.boots), str(spread.values), *deviations, share))


def _sd(value: float | None, spread: BootSpread, metric: Metric) -> str:
    if value is None:
        return NOTHING
    if spread.scale == "ratio":
        return f"{significant(100 * math.expm1(value), 2)} %"
    return common_format([value], metric.unit).with_unit(value)


def _boot_row(boot: KeptBoot) -> Row:
    took = NOTHING
    if boot.came_up:
        took = duration((datetime.fromisoformat(boot.came_up) - datetime.fromisoformat(boot.asked)).total_seconds())
    kernel = visible_line(boot.kernel) or NOTHING
    cells = (str(boot.number), visible_line(boot.state), kernel, took, str(len(boot.trials)))
    return Row(cells, remark=_OUTCOMES[boot.outcome])


def _plot(results: Results, findings: BootFindings, metric: Metric, labels: Labels, name: str) -> Plot | None:
    boots = findings.kept.boot_by_trial()
    placed = [(boot, trial) for trial in results.trials if (boot := _boot(trial, metric, boots)) is not None]
    if not placed:
        return None
    fmt = exact(metric, [trial.metrics[metric.name] for _, trial in placed])
    marks = configuration_marks(results)
    traces: list[dict[str, Any]] = []
    for configuration in results.configurations:
        points = [(boot, trial) for boot, trial in placed if trial.configuration == configuration.name]
        label = labels.short(configuration)
        mark = marks[configuration.name]
        traces.append(
            scatter(
                "markers",
                list(_positions(points)),
                [fmt.scaled(trial.metrics[metric.name]) for _, trial in points],
                [f"boot {b}<br>{hover_text(t, label, metric, fmt)}" for b, t in points],
                name=label,
                marker={"symbol": mark.symbol, "color": mark.colour, "size": 8},
            )
        )
    return Plot(
        name=name,
        title=f"{metric.title} by boot{in_unit(fmt.unit)}",
        description=f"{metric.title}: {len(placed)} clean trials by the boot in which they ran.",
        figure=figure(
            traces,
            xaxis={"title": {"text": "boot"}, "dtick": max(1, len(findings.kept.boots) // 12), "tick0": 0},
            yaxis=figure_axis([fmt.scaled(trial.metrics[metric.name]) for _, trial in placed]),
        ),
        height=_HEIGHT,
        legend=configuration_legend(results, labels),
    )


def _boot(trial: Point, metric: Metric, boots: dict[tuple[int, int, int], int]) -> int | None:
    if trial.position is None or trial_kind(trial) != "clean" or metric.name not in trial.metrics:
        return None
    return boots.get((trial.block, trial.position, trial.attempt))


def _positions(points: list[tuple[int, Point]]) -> Iterator[float]:
    # The trials of a boot beside each other, in order.
    for boot in dict.fromkeys(boot for boot, _ in points):
        count = sum(other == boot for other, _ in points)
        for place in range(count):
            yield boot + 0.3 * (2 * place / (count - 1) - 1 if count > 1 else 0)
