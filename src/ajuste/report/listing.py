"""A table with a remark to some of its lines, which terminal and HTML show alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from rich.table import Table
from rich.text import Text

from ajuste.model.results import Results
from ajuste.model.wording import visible_line
from ajuste.report.sheet import INDENT, Sheet


@dataclass(frozen=True)
class ListingLine:
    """``cells`` are one for each column; the remark of a ``marked`` line stands out."""

    name: str
    cells: tuple[str, ...]
    remark: str = ""
    marked: bool = False


@dataclass(frozen=True)
class Group:
    """Lines of one metric."""

    title: str
    lines: tuple[ListingLine, ...]


@dataclass(frozen=True)
class Listing:
    """``lead`` is said before the table and ``source`` after it. An ``optional`` last column is left out where there is
    no room for it. ``heading`` stands above the names, which are configurations if it is empty. The columns of
    ``words`` are aligned as text, the others as figures.
    """

    name: str
    title: str
    lead: str
    columns: tuple[str, ...]
    groups: tuple[Group, ...]
    source: str = ""
    optional: bool = False
    heading: str = ""
    words: tuple[str, ...] = ()


def print_listing(out: Sheet, listing: Listing) -> None:
    """All of it; a table where it fits, else a paragraph for each line. An ``optional`` last column may be left out."""
    out.heading(visible_line(listing.title))
    out.say(visible_line(listing.lead))
    for group in listing.groups:
        out.blank()
        out.say(visible_line(group.title), style="bold", indent=INDENT)
        if not group.lines:
            continue
        tables = (_table(listing, group, count) for count in _counts(listing))
        table = next((table for table in tables if out.fits(table, 2 * INDENT)), None)
        if table is not None:
            out.table(table, indent=2 * INDENT)
            remarks = [line for line in group.lines if line.marked and line.remark]
            for line in remarks:
                out.say(f"{line.name}: {visible_line(line.remark)}", style="yellow", indent=2 * INDENT)
        else:
            for line in group.lines:
                _print_line(out, listing.columns, line)
    if listing.source:
        out.blank()
        out.say(visible_line(listing.source), style="dim", indent=INDENT)


def _counts(listing: Listing) -> tuple[int, ...]:
    every = len(listing.columns)
    return (every, every - 1) if listing.optional else (every,)


def _table(listing: Listing, group: Group, count: int) -> Table:
    """The first ``count`` columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("", justify="right", no_wrap=True)
    for column in listing.columns[:count]:
        table.add_column(Text(column), justify="left" if column in listing.words else "right", no_wrap=True)
    for line in group.lines:
        table.add_row(
            Text(line.name), *(Text(cell, style="yellow" if line.marked else "") for cell in line.cells[:count])
        )
    return table


def _print_line(out: Sheet, columns: tuple[str, ...], line: ListingLine) -> None:
    said = "; ".join(f"{column} {cell}" for column, cell in zip(columns, line.cells, strict=True) if cell)
    out.say(f"{line.name}: {said}", indent=2 * INDENT)
    if line.marked and line.remark:
        out.say(visible_line(line.remark), style="yellow", indent=4 * INDENT)


# What a run keeps in its environment, in a form of its own.


M = TypeVar("M", bound=BaseModel)


def kept(results: Results, place: str, form: type[M]) -> dict[str, M]:
    """The documents at ``place`` by their names; one that is not understood is left out."""
    documents = results.environment.get(place)
    found = {}
    for name, document in documents.items() if isinstance(documents, Mapping) else ():
        try:
            found[str(name)] = form.model_validate(document)
        except ValidationError:
            continue
    return found
