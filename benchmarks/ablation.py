"""Rate at which an ablation names just the lines that matter: a simulated profile of 14 lines, 2 of which matter."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from ajuste.design.combinations import subset_name
from ajuste.model.metric import Metric
from ajuste.model.verdict import LineEffect
from ajuste_search.ablation.effects import Lines, Rates, effects_from_values
from ajuste_stats.subsets import of_block, subsets
from benchmarks.comparison import Comparison

LINES: Final = 14
MATTER: Final = (3, 9)
SMALLEST_EFFECT: Final = 0.02
MIN_BLOCKS, MAX_BLOCKS = 5, 60
REPEATS: Final = 200
CONFIDENCE: Final = 0.95

METRIC: Final = Metric(name="time", title="time", what="", unit="s", direction="lower")
NAMES: Final = tuple(f"line-{number}" for number in range(LINES))
PROFILE: Final = Lines({name: {} for name in NAMES}, [subset_name(subset, NAMES) for subset in subsets(LINES)])


HELD: Final = np.array(
    [[subset in set(of_block(LINES, block)) for subset in subsets(LINES)] for block in range(MAX_BLOCKS)]
).T


@dataclass(frozen=True)
class Game:
    """Effects of the lines that matter, as logarithms of ratios: each by itself, and ``both`` more together. Runs
    scatter by ``noise``, blocks by five times that.
    """

    name: str
    single: tuple[float, float]
    both: float = 0.0
    noise: float = 0.01

    def effect(self, subset: frozenset[int]) -> float:
        there = [line in subset for line in MATTER]
        return sum(effect for effect, is_in in zip(self.single, there, strict=True) if is_in) + self.both * all(there)


GAMES: Final = (
    Game("one line −12 %, one +8 %", (-0.128, 0.077)),
    Game("two lines of −5 %, as noisy as what matters", (-0.051, -0.051), noise=0.02),
    Game("two lines that only do something together, −10 %", (0.0, 0.0), both=-0.105),
    Game("either of two lines is enough for −10 %", (-0.105, -0.105), both=0.105),
    Game("no line does anything", (0.0, 0.0)),
)


def measure() -> tuple[Comparison, ...]:
    """The share of repeats in which just the right lines were named when the ablation stopped."""
    return tuple(_comparison(game) for game in GAMES)


def _comparison(game: Game) -> Comparison:
    ended = [simulate(game, seed) for seed in range(REPEATS)]
    right = 100 * float(np.mean([repeat.right for repeat in ended]))
    naive = 100 * float(np.mean([repeat.naively_right for repeat in ended]))
    blocks = np.median([repeat.blocks for repeat in ended])
    return Comparison(
        name=f"ablation: {game.name}",
        what=f"{REPEATS} profiles of {LINES} lines of which 2 matter, noise {100 * game.noise:g} %, smallest effect "
        f"{100 * SMALLEST_EFFECT:g} %: just these are named (after {blocks:g} blocks of "
        f"{len(of_block(LINES, 0))} trials, the median)",
        unit="%",
        figures={"ajuste": [right], "leave-one-out, t tests at 5 %, five blocks": [naive]},
        goal="at least 95 % (19 of 20)",
        reached=right >= 95,
    )


@dataclass(frozen=True)
class Ended:
    """Result of a repeat: whether the lines that were named are the right ones and all others were called useless,
    after how many blocks; and whether leaving each line out, with an ordinary test for each, would have named just
    these.
    """

    right: bool
    blocks: int
    naively_right: bool
    words: Counter[str]


def simulate(game: Game, seed: int) -> Ended:
    """Simulate an ablation that is looked at after every block and stops when every line is decided."""
    random = np.random.default_rng(seed)
    effects = np.array([game.effect(subset) for subset in subsets(LINES)])
    noise = game.noise * (random.standard_normal(HELD.shape) + 5 * random.standard_normal(HELD.shape[1]))
    values = np.where(HELD, np.exp(effects[:, None] + noise), np.nan)
    rates = Rates(LINES, 1, CONFIDENCE)
    blocks = MIN_BLOCKS
    while True:
        line_effects = effects_from_values(PROFILE, values[:, :blocks], range(blocks), METRIC, rates, SMALLEST_EFFECT)
        lines = [effect for effect in line_effects if effect.kind == "line"]
        if blocks == MAX_BLOCKS or all(effect.verdict != "undecided" for effect in line_effects):
            return Ended(_right(lines, game), blocks, _naive(values, game), Counter(line.role for line in lines))
        blocks += 1


def _matter(game: Game) -> set[str]:
    return {NAMES[line] for line in MATTER} if any(game.single) or game.both else set()


def _right(lines: list[LineEffect], game: Game) -> bool:
    named = {line.line for line in lines if line.role not in ("useless", "undecided")}
    return named == _matter(game) and all(line.role != "undecided" for line in lines)


def _naive(values: np.ndarray, game: Game) -> bool:
    place = {subset: row for row, subset in enumerate(subsets(LINES))}
    whole = frozenset(range(LINES))
    logs = np.log(values[:, :MIN_BLOCKS])
    named = set()
    for line in range(LINES):
        sums = logs[place[whole]] - logs[place[whole - {line}]]
        statistic = abs(sums.mean()) / (sums.std(ddof=1) / np.sqrt(len(sums)))
        if statistic > 2.776:  # Student's t, 4 degrees of freedom, two-sided 5 %
            named.add(NAMES[line])
    return named == _matter(game)
