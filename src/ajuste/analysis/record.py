"""A record: all that was measured in a run, from which the analysis takes what it needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.digest import digest, in_order
from ajuste.model.measurements import MeasuredTable, Measurements, Values, different, measurements
from ajuste.model.results import MOST_REASONS, Point, Tally
from ajuste.model.trial import Trial
from ajuste.model.wording import number

NO_MACHINES: Final[Mapping[int, str]] = MappingProxyType({})

MOST_WORDS: Final = 100_000
"""Words on single trials: a larger document is too large to be sent or opened."""

# On a trial besides its metrics, in words as long as a figure.
_WORDS_EACH: Final = 5

MOST_LEFT_OUT: Final = 200
"""The flagged or failed trials of other blocks that are listed nevertheless."""

MOST_POINTS: Final = 5_000
"""Maximum number of rows drawn: of more, every nth; verdicts and summaries rest on all of them."""

Row = tuple[str, dict[str, float]]
"""A block's name, or nothing, and the metrics."""

Points = list[tuple[float, float]]


class Record(Protocol):
    """``measurements`` are all figures; what programs printed need not be in memory for all trials at once."""

    @property
    def measurements(self) -> Measurements: ...

    @property
    def digest(self) -> str:
        """Return the digest; see ``analysis.digest``."""
        ...

    def whole(self, rows: Sequence[int]) -> Sequence[Trial]:
        """Return the trials of these rows of ``measurements`` with all that was observed of them."""
        ...


@dataclass(frozen=True)
class ListedTrials:
    """A record of trials that are all in memory, in the order of the design."""

    trials: tuple[Trial, ...]

    @cached_property
    def measurements(self) -> Measurements:
        return measurements(self.trials)

    @property
    def digest(self) -> str:
        return digest(self.trials)

    def whole(self, rows: Sequence[int]) -> Sequence[Trial]:
        return [self.trials[row] for row in rows]


def sort_trials(trials: Iterable[Trial]) -> ListedTrials:
    """Return a record of ``trials``, in whatever order they come."""
    return ListedTrials(in_order(trials))


def select_points(measured: Measurements, machines: Mapping[int, str] = NO_MACHINES) -> tuple[Point, ...]:
    """Return every trial in the order of the design; of very many some.

    These are whole blocks at even distances, the first and the last among them, and the first trials that were flagged
    or failed. ``machines`` are those of the blocks, if there are several.
    """
    return tuple(_point(measured, int(row), machines) for row in np.flatnonzero(_selected(measured)))


def tally(measured: Measurements) -> Tally:
    """Count the trials by their outcome."""
    ok = measured.has_status("ok")
    reasons = Counter(measured.reason.codes[~ok].tolist()).most_common()
    return Tally(
        trials=len(measured),
        clean=_count(ok & ~measured.warm_up),
        warm_up=_count(ok & measured.warm_up),
        flagged=_count(measured.has_status("flagged")),
        failed=_count(measured.has_status("failed")),
        reasons={measured.reason.values[code]: count for code, count in reasons[:MOST_REASONS]},
        other_reasons=len(reasons[MOST_REASONS:]),
    )


def _selected(measured: Measurements) -> NDArray[np.bool_]:
    most = max(1, MOST_WORDS // (_WORDS_EACH + len(measured.metrics)))
    if len(measured) <= most:
        return np.ones(len(measured), dtype=bool)
    blocks = different(measured.block)
    room = min(len(blocks), max(1, most * len(blocks) // len(measured)))
    some = blocks[np.round(np.linspace(0, len(blocks) - 1, room)).astype(int)]
    selected = np.isin(measured.block, some)
    selected[np.flatnonzero(~measured.has_status("ok") & ~selected)[:MOST_LEFT_OUT]] = True
    return selected


def _point(measured: Measurements, row: int, machines: Mapping[int, str]) -> Point:
    return Point(
        configuration=measured.configuration[row],
        block=int(measured.block[row]),
        position=int(measured.position[row]),
        seed=int(measured.seed[row]),
        status=measured.status[row],
        reason=measured.reason[row],
        warm_up=bool(measured.warm_up[row]),
        attempt=int(measured.attempt[row]),
        metrics=measured.figures(row),
        machine=machines.get(int(measured.block[row]), ""),
    )


def _count(which: NDArray[Any]) -> int:
    return int(np.count_nonzero(which))


def points(table: MeasuredTable) -> tuple[tuple[Point, ...], Tally]:
    """Return the rows of all files, and how many there are; of very many some.

    Blocks are numbered in the order of the files; where there are none, the values of each configuration are.
    """
    cells: dict[str, dict[str, Values]] = {name: {} for name in table.configurations}
    for (name, metric), sample in table.samples.items():
        if isinstance(sample, Values):
            cells[name][metric] = sample
    total = sum(map(_length, cells.values()))
    step = -(-total // MOST_POINTS) or 1
    numbers: dict[str, int] = {}
    drawn = []
    for name, by_metric in cells.items():
        for place, (block, metrics) in _rows(by_metric, step):
            at = numbers.setdefault(block, len(numbers) + 1) if block else place
            drawn.append(Point(configuration=name, block=at, status="ok", metrics=metrics))
    return tuple(drawn), Tally(trials=total, clean=total, warm_up=0, flagged=0, failed=0)


def thinned(drawn: int, tally: Tally) -> tuple[str, ...]:
    """Return a sentence if fewer rows than in ``tally`` are ``drawn``."""
    if drawn == tally.trials:
        return ()
    return (
        f"Of {number(tally.trials)} rows {number(drawn)} are drawn and listed, evenly from each configuration; all "
        f"figures and verdicts rest on all rows.",
    )


def _length(cells: Mapping[str, Values]) -> int:
    return max((len(cell.values) for cell in cells.values()), default=0)


def _rows(cells: Mapping[str, Values], step: int) -> Iterator[tuple[int, Row]]:
    # Yield every `step`-th row of a configuration with its place, which counts from 1.
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


def thin(points: Sequence[tuple[float, float]], most: int) -> Points:
    """Return at most ``most`` (4 or more) of ``points``, in order of their first coordinate, that look the same.

    Points within a level stretch say nothing and go first; then, in each of as many equal spans as there is room for,
    all but the lowest and the highest. First and last stay.
    """
    informative = [
        point
        for place, point in enumerate(points)
        if place in (0, len(points) - 1) or not points[place - 1][1] == point[1] == points[place + 1][1]
    ]
    if len(informative) <= most:
        return informative
    first, *inner, last = informative
    spans = (most - 2) // 2
    width = (last[0] - first[0]) / spans
    groups: dict[int, Points] = {}
    for point in inner:
        groups.setdefault(min(spans - 1, int((point[0] - first[0]) / width)), []).append(point)
    extremes: Points = []
    for group in groups.values():
        lowest, highest = (which(group, key=lambda point: point[1]) for which in (min, max))
        extremes += sorted({lowest, highest})
    return [first, *extremes, last]
