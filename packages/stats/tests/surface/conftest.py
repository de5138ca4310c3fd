"""Tables of blocks with a known truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ajuste_stats.block_tables import Blocks

Draw = Callable[..., Blocks]


@pytest.fixture
def draw() -> Draw:
    """``draw(random, truth, blocks=6, noise=0.02)``: logarithms with effects of blocks far above the noise."""

    def made(
        random: np.random.Generator,
        truth: NDArray[np.float64],
        blocks: int = 6,
        noise: Any = 0.02,
    ) -> Blocks:
        spread = np.broadcast_to(noise, len(truth))[:, None]
        values = truth[:, None] + random.normal(0, 1, blocks) + spread * random.normal(size=(len(truth), blocks))
        return Blocks(tuple(f"c{place}" for place in range(len(truth))), values, "ratio", np.full(len(truth), 1e-12))

    return made
