"""Two trials on a modelled machine: its time and misses, by task and by function; and a plot of the time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ajuste.model.cost import ROLES
from ajuste.model.modelled import Missed, ModelledComparison, ModelledRow, all_missed
from ajuste.model.wording import amount, visible_line
from ajuste.report.document import Column, Row, Table
from ajuste.report.format import number, signed, significant
from ajuste.report.plots.plot import LegendEntry, Plot, figure, level_axis, plain, variable

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
    modelled: ModelledComparison, called: tuple[str, str], function_name: Callable[[str, str], str]
) -> list[Table]:
    """Return time by its parts, misses, time by task, and the functions with most of it."""
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
        both_beside(f"Modelled time of {where} by what it waits for, in µs", called, _part_rows(modelled, workload)),
        both_beside(f"Modelled misses of {where}", called, _miss_rows(workload)),
        both_beside(
            "Modelled time by task, in µs",
            called,
            [_time_row(ROLES.get(row.name, row.name), modelled, row) for row in tasks],
        ),
        _functions(modelled, called, function_name),
    ]


def _part_rows(modelled: ModelledComparison, row: ModelledRow) -> list[Row]:
    machine = modelled.machine
    both = (machine.parts(row.baseline_instructions, row.baseline), machine.parts(row.own_instructions, row.own))
    rows = [
        _row(WORDS[before.name], before.seconds, after.seconds)
        for before, after in zip(*both, strict=True)
        if before.seconds or after.seconds
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
"""The names of the parts of the modelled time."""


def _time_row(name: str, modelled: ModelledComparison, row: ModelledRow) -> Row:
    return _row(name, *row.seconds(modelled.machine))


def _row(name: str, before_s: float, after_s: float) -> Row:
    return Row(
        (visible_line(name), number(before_s * 1e6, 1), number(after_s * 1e6, 1), signed((after_s - before_s) * 1e6, 1))
    )


def _miss_rows(row: ModelledRow) -> list[Row]:
    rows = []
    for name, count in _MISSES:
        before, after = count(row.baseline), count(row.own)
        if not before and not after:
            continue
        rows.append(Row((name, number(before, 0), number(after, 0), signed(after - before, 0))))
    return rows


def _functions(
    modelled: ModelledComparison, called: tuple[str, str], function_name: Callable[[str, str], str]
) -> Table:
    # Two figures stand where those of the trials differ.

    def arrow(before: str, after: str) -> str:
        return after if before == after else f"{before} → {after}"

    def misses(row: ModelledRow, count: Callable[[Missed], int]) -> str:
        return arrow(number(count(row.baseline), 0), number(count(row.own), 0))

    rows = tuple(
        Row(
            (
                function_name(row.name, row.file),
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
    return Table.of(columns, rows, title=title)


def both_beside(title: str, called: tuple[str, str], rows: Iterable[Row], *more: Column) -> Table:
    """Return both trials' figures and their difference; ``more`` columns follow."""
    columns = (Column("", figure=False), Column(f"{called[0]} (baseline)"), Column(called[1]), Column("Difference"))
    return Table.of((*columns, *more), rows, title=title)


_COLOURS: Final = {
    "instructions": "still",
    "L2": "series-6",
    "LLC": "series-1",
    "memory": "series-2",
    "other nodes": "series-5",
    "TLB": "series-3",
    "branches": "series-4",
}


def modelled_plot(modelled: ModelledComparison, called: tuple[str, str], name: str) -> Plot | None:
    """Return the workload's time under both; ``None`` where it has none."""
    row = next((part for part in modelled.parts if part.name == "workload"), None)
    if row is None:
        return None
    machine = modelled.machine
    both = (machine.parts(row.own_instructions, row.own), machine.parts(row.baseline_instructions, row.baseline))
    names = [called[1], called[0]]
    traces = []
    begins = [0.0, 0.0]
    parts = [part for part in WORDS if any(entry.seconds for trial in both for entry in trial if entry.name == part)]
    for part in parts:
        lengths = [next(entry.seconds for entry in trial if entry.name == part) * 1e3 for trial in both]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "base": list(begins),
                "x": lengths,
                "y": [0, 1],
                "width": 0.6,
                "marker": {"color": variable(_COLOURS[part])},
                "hoverinfo": "text",
                "hovertext": [
                    f"<b>{plain(name)}</b><br>{WORDS[part]}: {amount(length / 1e3, 's')}"
                    for name, length in zip(names, lengths, strict=True)
                ],
            }
        )
        begins = [begin + length for begin, length in zip(begins, lengths, strict=True)]
    return Plot(
        name=name,
        title=f"Modelled time of the workload on {machine.name}, in ms",
        description=f"On {machine.title} the workload's modelled time is {amount(begins[1] / 1e3, 's')} under "
        f"{called[0]} and {amount(begins[0] / 1e3, 's')} under {called[1]}.",
        figure=figure(
            traces,
            barmode="overlay",
            xaxis={"range": [0, 1.05 * max(begins)], "title": {"text": "modelled time, ms"}},
            yaxis=level_axis(names, width=24),
        ),
        height=190,
        legend=tuple(LegendEntry(WORDS[part], "square", _COLOURS[part]) for part in parts),
        legend_title="What it waits for (modelled)",
        wide=True,
    )
