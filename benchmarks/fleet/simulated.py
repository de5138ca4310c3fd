"""Fleets with a known truth: how often the interval of the mean holds it, and how often machines are said to differ
where they do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ajuste_fleet.effects import differing_group
from ajuste_stats.heterogeneity import equality_p_value
from ajuste_stats.random_effects import pool_effects, pooled_variances

SIZES: Final = (5, 20, 40)
ALPHA: Final = 0.05
NOISE: Final = 0.02
"""Standard deviation of the effect of a block."""


@dataclass(frozen=True)
class Cell:
    """Fleets of so many ``machines``, with these ``blocks`` on each in turn. Noise differs from machine to machine by a
    log-normal factor of ``unequal``; true effects by ``spread``, in standard errors of a machine's mean.
    """

    machines: int
    blocks: tuple[int, ...]
    unequal: float
    spread: float

    @property
    def words(self) -> str:
        """Describe the cell for people."""
        noise = "unequal noise" if self.unequal else "equal noise"
        each = " or ".join(map(str, self.blocks))
        return f"{self.machines} machines, {each} blocks each, {noise}, spread {self.spread:g}"

    def drawn(self, random: np.random.Generator, truth: float) -> list[NDArray[np.float64]]:
        """The effects of the blocks of each machine of one fleet, whose mean is ``truth``."""
        counts = np.resize(self.blocks, self.machines)
        noise = NOISE * np.exp(random.normal(0, self.unequal, self.machines))
        error = NOISE / np.sqrt(np.mean(counts))
        means = random.normal(truth, self.spread * error, self.machines)
        return [random.normal(*parameters) for parameters in zip(means, noise, counts, strict=True)]


def cells() -> Iterator[Cell]:
    """Yield all cells that are simulated."""
    for machines in SIZES:
        for blocks in ((3,), (12,), (3, 12)):
            for unequal in (0.0, 0.5):
                for spread in (0.0, 1.0, 3.0):
                    yield Cell(machines, blocks, unequal, spread)


def facts(machines: int, random: np.random.Generator) -> dict[str, dict[str, Any]]:
    """Inventories that have nothing to do with any effect."""
    return {
        f"node{place}": {
            "numa": dict.fromkeys(map(str, range(int(random.choice([1, 2, 4]))))),
            "cpu": {"cpus": int(random.choice([8, 16, 32, 64])), "threads_per_core": int(random.choice([1, 2]))},
            "memory": {"total_bytes": int(random.choice([32, 64, 128])) << 30},
            "kernel": {"release": str(random.choice(["6.1.0", "6.12.0", "6.18.0"]))},
        }
        for place in range(machines)
    }


@dataclass(frozen=True)
class Shares:
    """Shares of the fleets of a ``cell``: in how many the interval of the mean, and the one for a new machine, held; in
    how many machines were said to differ, and in how many a fact was named. The last two are wrong without a spread.
    """

    cell: Cell
    mean: float
    new: float
    differ: float
    named: float


def simulated(cell: Cell, fleets: int, seed: int = 1, *, permutations: bool = True) -> Shares:
    """Simulate so many fleets of one cell."""
    random = np.random.default_rng([seed, cell.machines, *cell.blocks, int(10 * cell.unequal), int(10 * cell.spread)])
    truth, held = -0.06, np.zeros(4)
    error = NOISE / np.sqrt(np.mean(np.resize(cell.blocks, cell.machines)))
    for _ in range(fleets):
        values = cell.drawn(random, truth)
        effects = np.array([np.mean(block_effects) for block_effects in values])
        variances = pooled_variances(values)
        assert variances is not None
        combined = pool_effects(effects, variances)
        low, high = combined.interval(ALPHA)
        new_low, new_high = combined.prediction(ALPHA)
        p_value = equality_p_value(values)
        named = None
        if permutations:
            about = facts(cell.machines, random)
            named = differing_group(tuple(about), effects, about, "difference", alpha=ALPHA)
        new = random.normal(truth, cell.spread * error)
        held += [low <= truth <= high, new_low <= new <= new_high, (p_value or 1) < ALPHA, named is not None]
    return Shares(cell, *(held / fleets))
