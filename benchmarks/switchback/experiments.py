"""Experiments on simulated services, many at once: Ajuste's switchback, and two ways in which people compare today.

Words come from the product's own ``log_evidence``; a test shows that they are those of ``judge_slices`` run by run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ajuste_stats.sign_intervals import log_evidence
from ajuste_stats.switchback.evidence import CARRIES, TURNS, adjusted
from ajuste_stats.switchback.judge import ALPHA_OF_CONTROL
from benchmarks.switchback.services import Array, Random, SimulatedService

Flags = NDArray[np.bool_]

ALPHA: Final = 0.05
ALPHA_LEFT: Final = 1 - ALPHA_OF_CONTROL
"""The part of the error rate that a control leaves."""
SMALLEST_EFFECT: Final = 0.02
A_BLOCK: Final = 2
"""Slices of a block of two configurations in random order."""


@dataclass(frozen=True)
class Run:
    """Runs of a service, of shape (runs, slices): the logarithms of what was measured, those of the load, and which
    slices had the other configuration.
    """

    values: Array
    control: Array
    other: Flags

    def since(self, at: int) -> Run:
        return Run(self.values[:, at:], self.control[:, at:], self.other[:, at:])

    def until(self, at: int) -> Run:
        return Run(self.values[:, :at], self.control[:, :at], self.other[:, :at])

    def only(self, runs: Flags) -> Run:
        return Run(self.values[runs], self.control[runs], self.other[runs])


def switched(service: SimulatedService, random: Random, runs: int, slices: int, effect: float) -> Run:
    """Blocks of two slices in random order."""
    first = random.random((runs, slices // A_BLOCK, 1)) < 0.5
    other = np.concatenate([first, ~first], axis=2).reshape(runs, -1)
    return _run(service, random, other, effect)


def before_and_after(service: SimulatedService, random: Random, runs: int, slices: int, effect: float) -> Run:
    """Half of the slices under the one, then half under the other."""
    return _run(service, random, np.tile(np.arange(slices) >= slices // 2, (runs, 1)), effect)


def by_turns(service: SimulatedService, random: Random, runs: int, slices: int, effect: float) -> Run:
    """Run one after the other, always in the same order."""
    return _run(service, random, np.tile(np.arange(slices) % 2 == 1, (runs, 1)), effect)


def _run(service: SimulatedService, random: Random, other: Flags, effect: float) -> Run:
    disturbance, control = service.draw(random, *other.shape)
    return Run(disturbance + service.response(other, math.log1p(effect)), control, other)


def differences(run: Run, values: Array) -> Array:
    """Within each block: the other configuration against the baseline."""
    signs = np.where(run.other, 1.0, -1.0)
    return np.asarray((values * signs).reshape(len(values), -1, A_BLOCK).sum(axis=2))


@dataclass(frozen=True)
class Looks:
    """After each block: whether Ajuste says that the other configuration is higher, lower, or equivalent."""

    higher: Flags
    lower: Flags
    equivalent: Flags


def ajuste(run: Run, *, at_equal_load: bool) -> Looks:
    """Return what ``judge_slices`` says after each block, with the load as control or without."""
    values, control = differences(run, run.values), differences(run, run.control)
    zone = math.log1p(SMALLEST_EFFECT)
    mean = np.cumsum(values, axis=1) / np.arange(1, values.shape[1] + 1)
    if not at_equal_load:
        refuted = [log_evidence(values - at) >= -math.log(ALPHA) for at in (0.0, zone, -zone)]
    else:
        refuted = [_refuted(values - at, control) for at in (0.0, zone, -zone)]
        slope = np.sum(values * control, axis=1) / np.sum(control**2, axis=1)
        mean = mean - slope[:, None] * np.cumsum(control, axis=1) / np.arange(1, values.shape[1] + 1)
    none, above, below = refuted
    equivalent = above & below & (np.abs(mean) < zone)
    carries, settled = _carry_over(run, values, control if at_equal_load else None, zone)
    higher, lower = (none & (side * mean > 0) & ~equivalent & ~carries & (side * settled > 0) for side in (1, -1))
    return Looks(higher, lower, equivalent & ~carries)


def _carry_over(run: Run, values: Array, control: Array | None, zone: float) -> tuple[Flags, Array]:
    """Judge as ``switchback.evidence.carry_over``, after each block: whether it withholds any verdict, and the
    sign of the effect that stays, 0 where that is not certain.
    """
    before = np.concatenate([np.full((len(values), 1), np.nan), run.other[:, :-1]], axis=1)
    follows = differences(run, before)
    known = ~np.isnan(follows)
    load = np.zeros_like(values) if control is None else control
    n, (f, d, x) = np.cumsum(known, axis=1), (np.where(known, column, 0.0) for column in (follows, values, load))
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = _about_means(x, d, n) / _about_means(x, x, n) if control is not None else np.zeros_like(d)
        mean_f, mean = np.cumsum(f, axis=1) / n, np.cumsum(d, axis=1) / n - slope * np.cumsum(x, axis=1) / n
        squares, both = _about_means(f, f, n), _about_means(f, d, n) - slope * _about_means(f, x, n)
        whole = _about_means(d, d, n) - slope * _about_means(x, d, n)
        size = both / squares
        freedom = np.maximum(n - 2, 1)
        variance = np.maximum(whole - size * both, 0) / freedom
        p = 2 * stats.t.cdf(-np.abs(size) / np.sqrt(variance / squares), freedom)
        settled = mean + (1 - mean_f) * size
        error = np.sqrt(variance * (1 / n + (1 - mean_f) ** 2 / squares))
        certain = np.abs(settled) > stats.t.ppf(1 - TURNS, freedom) * error
    fewer = np.minimum(np.cumsum(known & (f < 0), axis=1), np.cumsum(known & (f == 0), axis=1))
    carries = (n < 5) | (fewer < 2) | ((p < CARRIES) & (np.abs(size) > zone))
    return carries, np.where(certain, np.sign(settled), 0.0)


def _refuted(values: Array, control: Array) -> Flags:
    """Refute as ``ajuste_live.judge``: by both evidences' mean, or without a control that itself changed."""
    alpha = ALPHA_LEFT * ALPHA
    plain, also = log_evidence(values), log_evidence(adjusted(values, control))
    changed = np.maximum.accumulate(log_evidence(control), axis=1) >= -math.log(ALPHA_OF_CONTROL * ALPHA)
    both = np.logaddexp(plain, also) - math.log(2)
    return np.asarray(np.where(changed, plain, both) >= -math.log(alpha))


def _about_means(values: Array, other: Array, n: NDArray[np.int64]) -> Array:
    """The sum of products about the means of the first n, for every n."""
    sums = [np.cumsum(each, axis=1) for each in (values * other, values, other)]
    return np.asarray(sums[0] - sums[1] * sums[2] / n)


def welch(run: Run) -> tuple[Flags, Flags]:
    """Return whether Welch's t test at 5 % finds the other configuration higher, and lower."""
    other = run.other[0]
    test = stats.ttest_ind(run.values[:, other], run.values[:, ~other], axis=1, equal_var=False)
    significant = test.pvalue < ALPHA
    return significant & (test.statistic > 0), significant & (test.statistic < 0)


def paired_with_looks(run: Run, first: int = 5) -> tuple[Flags, Flags]:
    """Return whether a paired t test at 5 %, looked at after every pair from the ``first`` on, ever finds either."""
    values = differences(run, run.values)
    n = np.arange(1, values.shape[1] + 1)
    mean = np.cumsum(values, axis=1) / n
    variance = np.maximum(np.cumsum(values**2, axis=1) / n - mean**2, 0) * n / np.maximum(n - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = (mean / np.sqrt(variance / n))[:, first - 1 :]
    critical = stats.t.ppf(1 - ALPHA / 2, n - 1)[first - 1 :]
    hit = np.abs(statistic) > critical
    at = np.argmax(hit, axis=1)
    side = statistic[np.arange(len(hit)), at]
    return hit.any(axis=1) & (side > 0), hit.any(axis=1) & (side < 0)
