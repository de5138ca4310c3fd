"""The table of metrics in the style of ``perf stat``: value ± spread for every metric and configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rich.table import Table
from rich.text import Text

from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Results, Summary
from ajuste.model.verdict import Verdict
from ajuste.model.wording import visible_line
from ajuste.report.format import NOTHING, ShownNumber, shown_as, spread_percent
from ajuste.report.labels import Labels
from ajuste.report.sheet import INDENT, Sheet, plain_table

NOT_SUPPORTED: Final = "not supported"


@dataclass(frozen=True)
class Cell:
    """One figure. ``value`` is text without a unit, ``spread`` such as ``± 1.2 %`` (empty below two trials).

    Without a figure ``value`` says so in words and ``reason`` why.
    """

    value: str
    spread: str = ""
    reason: str = ""
    measured: bool = True

    @property
    def text(self) -> str:
        return f"{self.value} {self.spread}".rstrip()


@dataclass(frozen=True)
class Row:
    """One metric over all configurations, in their order and in one unit."""

    metric: Metric
    unit: str
    shown: ShownNumber
    cells: tuple[Cell, ...]
    deciding: bool


def metric_rows(results: Results) -> tuple[Row, ...]:
    """A row for every metric: those that decide first, then the others as the results have them."""
    deciding = deciding_metrics(results)
    ordered = [m for m in results.metrics if m.name in deciding] + [
        m for m in results.metrics if m.name not in deciding
    ]
    return tuple(_row(results, metric, metric.name in deciding) for metric in ordered)


def deciding_metrics(results: Results) -> frozenset[str]:
    """The names of the metrics that decide when the study stops: by verdicts, or by effects of factors."""
    every = (*results.verdicts, *results.effects, *results.lines)
    return frozenset(found.metric for found in every if found.deciding)


def is_screening(results: Results) -> bool:
    """Whether the effects of factors, or the lines of a profile, decide, and configurations are only described."""
    return bool(results.lines) or any(effect.deciding for effect in results.effects)


def verdicts_of(results: Results, metric: str) -> tuple[Verdict, ...]:
    """The verdicts on one metric, in the order of the configurations."""
    order = {configuration.name: place for place, configuration in enumerate(results.configurations)}
    mine = [verdict for verdict in results.verdicts if verdict.metric == metric]
    return tuple(sorted(mine, key=lambda verdict: order.get(verdict.configuration, len(order))))


def described_with_effects(results: Results) -> tuple[Metric, ...]:
    """The metrics that do not decide, as far as an effect on them is known for any configuration."""
    deciding = deciding_metrics(results)
    known = {verdict.metric for verdict in results.verdicts if verdict.estimate is not None}
    return tuple(m for m in results.metrics if m.name in known and m.name not in deciding)


def not_supported(results: Results) -> tuple[str, ...]:
    """Why metrics could not be measured: a line for each reason, ``cycles, instructions: No such device``."""
    titles: dict[str, list[str]] = {}
    for metric in results.metrics:
        reasons = (c.not_supported.get(metric.name) for c in results.configurations if metric.name not in c.metrics)
        for reason in dict.fromkeys(reason for reason in reasons if reason is not None):
            titles.setdefault(reason, []).append(metric.name)
    return tuple(f"{', '.join(names)}: {reason}" for reason, names in titles.items())


def metric_shown(results: Results, metric: Metric) -> ShownNumber:
    """Unit and decimals for the means of one metric."""
    summaries = _summaries(results, metric)
    return shown_as([s.mean for s in summaries], metric.unit, [s.sd for s in summaries if s.sd is not None])


def _row(results: Results, metric: Metric, deciding: bool) -> Row:
    shown = metric_shown(results, metric)
    cells = []
    for configuration in results.configurations:
        summary = configuration.metrics.get(metric.name)
        if summary is not None:
            cells.append(_measured(summary, metric, shown))
        elif metric.name in configuration.not_supported:
            cells.append(Cell(NOT_SUPPORTED, reason=configuration.not_supported[metric.name], measured=False))
        else:
            cells.append(Cell(NOTHING, reason="no clean trial", measured=False))
    return Row(metric=metric, unit=shown.unit, shown=shown, cells=tuple(cells), deciding=deciding)


def _measured(summary: Summary, metric: Metric, shown: ShownNumber) -> Cell:
    if summary.sd is None:
        spread = ""
    elif metric.scale == "difference":
        spread = f"± {shown.text(summary.sd)}"
    else:
        spread = spread_percent(summary.sd, summary.mean)
    return Cell(value=shown.text(summary.mean), spread=spread)


def _summaries(results: Results, metric: Metric) -> list[Summary]:
    return [c.metrics[metric.name] for c in results.configurations if metric.name in c.metrics]


# The table of metrics for the terminal, in the widest of several layouts that fits.


def print_metrics(sheet: Sheet, results: Results, rows: tuple[Row, ...], labels: Labels) -> None:
    """Metrics as rows (the spread beside or below the value), else configurations as rows, else a block for each
    configuration.
    """
    tables = (
        _metrics_as_rows(results, rows, labels, spread_below=False),
        _metrics_as_rows(results, rows, labels, spread_below=True),
        _configurations_as_rows(results, rows, labels),
    )
    fitting = next((table for table in tables if sheet.fits(table)), None)
    if fitting is not None:
        sheet.blank()
        sheet.table(fitting)
        return
    for place, configuration in enumerate(results.configurations):
        _print_block(sheet, configuration, place, rows, labels)


def factor_columns(labels: Labels) -> list[str]:
    """A short name for each factor: its own if there is only one, else letters (which ``factor_key`` explains)."""
    if len(labels.factors) == 1:
        return [visible_line(labels.factors[0].name)]
    return [chr(ord("A") + place) if place < 26 else f"F{place + 1}" for place in range(len(labels.factors))]


def factor_key(labels: Labels) -> list[str]:
    """What the letters of ``factor_columns`` stand for; nothing if there are none."""
    if len(labels.factors) == 1:
        return []
    columns = factor_columns(labels)
    return [f"{letter} = {visible_line(f.name)}" for letter, f in zip(columns, labels.factors, strict=True)]


def _metrics_as_rows(results: Results, rows: tuple[Row, ...], labels: Labels, *, spread_below: bool) -> Table:
    table = plain_table(header=False)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for _ in results.configurations:
        table.add_column(justify="right", overflow="fold")
    for line, (name, factor) in enumerate(zip(factor_columns(labels), labels.factors, strict=True)):
        levels = (labels.level(factor.name, c.levels.get(factor.name, "")) for c in results.configurations)
        stars = ("*" if c.baseline and line == len(labels.factors) - 1 else "" for c in results.configurations)
        cells = (Text(f"{level}{star}", style="bold") for level, star in zip(levels, stars, strict=True))
        table.add_row(Text(name), "", *cells)
    for row in rows:
        cells = (_cell_text(cell, "\n" if spread_below else " ") for cell in row.cells)
        table.add_row(_metric_text(row), _unit_text(row), *cells)
    return table


def _configurations_as_rows(results: Results, rows: tuple[Row, ...], labels: Labels) -> Table:
    table = plain_table()
    for name in factor_columns(labels):
        table.add_column(Text(name), justify="right", overflow="fold")
    table.add_column(overflow="fold")
    for row in rows:
        unit = f" ({visible_line(row.unit)})" if row.unit else ""
        table.add_column(Text(f"{visible_line(row.metric.name)}{unit}"), justify="right", overflow="fold")
    for place, configuration in enumerate(results.configurations):
        levels = (Text(level) for level in labels.of(configuration))
        star = Text("*" if configuration.baseline else "")
        table.add_row(*levels, star, *(_cell_text(row.cells[place]) for row in rows))
    return table


def _print_block(sheet: Sheet, configuration: Measured, place: int, rows: tuple[Row, ...], labels: Labels) -> None:
    columns = factor_columns(labels)
    named = (f"{name} = {level}" for name, level in zip(columns, labels.of(configuration), strict=False))
    sheet.blank()
    sheet.say(f"{', '.join(named)}{'*' if configuration.baseline else ''}", indent=INDENT, style="bold")
    table = plain_table(header=False)
    table.add_column(justify="right", overflow="fold")
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(_cell_text(row.cells[place]), _unit_text(row), _metric_text(row))
    sheet.table(table, indent=2 * INDENT)


def _metric_text(row: Row) -> Text:
    return Text(visible_line(row.metric.name), style="bold" if row.deciding else "")


def _unit_text(row: Row) -> Text:
    return Text(visible_line(row.unit), style="dim")


def _cell_text(cell: Cell, between: str = " ") -> Text:
    """Value and spread, ``between`` them a blank or a line feed; words instead of a value break there too."""
    if not cell.measured:
        return Text(cell.value.replace(" ", between), style="dim")
    return Text.assemble(cell.value, (f"{between}{cell.spread}" if cell.spread else "", "dim"))
