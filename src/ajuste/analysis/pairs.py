"""Pairs: the same block under the baseline and under another configuration."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ajuste.model.trial import Trial

Cell = tuple[int, str]
"""A block and a configuration."""


@dataclass(frozen=True)
class Pairs:
    """Values of one metric in the blocks where both trials are clean, in block order."""

    baseline: NDArray[np.float64]
    other: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.baseline)


def clean_trials(trials: Iterable[Trial]) -> dict[Cell, Trial]:
    """The clean trial of every block and configuration that has one: the first attempt that is *ok*, no warm-up."""
    clean: dict[Cell, Trial] = {}
    for trial in sorted(trials, key=lambda t: t.attempt):
        if trial.status == "ok" and not trial.slot.warm_up:
            clean.setdefault((trial.slot.block, trial.slot.configuration), trial)
    return clean


def complete_blocks(trials: Iterable[Trial], configurations: Iterable[str]) -> int:
    """How many blocks have a clean trial of every configuration."""
    clean = clean_trials(trials)
    names = tuple(configurations)
    return sum(all((block, name) in clean for name in names) for block in {block for block, _ in clean})


def pairs(clean: dict[Cell, Trial], baseline: str, other: str, metric: str) -> Pairs:
    """The complete pairs of ``metric`` between two configurations."""
    found = []
    for block in sorted({block for block, _ in clean}):
        first, second = clean.get((block, baseline)), clean.get((block, other))
        if first and second and metric in first.metrics and metric in second.metrics:
            found.append((first.metrics[metric], second.metrics[metric]))
    table = np.array(found, dtype=np.float64).reshape(-1, 2)
    return Pairs(table[:, 0], table[:, 1])
