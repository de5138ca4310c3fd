"""The default sampler: a Gaussian process says where the best is to be expected."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from ajuste.design.search.sampler import SamplerTask, Tried, filling, front
from ajuste.design.search.space import Point
from ajuste.design.search.surrogate import Surrogate

MOST_CANDIDATES: Final = 2_000
"""So many points of a large space are weighed each time, and the neighbours of the best."""
NEAR: Final = 3
AUGMENTED: Final = 0.05
"""The weight of the sum in an augmented Tchebycheff scalarisation."""


def first_points(axes: int) -> int:
    """How many points are spread over the space before anything is modelled."""
    return 2 * axes + 4


@dataclass
class GaussianSampler:
    """Expected improvement (Jones, Schonlau and Welch, 1998), times the probability that the constraints hold (Gardner
    et al., 2014). For several objectives they are weighed anew each time (ParEGO: Knowles, 2006). Points of one batch
    are chosen as if the earlier ones had come out as expected.
    """

    task: SamplerTask

    def suggest(self, tried: Sequence[Tried], count: int, taken: Collection[Point] = ()) -> list[Point]:
        known = {*taken, *(one.point for one in tried)}
        different = list({one.row: one for one in reversed(tried)}.values())[::-1]
        missing = first_points(len(self.task.space.axes)) - len(different)
        first = filling(self.task.space, min(missing, count), self.task.seed, known) if missing > 0 else []
        if len(first) == count or len(known) + len(first) >= self.task.space.size or not tried:
            return first or filling(self.task.space, count, self.task.seed, known)
        return [*first, *self._expected_best(different, count - len(first), known | set(first))]

    def _expected_best(self, tried: Sequence[Tried], count: int, taken: set[Point]) -> list[Point]:
        generator = np.random.default_rng([self.task.seed, 4, len(tried)])
        values, variances = self._scalar(tried, generator)
        order = np.argsort([value + 1e3 * one.violation for value, one in zip(values, tried, strict=True)])
        near = [tried[place].point for place in order[:NEAR]]
        free = [point for point in self.task.space.some_points(generator, MOST_CANDIDATES, near) if point not in taken]
        rows = np.array([one.row for one in tried])
        surface = Surrogate(rows, values, variances)
        limits = [
            Surrogate(rows, [one.excess[number] for one in tried], np.zeros(len(tried)))
            for number in range(self.task.constraints)
        ]
        allowed = np.array([one.allowed for one in tried])
        candidates = self.task.space.rows(free)
        found: list[Point] = []
        while free and len(found) < count:
            merit = _merit(surface, limits, rows, allowed, candidates)
            place = int(np.argmax(np.round(merit, 9)))
            found.append(free.pop(place))
            for model in (surface, *limits):
                model.and_also(candidates[place])
            candidates = np.delete(candidates, place, axis=0)
        return found

    def _scalar(
        self, tried: Sequence[Tried], generator: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """One figure for each point, and the variance of its error."""
        table = np.array([one.values for one in tried])
        variances = np.array([[v / one.runs for v in one.variances] or [0.0] * table.shape[1] for one in tried])
        if table.shape[1] == 1:
            return table[:, 0], variances[:, 0]
        best = np.array([one.values for one in front(tried)])
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
    """The logarithm of the expected improvement of each candidate on the best that is allowed, and of the probability
    that it is allowed; only of the latter while nothing is.
    """
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
    """log(z Φ(z) + φ(z)), also far below 0, where it is φ(z)/z² (Ament et al., 2023)."""
    far = z < -6
    near = np.where(far, 0.0, z)
    exact = np.log(np.maximum(near * norm.cdf(near) + norm.pdf(near), 1e-300))
    away = np.where(far, z, -6.0)
    return np.asarray(np.where(far, norm.logpdf(away) - 2 * np.log(-away), exact))
