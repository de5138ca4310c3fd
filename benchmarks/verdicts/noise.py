"""Noise of machines: what happens to the trials of many studies, in the order in which they run.

Each model gives log disturbances of shape (studies, trials): a trial takes its true time × exp(disturbance). Besides
what its name says, each has white noise of 1 % a trial (the lognormal and the bimodal one have their own).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Model = Callable[[np.random.Generator, int, int], Array]

WHITE: Final = 0.01
"""Standard deviation of a trial's log time on a quiet machine."""


@dataclass(frozen=True)
class Noise:
    """A model of noise, its short ``title`` for tables, and ``what`` it is in a sentence."""

    name: str
    title: str
    what: str
    draw: Model


def _white(random: np.random.Generator, studies: int, trials: int) -> Array:
    return WHITE * random.standard_normal((studies, trials))


def _lognormal(random: np.random.Generator, studies: int, trials: int) -> Array:
    return WHITE * np.exp(random.standard_normal((studies, trials)))


def _autocorrelated(random: np.random.Generator, studies: int, trials: int) -> Array:
    step, correlation = 0.02 * np.sqrt(1 - 0.95**2), 0.95
    drift = np.empty((studies, trials))
    drift[:, 0] = 0.02 * random.standard_normal(studies)
    for trial in range(1, trials):
        drift[:, trial] = correlation * drift[:, trial - 1] + step * random.standard_normal(studies)
    return drift + _white(random, studies, trials)


def _linear(random: np.random.Generator, studies: int, trials: int) -> Array:
    return 0.002 * np.arange(trials) + _white(random, studies, trials)


def _bimodal(random: np.random.Generator, studies: int, trials: int) -> Array:
    return 0.08 * (random.random((studies, trials)) < 0.4) + _white(random, studies, trials) / 2


def _bursts(random: np.random.Generator, studies: int, trials: int) -> Array:
    begins, ends = 0.05, 0.25
    stolen = np.zeros((studies, trials))
    active = random.random(studies) < begins / (begins + ends)
    for trial in range(trials):
        stolen[:, trial] = active * random.exponential(0.1, studies)
        chance = random.random(studies)
        active = np.where(active, chance >= ends, chance < begins)
    return stolen + _white(random, studies, trials)


def _periodic(random: np.random.Generator, studies: int, trials: int) -> Array:
    period = np.exp(random.uniform(np.log(2), np.log(40), (studies, 1)))
    phase = random.uniform(0, 2 * np.pi, (studies, 1))
    return 0.03 * np.sin(2 * np.pi * np.arange(trials) / period + phase) + _white(random, studies, trials)


def _resonant(random: np.random.Generator, studies: int, trials: int) -> Array:
    return 0.03 * (-1.0) ** np.arange(trials) + _white(random, studies, trials)


NOISES: Final = (
    Noise("gaussian", "Gaussian", "white noise of 1 % a trial and nothing else", _white),
    Noise("lognormal", "lognormal", "delays of 1 % × a lognormal figure (σ = 1): a heavy right tail", _lognormal),
    Noise("ar1", "AR(1)", "drift: autoregressive, 0.95 from trial to trial, standard deviation 2 %", _autocorrelated),
    Noise("linear", "linear drift", "every trial is 0.2 % slower than the one before", _linear),
    Noise("bimodal", "bimodal", "40 % of the trials are 8 % slower; white noise of 0.5 %", _bimodal),
    Noise(
        "bursts", "steal bursts", "bursts of stolen time: 4 trials long, 10 % (exponential), a sixth of all", _bursts
    ),
    Noise("periodic", "periodic", "a sine of 3 %, its period anything from 2 to 40 trials", _periodic),
    Noise("resonant", "resonant", "every other trial is 6 % slower: in step with blocks of two", _resonant),
)
