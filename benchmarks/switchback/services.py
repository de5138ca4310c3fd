"""Simulated services under load: the logarithm of a latency, slice by slice, and a concurrent figure of the load.

A slice lasts 60 s, of which the first 15 s are the wash-out. All runs of a service are drawn at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Random = np.random.Generator

SLICE_S: Final = 60.0
WASH_OUT_S: Final = 15.0
RHO: Final = 0.95
"""The correlation of neighbouring slices."""
CARRY_OVER_S: Final = 5.0


@dataclass(frozen=True)
class SimulatedService:
    """Disturbances of a service besides white noise of ``white``; all are shares of the latency.

    ``day`` is the amplitude of a daily cycle of 144 slices, ``wander`` the standard deviation of a first-order
    autoregression, ``burst`` the mean height of bursts, which begin in one slice of 50 and last three slices on
    average. With ``uneven`` the white noise is up to 20 times as large at the top of the day as at its bottom. With
    ``slow`` a change takes effect with a time constant of 5 s, and each change disturbs the service by ``shock``, which
    dies away alike.
    """

    name: str
    title: str
    white: float = 0.02
    day: float = 0.0
    wander: float = 0.0
    burst: float = 0.0
    uneven: bool = False
    slow: bool = False
    shock: float = 0.0

    def draw(self, random: Random, runs: int, slices: int) -> tuple[Array, Array]:
        """The disturbances and the load of so many runs, of shape (runs, slices)."""
        phase = random.random((runs, 1)) + np.arange(slices) / 144
        cycle = np.sin(2 * np.pi * phase)
        load = self.day * cycle + autoregression(random, runs, slices) * self.wander
        noise = random.normal(0, self.white, (runs, slices))
        if self.uneven:
            noise *= np.exp(1.5 * cycle)
        control = load + random.normal(0, 0.005, (runs, slices))
        return load + noise + self._bursts(random, runs, slices), control

    def _bursts(self, random: Random, runs: int, slices: int) -> Array:
        if not self.burst:
            return np.zeros((runs, slices))
        begins = random.random((runs, slices)) < 0.02
        goes_on = random.random((runs, slices)) < 2 / 3
        heights = random.exponential(self.burst, (runs, slices))
        bursts = np.zeros((runs, slices))
        now = np.zeros(runs)
        for at in range(slices):
            now = np.where(begins[:, at], heights[:, at], np.where(goes_on[:, at], now, 0.0))
            bursts[:, at] = now
        return bursts

    def response(self, other: NDArray[np.bool_], effect: float) -> Array:
        """Return what ``effect`` and changes do to each slice; ``other`` says which have the other configuration."""
        if not self.slow:
            return np.where(other, effect, 0.0)
        rest = np.exp(-WASH_OUT_S / CARRY_OVER_S) - np.exp(-SLICE_S / CARRY_OVER_S)
        counted = float(rest * CARRY_OVER_S / (SLICE_S - WASH_OUT_S))
        remaining = np.exp(-SLICE_S / CARRY_OVER_S)
        state = np.where(other[:, 0], effect, 0.0)
        jolt = np.zeros(len(other))
        effects = np.empty(other.shape)
        for at in range(other.shape[1]):
            target = np.where(other[:, at], effect, 0.0)
            if at:
                jolt = jolt + self.shock * (other[:, at] != other[:, at - 1])
            effects[:, at] = target + (state - target + jolt) * counted
            state = target + (state - target) * remaining
            jolt = jolt * remaining
        return effects


def autoregression(random: Random, runs: int, slices: int) -> Array:
    """First-order autoregressions of variance 1 whose neighbours are correlated by ``RHO``."""
    steps = random.normal(0, 1, (runs, slices))
    states = np.empty((runs, slices))
    states[:, 0] = steps[:, 0]
    for at in range(1, slices):
        states[:, at] = RHO * states[:, at - 1] + np.sqrt(1 - RHO**2) * steps[:, at]
    return states


SERVICES: Final = (
    SimulatedService("steady", "white noise only"),
    SimulatedService("day", "daily cycle of ±30 %", day=0.3),
    SimulatedService("autocorrelation", "autocorrelation of 0.95", wander=0.05),
    SimulatedService("bursts", "bursts of 30 %", burst=0.3),
    SimulatedService("uneven", "noise that grows twentyfold with the load", day=0.1, uneven=True, white=0.01),
    SimulatedService("carry-over", "carry-over of 5 s", slow=True, shock=0.1),
    SimulatedService(
        "together", "all of these", day=0.3, wander=0.05, burst=0.1, uneven=True, white=0.01, slow=True, shock=0.1
    ),
)
