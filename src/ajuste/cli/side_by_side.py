"""``ajuste report A B``: several runs side by side."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence

import typer

from ajuste.model.wording import visible_line
from ajuste.report.console import Console, Sheet, plain_table, sheet
from ajuste.report.format import NOTHING
from ajuste.report.side_by_side import effect_text, side_by_side, side_by_side_document
from ajuste.run.outcome import results_of
from ajuste.store.store import Run, Store


def show_side_by_side(runs: Sequence[Run], store: Store, *, as_json: bool) -> None:
    """Print them: the answers first, then their effects, and what differs between their environments."""
    compared = side_by_side([results_of(run, store) for run in runs])
    if as_json:
        typer.echo(json.dumps(side_by_side_document(compared), indent=2))
        return
    effects = (
        (f"{metric}, {configuration}", [effect_text(one) for one in verdicts])
        for (configuration, metric), verdicts in compared.effects.items()
    )
    with sheet(Console(file=sys.stdout)) as page:
        for name, one in zip(compared.names, compared.results, strict=True):
            page.line(f"{name}  {one.run}  {visible_line(one.study)}")
            page.say(one.answer or one.stopped_because, indent=3)
        _table(page, "Effects", ["", *compared.names], effects)
        _table(page, "What differs between their environments", ["", *compared.names], compared.differing)


def _table(page: Sheet, title: str, head: Sequence[str], rows: Iterable[tuple[str, Sequence[str | None]]]) -> None:
    page.heading(title)
    table = plain_table()
    for name in head:
        table.add_column(name, overflow="fold")
    for name, values in rows:
        table.add_row(visible_line(name), *(NOTHING if value is None else visible_line(value) for value in values))
    if table.row_count:
        page.table(table)
    else:
        page.say("Nothing.", indent=2)
