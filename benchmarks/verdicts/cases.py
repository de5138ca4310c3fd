"""Cases that break verdicts which rest on normal noise: Ajuste's and those of the normal mixture, side by side.

The pools in ``pools.csv`` are trials of real guests, 200 seeds each:
``ajuste compare --vm --nice 0,1 --background spin --blocks 200..200 --metric elapsed -- matrix size=50 repetitions=1``,
and the same with ``--nice 0,2``. A study draws its seeds from a pool; the truth is the pool's mean.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel
from scipy import stats

from ajuste.model.measurements import Values
from ajuste.model.metric import Metric
from ajuste_analyse.comparison import compare_samples
from ajuste_stats.fixed_samples import unpaired
from benchmarks.verdicts.cells import MOST_BLOCKS, SEED, STUDIES, wilson
from benchmarks.verdicts.methods import (
    ALPHA,
    EQUIVALENT,
    HIGHER,
    LOWER,
    NOTHING,
    PEEK_FROM,
    Flags,
    ajuste_words,
    mixture_evidence,
    words,
)
from benchmarks.verdicts.noise import WHITE, Array

POOLS: Final = Path(__file__).with_name("pools.csv")
PERIODS: Final = (2.0, 3.0, 3.9, 4.0, 4.1, 4 / 3, 4 / 5)
RANDOM_ORDER: Final = "order"
SEEDS: Final = "seeds"
SHAPES: Final = "shapes"
STATES: Final = "states"
FORKS: Final = "forks"


Shape = tuple[int, int]
Draw = Callable[[np.random.Generator, Shape], tuple[Array, Array]]


@dataclass(frozen=True)
class Case:
    """``draw`` gives the logarithms of baseline and other, each of shape (studies, blocks), which differ by ``truth``
    on average. ``zone`` is the smallest effect that matters. ``of_seeds``: blocks differ by seed, as in guests.
    """

    kind: str
    name: str
    draw: Draw
    truth: float = 0.0
    zone: float = 0.01
    of_seeds: bool = False


class CaseCell(BaseModel):
    """Result of ``studies`` studies: how many say something ``wrong``, anything at all (``decided``), and have an
    interval that ``held`` the truth when they stopped; ``blocks`` are the mean, ``most`` their ninth decile.
    """

    kind: str
    case: str
    method: str
    studies: int
    wrong: int
    decided: int
    held: int
    blocks: float
    most: float

    @property
    def wrong_range(self) -> tuple[float, float]:
        return wilson(self.wrong, self.studies)


class Efficiency(BaseModel):
    """Blocks that an effect takes in normal noise of ``noise`` a trial: by signs, by the normal mixture, and of a
    fixed t test with 90 % power.
    """

    noise: float
    effect: float
    blocks: float
    most: float
    mixture: float
    mixture_most: float
    fixed: int | None


@lru_cache(maxsize=1)
def pools() -> dict[str, Array]:
    """The logarithms of both times of each question, seed by seed."""
    log_times: dict[str, list[tuple[float, float]]] = {}
    with POOLS.open(newline="") as file:
        for row in csv.DictReader(file):
            both = math.log(float(row["baseline_s"])), math.log(float(row["other_s"]))
            log_times.setdefault(row["question"], []).append(both)
    return {question: np.array(values) for question, values in log_times.items()}


def _with_period(period: float) -> Draw:
    def draw(random: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
        studies, blocks = shape
        phase = random.uniform(0, 2 * np.pi, (studies, 1))
        trials = 0.03 * np.sin(2 * np.pi * np.arange(2 * blocks) / period + phase)
        trials += WHITE * random.standard_normal(trials.shape)
        first = random.random(shape) < 0.5
        early, late = trials[:, ::2], trials[:, 1::2]
        return np.where(first, early, late), np.where(first, late, early)

    return draw


def _shaped(shape_of: Callable[[np.random.Generator, Shape], Array]) -> Draw:
    """Return a draw of one arm with delays of that shape, the other without; their geometric means are equal."""
    centre = float(np.mean(shape_of(np.random.default_rng(SEED), (2_000, 200))))

    def draw(random: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
        baseline, other = (WHITE * random.standard_normal(shape) for _ in range(2))
        return baseline, other + shape_of(random, shape) - centre

    return draw


def _lasting(correlation: float, spread: float) -> Draw:
    """Return a draw in which each configuration has a state of that ``spread`` that lasts over blocks."""

    def draw(random: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
        state = spread * random.standard_normal((shape[0], 2))
        values = WHITE * random.standard_normal((2, *shape))
        for block in range(shape[1]):
            values[:, :, block] += state.T
            state = correlation * state + math.sqrt(1 - correlation**2) * spread * random.standard_normal(state.shape)
        return values[0], values[1]

    return draw


def _from(pool: Array) -> Draw:
    def draw(random: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
        drawn = pool[random.integers(len(pool), size=shape)]
        return drawn[..., 0], drawn[..., 1]

    return draw


def _drawn(baseline: Array, other: Array) -> Draw:
    return lambda random, shape: (baseline, other)


def cases() -> tuple[Case, ...]:
    """Return all cases, by kind."""
    seeds = [
        Case(SEEDS, question, _from(pool), float(np.mean(pool[:, 1] - pool[:, 0])), 0.02, of_seeds=True)
        for question, pool in pools().items()
    ]
    return (
        *(Case(RANDOM_ORDER, f"period of {period:.3g} trials", _with_period(period)) for period in PERIODS),
        *seeds,
        Case(SHAPES, "delays of 5 % (exponential) in one", _shaped(lambda r, s: np.log1p(0.05 * r.exponential(1, s)))),
        Case(SHAPES, "delays of 50 % (exponential) in one", _shaped(lambda r, s: np.log1p(0.5 * r.exponential(1, s)))),
        Case(
            SHAPES, "half of the trials of one 10 % slower", _shaped(lambda r, s: np.log1p(0.1 * (r.random(s) < 0.5)))
        ),
        Case(
            SHAPES,
            "a fifth of the trials of one 50 % slower",
            _shaped(lambda r, s: np.log1p(0.5 * (r.random(s) < 0.2))),
        ),
        Case(
            SHAPES, "one in 20 trials of one twice as slow", _shaped(lambda r, s: np.log1p(1.0 * (r.random(s) < 0.05)))
        ),
        Case(STATES, "a state of 1 % that lasts (0.6 from block to block)", _lasting(0.6, 0.01)),
        Case(STATES, "a layout of 1 % that stays", _lasting(1.0, 0.01)),
    )


def simulate_cases(studies: int = STUDIES, most: int = MOST_BLOCKS) -> tuple[CaseCell, ...]:
    """Simulate every case by signs and by the normal mixture, and forks by both ways of counting them."""
    cells = []
    for number, case in enumerate(cases()):
        baseline, other = case.draw(np.random.default_rng((SEED, 97, number)), (studies, most))
        zone = math.log1p(case.zone)
        word, held = ajuste_words(baseline, other, case.truth, zone, of_seeds=case.of_seeds)
        cells.append(_cell(case, "signs", word, held))
        word, held = words(other - baseline, case.truth, zone, mixture_evidence)
        word[:, : PEEK_FROM - 1] = NOTHING
        cells.append(_cell(case, "mixture", word, held))
    return (*cells, *_forks(studies))


def _cell(case: Case, method: str, word: NDArray[np.int64], held: Flags) -> CaseCell:
    is_decided = word != NOTHING
    at = np.where(is_decided.any(axis=1), is_decided.argmax(axis=1), word.shape[1] - 1)
    study = np.arange(len(word))
    last, matters = word[study, at], abs(case.truth) > math.log1p(case.zone)
    wrong = ((last == HIGHER) & (case.truth <= 0)) | ((last == LOWER) & (case.truth >= 0))
    wrong |= (last == EQUIVALENT) & matters
    return CaseCell(
        kind=case.kind,
        case=case.name,
        method=method,
        studies=len(word),
        wrong=int(wrong.sum()),
        decided=int(is_decided.any(axis=1).sum()),
        held=int(held[study, at].sum()),
        blocks=float(np.mean(at + 1)),
        most=float(np.quantile(at + 1, 0.9)),
    )


def _forks(studies: int) -> list[CaseCell]:
    """JMH's 5 forks of 5 iterations, 2 % between forks and 0.5 % within; no effect."""
    random = np.random.default_rng((SEED, 96))
    logs = np.repeat(random.normal(0, 0.02, (studies, 2, 5)), 5, axis=2) + random.normal(0, 0.005, (studies, 2, 25))
    units = tuple(str(fork) for fork in range(5) for _ in range(5))
    metric = Metric(name="time", title="time", unit="s", direction="lower")
    counts = {"signs": 0, "mixture": 0}
    for baseline, other in logs:
        first, second = (
            Values(tuple(np.exp(logarithms)), units=units, level="fork") for logarithms in (baseline, other)
        )
        counts["signs"] += compare_samples(first, second, metric, ALPHA).fixed.contrast.p_value < ALPHA
        counts["mixture"] += unpaired(baseline, other).p_value < ALPHA
    return [
        CaseCell(
            kind=FORKS,
            case="JMH, 5 forks of 5 iterations, 2 % between forks",
            method=method,
            studies=studies,
            wrong=count,
            decided=count,
            held=studies - count,
            blocks=5,
            most=5,
        )
        for method, count in counts.items()
    ]


def efficiency(studies: int = STUDIES, most: int = MOST_BLOCKS) -> tuple[Efficiency, ...]:
    """Normal noise of 1 and 3 %, effects that are found."""
    efficiencies = []
    for noise in (0.01, 0.03):
        for effect in (0.0, 0.02, 0.05, 0.10):
            size = math.log1p(effect)
            random = np.random.default_rng((SEED, 95, round(1000 * noise), round(1000 * effect)))
            baseline, other = noise * random.standard_normal((2, studies, most))
            other = other + size
            case = Case("normal", "", _drawn(baseline, other), size)
            zone = math.log1p(case.zone)
            signs = _cell(case, "signs", *ajuste_words(baseline, other, size, zone))
            normal = _cell(case, "mixture", *words(other - baseline, size, zone, _from_third))
            efficiencies.append(
                Efficiency(
                    noise=noise,
                    effect=effect,
                    blocks=signs.blocks,
                    most=signs.most,
                    mixture=normal.blocks,
                    mixture_most=normal.most,
                    fixed=fixed_pairs(size / (math.sqrt(2) * noise)) if effect else None,
                )
            )
    return tuple(efficiencies)


def _from_third(differences: Array, _: int) -> Array:
    evidence = mixture_evidence(differences)
    evidence[:, : PEEK_FROM - 1] = 0.0
    return evidence


def fixed_pairs(effect: float, power: float = 0.9) -> int:
    """Return how many pairs a paired t test needs for an ``effect`` in standard deviations of a difference."""
    pairs = 2
    while stats.nct.sf(stats.t.ppf(1 - ALPHA / 2, pairs - 1), pairs - 1, effect * math.sqrt(pairs)) < power:
        pairs += 1
    return pairs


def case_tables(cells: Sequence[CaseCell], taken: Sequence[Efficiency]) -> str:
    """Return both tables as Markdown."""
    by_key = {(cell.case, cell.method): cell for cell in cells}
    rows = []
    for case in dict.fromkeys(cell.case for cell in cells):
        signs, normal = by_key[case, "signs"], by_key[case, "mixture"]
        low, high = signs.wrong_range
        rows.append(
            f"| {case} | {_percent(normal.wrong, normal.studies)} | {_percent(signs.wrong, signs.studies)} "
            f"({100 * low:.1f} to {100 * high:.1f}) | {_percent(normal.held, normal.studies)} | "
            f"{_percent(signs.held, signs.studies)} | {normal.blocks:.1f} | {signs.blocks:.1f} |"
        )
    spent = [
        f"| {100 * cost.noise:g} % | {100 * cost.effect:g} % | {cost.mixture:.1f} | {cost.blocks:.1f} | "
        f"{cost.mixture_most:.0f} | {cost.most:.0f} | {cost.fixed or '–'} |"
        for cost in taken
    ]
    return "\n".join(
        [
            f"**Cases that break normal intervals**: wrong verdicts of {cells[0].studies:,} studies in per cent (a "
            "difference where there is none, the wrong direction, or equivalent where the truth is larger), how often "
            "the interval has the truth in it at the stop, and blocks on average. *Normal* is the normal mixture from "
            "block 3 (of forks: all values pooled).\n",
            "| case | normal: wrong | Ajuste: wrong | normal: holds | holds | normal: blocks | blocks |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
            *rows,
            "",
            "**Normal noise: blocks until the verdict.** *Fixed* is a paired t test of 90 % power.\n",
            "| noise of a trial | effect | normal: mean | Ajuste: mean | normal: p90 | Ajuste: p90 | fixed |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
            *spent,
            "",
        ]
    )


def _percent(count: int, of: int) -> str:
    share = 100 * count / of
    return f"{share:.1f}"
