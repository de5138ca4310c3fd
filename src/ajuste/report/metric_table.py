"""The table of metrics for the terminal, in the widest of several layouts that fits."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from ajuste.model.results import Measured, Results
from ajuste.report.labels import Labels
from ajuste.report.rows import Cell, Row
from ajuste.report.sheet import INDENT, Sheet, plain_table
from ajuste.report.visible import visible_line


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
