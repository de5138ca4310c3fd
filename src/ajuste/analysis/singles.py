"""The single values of a table, as the points that plots are drawn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from ajuste.analysis.wording import number
from ajuste.model.results import Point, Tally
from ajuste.model.table import Table, Values

MOST_POINTS: Final = 5_000
"""With more rows than this only one of every so many is shown; verdicts and summaries rest on all of them."""

Row = tuple[str, dict[str, float]]
"""A block's name, or nothing, and the metrics."""


def points(table: Table) -> tuple[tuple[Point, ...], Tally]:
    """Rows of all files, and how many rows there are; of very many some.

    Blocks are numbered in the order of the files; where there are none, the values of each configuration are.
    """
    cells: dict[str, dict[str, Values]] = {name: {} for name in table.configurations}
    for (name, metric), sample in table.samples.items():
        if isinstance(sample, Values):
            cells[name][metric] = sample
    total = sum(_length(own) for own in cells.values())
    step = -(-total // MOST_POINTS) or 1
    numbers: dict[str, int] = {}
    found = []
    for name, own in cells.items():
        for place, (block, metrics) in _rows(own, step):
            at = numbers.setdefault(block, len(numbers) + 1) if block else place
            found.append(Point(configuration=name, block=at, status="ok", metrics=metrics))
    return tuple(found), Tally(trials=total, clean=total, warm_up=0, flagged=0, failed=0)


def thinned(shown: int, tally: Tally) -> tuple[str, ...]:
    """A sentence if not all rows are ``shown``."""
    if shown == tally.trials:
        return ()
    return (
        f"Of {number(tally.trials)} rows {number(shown)} are drawn and listed, evenly from each configuration; all "
        f"figures and verdicts rest on all rows.",
    )


def _length(cells: Mapping[str, Values]) -> int:
    return max((len(cell.values) for cell in cells.values()), default=0)


def _rows(cells: Mapping[str, Values], step: int) -> Iterator[tuple[int, Row]]:
    """One of every ``step`` rows of a configuration with its place, which counts from 1."""
    if len({(len(cell.values), cell.blocks) for cell in cells.values()}) == 1:
        blocks = next(iter(cells.values())).blocks
        for place in range(0, _length(cells), step):
            metrics = {metric: cell.values[place] for metric, cell in cells.items()}
            yield place + 1, (blocks[place] if blocks else "", metrics)
        return
    rows: dict[tuple[str, int], dict[str, float]] = {}
    for metric, cell in cells.items():
        seen: Counter[str] = Counter()
        for place, value in enumerate(cell.values):
            block = cell.blocks[place] if cell.blocks else ""
            rows.setdefault((block, seen[block]), {})[metric] = value
            seen[block] += 1
    for place, ((block, _), metrics) in list(enumerate(rows.items(), start=1))[::step]:
        yield place, (block, metrics)
