"""Autocorrelation: whether a trial resembles the one that ran before it.

The correlation of neighbours in the order of running, after a straight line over the run is taken out; its standard
error is 1/√N and its bias −1/N if there is none (Bartlett 1946; Box and Jenkins, Time Series Analysis, 2.1). N trials
of a first-order autoregression tell as much of a mean as N (1 − ρ)/(1 + ρ) independent ones.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.special import ndtr

from ajuste.analysis.diagnostics.finding import Finding
from ajuste.analysis.diagnostics.naive import error_in, error_of_autocorrelation
from ajuste.analysis.diagnostics.residuals import Floats, Residuals
from ajuste.analysis.wording import number

FEWEST: Final = 30
_MOST: Final = 0.98
_LONG: Final = 400  # trials from which on what they did themselves is known better than what a model says
_SURE: Final = 3.0  # standard errors from which on pairs count as resembling each other


def autocorrelation(residuals: Residuals) -> Finding | None:
    """The resemblance of neighbours; ``None`` with too few trials to tell."""
    n = len(residuals)
    if n < FEWEST or residuals.blocks < 3:
        return None
    left = _without_line(residuals.values)
    rho = lag_one(left)
    if rho is None:
        return None
    paired, paired_score = _of_pairs(residuals)
    affected = rho > 0 and paired_score > _SURE and paired > 0.1
    bounded = max(-_MOST, min(_MOST, rho))
    effective = n * (1 - bounded) / (1 + bounded)
    if affected:
        why = (
            f"Differences within blocks resemble those of the block before ({paired:.2f}): intervals may be too narrow."
        )
    else:
        why = f"Differences within blocks do not resemble those of the block before ({paired:.2f})."
    return Finding(
        kind="autocorrelation",
        measures="correlation of a trial with the one before",
        value=rho,
        p_value=2 * float(ndtr(-abs(rho + 1 / n) * math.sqrt(n))),
        naive_error=error_in(left)[0] if n >= _LONG else error_of_autocorrelation(bounded),
        says=f"A trial resembles the one before it (correlation {rho:.2f}): {number(n)} trials tell as much as "
        f"{number(round(effective))} independent ones."
        if rho > 0
        else f"A trial tends to differ from the one before it (correlation {rho:.2f}).",
        verdict_affected=affected,
        why=why,
    )


def lag_one(values: Floats) -> float | None:
    """The correlation of each value with the one before; ``None`` where nothing varies."""
    away = values - values.mean()
    whole = float(np.sum(away**2))
    return float(np.sum(away[1:] * away[:-1])) / whole if whole > 0 else None


def _without_line(values: Floats) -> Floats:
    places = np.arange(len(values), dtype=np.float64) - (len(values) - 1) / 2
    slope = float(np.sum(places * values)) / float(np.sum(places**2))
    return np.asarray(values - values.mean() - slope * places)


def _of_pairs(residuals: Residuals) -> tuple[float, float]:
    """The same for what is left within the blocks, of all configurations together, and how many standard errors it is
    above none.
    """
    within = residuals.values - residuals.block_means[residuals.block]
    order = np.argsort(residuals.configuration, kind="stable")
    own, values = residuals.configuration[order], within[order]
    next_to = own[1:] == own[:-1]
    whole = float(np.sum(values**2))
    if whole <= 1e-18 or len(residuals.names) < 2:
        return 0.0, 0.0
    rho = float(np.sum(values[1:][next_to] * values[:-1][next_to])) / whole
    independent = residuals.blocks * (len(residuals.names) - 1)
    return rho, (rho + 1 / residuals.blocks) * math.sqrt(independent)
