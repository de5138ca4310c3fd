"""A cell of the simulation: one method, one truth, one noise, many studies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from pydantic import BaseModel
from scipy import stats

from benchmarks.verdicts.methods import EQUIVALENT, HIGHER, LOWER, METHODS, SMALLEST_EFFECT, Method, Outcome
from benchmarks.verdicts.noise import NOISES, Noise
from benchmarks.verdicts.studies import Studies

EFFECTS: Final = (0.0, 0.005, 0.01, 0.02, 0.05, 0.10)
STUDIES: Final = 2_000
MOST_BLOCKS: Final = 60
SEED: Final = 20_261


class Cell(BaseModel):
    """Counts of ``studies`` studies. ``wrong``: a difference where there is none or in the wrong direction, or
    equivalent where the effect is larger than that. ``seen``: the effect was found, in its direction. ``held`` and
    ``always`` as in ``methods.Outcome``. ``trials`` is the mean number of trials, of both configurations together.
    """

    noise: str
    effect: float
    method: str
    studies: int
    wrong: int
    seen: int
    trials: float
    held: int | None
    always: int | None

    @property
    def wrong_range(self) -> tuple[float, float]:
        """Wilson's 95 % interval for the rate of wrong verdicts (Wilson 1927, JASA 22)."""
        return wilson(self.wrong, self.studies)


def wilson(count: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval for a rate."""
    interval = stats.binomtest(count, of).proportion_ci(0.95, method="wilson")
    return float(interval.low), float(interval.high)


def simulate(
    noises: Sequence[Noise] = NOISES,
    effects: Sequence[float] = EFFECTS,
    methods: Sequence[Method] = METHODS,
    *,
    studies: int = STUDIES,
    most: int = MOST_BLOCKS,
) -> tuple[Cell, ...]:
    """Simulate every cell; all methods meet the same disturbances."""
    cells = []
    for noise in noises:
        for effect in effects:
            seed = (SEED, NOISES.index(noise), round(1000 * effect))
            drawn = Studies(noise, effect, studies, most, seed)
            cells += [_cell(drawn, method, method.apply(drawn)) for method in methods]
    return tuple(cells)


def _cell(studies: Studies, method: Method, outcome: Outcome) -> Cell:
    word, effect = outcome.word, studies.effect
    wrong = word == LOWER
    if effect == 0:
        wrong = wrong | (word == HIGHER)
    if effect > SMALLEST_EFFECT and not math.isclose(effect, SMALLEST_EFFECT):
        wrong = wrong | (word == EQUIVALENT)
    return Cell(
        noise=studies.noise.name,
        effect=effect,
        method=method.name,
        studies=studies.studies,
        wrong=int(wrong.sum()),
        seen=int((word == HIGHER).sum()) if effect else 0,
        trials=float(np.mean(outcome.trials)),
        held=None if outcome.held is None else int(outcome.held.sum()),
        always=None if outcome.always is None else int(outcome.always.sum()),
    )
