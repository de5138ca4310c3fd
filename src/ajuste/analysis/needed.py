"""How many blocks an effect needs before anything is measured."""

from __future__ import annotations

import math
from typing import Final

from ajuste.analysis.sequence import values_needed

MOST_BLOCKS: Final = 10_000
"""Beyond this many blocks a prediction is not worth giving."""


def pair_variance(run_spread: float) -> float:
    """The variance of the log ratio of two independent runs that each scatter by ``run_spread`` (0.01 is 1 %)."""
    return 2 * math.log1p(run_spread) ** 2


def blocks_needed(effect: float, variance: float, alpha: float) -> int | None:
    """About how many blocks tell an ``effect`` (0.02 is 2 %) from none at error rate ``alpha``, if the log ratios
    within blocks have that ``variance``: those after which the interval of ``analysis.sequence`` is narrow enough.

    ``None`` beyond ``MOST_BLOCKS``.
    """
    return values_needed(variance, math.log1p(effect), alpha, most=MOST_BLOCKS)
