"""Slices of time on a live system, and the differences between treatments within their blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from ajuste_stats.rounding import figure_step, row_errors
from ajuste_stats.sign_intervals import Floats
from ajuste_stats.switchback.design import STAY
from ajuste_stats.switchback.stays import StayDifferences, stay_differences
from ajuste_stats.terms import Quantity, Scale

_APART: Final = 1.5
"""Slices further apart than this many lengths of what counts of them are no longer one stay."""


@dataclass(frozen=True)
class Slice:
    """A stretch under one treatment, with one metric's ``value`` over it; ``None`` where there is none.

    ``number`` counts all slices from 0 in the order of time, ``block`` is what was drawn at random as one (see
    ``switchback.design``). ``begin_s`` and ``end_s`` bound the part that counts, after the wash-out, in seconds since
    the experiment began. ``control`` is a concurrent figure of the load, such as requests/s, that the treatments do
    not change. A slice with ``flags``, such as ``guard`` or ``changed by others``, does not count. ``stay`` is its
    place (1 …) in a stay under one treatment; 0 outside of blocks of stays.
    """

    number: int
    block: int
    treatment: str
    begin_s: float
    end_s: float
    value: float | None = None
    control: float | None = None
    flags: tuple[str, ...] = ()
    stay: int = 0

    @property
    def counts(self) -> bool:
        """Return whether there is a value that counts."""
        return not self.flags and self.value is not None and math.isfinite(self.value)


@dataclass(frozen=True)
class BlockDifferences:
    """Differences between a treatment and the baseline, one per block, in ``values``.

    They are of logarithms where ``scale`` is *ratio*. ``control`` has the same of the control figure, ``None`` where
    any is unknown. ``floor`` is the least standard deviation that is believed, from the resolution of the figures, and
    ``rounding`` how far their ``step`` may have moved the mean difference.
    ``follows`` is how much more often slices of the other treatment follow one of their own than slices of the
    baseline do; NaN where the slice before is unknown.
    """

    scale: Scale
    values: Floats
    control: Floats | None
    baseline_mean: float
    floor: float
    step: float
    rounding: float
    same: bool
    fell_back: bool
    follows: Floats


def block_differences(
    slices: Sequence[Slice], quantity: Quantity, baseline: str, other: str
) -> BlockDifferences | None:
    """Return the differences of all blocks with clean slices of both, except of stays; ``None`` without any."""
    by_block: dict[int, tuple[list[Slice], list[Slice]]] = {}
    for time_slice in sorted(slices, key=lambda s: s.number):
        if time_slice.counts and not time_slice.stay and time_slice.treatment in (baseline, other):
            by_block.setdefault(time_slice.block, ([], []))[time_slice.treatment == other].append(time_slice)
    blocks = [pair for pair in by_block.values() if all(pair)]
    running = {time_slice.number: time_slice.treatment for time_slice in slices}
    if not blocks:
        return None
    sides = [np.array([_value(time_slice) for pair in blocks for time_slice in pair[side]]) for side in (0, 1)]
    averages = [float(np.mean(side)) for side in sides]
    positive = all(bool(np.all(side > 0)) for side in sides)
    as_ratio = quantity.scale == "ratio" and positive
    step = figure_step(quantity, np.concatenate(sides))
    relative = [1 / mean if as_ratio else 1.0 for mean in averages]
    controls = [time_slice.control for pair in blocks for side in pair for time_slice in side]
    known = all(control is not None and np.isfinite(control) for control in controls)
    log_load = known and all(control is not None and control > 0 for control in controls)
    return BlockDifferences(
        scale="ratio" if as_ratio else "difference",
        values=_differences(blocks, _value, logarithm=as_ratio),
        control=_differences(blocks, _control, logarithm=log_load) if known else None,
        baseline_mean=averages[0],
        floor=step * math.hypot(*relative) / math.sqrt(12),
        step=step,
        rounding=float(np.sum(row_errors(quantity, sides, as_ratio=as_ratio))),
        same=bool(np.all(_differences(blocks, _value, logarithm=False) == 0)),
        fell_back=quantity.scale == "ratio" and not as_ratio,
        follows=_differences(
            blocks, lambda time_slice: _follows(running.get(time_slice.number - 1), other), logarithm=False
        ),
    )


def _follows(before: str | None, other: str) -> float:
    return math.nan if before is None else float(before == other)


def _differences(
    blocks: Sequence[tuple[list[Slice], list[Slice]]], value: Callable[[Slice], float], *, logarithm: bool
) -> Floats:
    def mean(side: Sequence[Slice]) -> float:
        values = np.array([value(time_slice) for time_slice in side])
        return float(np.mean(np.log(values) if logarithm else values))

    return np.array([mean(others) - mean(baselines) for baselines, others in blocks])


def _value(time_slice: Slice) -> float:
    return math.nan if time_slice.value is None else time_slice.value


def _control(time_slice: Slice) -> float:
    return math.nan if time_slice.control is None else time_slice.control


def stays_of(slices: Sequence[Slice], treatments: tuple[str, str]) -> list[tuple[list[Slice], list[Slice]]]:
    """Return the stays of both ``treatments`` of each block that has them whole, in the order of time."""
    by_block: dict[int, dict[str, list[Slice]]] = {}
    for time_slice in sorted(slices, key=lambda s: s.number):
        if time_slice.stay:
            by_block.setdefault(time_slice.block, {}).setdefault(time_slice.treatment, []).append(time_slice)
    first, second = treatments
    pairs = [(stays.get(first, []), stays.get(second, [])) for _, stays in sorted(by_block.items())]
    return [pair for pair in pairs if all(map(_is_whole, pair))]


def _is_whole(stay: Sequence[Slice]) -> bool:
    # Only an uninterrupted stay shows what staying does: no other treatment, pause or crash in between.
    if [time_slice.stay for time_slice in stay] != list(range(1, STAY + 1)):
        return False
    return all(time_slice.counts for time_slice in stay) and all(
        after.number == before.number + 1 and after.begin_s - before.end_s <= _APART * (before.end_s - before.begin_s)
        for before, after in pairwise(stay)
    )


def stays_of_values(
    stays: Sequence[tuple[list[Slice], list[Slice]]], differences: BlockDifferences, *, use_control: bool
) -> tuple[StayDifferences, StayDifferences | None]:
    """Return the differences of ``stays`` on the scale of the blocks' ``differences``, and of their control."""

    def of(value: Callable[[Slice], float], *, logarithm: bool) -> StayDifferences:
        sides = [np.array([[value(s) for s in pair[side]] for pair in stays]).reshape(-1, STAY) for side in (0, 1)]
        return stay_differences(*(np.log(side) if logarithm else side for side in sides))

    controls = [_control(time_slice) for pair in stays for side in pair for time_slice in side]
    known = use_control and bool(np.all(np.isfinite(controls)))
    values = of(_value, logarithm=differences.scale == "ratio")
    return values, of(_control, logarithm=min(controls, default=0.0) > 0) if known else None
