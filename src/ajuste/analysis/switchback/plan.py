"""How many slices an experiment on a live system will take, from what the metric did before it began."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.diagnostics.order import lag_one
from ajuste.analysis.switchback.needed import blocks_needed
from ajuste.design.switchback import SwitchbackOrder, order_of_block, slices_a_block
from ajuste.model.distributions import normal_quantile

FEWEST_SLICES: Final = 8
FOUND: Final = 0.95
"""In so many of all experiments the effect is found within the slices that are planned."""
_DRAWS: Final = 4


@dataclass(frozen=True)
class SwitchbackPlan:
    """``slices`` in all in which an effect as large as asked for is found in 95 of 100 experiments, ``typical`` in half
    of them; both ``None`` where the pilot is too short to tell, or where it would take beyond all measure.

    ``block_slices`` is the length of a block. ``pair_sd`` is the standard deviation of a difference within a block (of
    logarithms, for a ratio), ``autocorrelation`` that of neighbouring slices.
    """

    order: SwitchbackOrder
    block_slices: int
    slices: int | None
    typical: int | None
    pair_sd: float | None = None
    autocorrelation: float | None = None


def plan_slices(
    pilot: Sequence[float],
    *,
    configurations: int,
    effect: float,
    alpha: float = 0.05,
    order: SwitchbackOrder | None = None,
    ratio: bool = True,
) -> SwitchbackPlan:
    """How many slices tell an ``effect`` (0.03 is 3 %; with ``ratio`` False in the metric's unit) from none.

    ``pilot`` are the values of slices in a row, as long as those to come and all under one configuration: at least
    ``FEWEST_SLICES``, better a whole daily cycle, which a server of metrics remembers. ``alpha`` is the error rate of
    one comparison. Without an ``order`` it is the one of *random* and *mirrored* that takes fewer slices.
    """
    if order is None:
        one, other = (
            plan_slices(pilot, configurations=configurations, effect=effect, alpha=alpha, order=kind, ratio=ratio)
            for kind in ("random", "mirrored")
        )
        return other if one.slices is not None and other.slices is not None and other.slices < one.slices else one
    values = np.array([value for value in pilot if math.isfinite(value)])
    length = slices_a_block(configurations, order)
    if len(values) < max(FEWEST_SLICES, length) or (ratio and np.any(values <= 0)):
        return SwitchbackPlan(order, length, None, None)
    if ratio:
        values, effect = np.log(values), math.log1p(effect)
    noise = pilot_differences(values, configurations, order)
    in_most = blocks_needed(noise, effect, alpha, shortfall=normal_quantile(FOUND))
    in_half = blocks_needed(noise, effect, alpha)
    return SwitchbackPlan(
        order,
        length,
        None if in_most is None else in_most * length,
        None if in_half is None else in_half * length,
        float(np.sqrt(np.mean(noise**2))),
        lag_one(values),
    )


def pilot_differences(pilot: NDArray[np.float64], configurations: int, order: SwitchbackOrder) -> NDArray[np.float64]:
    """The differences of two of so many equal configurations within every stretch of ``pilot`` that is as long as a
    block; in several orders each, where there are several.
    """
    length = slices_a_block(configurations, order)
    windows = np.lib.stride_tricks.sliding_window_view(pilot, length)
    draws = 1 if configurations == 2 else _DRAWS
    weights = _weights(configurations, order, draws * len(windows))
    return np.asarray(np.sum(weights.reshape(draws, len(windows), length) * windows, axis=2).ravel())


@lru_cache(maxsize=8)
def _weights(configurations: int, order: SwitchbackOrder, blocks: int) -> NDArray[np.float64]:
    """With what weight each slice of so many blocks is in the difference of the first two configurations."""
    names = [str(place) for place in range(configurations)]
    drawn = [order_of_block(number, names, 0, order) for number in range(blocks)]
    signs = np.array([[(name == "1") * 1.0 - (name == "0") for name in own] for own in drawn])
    return np.asarray(signs * configurations / signs.shape[1])
