"""Step responses: how fast a system settles after a change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVEL: Final = 0.05
"""Share of systems that do not respond of which a response is found."""
CONSTANTS: Final = 16
"""Time constants that are tried."""


def time_constant(responses: Sequence[Floats]) -> float | None:
    """Return the time constant in steps; ``None`` where no response stands out from the noise.

    ``responses`` has a table for each change: a row for each time that it was made, a column for each step after it. An
    exponential decay is fitted to each row alone, for a range of time constants. Whether there is one is a t test over
    the rows of a change, whose amplitudes do not depend on how the noise within each of them is correlated; Bonferroni
    over changes and constants.
    """
    length = min(table.shape[1] for table in responses)
    constants = np.geomspace(1.0, length / 3, CONSTANTS)
    tests = len(responses) * CONSTANTS
    standing_out = [
        table[:, :length]
        for table in responses
        if min(_p_value(table[:, :length], constant) for constant in constants) * tests < LEVEL
    ]
    if not standing_out:
        return None
    errors = [sum(_left_over(table.mean(axis=0), constant) for table in standing_out) for constant in constants]
    return float(constants[int(np.argmin(errors))])


def _decay(length: int, constant: float) -> Floats:
    # A decay with its mean taken out: the level that it ends at is not known.
    decay = np.exp(-np.arange(length) / constant)
    return np.asarray(decay - decay.mean())


def _left_over(mean: Floats, constant: float) -> float:
    # The sum of squares that the decay does not explain.
    decay = _decay(len(mean), constant)
    away = mean - mean.mean()
    return float(np.sum((away - decay * np.sum(away * decay) / np.sum(decay**2)) ** 2))


def _p_value(responses: Floats, constant: float) -> float:
    # Two-sided, of a mean amplitude of zero; the least-squares amplitude of the decay in each response.
    decay = _decay(responses.shape[1], constant)
    amplitudes = responses @ decay / np.sum(decay**2)
    spread = float(np.std(amplitudes, ddof=1))
    if spread == 0:
        return 0.0 if np.any(amplitudes) else 1.0
    t = float(np.mean(amplitudes)) / spread * math.sqrt(len(amplitudes))
    return float(2 * scipy.special.stdtr(len(amplitudes) - 1, -abs(t)))
