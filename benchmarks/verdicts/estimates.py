"""Errors of estimates on average: those of studies that stop when they have found something, and of winners."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from pydantic import BaseModel

from ajuste_stats.ranking import shrunken
from benchmarks.verdicts.cells import MOST_BLOCKS, SEED, STUDIES
from benchmarks.verdicts.methods import NOTHING, ajuste_words
from benchmarks.verdicts.noise import Array

ZONE: Final = math.log1p(0.01)


class Reported(BaseModel):
    """Mean estimate of the studies that found ``effect`` in normal noise of ``noise``."""

    noise: float
    effect: float
    found: int
    studies: int
    reported: float


class Winner(BaseModel):
    """Means for the best of several settings after ``blocks`` blocks in normal noise of ``noise``: what it
    looks like, what is left when it is shrunk, and its true effect.
    """

    settings: str
    noise: float
    blocks: int
    looks: float
    shrunk: float
    truth: float


def reported(studies: int = STUDIES, most: int = MOST_BLOCKS) -> tuple[Reported, ...]:
    estimates = []
    for noise in (0.01, 0.03):
        for effect in (0.02, 0.05, 0.10):
            random = np.random.default_rng((SEED, 94, round(1000 * noise), round(1000 * effect)))
            baseline, other = noise * random.standard_normal((2, studies, most))
            other = other + math.log1p(effect)
            word, _ = ajuste_words(baseline, other, 0.0, ZONE)
            is_decided = word != NOTHING
            rows = np.flatnonzero(is_decided.any(axis=1))
            at = is_decided.argmax(axis=1)[rows]
            mean = np.cumsum(other - baseline, axis=1)[rows, at] / (at + 1)
            of = Reported(
                noise=noise, effect=effect, found=len(rows), studies=studies, reported=float(np.mean(np.expm1(mean)))
            )
            estimates.append(of)
    return tuple(estimates)


_SETTINGS: Final[dict[str, Callable[[np.random.Generator], Array]]] = {
    "nine equal ones of −5 %": lambda _: np.full(9, math.log(0.95)),
    "nine from 0 to −8 %": lambda _: np.linspace(0, math.log(0.92), 9),
    "nine, normal with 3 %": lambda random: random.normal(0, 0.03, 9),
    "three equal ones of −5 %": lambda _: np.full(3, math.log(0.95)),
    "one of −8 %, eight of 0": lambda _: np.r_[np.zeros(8), math.log(0.92)],
}


def winners(studies: int = STUDIES) -> tuple[Winner, ...]:
    """The lowest of several times is chosen."""
    return tuple(
        _winner(name, noise, blocks, studies) for name in _SETTINGS for noise, blocks in ((0.05, 6), (0.03, 8))
    )


def _winner(name: str, noise: float, blocks: int, studies: int) -> Winner:
    random = np.random.default_rng((SEED, 93, list(_SETTINGS).index(name), blocks))
    chosen = []
    for _ in range(studies):
        truth = _SETTINGS[name](random)
        trials = noise * random.standard_normal((len(truth) + 1, blocks))
        differences = trials[1:] + truth[:, None] - trials[0]
        estimates = differences.mean(axis=1)
        variance = float(differences.var(axis=1, ddof=1).mean()) / 2 / blocks
        best = int(np.argmin(estimates))
        shrunk = shrunken(estimates, np.full(len(truth), variance))
        chosen.append((estimates[best], shrunk[best], truth[best]))
    looks, left, true = (float(np.mean(np.expm1(column))) for column in zip(*chosen, strict=True))
    return Winner(settings=name, noise=noise, blocks=blocks, looks=looks, shrunk=left, truth=true)


def estimate_tables(estimates: Sequence[Reported], best: Sequence[Winner]) -> str:
    """Return both tables as Markdown."""
    lines = [
        "**Estimates of studies that stop**: the mean of what is reported where an effect is found.\n",
        "| noise of a trial | effect | found, % | reported, % |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {100 * estimate.noise:g} % | {100 * estimate.effect:g} % | "
            f"{100 * estimate.found / estimate.studies:.0f} | {100 * estimate.reported:.1f} |"
            for estimate in estimates
        ),
        "",
        "**The best of several settings**: what it looks like against the baseline, what Ajuste shrinks it to, and "
        "what it is, in per cent on average.\n",
        "| settings | noise of a trial | blocks | looks | shrunk | truth |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *(
            f"| {winner.settings} | {100 * winner.noise:g} % | {winner.blocks} | {_percent(winner.looks)} | "
            f"{_percent(winner.shrunk)} | {_percent(winner.truth)} |"
            for winner in best
        ),
        "",
    ]
    return "\n".join(lines)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}".replace("-", "−")
