"""Error rates of a naive comparison: a t test at 5 % of two equal treatments, each measured ten times in a row.

It is 5 % if the values are independent and normal.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BATCH: Final = 10
"""Values of each of the two batches."""
LEVEL: Final = 0.05
"""The error rate that the naive comparison claims."""
HARM: Final = 0.06
"""Least error rate at which a defect counts as harmful: a fifth more than promised."""
_DRAWS: Final = 2_000
_MOST_WINDOWS: Final = 5_000


@cache
def _critical() -> float:
    """Return the t value from which on the naive comparison finds a difference."""
    return float(scipy.special.stdtrit(2 * BATCH - 2, 1 - LEVEL / 2))


def error_of_bias(bias: float, sd: float) -> float:
    """Return the error rate if one batch is ``bias`` above the other, with ``sd`` within each: the noncentral t."""
    if sd <= 0:
        return 1.0 if bias else LEVEL
    shift = abs(bias) / (sd * math.sqrt(2 / BATCH))
    if shift > 30:
        return 1.0
    freedom, critical = 2 * BATCH - 2, _critical()
    return float(1 - scipy.special.nctdtr(freedom, shift, critical) + scipy.special.nctdtr(freedom, shift, -critical))


def error_of_trend(slope: float, sd: float) -> float:
    """Return the error rate if the level rises by ``slope`` a trial: it moves the batches apart and widens each."""
    within = math.sqrt(sd**2 + slope**2 * (BATCH**2 - 1) / 12)
    return error_of_bias(slope * BATCH, within)


def error_of_autocorrelation(rho: float) -> float:
    """Return the error rate if each trial resembles its predecessor by ``rho`` (first-order autoregression).

    The variance of the difference of means over what the formula claims, from the correlation matrix of the 2n trials;
    the t statistic is wider by its root.
    """
    return float(2 * scipy.special.stdtr(2 * BATCH - 2, -_critical() / math.sqrt(inflation(rho))))


def inflation(rho: float) -> float:
    """Return the true variance of the difference of two batches' means over the mean of s₁²/n + s₂²/n."""
    places = np.arange(2 * BATCH)
    correlation = rho ** np.abs(places[:, None] - places[None, :]).astype(float)
    weights = np.where(places < BATCH, 1, -1) / BATCH
    true = float(weights @ correlation @ weights)
    batch = correlation[:BATCH, :BATCH]
    claimed = 2 * (BATCH - float(batch.mean()) * BATCH) / (BATCH - 1) / BATCH
    return true / claimed


def error_of_unequal_spread(ratio: float) -> float:
    """Return the error rate of Student's pooled test if one standard deviation is ``ratio`` times the other.

    With equal sizes its statistic has fewer degrees of freedom than the test assumes (Satterthwaite 1946).
    """
    q = ratio**2
    freedom = (BATCH - 1) * (1 + q) ** 2 / (1 + q**2)
    return float(2 * scipy.special.stdtr(freedom, -_critical()))


def error_of_shape(values: Floats, random: np.random.Generator) -> float:
    """Two batches drawn at random from ``values``: the effect of their shape alone, without any order (a bootstrap)."""
    drawn = random.choice(values - np.mean(values), (2, _DRAWS, BATCH))
    return float(np.mean(_significant(drawn[0], drawn[1])))


def error_in(series: Floats) -> tuple[float, int]:
    """Return the error rate over all pieces of 2 × ``BATCH`` trials in the order of running, and their number."""
    windows = np.lib.stride_tricks.sliding_window_view(series, 2 * BATCH)
    windows = windows[:: max(1, len(windows) // _MOST_WINDOWS)]
    return float(np.mean(_significant(windows[:, :BATCH], windows[:, BATCH:]))), len(windows)


def _significant(batches: Floats, other_batches: Floats) -> NDArray[np.bool_]:
    first, second = batches.var(axis=1, ddof=1) / BATCH, other_batches.var(axis=1, ddof=1) / BATCH
    both = first + second
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.abs(batches.mean(axis=1) - other_batches.mean(axis=1)) / np.sqrt(both)
        freedom = both**2 / ((first**2 + second**2) / (BATCH - 1))
        significant = statistic > scipy.special.stdtrit(freedom, 1 - LEVEL / 2)
    return np.asarray(np.where(both > 0, significant, batches.mean(axis=1) != other_batches.mean(axis=1)))
