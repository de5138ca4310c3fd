"""What the doctor measures: figures without any judgement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field

from ajuste.analysis.sequence import fewest, half_width
from ajuste.analysis.summary import blocks_needed
from ajuste.model.base import BaseModel
from ajuste.model.distributions import chi_squared_quantile


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Jitter(_Part):
    """How late sleeps of a millisecond ended, in microseconds."""

    sleeps: int
    p50_us: float
    p99_us: float
    p999_us: float
    max_us: float


class JobRun(_Part):
    """One run of the fixed job: when it began (from the first one), how long it took, and what CPU time it had."""

    began_s: float
    elapsed_s: float
    cpu_s: float


class Busy(_Part):
    """A program of others that used the CPU meanwhile: the share of one CPU, summed over its processes."""

    name: str
    cpu_percent: float


class NoiseMeasurements(_Part):
    """``None`` is what could not be measured; ``unknown`` says why.

    Shares are in per cent: ``steal_percent`` and ``others_percent`` of all CPUs, ``pressure_…`` of the time in which
    some task waited (Documentation/accounting/psi.rst). ``frequency_range_percent`` is by how much the fastest CPU's
    frequency varied from look to look, ``throttled`` how often a CPU was throttled because it was hot.
    """

    seconds: float
    cpus: int
    jitter: Jitter | None = None
    runs: tuple[JobRun, ...] = ()
    steal_percent: float | None = None
    others_percent: float | None = None
    runnable: float | None = None
    pressure_cpu_percent: float | None = None
    pressure_io_percent: float | None = None
    pressure_memory_percent: float | None = None
    frequency_range_percent: float | None = None
    throttled: int | None = None
    interrupts_per_s: float | None = None
    switches_per_s: float | None = None
    busy: tuple[Busy, ...] = ()
    facts: dict[str, str] = Field(default_factory=dict)
    unknown: dict[str, str] = Field(default_factory=dict)


# From the runs of a fixed job to what a study could see on this machine. Pure.
#
# A study compares configurations within blocks, where their trials are neighbours in time. So what counts is not how
# far runs of half a minute lie apart, but how far neighbours do: the variance of a pair's log ratio is estimated by
# the mean square of successive differences (von Neumann, Kent, Bellinson and Hart, "The mean square successive
# difference", Annals of Mathematical Statistics 12, 1941), which slow drift hardly touches.


ALPHA: Final = 0.05
"""Error rate of the one comparison that is spoken of."""
_RANGE: Final = 0.9
"""How sure it is that the true number of blocks lies in the range that is told."""
_DRIFT_ERRORS: Final = 3.0
"""A drift is believed from so many standard errors of its slope on."""


@dataclass(frozen=True)
class NoiseSpread:
    """``variance`` of the log ratio of two neighbouring runs, from ``n`` runs."""

    n: int
    variance: float

    @property
    def run_percent(self) -> float:
        """The standard deviation of one run in per cent, without drift."""
        return 100 * math.expm1(math.sqrt(self.variance / 2))


@dataclass(frozen=True)
class NeededBlocks:
    """About how many blocks show an effect; ``None`` is more than ``MOST_BLOCKS``. With 90 % confidence, for noise that
    is normal, the spread that was measured stands for ``low`` to ``high``.
    """

    effect_percent: float
    blocks: int | None
    low: int | None
    high: int | None


def spread_of(values: NDArray[np.float64]) -> NoiseSpread:
    """The spread of positive ``values`` (times of runs, in order), at least three of them."""
    differences = np.diff(np.log(values))
    return NoiseSpread(len(values), float(np.mean(differences**2)))


def blocks_for(spread: NoiseSpread, effect_percent: float) -> NeededBlocks:
    """The blocks after which a difference of that size would be distinguished from none, by ``analysis.sequence``."""
    # The variance of this estimator is 2 σ⁴ (3n − 4)/(n − 1)² for independent runs: that of chi-square with so many
    # degrees of freedom (same source).
    freedom = 2 * (spread.n - 1) ** 2 / (3 * spread.n - 4)
    sides = [(1 + _RANGE) / 2, (1 - _RANGE) / 2]
    low, high = (spread.variance * freedom / chi_squared_quantile(freedom, side) for side in sides)
    blocks = (blocks_needed(effect_percent / 100, variance, ALPHA) for variance in (spread.variance, low, high))
    return NeededBlocks(effect_percent, *blocks)


def effect_after(spread: NoiseSpread, blocks: int) -> float | None:
    """The smallest effect, in per cent, that ``blocks`` blocks would tell from none; ``None`` for too few of them."""
    if blocks < fewest(ALPHA):
        return None
    width = half_width(blocks, spread.variance, ALPHA)
    return 100 * math.expm1(width) if width < 700 else None


def drift_percent(began_s: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    """By how much the times of runs grew (or fell) from the first to the last, by a straight line through their logs.

    0 unless the slope is several standard errors long.
    """
    if len(values) < 3 or np.ptp(began_s) == 0:
        return 0.0
    slope, _ = np.polyfit(began_s, np.log(values), 1)
    times = began_s - np.mean(began_s)
    left = np.log(values) - np.mean(np.log(values)) - slope * times
    error = math.sqrt(float(left @ left) / (len(values) - 2) / float(times @ times))
    if not abs(slope) > _DRIFT_ERRORS * error:
        return 0.0
    return 100 * math.expm1(float(slope) * float(np.ptp(began_s)))
