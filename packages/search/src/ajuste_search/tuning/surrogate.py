"""A model of a surface from few noisy points: a Gaussian process."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, qmc
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from ajuste_search.tuning.sampler import Point, SamplerTask, Tried, filling, front

Table = NDArray[np.float64]

LENGTHS: Final = (0.05, 8.0)
"""Limits of the distance, in lengths of an axis, over which the surface is alike."""
ROUGHNESS: Final = (1e-6, 1.0)
"""Limits of the share of the surface's variance that no neighbour predicts."""
TYPICAL_LENGTH: Final = 0.6
SPREAD_OF_LENGTHS: Final = 1.0
"""Deviation of the prior of the logarithm of a length: with few points a length must not follow from an accident."""
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
        """Return mean and standard deviation of the surface itself, without the noise of a trial."""
        mean, deviation = self._process.predict(rows, return_std=True)
        bare = np.sqrt(np.maximum(deviation**2 - self._white, 1e-12))
        return self._middle + self._spread * mean, self._spread * bare

    def draws(self, rows: Table, count: int, seed: int) -> Table:
        """Return ``count`` surfaces that may be the true one, a line each."""
        mean, covariance = self._process.predict(rows, return_cov=True)
        bare = covariance - self._white * np.eye(len(mean))
        values, vectors = np.linalg.eigh((bare + bare.T) / 2)
        shapes = np.random.default_rng(seed).standard_normal((count, len(mean)))
        drawn = mean + (shapes * np.sqrt(np.maximum(values, 0))) @ vectors.T
        return np.asarray(self._middle + self._spread * drawn, np.float64)

    def and_also(self, row: Table) -> None:
        """Add ``row`` as if it had been tried, with just the outcome that is expected there."""
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
    # The best of fixed points within `bounds`, and of ever smaller steps around the best so far.

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
                if (least_here := cost(theta)) < least - 1e-9:
                    best, least = theta, least_here
    return best, least


# The default sampler: a Gaussian process says where the best is to be expected.


MOST_CANDIDATES: Final = 2_000
"""Number of points of a large space that are weighed each time, besides the neighbours of the best."""
NEAR: Final = 3
AUGMENTED: Final = 0.05
"""The weight of the sum in an augmented Tchebycheff scalarisation."""


def first_points(axes: int) -> int:
    """Return the number of points spread over the space before anything is modelled."""
    return 2 * axes + 4


@dataclass
class GaussianSampler:
    """Expected improvement (Jones, Schonlau and Welch, 1998), times the probability that the constraints hold (Gardner
    et al., 2014). For several objectives they are weighed anew each time (ParEGO: Knowles, 2006). Points of one batch
    are chosen as if the earlier ones had come out as expected.
    """

    task: SamplerTask

    def suggest(self, tried: Sequence[Tried], count: int, taken: Collection[Point] = ()) -> list[Point]:
        known = {*taken, *(trial.point for trial in tried)}
        different = list({trial.row: trial for trial in reversed(tried)}.values())[::-1]
        missing = first_points(len(self.task.space.axes)) - len(different)
        first = filling(self.task.space, min(missing, count), self.task.seed, known) if missing > 0 else []
        if len(first) == count or len(known) + len(first) >= self.task.space.size or not tried:
            return first or filling(self.task.space, count, self.task.seed, known)
        return [*first, *self._expected_best(different, count - len(first), known | set(first))]

    def _expected_best(self, tried: Sequence[Tried], count: int, taken: set[Point]) -> list[Point]:
        generator = np.random.default_rng([self.task.seed, 4, len(tried)])
        values, variances = self._scalar(tried, generator)
        order = np.argsort([value + 1e3 * trial.violation for value, trial in zip(values, tried, strict=True)])
        near = [tried[place].point for place in order[:NEAR]]
        free = [point for point in self.task.space.some_points(generator, MOST_CANDIDATES, near) if point not in taken]
        rows = np.array([trial.row for trial in tried])
        surface = Surrogate(rows, values, variances)
        limits = [
            Surrogate(rows, [trial.excess[number] for trial in tried], np.zeros(len(tried)))
            for number in range(self.task.constraints)
        ]
        allowed = np.array([trial.allowed for trial in tried])
        candidates = self.task.space.rows(free)
        chosen: list[Point] = []
        while free and len(chosen) < count:
            merit = _merit(surface, limits, rows, allowed, candidates)
            place = int(np.argmax(np.round(merit, 9)))
            chosen.append(free.pop(place))
            for model in (surface, *limits):
                model.and_also(candidates[place])
            candidates = np.delete(candidates, place, axis=0)
        return chosen

    def _scalar(
        self, tried: Sequence[Tried], generator: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        # One figure for each point, and the variance of its error.
        table = np.array([trial.values for trial in tried])
        variances = np.array([[v / trial.runs for v in trial.variances] or [0.0] * table.shape[1] for trial in tried])
        if table.shape[1] == 1:
            return table[:, 0], variances[:, 0]
        best = np.array([trial.values for trial in front(tried)])
        low, spread = best.min(axis=0), np.std(table, axis=0)
        spread[spread == 0] = 1.0
        weights = generator.dirichlet(np.ones(table.shape[1]))
        weighed = weights * (table - low) / spread
        scaled = (weights / spread) ** 2 * variances
        return weighed.max(axis=1) + AUGMENTED * weighed.sum(axis=1), scaled.max(axis=1)


def _merit(
    surface: Surrogate,
    limits: Sequence[Surrogate],
    rows: NDArray[np.float64],
    allowed: NDArray[np.bool_],
    candidates: NDArray[np.float64],
) -> NDArray[np.float64]:
    # The logarithm of the expected improvement of each candidate on the best that is allowed, and of the probability
    # that it is allowed; only of the latter while nothing is.
    probable = np.zeros(len(candidates))
    for limit in limits:
        mean, deviation = limit.predict(candidates)
        probable += norm.logcdf(-mean / deviation)
    if not np.any(allowed):
        return probable
    known, _ = surface.predict(rows)
    best = float(np.min(known[allowed]))
    mean, deviation = surface.predict(candidates)
    return np.asarray(probable + _log_improvement((best - mean) / deviation) + np.log(deviation))


def _log_improvement(z: NDArray[np.float64]) -> NDArray[np.float64]:
    # log(z Φ(z) + φ(z)), also far below 0, where it is φ(z)/z² (Ament et al., 2023).
    far = z < -6
    near = np.where(far, 0.0, z)
    exact = np.log(np.maximum(near * norm.cdf(near) + norm.pdf(near), 1e-300))
    away = np.where(far, z, -6.0)
    return np.asarray(np.where(far, norm.logpdf(away) - 2 * np.log(-away), exact))
