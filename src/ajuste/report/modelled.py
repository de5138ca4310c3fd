"""What a modelled machine makes of two trials: its time and its misses, by task and by function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ajuste.model.cost import ROLES
from ajuste.model.modelled import Missed, ModelledComparison, ModelledRow, all_missed
from ajuste.model.wording import visible_line
from ajuste.report.document import Column, Row, RowGroup, Table
from ajuste.report.format import number, signed, significant

_MISSES: Final[tuple[tuple[str, Callable[[Missed], int]], ...]] = (
    ("L1 data cache misses", lambda missed: missed.l1d),
    ("L1 instruction cache misses", lambda missed: missed.l1i),
    ("L2 cache misses", lambda missed: missed.l2),
    ("Last-level cache misses", lambda missed: missed.llc),
    ("Lines that another CPU had stored to", lambda missed: missed.lost),
    ("Lines from another node's memory", lambda missed: missed.remote),
    ("TLB misses, second level too", lambda missed: missed.walks),
    ("Branches predicted wrongly", lambda missed: missed.branches),
)


def modelled_tables(
    modelled: ModelledComparison, called: tuple[str, str], name_of: Callable[[str, str], str]
) -> list[Table]:
    """Time by its parts, misses, time by task, and the functions with most of it. ``name_of`` names a function."""
    whole = ModelledRow(
        name="All",
        baseline_instructions=sum(row.baseline_instructions for row in modelled.parts),
        own_instructions=sum(row.own_instructions for row in modelled.parts),
        baseline=all_missed(row.baseline for row in modelled.parts),
        own=all_missed(row.own for row in modelled.parts),
    )
    tasks = [*modelled.parts, whole]
    workload = next((row for row in modelled.parts if row.name == "workload"), whole)
    where = "the workload" if workload is not whole else "all tasks"
    return [
        _table(f"Modelled time of {where} by what it waits for, in µs", called, _part_rows(modelled, workload)),
        _table(f"Modelled misses of {where}", called, _miss_rows(workload)),
        _table(
            "Modelled time by task, in µs",
            called,
            [_time_row(ROLES.get(row.name, row.name), modelled, row) for row in tasks],
        ),
        _functions(modelled, called, name_of),
    ]


def _part_rows(modelled: ModelledComparison, row: ModelledRow) -> list[Row]:
    machine = modelled.machine
    both = (machine.parts(row.baseline_instructions, row.baseline), machine.parts(row.own_instructions, row.own))
    rows = [
        _row(WORDS[one.name], one.seconds, other.seconds)
        for one, other in zip(*both, strict=True)
        if one.seconds or other.seconds
    ]
    return [*rows, _time_row("All", modelled, row)]


WORDS: Final = {
    "instructions": "instructions themselves",
    "L2": "L2 cache",
    "LLC": "last-level cache",
    "memory": "memory",
    "other nodes": "distance of other nodes' memory",
    "TLB": "translations (TLB)",
    "branches": "branches predicted wrongly",
}
"""What a part of the modelled time is called."""


def _time_row(name: str, modelled: ModelledComparison, row: ModelledRow) -> Row:
    return _row(name, *row.seconds(modelled.machine))


def _row(name: str, before_s: float, own_s: float) -> Row:
    return Row(
        (visible_line(name), number(before_s * 1e6, 1), number(own_s * 1e6, 1), signed((own_s - before_s) * 1e6, 1))
    )


def _miss_rows(row: ModelledRow) -> list[Row]:
    rows = []
    for name, of in _MISSES:
        before, own = of(row.baseline), of(row.own)
        if not before and not own:
            continue
        rows.append(Row((name, number(before, 0), number(own, 0), signed(own - before, 0))))
    return rows


def _functions(modelled: ModelledComparison, called: tuple[str, str], name_of: Callable[[str, str], str]) -> Table:
    """Time and misses of each function, where it was the slower one; two figures say how it is in both trials."""

    def arrow(before: str, own: str) -> str:
        return own if before == own else f"{before} → {own}"

    def misses(row: ModelledRow, of: Callable[[Missed], int]) -> str:
        return arrow(number(of(row.baseline), 0), number(of(row.own), 0))

    rows = tuple(
        Row(
            (
                name_of(row.name, row.file),
                arrow(*(significant(seconds * 1e6, 4) for seconds in row.seconds(modelled.machine))),
                misses(row, lambda missed: missed.l1d),
                misses(row, lambda missed: missed.l1i),
                misses(row, lambda missed: missed.llc),
                misses(row, lambda missed: missed.walks),
            )
        )
        for row in modelled.functions
    )
    columns = (
        Column("", figure=False),
        Column("Time, µs"),
        Column("L1 data"),
        Column("L1 code", optional=True),
        Column("LLC", optional=True),
        Column("TLB", optional=True),
    )
    title = f"Functions whose modelled time differs most, and their misses ({called[0]} → {called[1]})"
    return Table(columns, (RowGroup("", rows),), title=title)


def _table(title: str, called: tuple[str, str], rows: list[Row]) -> Table:
    columns = (Column("", figure=False), Column(f"{called[0]} (baseline)"), Column(called[1]), Column("Difference"))
    return Table(columns, (RowGroup("", tuple(rows)),), title=title)
