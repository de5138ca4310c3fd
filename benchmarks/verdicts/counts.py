"""Counts, which can be 0: the differences that Ajuste compares, beside a test made for counts of Poisson."""

from __future__ import annotations

from typing import Final

import numpy as np
from pydantic import BaseModel
from scipy.special import betaln

from ajuste_stats.confidence_sequences import half_width
from benchmarks.verdicts.cells import MOST_BLOCKS, SEED, STUDIES
from benchmarks.verdicts.methods import ALPHA
from benchmarks.verdicts.noise import Array

RATES: Final = (0.1, 0.3, 1.0, 5.0)
FACTORS: Final = (1.0, 2.0, 10.0)
KINDS: Final = {"poisson": "Poisson’s", "overdispersed": "overdispersed"}
FLOOR: Final = 2 / 12
"""The least variance of a difference of two whole numbers, as in ``ajuste_stats.effects``."""


class Counts(BaseModel):
    """Result of ``studies`` studies of a mean count of ``rate`` against ``factor`` × as many: in how many Ajuste's
    interval ever excluded the true difference (``missed``) and no difference (``found``), and in how many the
    ``binomial`` test ever found a difference.
    """

    kind: str
    rate: float
    factor: float
    studies: int
    missed: int
    found: int
    binomial: int


def counts(studies: int = STUDIES) -> tuple[Counts, ...]:
    """Simulate all looks up to the last block; overdispersed counts have the variance rate + 2 rate²."""
    cells = []
    for kind in KINDS:
        for rate in RATES:
            for factor in FACTORS:
                key = (SEED, 98, list(KINDS).index(kind), round(10 * rate), round(factor))
                random = np.random.default_rng(key)
                base_counts, other_counts = (_draw(random, kind, mean, studies) for mean in (rate, factor * rate))
                mean, half = _interval(other_counts - base_counts)
                cells.append(
                    Counts(
                        kind=kind,
                        rate=rate,
                        factor=factor,
                        studies=studies,
                        missed=int((np.abs(mean - rate * (factor - 1)) > half).any(axis=1).sum()),
                        found=int((np.abs(mean) > half).any(axis=1).sum()),
                        binomial=int((log_binomial(base_counts, other_counts) > -np.log(ALPHA)).any(axis=1).sum()),
                    )
                )
    return tuple(cells)


def log_binomial(base_counts: Array, other_counts: Array) -> Array:
    """The log of the evidence against equal rates if counts are Poisson's: given their sum the other's count is
    binomial with 1/2, weighed against a Beta(1/2, 1/2) mixture of all shares (Robbins 1970).
    """
    left, right = np.cumsum(base_counts, axis=1), np.cumsum(other_counts, axis=1)
    return np.asarray(betaln(left + 0.5, right + 0.5) - betaln(0.5, 0.5) + (left + right) * np.log(2))


def _draw(random: np.random.Generator, kind: str, mean: float, studies: int) -> Array:
    shape = (studies, MOST_BLOCKS)
    rates = mean * random.gamma(0.5, 2.0, shape) if kind == "overdispersed" else np.full(shape, mean)
    return random.poisson(rates).astype(np.float64)


def _interval(differences: Array) -> tuple[Array, Array]:
    n = np.arange(1, MOST_BLOCKS + 1)
    mean = np.cumsum(differences, axis=1) / n
    variance = np.maximum(np.cumsum(differences**2, axis=1) / n - mean**2, FLOOR)
    return mean, np.sqrt(variance) * np.array([half_width(int(k), 1.0, ALPHA) for k in n])
