"""How ``ajuste inventory`` looks on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ajuste.inventory.difference import Comparison, Difference
from ajuste.inventory.document import Inventory
from ajuste.model.error import RequestError
from ajuste.report.format import count_of
from ajuste.report.inventory_page import Area, area_title, inventory_page, value_text
from ajuste.report.sheet import INDENT, Sheet, sheet
from ajuste.report.visible import visible_line
from ajuste.study.problem import nearest

_WIDEST_LABEL: Final = 30
_MARKS: Final = {"high": ("!!", "bold red"), "medium": ("! ", "yellow"), "low": ("  ", "dim")}
_MEANINGS: Final = "!! can by itself change results, ! matters for some workloads, unmarked: seldom"


def print_inventory(inventory: Inventory, console: Console, areas: Sequence[str] = ()) -> None:
    """One readable page: an area after the other, a line for each fact or thing.

    ``areas`` are the titles, in any case, of those that are shown: all if there are none. Raises RequestError for one
    that there is not.
    """
    page = {area.title.casefold(): area for area in inventory_page(inventory)}
    titles = [area.title for area in page.values()]
    wanted = {name.casefold() for name in areas}
    for name in areas:
        if name.casefold() not in page:
            raise RequestError(
                f"--area: there is no area {visible_line(name)!r}{nearest(name, titles)}",
                hint=f"there are {', '.join(titles)}",
            )
    with sheet(console) as out:
        for title, area in page.items():
            if not wanted or title in wanted:
                _print_area(out, area)


def print_comparison(comparison: Comparison, a: str, b: str, console: Console) -> None:
    """What differs, grouped by area, most important first."""
    with sheet(console) as out:
        if not comparison.differences:
            out.say(f"{visible_line(a)} and {visible_line(b)} do not differ in anything that was compared.")
        else:
            out.say(f"{count_of(len(comparison.differences), 'difference')}: {visible_line(a)} → {visible_line(b)}")
            out.say(_MEANINGS, style="dim")
        for area in dict.fromkeys(difference.area for difference in comparison.differences):
            out.heading(area_title(area))
            why = ""
            for difference in (d for d in comparison.differences if d.area == area):
                _print_difference(out, difference, told=difference.why == why)
                why = difference.why
        if comparison.not_compared:
            out.heading("Not compared")
            for reason in dict.fromkeys(lacking.reason for lacking in comparison.not_compared):
                paths = [lacking.path for lacking in comparison.not_compared if lacking.reason == reason]
                out.say(f"{visible_line(reason)}: {visible_line(', '.join(paths))}", style="dim", indent=INDENT)


def _print_area(out: Sheet, area: Area) -> None:
    out.heading(area.title)
    labels = [f"{visible_line(line.label)}:" if line.label else "" for line in area.lines]
    width = min(_WIDEST_LABEL, max(map(len, labels)))
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(min_width=width, max_width=_WIDEST_LABEL, overflow="fold")
    table.add_column(overflow="fold")
    for label, line in zip(labels, area.lines, strict=True):
        style = "dim" if line.dim else ""
        table.add_row(Text(label, style=style or "bold"), Text(visible_line(line.text), style=style))
    out.table(table)


def _print_difference(out: Sheet, difference: Difference, *, told: bool) -> None:
    mark, style = _MARKS[difference.importance]
    name = difference.field or difference.area
    last = name.rpartition(".")[2]
    before, after = value_text(last, difference.a), value_text(last, difference.b)
    line = Text(f"{mark} ", style=style)
    line.append(visible_line(name), style="bold")
    line.append(f": {visible_line(before)} → {visible_line(after)}")
    out.say(line, indent=INDENT)
    if not told:
        out.say(difference.why, style="dim", indent=3 * INDENT)
