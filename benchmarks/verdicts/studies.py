"""Simulated studies: the same disturbances met by two ways of running two configurations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.verdicts.noise import Array, Noise


@dataclass(frozen=True)
class Runs:
    """Log times of shape (studies, trials of each), in the order in which each configuration was run.

    ``baseline_first`` says for each block which of the two ran first, where they were run in blocks.
    """

    baseline: Array
    other: Array
    baseline_first: NDArray[np.bool_]


@dataclass(frozen=True)
class Studies:
    """``studies`` studies of one truth (``effect``: the other configuration takes 1 + effect times as long) under one
    ``noise``, with up to ``most`` trials of each configuration. The same ``seed`` gives the same studies.
    """

    noise: Noise
    effect: float
    studies: int
    most: int
    seed: tuple[int, ...]

    def in_blocks(self) -> Runs:
        """Pair by pair, each pair in random order: what Ajuste does."""
        random = np.random.default_rng((*self.seed, 1))
        trials = self._disturbance().reshape(self.studies, self.most, 2)
        first = random.random((self.studies, self.most)) < 0.5
        early, late = trials[:, :, 0], trials[:, :, 1]
        return Runs(np.where(first, early, late), np.where(first, late, early) + np.log1p(self.effect), first)

    def in_batches(self, batch: int) -> Runs:
        """First ``batch`` trials of the baseline, then as many of the other; whatever comes after that by turns."""
        order = np.concatenate([np.zeros(batch), np.ones(batch), np.tile([0.0, 1.0], self.most - batch)]) > 0.5
        trials = self._disturbance()
        never = np.zeros((self.studies, 0), dtype=np.bool_)
        return Runs(trials[:, ~order], trials[:, order] + np.log1p(self.effect), never)

    def _disturbance(self) -> Array:
        return self.noise.draw(np.random.default_rng((*self.seed, 0)), self.studies, 2 * self.most)
