"""Pairs: the same block under the baseline and under another configuration.

Of a run across reboots boots are the units: the trials of a boot become one value, and the rounds of boots the blocks
that verdicts rest on. What differs from boot to boot is the same for all trials of one boot. Taken as independent they
would make an interval that holds for these boots only; their mean is one draw of a boot.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ajuste.model.measurements import Categorical, Measurements, measurements
from ajuste.model.trial import Trial
from ajuste.study.answerable import block_count_of_boot
from ajuste.study.resolved import ResolvedStudy
from ajuste_stats.pairs import Pairs


@dataclass(frozen=True)
class Clean:
    """The clean trial of every block and configuration that has one: the first attempt that is *ok*, no warm-up.

    ``blocks`` are the numbers of the blocks that have any, in order. ``rows`` has for each configuration (in the order
    of ``measured.configuration.values``) and block the row of its trial in ``measured``, -1 where there is none. With
    ``of_rounds`` the blocks are rounds of boots, each with up to ``each`` trials of a configuration.
    """

    measured: Measurements
    blocks: NDArray[np.int64]
    rows: NDArray[np.int64]
    of_rounds: bool = False
    each: int = 1

    def __len__(self) -> int:
        return int(np.count_nonzero(self.rows >= 0))

    def places(self, configuration: str) -> NDArray[np.int64]:
        """Return the row of ``configuration`` in each block, -1 where there is none."""
        code = self.measured.configuration.code(configuration)
        return self.rows[code] if code >= 0 else np.full(len(self.blocks), -1)

    def of(self, configuration: str) -> NDArray[np.int64]:
        """Return the rows of the clean trials of ``configuration``, in block order."""
        places = self.places(configuration)
        return places[places >= 0]

    def values(self, configuration: str, metric: str) -> NDArray[np.float64]:
        """Return the values of ``metric`` under ``configuration``, in block order, without trials that lack it."""
        column = self.measured.metrics.get(metric)
        if column is None:
            return np.array([], np.float64)
        measured = column[self.of(configuration)]
        return measured[~np.isnan(measured)]


Trials: TypeAlias = Iterable[Trial] | Measurements | Clean
"""Trials as they come, or prepared for a second look."""


def clean_trials(trials: Trials) -> Clean:
    """Return the clean ones of ``trials``."""
    if isinstance(trials, Clean):
        return trials
    measured = trials if isinstance(trials, Measurements) else measurements(trials)
    clean = np.flatnonzero(measured.has_status("ok") & ~measured.warm_up)
    blocks, places = np.unique(measured.block[clean], return_inverse=True)
    rows = np.full((len(measured.configuration.values), len(blocks)), -1, np.int64)
    # The last assignment to a cell stays: sorted backwards, that is the first attempt.
    backwards = np.lexsort((-clean, -measured.attempt[clean]))
    rows[measured.configuration.codes[clean[backwards]], places[backwards]] = clean[backwards]
    return Clean(measured, blocks, rows)


def counted_blocks(trials: Trials, configurations: Collection[str], baseline: str) -> int:
    """Return how many blocks have a clean pair with the baseline; with one configuration, a clean trial."""
    clean = clean_trials(trials)
    others = np.full(len(clean.blocks), len(configurations) == 1)
    for name in configurations:
        if name != baseline:
            others |= clean.places(name) >= 0
    return int(np.count_nonzero(others & (clean.places(baseline) >= 0)))


def pairs(clean: Clean, baseline: str, other: str, metric: str, *, order_matters: bool = True) -> Pairs:
    """Return the complete pairs of ``metric`` between two configurations.

    ``order_matters`` where a trial can feel what ran before it: not under the virtual clock, where each starts alike.
    """
    column = clean.measured.metrics.get(metric)
    if column is None:
        return Pairs(np.array([], np.float64), np.array([], np.float64))
    baseline_rows, other_rows = clean.places(baseline), clean.places(other)
    both = (baseline_rows >= 0) & (other_rows >= 0)
    baseline_rows, other_rows = baseline_rows[both], other_rows[both]
    first, second = column[baseline_rows], column[other_rows]
    measured = ~(np.isnan(first) | np.isnan(second))
    order = _baseline_first(clean.measured, baseline_rows, other_rows)[measured] if order_matters else None
    return Pairs(first[measured], second[measured], order, clean.each)


def _baseline_first(
    measured: Measurements, baseline_rows: NDArray[np.int64], other_rows: NDArray[np.int64]
) -> NDArray[np.bool_]:
    # Return which trial of each pair ran first: what is repeated runs after all that is not.
    attempts, positions = measured.attempt, measured.position
    tied = attempts[baseline_rows] == attempts[other_rows]
    earlier = np.where(
        tied, positions[baseline_rows] < positions[other_rows], attempts[baseline_rows] < attempts[other_rows]
    )
    return np.asarray(earlier, np.bool_)


def units(resolved: ResolvedStudy, trials: Trials) -> Clean:
    """Return the clean trials; across reboots their means by configuration and round of boots."""
    if isinstance(trials, Clean) or not resolved.study.across_boots:
        return clean_trials(trials)
    return by_round(clean_trials(trials), block_count_of_boot(resolved.study))


def by_round(clean: Clean, size: int) -> Clean:
    """Return each configuration's mean over every ``size`` blocks as one trial, at the position of the first."""
    measured = clean.measured
    round_of_block = clean.blocks // size
    cells = []
    for code in range(len(measured.configuration.values)):
        for number in np.unique(round_of_block):
            rows = clean.rows[code][round_of_block == number]
            rows = rows[rows >= 0]
            if len(rows):
                cells.append((number, rows))
    order = np.lexsort((measured.position, measured.attempt, measured.block)).argsort()
    cells.sort(key=lambda cell: (cell[0], order[cell[1][0]]))
    first = np.array([rows[0] for _, rows in cells], np.int64)
    count = len(cells)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a mean of no values is NaN
        averages = {
            name: np.array([np.nanmean(column[rows]) for _, rows in cells], np.float64)
            for name, column in measured.metrics.items()
        }
    made = Measurements(
        block=np.array([number for number, _ in cells], np.int64),
        position=np.arange(count, dtype=np.int64),
        attempt=np.zeros(count, np.int64),
        seed=measured.seed[first],
        warm_up=np.zeros(count, np.bool_),
        configuration=_taken(measured.configuration, first),
        status=_taken(measured.status, first),
        reason=_taken(measured.reason, first),
        metrics=averages,
        not_supported=_taken(measured.not_supported, first),
        written=_taken(measured.written, first),
    )
    return replace(clean_trials(made), of_rounds=True, each=size)


def _taken(column: Categorical[Any], rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Categorical[Any]:
    return Categorical(column.values, column.codes[rows])
