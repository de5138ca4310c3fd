"""What a defect does to the naive comparison: each of two equals measured ``BATCH`` times in a row, then a t test.

The formulas give the error rate of the two-sided test at 5 %, which is 5 % if the values are independent and normal.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import nctdtr, stdtr, stdtrit

from ajuste.analysis.diagnostics.residuals import Floats

BATCH: Final = 10
LEVEL: Final = 0.05
HARM: Final = 0.06
"""From this error rate on a defect counts as harmful: a fifth more than was promised."""
_CRITICAL: Final = float(stdtrit(2 * BATCH - 2, 1 - LEVEL / 2))
_DRAWS: Final = 2_000
_MOST_WINDOWS: Final = 5_000


def error_of_bias(bias: float, sd: float) -> float:
    """If one batch is ``bias`` above the other, with standard deviation ``sd`` within each: the noncentral t."""
    if sd <= 0:
        return 1.0 if bias else LEVEL
    shift = abs(bias) / (sd * math.sqrt(2 / BATCH))
    if shift > 30:
        return 1.0
    freedom = 2 * BATCH - 2
    return float(1 - nctdtr(freedom, shift, _CRITICAL) + nctdtr(freedom, shift, -_CRITICAL))


def error_of_trend(slope: float, sd: float) -> float:
    """If the level rises by ``slope`` from trial to trial: it moves the batches apart and widens each."""
    within = math.sqrt(sd**2 + slope**2 * (BATCH**2 - 1) / 12)
    return error_of_bias(slope * BATCH, within)


def error_of_autocorrelation(rho: float) -> float:
    """If each trial resembles the one before it by ``rho`` (first-order autoregression).

    The variance of the difference of means over what the formula claims, from the correlation matrix of the 2n trials;
    the t statistic is wider by its root.
    """
    return float(2 * stdtr(2 * BATCH - 2, -_CRITICAL / math.sqrt(inflation(rho))))


def inflation(rho: float) -> float:
    """The true variance of the difference of two batches' means over what s₁²/n + s₂²/n claims on average."""
    places = np.arange(2 * BATCH)
    correlation = rho ** np.abs(places[:, None] - places[None, :]).astype(float)
    weights = np.where(places < BATCH, 1, -1) / BATCH
    true = float(weights @ correlation @ weights)
    one = correlation[:BATCH, :BATCH]
    claimed = 2 * (BATCH - float(one.mean()) * BATCH) / (BATCH - 1) / BATCH
    return true / claimed


def error_of_unequal_spread(ratio: float) -> float:
    """Student's test with a pooled variance, if one standard deviation is ``ratio`` times the other: with equal sizes
    its statistic has fewer degrees of freedom than it believes (Satterthwaite 1946).
    """
    q = ratio**2
    freedom = (BATCH - 1) * (1 + q) ** 2 / (1 + q**2)
    return float(2 * stdtr(freedom, -_CRITICAL))


def error_of_shape(values: Floats, seed: int = 1) -> float:
    """Two batches drawn at random from ``values``: what their shape alone does, without any order (a bootstrap)."""
    drawn = np.random.default_rng(seed).choice(values - np.mean(values), (2, _DRAWS, BATCH))
    return float(np.mean(_significant(drawn[0], drawn[1])))


def error_in(series: Floats) -> tuple[float, int]:
    """The error rate over all pieces of 2 × ``BATCH`` trials of a series in the order of running, and how many there
    are.
    """
    windows = np.lib.stride_tricks.sliding_window_view(series, 2 * BATCH)
    windows = windows[:: max(1, len(windows) // _MOST_WINDOWS)]
    return float(np.mean(_significant(windows[:, :BATCH], windows[:, BATCH:]))), len(windows)


def _significant(ones: Floats, others: Floats) -> NDArray[np.bool_]:
    """Welch's t test, row by row."""
    first, second = ones.var(axis=1, ddof=1) / BATCH, others.var(axis=1, ddof=1) / BATCH
    both = first + second
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.abs(ones.mean(axis=1) - others.mean(axis=1)) / np.sqrt(both)
        freedom = both**2 / ((first**2 + second**2) / (BATCH - 1))
        found = statistic > stdtrit(freedom, 1 - LEVEL / 2)
    return np.asarray(np.where(both > 0, found, ones.mean(axis=1) != others.mean(axis=1)))
