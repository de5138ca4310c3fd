"""Points: the single trials that results tell of, all of them or some of very many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ajuste.model.measurements import Measurements
from ajuste.model.results import MOST_REASONS, Point, Tally

NO_MACHINES: Final[Mapping[int, str]] = MappingProxyType({})

MOST_WORDS: Final = 100_000
"""So many words may be told of single trials: a document of more is too large to be sent or opened."""

_WORDS_EACH: Final = 5
"""What is told of a trial besides its metrics, in words as long as a figure."""

MOST_LEFT_OUT: Final = 200
"""Of the trials in other blocks that were flagged or failed, so many are told of nevertheless."""


def points_of(measured: Measurements, machines: Mapping[int, str] = NO_MACHINES) -> tuple[Point, ...]:
    """Every trial in the order of the design; of very many those of whole blocks at even distances, the first and the
    last among them, and the first that were flagged or failed. ``machines`` are those of the blocks, if there are many.
    """
    return tuple(_point(measured, int(row), machines) for row in np.flatnonzero(_told(measured)))


def tally(measured: Measurements) -> Tally:
    """How many trials there are, and what became of them."""
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


def _told(measured: Measurements) -> NDArray[np.bool_]:
    most = max(1, MOST_WORDS // (_WORDS_EACH + len(measured.metrics)))
    if len(measured) <= most:
        return np.full(len(measured), True)
    blocks = np.unique(measured.block)
    room = min(len(blocks), max(1, most * len(blocks) // len(measured)))
    some = blocks[np.round(np.linspace(0, len(blocks) - 1, room)).astype(int)]
    told = np.isin(measured.block, some)
    told[np.flatnonzero(~measured.has_status("ok") & ~told)[:MOST_LEFT_OUT]] = True
    return told


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
