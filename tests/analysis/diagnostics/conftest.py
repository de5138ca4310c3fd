"""Studies whose noise is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ajuste.analysis.diagnostics.residuals import compute_residuals
from ajuste.analysis.pairs import clean_trials
from ajuste.model.measurements import Gathering, Measurements
from ajuste.model.metric import Metric
from ajuste_stats.residuals import Residuals

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, Floats, Floats, Floats], Floats]
"""Log values from (random, configuration, block, position), each an array of all trials in the order of running."""


@pytest.fixture(scope="session")
def metric() -> Metric:
    return Metric(name="elapsed", title="elapsed time", unit="s", direction="lower")


def run(noise: Noise, seed: int, configurations: int = 3, blocks: int = 40) -> Measurements:
    """A study in randomised blocks whose configurations differ by 10 % each."""
    random = np.random.default_rng(seed)
    order = np.array([random.permutation(configurations) for _ in range(blocks)])
    configuration = order.ravel()
    block = np.repeat(np.arange(blocks), configurations)
    position = np.tile(np.arange(configurations), blocks)
    logs = 0.1 * configuration + noise(random, configuration.astype(float), block.astype(float), position.astype(float))
    many = len(configuration)
    gathering = Gathering(read_written=tuple, read_not_supported=dict)
    gathering.extend(
        block=block.tolist(),
        position=position.tolist(),
        attempt=[0] * many,
        seed=[1] * many,
        warm_up=[False] * many,
        metrics=[{"elapsed": float(value)} for value in np.exp(logs)],
        configuration=[f"c{place}" for place in configuration],
        status=["ok"] * many,
        reason=[""] * many,
        written=[()] * many,
        not_supported=[()] * many,
    )
    return gathering.measurements()


@pytest.fixture(scope="session")
def study() -> Callable[..., Measurements]:
    return run


@pytest.fixture(scope="session")
def residuals(metric: Metric) -> Callable[..., Residuals]:
    def made(noise: Noise, seed: int, configurations: int = 3, blocks: int = 40) -> Residuals:
        computed = compute_residuals(clean_trials(run(noise, seed, configurations, blocks)), metric)
        assert computed is not None
        return computed

    return made
