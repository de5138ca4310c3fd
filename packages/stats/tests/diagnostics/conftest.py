"""Measurements whose noise is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ajuste_stats.residuals import Residuals, compute_residuals

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, Floats, Floats, Floats], Floats]
"""Log values from (random, treatment, block, position), each an array of all values in the order of running."""


@pytest.fixture(scope="session")
def residuals() -> Callable[..., Residuals]:
    """Residuals of randomised blocks whose treatments differ by 10 % each."""

    def made(noise: Noise, seed: int, treatments: int = 3, blocks: int = 40) -> Residuals:
        random = np.random.default_rng(seed)
        treatment = np.array([random.permutation(treatments) for _ in range(blocks)]).ravel()
        block, position = np.repeat(np.arange(blocks), treatments), np.tile(np.arange(treatments), blocks)
        logs = 0.1 * treatment + noise(random, treatment.astype(float), block.astype(float), position.astype(float))
        names = [f"c{place}" for place in range(treatments)]
        return compute_residuals(np.exp(logs), treatment, block, position, names=names, scale="ratio")

    return made
