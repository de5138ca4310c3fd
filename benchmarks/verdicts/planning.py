"""Accuracy of the predicted number of blocks: what was predicted after the fifth block, and what it took."""

from __future__ import annotations

from typing import Final

import numpy as np
from pydantic import BaseModel

from ajuste_stats.decision import blocks_in_all
from ajuste_stats.sign_intervals import sign_interval
from benchmarks.verdicts.cells import SEED
from benchmarks.verdicts.methods import ALPHA, SMALLEST_EFFECT, ajuste
from benchmarks.verdicts.noise import NOISES
from benchmarks.verdicts.studies import Studies

LOOK: Final = 5
PLANS: Final = 1_000
MOST_BLOCKS: Final = 400
TRUTHS: Final = (0.0, 0.005, 0.02)


class Plan(BaseModel):
    """Result of ``studies`` studies still undecided after ``LOOK`` blocks: quartiles of the number of blocks that
    decided, over the number that was predicted.
    """

    noise: str
    effect: float
    studies: int
    quarter: float
    median: float
    three_quarters: float


def plans(studies: int = PLANS) -> tuple[Plan, ...]:
    """White noise and drift, at effects that are equivalent and one that is not."""
    planned = []
    for noise in (noise for noise in NOISES if noise.name in ("gaussian", "ar1")):
        for effect in TRUTHS:
            drawn = Studies(noise, effect, studies, MOST_BLOCKS, (SEED, 99, NOISES.index(noise), round(1000 * effect)))
            runs = drawn.in_blocks()
            actual = ajuste(drawn).trials / 2
            ratios = []
            for study in np.flatnonzero(actual > LOOK):
                seen = runs.other[study, :LOOK] - runs.baseline[study, :LOOK]
                predicted = blocks_in_all(sign_interval(seen, alpha=ALPHA), float(np.log1p(SMALLEST_EFFECT)), ALPHA)
                ratios.append(np.nan if predicted is None else actual[study] / max(predicted, LOOK + 1))
            quarter, median, three_quarters = np.nanquantile(ratios, (0.25, 0.5, 0.75))
            planned.append(
                Plan(
                    noise=noise.name,
                    effect=effect,
                    studies=len(ratios),
                    quarter=float(quarter),
                    median=float(median),
                    three_quarters=float(three_quarters),
                )
            )
    return tuple(planned)
