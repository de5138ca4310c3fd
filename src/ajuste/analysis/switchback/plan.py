"""How many slices an experiment on a live system will take, from what is known of the metric's noise: its values before
the experiment began, or the blocks of an earlier one, or the first blocks of this one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtri

from ajuste.analysis.switchback.evidence import MOST_VARIANCE, TURNS, block_differences, blocks_needed
from ajuste.design.switchback import order_of_block, slices_a_block
from ajuste.model.live import Slice, SwitchbackOrder
from ajuste.model.metric import Metric, Scale

FEWEST_SLICES: Final = 8
FOUND: Final = 0.95
"""In so many of all experiments the effect is found within the slices that are planned."""
FEWEST_BLOCKS: Final = 6
"""Fewer say too little of the noise for a prediction."""
SURE: Final = 0.9
"""How sure it is that the noise is between the two that the bounds of a prediction rest on."""
LUCKY: Final = 0.7
"""What is looked at after each block passes before its mean would: so much of a shortfall is left (measured in
``benchmarks.switchback``)."""
_DRAWS: Final = 4
_ORDERS: Final = 1000


@dataclass(frozen=True)
class BlockNoise:
    """By how much two equal configurations differ within a block.

    ``values`` are such differences, around 0, of logarithms where ``scale`` is ``ratio``; they tell as much as
    ``blocks`` that have no slice in common. ``mean`` is the metric's.
    """

    scale: Scale
    values: NDArray[np.float64]
    blocks: int
    mean: float


@dataclass(frozen=True)
class SwitchbackPlan:
    """``slices`` in all in which an effect as large as asked for is found in 95 of 100 experiments, ``typical`` in half
    of them; both ``None`` where it would take beyond all measure.

    ``low`` and ``high`` bound ``slices`` as far as so few blocks tell the noise (``None``: beyond all measure).
    """

    slices: int | None
    typical: int | None
    low: int | None
    high: int | None


def plan_of_noise(
    noise: BlockNoise, effect: float, alpha: float, configurations: int, order: SwitchbackOrder
) -> SwitchbackPlan:
    """How many slices tell an ``effect`` (on the scale of the noise) from none, also when its configuration stays.
    ``alpha`` is the error rate of one comparison.
    """
    block_slices = slices_a_block(configurations, order)
    settled = settled_variance(configurations, order)

    def slices(shortfall: float, times: float = 1.0) -> int | None:
        found = blocks_needed(times * noise.values, effect, alpha, shortfall=shortfall)
        if found is None:
            return None
        if settled > MOST_VARIANCE:
            return found * block_slices
        apart = (float(ndtri(1 - TURNS)) + LUCKY * shortfall) * times * float(np.std(noise.values)) / effect
        return max(found, math.ceil(settled * apart**2)) * block_slices

    most = ndtri(FOUND)
    freedom = max(1, noise.blocks - 1)
    low, high = (
        slices(most, math.sqrt(freedom / chdtri(freedom, 1 - share))) for share in ((1 + SURE) / 2, (1 - SURE) / 2)
    )
    return SwitchbackPlan(slices(most), slices(0.0), low, high)


def noise_of_pilot(
    pilot: NDArray[np.float64], configurations: int, order: SwitchbackOrder, *, ratio: bool
) -> BlockNoise | None:
    """From the values of slices in a row under one configuration; ``None`` where they are too few, or have no ratio."""
    length = slices_a_block(configurations, order)
    if len(pilot) < max(FEWEST_SLICES, length) or (ratio and np.any(pilot <= 0)):
        return None
    values = pilot_differences(np.log(pilot) if ratio else pilot, configurations, order)
    return BlockNoise("ratio" if ratio else "difference", values, len(pilot) // length, float(np.mean(pilot)))


def noise_of_blocks(slices: Sequence[Slice], metric: Metric, baseline: str, others: Sequence[str]) -> BlockNoise | None:
    """From the blocks of an experiment, without the mean effect of each of ``others``; ``None`` where no
    blocks have two of the same scale.
    """
    found = [one for name in others if (one := block_differences(slices, metric, baseline, name)) is not None]
    own = [one for one in found if len(one.values) > 1 and one.scale == found[0].scale]
    if not own:
        return None
    left = [(one.values - np.mean(one.values)) * math.sqrt(len(one.values) / (len(one.values) - 1)) for one in own]
    return BlockNoise(own[0].scale, np.concatenate(left), max(map(len, left)), own[0].baseline_mean)


def pilot_differences(pilot: NDArray[np.float64], configurations: int, order: SwitchbackOrder) -> NDArray[np.float64]:
    """The differences of two of so many equal configurations within every stretch of ``pilot`` that is as long as a
    block; in several orders each, where there are several.
    """
    length = slices_a_block(configurations, order)
    windows = np.lib.stride_tricks.sliding_window_view(pilot, length)
    draws = 1 if configurations == 2 else _DRAWS
    weights = _weights(configurations, order, draws * len(windows))
    return np.asarray(np.sum(weights.reshape(draws, len(windows), length) * windows, axis=2).ravel())


@lru_cache(maxsize=32)
def settled_variance(configurations: int, order: SwitchbackOrder) -> float:
    """The variance of the effect of slices that follow their own configuration, as a multiple of that of the mean of
    differences (see ``evidence.carry_over``).
    """
    names = [str(place) for place in range(configurations)]
    drawn = [order_of_block(number, names, 0, order) for number in range(_ORDERS)]
    before = [None, *(name for own in drawn for name in own)]
    follows, place = [], 0
    for own in drawn:
        after = [float(before[place + index] == "1") for index in range(len(own))]
        sides = [[one for name, one in zip(own, after, strict=True) if name == side] for side in ("0", "1")]
        follows.append(float(np.mean(sides[1]) - np.mean(sides[0])))
        place += len(own)
    return 1 + (1 - float(np.mean(follows))) ** 2 / float(np.var(follows))


@lru_cache(maxsize=8)
def _weights(configurations: int, order: SwitchbackOrder, blocks: int) -> NDArray[np.float64]:
    """With what weight each slice of so many blocks is in the difference of the first two configurations."""
    names = [str(place) for place in range(configurations)]
    drawn = [order_of_block(number, names, 0, order) for number in range(blocks)]
    signs = np.array([[(name == "1") * 1.0 - (name == "0") for name in own] for own in drawn])
    return np.asarray(signs * configurations / signs.shape[1])
