"""Boots as units: the trials of a boot become one value, and the rounds of boots the blocks that verdicts rest on.

What differs from boot to boot is the same for all trials of one boot. Taken as independent they would make an interval
that holds for these boots only; their mean is one draw of a boot.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from ajuste.analysis.pairs import Clean, Trials, clean_trials
from ajuste.model.measurements import Categorical, Measurements
from ajuste.study.boots import block_count_of_boot
from ajuste.study.resolved import ResolvedStudy


def units(resolved: ResolvedStudy, trials: Trials) -> Clean:
    """The clean trials; of a study across reboots their means by configuration and round of boots. What was made ready
    before stays as it is.
    """
    if isinstance(trials, Clean) or not resolved.study.across_boots:
        return clean_trials(trials)
    return by_round(clean_trials(trials), block_count_of_boot(resolved.study))


def by_round(clean: Clean, size: int) -> Clean:
    """Each configuration's mean over every ``size`` blocks, as if it were one trial of a block.

    It has the position of its first trial: which of two ran first is which booted first.
    """
    measured = clean.measured
    rounds = np.unique(clean.blocks // size)
    cells = [
        (code, number, own)
        for code in range(len(measured.configuration.values))
        for number in rounds
        if len(own := _rows(clean, code, int(number), size))
    ]
    cells.sort(key=lambda cell: (cell[1], _order(measured, int(cell[2][0]))))
    first = np.array([own[0] for _, _, own in cells], np.int64)
    count = len(cells)
    means = {name: np.array([_mean(column[own]) for _, _, own in cells]) for name, column in measured.metrics.items()}
    made = Measurements(
        block=np.array([number for _, number, _ in cells], np.int64),
        position=np.arange(count, dtype=np.int64),
        attempt=np.zeros(count, np.int64),
        seed=measured.seed[first],
        warm_up=np.zeros(count, np.bool_),
        configuration=_taken(measured.configuration, first),
        status=_taken(measured.status, first),
        reason=_taken(measured.reason, first),
        metrics=means,
        not_supported=_taken(measured.not_supported, first),
        written=_taken(measured.written, first),
    )
    return replace(clean_trials(made), of_rounds=True)


def _rows(clean: Clean, code: int, number: int, size: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The trials of a configuration in a round."""
    own = clean.rows[code][clean.blocks // size == number]
    return np.asarray(own[own >= 0], np.int64)


def _order(measured: Measurements, row: int) -> tuple[int, int, int]:
    return int(measured.block[row]), int(measured.attempt[row]), int(measured.position[row])


def _mean(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Of those that are there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # None is there: the mean is none either.
        return float(np.nanmean(values))


def _taken(column: Categorical[Any], rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Categorical[Any]:
    return Categorical(column.values, column.codes[rows])
