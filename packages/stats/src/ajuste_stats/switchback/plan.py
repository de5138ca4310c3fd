"""Slices that an experiment on a live system will take, planned from the noise of its quantity.

The noise is known from values before the experiment, the blocks of an earlier one, or the first blocks of this one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

from ajuste_stats.sign_intervals import fewest_blocks
from ajuste_stats.switchback.design import STAY, order_of_block, slices_a_block
from ajuste_stats.switchback.evidence import MOST_VARIANCE, TURNS, blocks_needed
from ajuste_stats.switchback.slices import Slice, block_differences
from ajuste_stats.switchback.stays import PROJECTED, both_sides, stay_noise
from ajuste_stats.terms import Quantity, Scale, SwitchbackOrder

FEWEST_SLICES: Final = 8
POWER: Final = 0.95
"""The share of experiments that detect the effect within the planned slices."""
FEWEST_BLOCKS: Final = 6
"""Fewer say too little of the noise for a prediction."""
SURE: Final = 0.9
"""The confidence of the bounds on the noise."""
LUCKY: Final = 0.7
"""Looking after each block stops before the mean evidence would: this much of a shortfall is left (measured in
``benchmarks.switchback`` of Ajuste).
"""
_STAYING: Final = 2
"""The treatments that stays usually have: the baseline and the one that improves."""
_DRAWS: Final = 4
_ORDERS: Final = 1000


@dataclass(frozen=True)
class BlockNoise:
    """The differences of two equal treatments within a block.

    ``values`` are such differences, around 0, of logarithms where ``scale`` is *ratio*; they tell as much as
    ``blocks`` without a common slice. ``mean`` is the quantity's. ``staying`` are those of blocks of stays, if known.
    """

    scale: Scale
    values: NDArray[np.float64]
    blocks: int
    mean: float
    staying: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class SwitchbackPlan:
    """The ``slices`` that detect the effect asked for in 95 of 100 experiments, ``typical`` in half of them.

    ``low`` and ``high`` bound ``slices`` as far as so few blocks tell the noise. ``None`` is beyond all measure.
    ``in_stays`` are those of ``slices`` that are in stays.
    """

    slices: int | None
    typical: int | None
    low: int | None
    high: int | None
    in_stays: int = 0


def fewest_in_stays(alpha: float) -> int:
    """Return the smallest number of slices of stays that show a gain at error rate ``alpha``."""
    return fewest_blocks(both_sides(alpha)) * _STAYING * STAY


def plan_slices(
    noise: BlockNoise, effect: float, alpha: float, treatments: int, order: SwitchbackOrder, *, stays: bool = False
) -> SwitchbackPlan:
    """Return how many slices tell an ``effect`` from none at error rate ``alpha``, also if it stays: with ``stays`` by
    blocks of stays, whose slices are taken as independent where their noise is not known.
    """
    block_slices = slices_a_block(treatments, order)
    settled = settled_variance(treatments, order)
    staying = stay_noise(1.0, PROJECTED) * noise.values if noise.staying is None else noise.staying

    def in_stays(shortfall: float, times: float) -> int | None:
        needed = blocks_needed(times * staying, effect, both_sides(alpha), shortfall=shortfall) if stays else 0
        return None if needed is None else needed * _STAYING * STAY

    def both(shortfall: float, times: float = 1.0) -> int | None:
        parts = slices(shortfall, times), in_stays(shortfall, times)
        return None if parts[0] is None or parts[1] is None else parts[0] + parts[1]

    def slices(shortfall: float, times: float = 1.0) -> int | None:
        needed = blocks_needed(times * noise.values, effect, alpha, shortfall=shortfall)
        if needed is None:
            return None
        if settled > MOST_VARIANCE:
            return needed * block_slices
        apart = (
            (float(scipy.special.ndtri(1 - TURNS)) + LUCKY * shortfall) * times * float(np.std(noise.values)) / effect
        )
        return max(needed, math.ceil(settled * apart**2)) * block_slices

    most = scipy.special.ndtri(POWER)
    freedom = max(1, noise.blocks - 1)
    low, high = (
        both(most, math.sqrt(freedom / scipy.special.chdtri(freedom, 1 - share)))
        for share in ((1 + SURE) / 2, (1 - SURE) / 2)
    )
    return SwitchbackPlan(both(most), both(0.0), low, high, in_stays(most, 1.0) or 0)


def noise_of_pilot(
    pilot: NDArray[np.float64], treatments: int, order: SwitchbackOrder, *, ratio: bool
) -> BlockNoise | None:
    """Return the noise of consecutive slices under one treatment; ``None`` if too few, or without a ratio."""
    length = slices_a_block(treatments, order)
    if len(pilot) < max(FEWEST_SLICES, length) or (ratio and np.any(pilot <= 0)):
        return None
    figures = np.log(pilot) if ratio else pilot
    staying = None
    if len(pilot) // (2 * STAY) >= FEWEST_BLOCKS:
        windows = np.lib.stride_tricks.sliding_window_view(figures, 2 * STAY)
        staying = windows @ np.r_[-PROJECTED, PROJECTED]
    return BlockNoise(
        "ratio" if ratio else "difference",
        pilot_differences(figures, treatments, order),
        len(pilot) // length,
        float(np.mean(pilot)),
        staying,
    )


def noise_of_blocks(
    slices: Sequence[Slice], quantity: Quantity, baseline: str, others: Sequence[str]
) -> BlockNoise | None:
    """Return the noise of an experiment's blocks; ``None`` where no blocks have two of the same scale."""
    compared = (block_differences(slices, quantity, baseline, name) for name in others)
    known = [differences for differences in compared if differences is not None]
    alike = [
        differences for differences in known if len(differences.values) > 1 and differences.scale == known[0].scale
    ]
    if not alike:
        return None
    values = [differences.values for differences in alike]
    residuals = [(block - np.mean(block)) * math.sqrt(len(block) / (len(block) - 1)) for block in values]
    return BlockNoise(alike[0].scale, np.concatenate(residuals), max(map(len, residuals)), alike[0].baseline_mean)


def pilot_differences(pilot: NDArray[np.float64], treatments: int, order: SwitchbackOrder) -> NDArray[np.float64]:
    """Return the differences of two of so many equal treatments within every block-long stretch of ``pilot``.

    Several orders are drawn for each stretch where there are several.
    """
    length = slices_a_block(treatments, order)
    windows = np.lib.stride_tricks.sliding_window_view(pilot, length)
    draws = 1 if treatments == 2 else _DRAWS
    weights = _weights(treatments, order, draws * len(windows))
    return np.asarray(np.sum(weights.reshape(draws, len(windows), length) * windows, axis=2).ravel())


@lru_cache(maxsize=32)
def settled_variance(treatments: int, order: SwitchbackOrder) -> float:
    """Return the variance of the effect of slices that follow their own treatment.

    As a multiple of that of the mean of differences (see ``evidence.carry_over``).
    """
    names = [str(place) for place in range(treatments)]
    drawn = [order_of_block(number, names, 0, order) for number in range(_ORDERS)]
    before = [None, *(name for block in drawn for name in block)]
    follows, place = [], 0
    for block in drawn:
        after = [float(before[place + index] == "1") for index in range(len(block))]
        sides = [[followed for name, followed in zip(block, after, strict=True) if name == side] for side in ("0", "1")]
        follows.append(float(np.mean(sides[1]) - np.mean(sides[0])))
        place += len(block)
    return 1 + (1 - float(np.mean(follows))) ** 2 / float(np.var(follows))


@lru_cache(maxsize=8)
def _weights(treatments: int, order: SwitchbackOrder, blocks: int) -> NDArray[np.float64]:
    names = [str(place) for place in range(treatments)]
    drawn = [order_of_block(number, names, 0, order) for number in range(blocks)]
    signs = np.array([[(name == "1") * 1.0 - (name == "0") for name in block] for block in drawn])
    return np.asarray(signs * treatments / signs.shape[1])
