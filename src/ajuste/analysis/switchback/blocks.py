"""Differences within the blocks of a switchback experiment, between the baseline and one other configuration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.effects import SMALLEST_RELATIVE_STEP
from ajuste.model.metric import Metric, Scale
from ajuste.model.slices import Slice

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BlockDifferences:
    """``values`` block by block: the mean under the other configuration minus that under the baseline, of logarithms
    where ``scale`` is ``ratio``. ``control`` has the same of the control figure, ``None`` where it is not known of
    every block. ``floor`` is the least standard deviation that is believed, from the resolution of the figures.
    """

    scale: Scale
    values: Floats
    control: Floats | None
    baseline_mean: float
    floor: float
    same: bool
    fell_back: bool


def block_differences(slices: Sequence[Slice], metric: Metric, baseline: str, other: str) -> BlockDifferences | None:
    """The differences of all blocks that have slices of both that count; ``None`` without any."""
    by_block: dict[int, tuple[list[Slice], list[Slice]]] = {}
    for one in sorted(slices, key=lambda one: one.number):
        if one.counts and one.configuration in (baseline, other):
            by_block.setdefault(one.block, ([], []))[one.configuration == other].append(one)
    blocks = [own for own in by_block.values() if all(own)]
    if not blocks:
        return None
    sides = [np.array([_value(one) for own in blocks for one in own[side]]) for side in (0, 1)]
    means = [float(np.mean(side)) for side in sides]
    positive = all(bool(np.all(side > 0)) for side in sides)
    as_ratio = metric.scale == "ratio" and positive
    step = metric.resolution or SMALLEST_RELATIVE_STEP * max(map(abs, means))
    relative = [1 / mean if as_ratio else 1.0 for mean in means]
    controls = [one.control for own in blocks for side in own for one in side]
    known = all(control is not None and np.isfinite(control) for control in controls)
    log_load = known and all(control is not None and control > 0 for control in controls)
    return BlockDifferences(
        scale="ratio" if as_ratio else "difference",
        values=_differences(blocks, _value, logarithm=as_ratio),
        control=_differences(blocks, _control, logarithm=log_load) if known else None,
        baseline_mean=means[0],
        floor=step * math.hypot(*relative) / math.sqrt(12),
        same=bool(np.all(_differences(blocks, _value, logarithm=False) == 0)),
        fell_back=metric.scale == "ratio" and not as_ratio,
    )


def _differences(
    blocks: Sequence[tuple[list[Slice], list[Slice]]], value: Callable[[Slice], float], *, logarithm: bool
) -> Floats:
    def mean(side: Sequence[Slice]) -> float:
        values = np.array([value(one) for one in side])
        return float(np.mean(np.log(values) if logarithm else values))

    return np.array([mean(others) - mean(ones) for ones, others in blocks])


def _value(one: Slice) -> float:
    return one.value if one.value is not None else float("nan")


def _control(one: Slice) -> float:
    return one.control if one.control is not None else float("nan")
