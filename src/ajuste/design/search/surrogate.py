"""A model of a surface from few noisy points: a Gaussian process."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

Table = NDArray[np.float64]

LENGTHS: Final = (0.05, 8.0)
"""How far, in lengths of an axis, the surface may go on alike."""
ROUGHNESS: Final = (1e-6, 1.0)
"""How much of the surface's variance may be what no neighbour tells."""
TYPICAL_LENGTH: Final = 0.6
SPREAD_OF_LENGTHS: Final = 1.0
"""Of the prior of the logarithm of a length: with few points a length must not follow from an accident."""
STARTS: Final = 32
NARROWER: Final = (0.8, 0.4, 0.15)


class Surrogate:
    """A Gaussian process with a Matérn kernel (ν = 5/2) with a length for each column, and white noise.

    Its parameters are those of greatest posterior density among points that are always the same, refined step by step:
    unlike a gradient's way, that is the same on every machine, however it rounds. Source of model and priors: Rasmussen
    and Williams (2006), "Gaussian Processes for Machine Learning", chapters 2 and 5.
    """

    def __init__(self, rows: Table, values: Sequence[float] | Table, variances: Sequence[float] | Table) -> None:
        """``variances`` are those of the errors of ``values``, as far as they are known; the rest is estimated."""
        table = np.asarray(values, np.float64)
        self._middle = float(np.mean(table))
        self._spread = float(np.std(table)) or 1.0
        self.flat = bool(np.ptp(table) == 0)
        self._alpha = np.maximum(np.asarray(variances, np.float64) / self._spread**2, 1e-9)
        self._targets = (table - self._middle) / self._spread
        self._rows = np.asarray(rows, np.float64)
        self._process = self._fitted()

    def predict(self, rows: Table) -> tuple[Table, Table]:
        """Mean and standard deviation of the surface itself, without the noise of a trial."""
        mean, deviation = self._process.predict(rows, return_std=True)
        bare = np.sqrt(np.maximum(deviation**2 - self._white, 1e-12))
        return self._middle + self._spread * mean, self._spread * bare

    def draws(self, rows: Table, count: int, seed: int) -> Table:
        """``count`` surfaces that may be the true one, a line each."""
        mean, covariance = self._process.predict(rows, return_cov=True)
        bare = covariance - self._white * np.eye(len(mean))
        values, vectors = np.linalg.eigh((bare + bare.T) / 2)
        shapes = np.random.default_rng(seed).standard_normal((count, len(mean)))
        drawn = mean + (shapes * np.sqrt(np.maximum(values, 0))) @ vectors.T
        return np.asarray(self._middle + self._spread * drawn, np.float64)

    def and_also(self, row: Table) -> None:
        """As if ``row`` had been tried, with just the outcome that is expected there."""
        expected = self._process.predict(row.reshape(1, -1))
        self._rows = np.vstack([self._rows, row])
        self._targets = np.append(self._targets, expected)
        self._alpha = np.append(self._alpha, np.min(self._alpha))
        process = GaussianProcessRegressor(self._process.kernel_, alpha=self._alpha, optimizer=None)
        self._process = process.fit(self._rows, self._targets)

    @property
    def _white(self) -> float:
        return float(self._process.kernel_.k2.noise_level)

    def _fitted(self) -> Any:
        columns = self._rows.shape[1]
        matern = Matern(np.full(columns, TYPICAL_LENGTH), [LENGTHS] * columns, nu=2.5)
        kernel = ConstantKernel(1.0, (0.05, 20.0)) * matern + WhiteKernel(1e-3, ROUGHNESS)
        process = GaussianProcessRegressor(kernel, alpha=self._alpha, optimizer=_most_probable)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # Where a length does not matter it is at its bound.
            return process.fit(self._rows, self._targets)


def _most_probable(objective: Callable[..., float], initial: Table, bounds: Table) -> tuple[Table, float]:
    """The best of fixed points within ``bounds``, and of ever smaller steps around the best so far."""

    def cost(theta: Table) -> float:
        lengths = theta[1:-1]
        prior = 0.5 * float(np.sum(((lengths - np.log(TYPICAL_LENGTH)) / SPREAD_OF_LENGTHS) ** 2))
        return float(objective(theta, eval_gradient=False)) + prior

    low, high = bounds[:, 0], bounds[:, 1]
    sobol = qmc.Sobol(len(low), scramble=False).random(STARTS)
    candidates = np.vstack([initial, low + sobol[1:] * (high - low)])
    costs = [cost(theta) for theta in candidates]
    best, least = candidates[int(np.argmin(costs))], min(costs)
    for step in NARROWER:
        for place in range(len(low)):
            for way in (-step, step):
                theta = best.copy()
                theta[place] = np.clip(theta[place] + way, low[place], high[place])
                if (found := cost(theta)) < least - 1e-9:
                    best, least = theta, found
    return best, least
