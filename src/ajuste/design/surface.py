"""A surface through noisy points of a grid: a Gaussian process, with what it does not know at every point.

Rasmussen and Williams 2006, "Gaussian Processes for Machine Learning", chapters 2 (prediction), 4 (Matérn 5/2, one
length scale for each factor) and 5 (marginal likelihood; equations 5.10 to 5.12 for leaving one out). Length scales and
variance are those of a small list that explain the points best: nothing is iterated, so that equal points always give
equal surfaces. Standard errors are then adjusted by how far off the surface is at the nearest points where each is left
out, after Le Gratiet and Cannamela 2015, "Cokriging-based sequential design strategies using fast cross-validation
techniques", Technometrics 57: where it bends most, it is known worst.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LENGTHS: Final = (0.12, 0.25, 0.5, 1.0)
"""Length scales that are tried for each factor, as shares of its range."""

VARIANCES: Final = (0.3, 1.0, 4.0, 16.0)
"""Variances of the surface that are tried, as multiples of that of the points."""

_SMALLEST: Final = 1e-10
_NEAREST: Final = 3


@dataclass(frozen=True)
class PosteriorSurface:
    """``mean`` and ``error`` (the standard error, adjusted) at every point of the grid; ``covariance`` of all of them,
    not adjusted, and ``scale``, the factor by which each standard error was adjusted.
    """

    mean: Array
    covariance: Array
    scale: Array

    @property
    def error(self) -> Array:
        return self.scale * np.sqrt(np.clip(np.diag(self.covariance), 0.0, None))

    def measured_at(self, point: int, noise: float) -> PosteriorSurface:
        """As it will be known once ``point`` is measured (again) with variance ``noise``; the mean stays as it is."""
        column = self.covariance[:, point]
        gain = np.outer(column, column) / (column[point] + noise + _SMALLEST)
        return PosteriorSurface(self.mean, self.covariance - gain, self.scale)


def surface(grid: Array, measured: NDArray[np.int64], values: Array, noise: Array) -> PosteriorSurface:
    """The surface over ``grid`` (points × factors, each from 0 to 1).

    ``measured`` are the rows of it that have ``values``, with the variance of each value in ``noise``.
    """
    at = grid[measured]
    spread = max(float(np.var(values)), float(np.mean(noise)), _SMALLEST)
    lengths, variance = _likeliest(at, values, noise, spread)
    inverse = np.linalg.inv(variance * _correlation(at, at, lengths) + np.diag(noise + _SMALLEST * spread))
    centre = float(np.sum(inverse @ values) / np.sum(inverse))
    residuals = inverse @ (values - centre)
    across = variance * _correlation(grid, at, lengths)
    covariance = variance * _correlation(grid, grid, lengths) - across @ inverse @ across.T
    missed = np.abs(residuals) / np.sqrt(np.diag(inverse))  # by how many standard errors, were it left out
    return PosteriorSurface(centre + across @ residuals, covariance, _adjustment(grid / lengths, at / lengths, missed))


def _adjustment(grid: Array, at: Array, missed: Array) -> Array:
    """How many times worse the surface is near each point than the process believes, but never better."""
    nearest = np.argsort(_squared_distances(grid, at), axis=1, kind="stable")[:, :_NEAREST]
    return np.asarray(np.sqrt(np.maximum(1.0, np.mean(missed[nearest] ** 2, axis=1))), np.float64)


def _likeliest(at: Array, values: Array, noise: Array, spread: float) -> tuple[Array, float]:
    best, found = -np.inf, (np.ones(at.shape[1]), spread)
    for choice in product(LENGTHS, repeat=at.shape[1]):
        lengths = np.array(choice)
        correlation = _correlation(at, at, lengths)
        for times in VARIANCES:
            likelihood = _likelihood(times * spread * correlation + np.diag(noise + _SMALLEST * spread), values)
            if likelihood > best:
                best, found = likelihood, (lengths, times * spread)
    return found


def _likelihood(covariance: Array, values: Array) -> float:
    """The logarithm of the marginal likelihood, but for a constant, with the mean that makes it largest."""
    lower = np.linalg.cholesky(covariance)
    whitened = np.linalg.solve(lower, np.column_stack([values, np.ones(len(values))]))
    centre = float(whitened[:, 0] @ whitened[:, 1] / (whitened[:, 1] @ whitened[:, 1]))
    rest = whitened[:, 0] - centre * whitened[:, 1]
    return float(-0.5 * rest @ rest - np.sum(np.log(np.diag(lower))))


def _correlation(one: Array, two: Array, lengths: Array) -> Array:
    """Matérn 5/2 in each factor, multiplied."""
    total = np.ones((len(one), len(two)))
    for factor, length in enumerate(lengths):
        apart = np.sqrt(5) * np.abs(one[:, factor][:, None] - two[:, factor][None, :]) / length
        total *= (1 + apart + apart**2 / 3) * np.exp(-apart)
    return total


def _squared_distances(one: Array, two: Array) -> Array:
    return np.asarray(np.sum((one[:, None, :] - two[None, :, :]) ** 2, axis=2), np.float64)
