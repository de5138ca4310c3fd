"""The list of ``ajuste tunables --here``: every setting of this machine with its value."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ajuste.executor.host.current import Here
from ajuste.model.visible import visible_line
from ajuste.report.console import Console


def list_here(found: Sequence[Here], as_json: bool) -> None:
    """A document, a line for each with tabs between, or a table in a terminal: name, value, why it is locked."""
    if as_json:
        print(json.dumps({"tunables": [here_document(here) for here in found]}, indent=2, ensure_ascii=False))
        return
    console = Console()
    if not console.is_terminal:
        for here in found:
            print("\t".join((here.tunable.name, shown_value(here), reason(here))))
        return
    for subsystem, group in groupby(found, key=lambda here: here.tunable.subsystem):
        console.print(subsystem, style="bold")
        console.print(Padding(_table(list(group)), (0, 0, 1, 2)))


def here_document(here: Here) -> dict[str, str | None]:
    """One of them for a program: ``value`` is as the kernel shows it, ``locked`` says why it cannot be changed."""
    return {
        "name": here.tunable.name,
        "subsystem": here.tunable.subsystem,
        "value": here.current.value,
        "unit": here.tunable.unit,
        "path": here.current.path or None,
        "problem": here.current.problem or None,
        "locked": here.locked or None,
    }


def shown_value(here: Here) -> str:
    """The value on one line; empty if there is none."""
    return visible_line(" ".join((here.current.value or "").split()))


def reason(here: Here) -> str:
    """Why there is no value, or why it cannot be changed; empty if all is well."""
    if here.current.value is None:
        return visible_line(here.current.problem)
    return f"locked: {visible_line(here.locked)}" if here.locked else ""


def _table(found: list[Here]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for here in found:
        told = Text(shown_value(here), style="bold")
        if reason(here):
            told += Text(f"  {reason(here)}" if told else reason(here), style="yellow")
        table.add_row(here.tunable.name, told)
    return table
