"""Refinement: a fine grid of configurations of which only those are measured that the picture needs.

The first blocks hold a coarse grid and the baseline. From then on each block holds the baseline and the points at which
the surface is known worst: new ones where it bends, and again those where the noise is large. It ends when the surface
is known everywhere as well as was asked for.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.model.trial import Configuration, Factor
from ajuste.study.check import FEWEST_LEVELS

# A surface through noisy points of a grid: a Gaussian process, with what it does not know at every point.
#
# Rasmussen and Williams 2006, "Gaussian Processes for Machine Learning", chapters 2 (prediction), 4 (Matérn 5/2, one
# length scale for each factor) and 5 (marginal likelihood; equations 5.10 to 5.12 for leaving one out). Length scales
# and variance are those of a small list that explain the points best: nothing is iterated, so that equal points always
# give equal surfaces. Standard errors are then adjusted by how far off the surface is at the nearest points where each
# is left out, after Le Gratiet and Cannamela 2015, "Cokriging-based sequential design strategies using fast cross-
# validation techniques", Technometrics 57: where it bends most, it is known worst.


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
        """Return the posterior once ``point`` is measured (again) with variance ``noise``; the mean stays."""
        column = self.covariance[:, point]
        gain = np.outer(column, column) / (column[point] + noise + _SMALLEST)
        return PosteriorSurface(self.mean, self.covariance - gain, self.scale)


def surface(grid: Array, measured: NDArray[np.int64], values: Array, noise: Array) -> PosteriorSurface:
    """Return the surface over ``grid`` (points × factors, each from 0 to 1).

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
    # Return how many times worse the surface is near each point than the process believes, at least 1.
    squared_distances = np.sum((grid[:, None, :] - at[None, :, :]) ** 2, axis=2)
    nearest = np.argsort(squared_distances, axis=1, kind="stable")[:, :_NEAREST]
    return np.asarray(np.sqrt(np.maximum(1.0, np.mean(missed[nearest] ** 2, axis=1))), np.float64)


def _likeliest(at: Array, values: Array, noise: Array, spread: float) -> tuple[Array, float]:
    best, best_fit = -np.inf, (np.ones(at.shape[1]), spread)
    for choice in product(LENGTHS, repeat=at.shape[1]):
        lengths = np.array(choice)
        correlation = _correlation(at, at, lengths)
        for times in VARIANCES:
            likelihood = _likelihood(times * spread * correlation + np.diag(noise + _SMALLEST * spread), values)
            if likelihood > best:
                best, best_fit = likelihood, (lengths, times * spread)
    return best_fit


def _likelihood(covariance: Array, values: Array) -> float:
    # The logarithm of the marginal likelihood, but for a constant, with the mean that makes it largest.
    lower = np.linalg.cholesky(covariance)
    whitened = np.linalg.solve(lower, np.column_stack([values, np.ones(len(values))]))
    centre = float(whitened[:, 0] @ whitened[:, 1] / (whitened[:, 1] @ whitened[:, 1]))
    rest = whitened[:, 0] - centre * whitened[:, 1]
    return float(-0.5 * rest @ rest - np.sum(np.log(np.diag(lower))))


def _correlation(left: Array, right: Array, lengths: Array) -> Array:
    # Matérn 5/2 in each factor, multiplied.
    total = np.ones((len(left), len(right)))
    for factor, length in enumerate(lengths):
        apart = np.sqrt(5) * np.abs(left[:, factor][:, None] - right[:, factor][None, :]) / length
        total *= (1 + apart + apart**2 / 3) * np.exp(-apart)
    return total


SURE: Final = 2.0
"""Number of standard errors that must be less than the error that is allowed: about 95 % at each point."""

# The noise of a point with few trials is drawn towards that of all, as if it had so many more of theirs.
_PRIOR: Final = 2


@dataclass(frozen=True)
class Grid:
    """The configurations as points: for each factor that varies the place of its level, from 0 to 1."""

    names: tuple[str, ...]
    baseline: str
    points: Array
    coarse: tuple[str, ...]

    @property
    def batch(self) -> int:
        """Return the number of points a block has besides the baseline: few enough to learn, enough to go ahead."""
        return math.ceil(math.sqrt(len(self.names)))


def build_grid(factors: Sequence[Factor], configurations: Sequence[Configuration]) -> Grid:
    """Return the grid of all combinations of levels, in the order of ``configurations``."""
    varied = [factor for factor in factors if len(factor.levels) > 1]
    places = {(f.name, level): place for f in varied for place, level in enumerate(f.levels)}
    indices = [tuple(places[f.name, c.levels[f.name]] for f in varied) for c in configurations]
    coarse = set(product(*(_coarse(len(factor.levels)) for factor in varied)))
    baseline = next(c.name for c in configurations if c.baseline)
    return Grid(
        names=tuple(c.name for c in configurations),
        baseline=baseline,
        points=np.array(indices, float) / np.array([len(factor.levels) - 1 for factor in varied]),
        coarse=tuple(
            c.name for c, index in zip(configurations, indices, strict=True) if index in coarse or c.name == baseline
        ),
    )


def _coarse(levels: int) -> tuple[int, ...]:
    # The places of the levels of the coarse grid: both ends, and some between.
    if levels < FEWEST_LEVELS:
        return tuple(range(levels))
    count = max(3, math.ceil(levels / 4) + 1)
    return tuple(round(place * (levels - 1) / (count - 1)) for place in range(count))


@dataclass(frozen=True)
class SampledPoint:
    """Measurements of one metric: for each configuration the differences from the baseline of the same block (of
    logarithms, where ratios are compared). ``allowed`` is the error of the surface that is small enough, alike.
    """

    values: Mapping[str, Sequence[float]]
    allowed: float


@dataclass(frozen=True)
class KnownSurface:
    """Precision of the surfaces. ``worst`` is the largest error at any point as a multiple of what is allowed: up
    to 1 they are known. ``following`` are the configurations of the next block, in the order of the grid: the baseline,
    and the points known worst. ``measured`` are as many of ``points``.
    """

    worst: float
    following: tuple[str, ...]
    measured: int
    points: int


def known(grid: Grid, metrics: Sequence[SampledPoint], given_up: Collection[str] = ()) -> KnownSurface:
    """Return how well the surface of each of ``metrics`` is known. What is ``given_up`` is not asked for any more.

    Each point of the next block is chosen as if those before it had been measured already, so that they do not all lie
    together.
    """
    surfaces = [surface_over(grid, sampled) for sampled in metrics]
    noises = [_noise(grid, sampled) for sampled in metrics]
    left_out = [place for place, name in enumerate(grid.names) if name in given_up]
    chosen = {grid.names.index(grid.baseline)}
    largest = None
    while len(chosen) <= min(grid.batch, len(grid.names) - 1):
        need = np.max([SURE * s.error / sampled.allowed for s, sampled in zip(surfaces, metrics, strict=True)], axis=0)
        need[[*chosen, *left_out]] = -1.0
        worst = int(np.argmax(need))
        largest = float(need[worst]) if largest is None else largest
        if need[worst] <= 1 and len(chosen) > 1:
            break
        chosen.add(worst)
        surfaces = [s.measured_at(worst, float(n[worst])) for s, n in zip(surfaces, noises, strict=True)]
    following = tuple(name for place, name in enumerate(grid.names) if place in chosen)
    measured = 1 + len({name for sampled in metrics for name in sampled.values})
    return KnownSurface(largest or 0.0, following, measured, len(grid.names))


def surface_over(grid: Grid, sampled: SampledPoint) -> PosteriorSurface:
    """Return the surface of one metric, in differences from the baseline, through what was measured of it."""
    rows, averages = _measured_points(grid, sampled)
    counts = np.array([len(sampled.values.get(name, ())) for name in grid.names])
    noise = _noise(grid, sampled)[rows] / np.maximum(counts[rows], 1)
    noise[rows == grid.names.index(grid.baseline)] = 0.0
    return surface(grid.points, rows, averages, noise)


def _measured_points(grid: Grid, sampled: SampledPoint) -> tuple[NDArray[np.int64], Array]:
    # The points that were measured, the baseline (0 by definition) among them, and the mean at each.
    surface_points = [
        (row, 0.0 if name == grid.baseline else float(np.mean(sampled.values[name])))
        for row, name in enumerate(grid.names)
        if name == grid.baseline or len(sampled.values.get(name, ()))
    ]
    return np.array([row for row, _ in surface_points], np.int64), np.array([mean for _, mean in surface_points])


def _noise(grid: Grid, sampled: SampledPoint) -> Array:
    # The variance of one trial at each point: its own as far as it is known, otherwise that of all.
    samples = [np.asarray(sampled.values.get(name, ()), float) for name in grid.names]
    squares = np.array([float(np.sum((values - values.mean()) ** 2)) if len(values) > 1 else 0.0 for values in samples])
    freedom = np.array([max(0, len(values) - 1) for values in samples])
    shared = float(np.sum(squares) / max(1, np.sum(freedom)))
    return np.asarray((squares + _PRIOR * shared) / (freedom + _PRIOR), np.float64)
