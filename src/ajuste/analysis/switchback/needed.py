"""How many blocks decide: what the evidence of ``analysis.switchback.evidence`` grows by from block to block."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from ajuste.analysis.switchback.evidence import SLOPES, Floats, fewest_blocks

MOST: Final = 20_000
"""Beyond this many blocks a prediction is not worth giving."""
FEWEST: Final = 4
"""With fewer differences than this nothing is said of their spread."""


def blocks_needed(noise: Floats, effect: float, alpha: float, *, shortfall: float = 0.0) -> int | None:
    """About how many blocks refute no effect, if differences within blocks are ``effect`` plus one of ``noise`` with
    either sign; ``None`` beyond ``MOST``.

    The evidence of n blocks is taken as normal. ``shortfall`` says how many standard deviations below its mean it may
    be: 0 for half of all experiments, 1.645 for 95 of 100.
    """
    if len(noise) < FEWEST or effect == 0:
        return None
    values = np.concatenate([noise, -noise]) + effect
    z = SLOPES[:, None] * values / math.sqrt(float(np.mean(values**2)))
    gains = z - np.abs(z) - np.log1p(np.exp(-2 * np.abs(z))) + math.log(2)
    mean, sd = gains.mean(axis=1), gains.std(axis=1)
    threshold = math.log(2 * len(SLOPES)) - math.log(alpha)

    def enough(n: int) -> bool:
        return bool(np.logaddexp.reduce(n * mean - shortfall * math.sqrt(n) * sd) >= threshold)

    low, high = 0, fewest_blocks(alpha)
    while not enough(high):
        if high >= MOST:
            return None
        low, high = high, min(2 * high, MOST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return max(high, fewest_blocks(alpha))
