"""Effects of two factors at two levels: false ones by the normal mixture, which they have, and by signs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from pydantic import BaseModel

from ajuste_stats.confidence_sequences import fewest
from ajuste_stats.sign_intervals import SHORT, log_evidence
from benchmarks.verdicts.cells import SEED, STUDIES
from benchmarks.verdicts.methods import ALPHA, mixture_evidence
from benchmarks.verdicts.noise import Array

MOST: Final = 30
_CONTRASTS: Final = np.array([[-1, -1, 1, 1], [-1, 1, -1, 1], [1, -1, -1, 1]]) / 2
_PERIODS: Final = (2, 3, 4, 16 / 3, 8)
_NORMAL: Final = "normal"


class FactorCell(BaseModel):
    """Result of ``studies`` with both main effects and their interaction: how many find one where none is, at any look,
    and how many blocks an effect of 2 and of 5 % takes on average (of normal noise only).
    """

    noise: str
    method: str
    studies: int
    wrong: int
    blocks: tuple[float, float] | None = None


def simulate_factors(studies: int = STUDIES) -> tuple[FactorCell, ...]:
    """Blocks of four trials in random order, looked at up to the 30th."""
    noises = (_NORMAL, *(f"period of {period:.3g} trials" for period in _PERIODS), "one in 20 trials twice as slow")
    return tuple(cell for number, noise in enumerate(noises) for cell in _cells(noise, number, studies))


def _trials(noise: str, number: int, studies: int) -> Array:
    random = np.random.default_rng((SEED, 92, number))
    values = 0.01 * random.standard_normal((studies, 4 * MOST))
    if noise.startswith("period"):
        phase = random.uniform(0, 2 * np.pi, (studies, 1))
        values += 0.03 * np.sin(2 * np.pi * np.arange(4 * MOST) / _PERIODS[number - 1] + phase)
    elif noise != _NORMAL:
        values += math.log(2) * (random.random(values.shape) < 0.05)
    blocks = values.reshape(studies, MOST, 4)
    return np.take_along_axis(blocks, np.argsort(random.random(blocks.shape), axis=2), axis=2)


def _cells(noise: str, number: int, studies: int) -> tuple[FactorCell, FactorCell]:
    contrasts = [_trials(noise, number, studies) @ weights for weights in _CONTRASTS]
    alpha = ALPHA / len(contrasts)

    def refuted(method: str, values: Array) -> Array:
        evidence = log_evidence(values, mixture=SHORT) if method == "signs" else mixture_evidence(values)
        is_refuted = evidence >= -math.log(alpha)
        if method != "signs":
            is_refuted[:, : fewest(alpha) - 1] = False
        return np.asarray(is_refuted)

    def taken(method: str, effect: float) -> float:
        is_refuted = refuted(method, contrasts[0] + math.log1p(effect))
        return float(np.mean(np.where(is_refuted.any(axis=1), is_refuted.argmax(axis=1) + 1, MOST)))

    def cell(method: str) -> FactorCell:
        wrong = np.any([refuted(method, values).any(axis=1) for values in contrasts], axis=0)
        blocks = (taken(method, 0.02), taken(method, 0.05)) if noise == _NORMAL else None
        return FactorCell(noise=noise, method=method, studies=studies, wrong=int(wrong.sum()), blocks=blocks)

    return cell("normal"), cell("signs")


def factor_table(cells: Sequence[FactorCell]) -> str:
    """The table as Markdown."""
    by_key = {(cell.noise, cell.method): cell for cell in cells}
    rows = []
    for noise in dict.fromkeys(cell.noise for cell in cells):
        noise_cells = [by_key[noise, method] for method in ("normal", "signs")]
        wrong = " | ".join(f"{100 * cell.wrong / cell.studies:.1f}" for cell in noise_cells)
        blocks = (" | ".join(f"{of:.1f}" for of in cell.blocks) if cell.blocks else " | " for cell in noise_cells)
        rows.append(f"| {noise} | {wrong} | {' | '.join(blocks)} |")
    return "\n".join(
        [
            f"**Effects of two factors and their interaction**: how many of {cells[0].studies:,} studies without "
            "effects find one in 30 blocks of four trials, in per cent; and the blocks that a main effect of 2 and 5 % "
            "takes in normal noise of 1 %. Ajuste's are the *normal* ones: means of several trials in random order "
            "leave no period, and signs take more blocks.\n",
            "| noise | normal: wrong | signs: wrong | normal: 2 % | normal: 5 % | signs: 2 % | signs: 5 % |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
            *rows,
            "",
        ]
    )
