"""A ranking of several treatments: the winner, what cannot be distinguished from it, and ratios to it.

The evidence is that of the verdicts. A treatment cannot be the best if it is worse than any other: within the
blocks that hold both, at the error rate of one verdict, or because its verdict's interval lies on the worse side of the
other's (the baseline's is no effect). The true best is left out only if one of *its own* comparisons is wrong, so as
many as there are verdicts suffice for all pairs (Hsu 1984, "Constrained simultaneous confidence intervals for multiple
comparisons with the best", Annals of Statistics 12): direct ones and those through the baseline each take one side of
an interval, and both sides together the error rate of the verdicts, at all numbers of blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste_stats.decision import verdict_word
from ajuste_stats.effects import Effect, effect, margin
from ajuste_stats.pairs import Pairs
from ajuste_stats.terms import Quantity, Scale, Word, by_difference

Array = NDArray[np.float64]
PairsOf = Callable[[str, str], Pairs]
"""Returns the pairs of a reference and another treatment, by their names."""

FEWEST: Final = 3
"""Treatments; of two the verdict is the ranking."""
LUCK: Final = 0.1
"""A smaller part of the winner's effect that is luck is not worth a word."""


@dataclass(frozen=True)
class RankedTreatment:
    """A treatment by its ``name``, with its ``effect`` against the winner, and that in a ``word``.

    It is certainly worse than each of ``worse_than``: it cannot be the best. ``through_others``: only these say so, and
    not its effect against the winner.
    """

    name: str
    effect: Effect
    word: Word
    worse_than: tuple[str, ...]
    through_others: bool = False


@dataclass(frozen=True)
class Luck:
    """The winner's effect against the baseline as it ``looks``, and as it is ``expected``, on the scale of ``of``."""

    of: Effect
    looks: float | None
    expected: float | None


@dataclass(frozen=True)
class Ranking:
    """The ``winner``, the ``contenders`` that may be the best (the winner first), and all ``others`` in order.

    ``luck`` is there where what was chosen as the best looks notably better than it is expected to be.
    """

    winner: str
    contenders: tuple[str, ...]
    others: tuple[RankedTreatment, ...]
    luck: Luck | None = None


def rank_pairs(
    names: Sequence[str], baseline: str, pairs_of: PairsOf, quantity: Quantity, alpha: float, smallest_effect: float
) -> Ranking | None:
    """Rank the treatments of these ``names``; ``alpha`` is the error rate of one comparison.

    Every treatment has a value. ``None`` with fewer than ``FEWEST``, where some two were never measured in one block,
    and where each is worse than another one, so that some interval is wrong.
    """
    if len(names) < FEWEST:
        return None
    table = _Table(names, baseline, pairs_of, quantity, alpha)
    worse = {name: table.worse_than(name) for name in table.names}
    possible = [name for name in table.names if not worse[name]]
    if not possible:
        return None
    winner = table.best(possible)
    effects = {name: table.effect(winner, name) for name in table.names if name != winner}
    known = {name: effect for name, effect in effects.items() if effect is not None}
    if len(known) < len(effects):
        return None
    others = sorted(known, key=lambda name: table.toward * known[name].interval.mean)
    return Ranking(
        winner,
        (winner, *(name for name in others if name in possible)),
        tuple(_ranked(name, known[name], table.quantity, worse[name], smallest_effect) for name in others),
        _luck(table, winner, smallest_effect),
    )


def _ranked(
    name: str, effect: Effect, quantity: Quantity, worse_than: tuple[str, ...], smallest_effect: float
) -> RankedTreatment:
    word = verdict_word(effect, quantity, margin(effect, smallest_effect))
    through_others = bool(worse_than) and word == "undecided"
    return RankedTreatment(name, effect, "worsens" if through_others else word, worse_than, through_others)


def shrunken(estimates: Array, variances: Array) -> Array:
    """Return ``estimates`` shrunk towards their mean as far as their spread is chance by their ``variances``.

    Empirical Bayes (Morris 1983, "Parametric empirical Bayes inference", Journal of the American Statistical
    Association 78) with the spread of true effects by DerSimonian and Laird 1986, "Meta-analysis in clinical trials",
    Controlled Clinical Trials 7. What is chosen as the largest of estimates is too large on average; what is chosen as
    the largest of these is not, where true effects spread as normal ones do.
    """
    if not np.all(variances > 0):
        return estimates
    weights = 1 / variances
    mean = float(np.average(estimates, weights=weights))
    excess = float(np.sum(weights * (estimates - mean) ** 2)) - (len(estimates) - 1)
    spread = max(0.0, excess / float(np.sum(weights) - np.sum(weights**2) / np.sum(weights)))
    mean = float(np.average(estimates, weights=1 / (variances + spread)))
    return np.asarray(mean + spread / (spread + variances) * (estimates - mean))


class _Table:
    def __init__(
        self, names: Sequence[str], baseline: str, pairs_of: PairsOf, quantity: Quantity, alpha: float
    ) -> None:
        self._pairs_of = pairs_of
        self._alpha = alpha
        self.baseline = baseline
        self.quantity = quantity
        self.names = list(names)
        self.toward = 1.0 if quantity.direction == "lower" else -1.0
        self._verdicts = {name: self._span(self.effect(baseline, name)) for name in self.names if name != baseline}
        self._verdicts[baseline] = (quantity.scale, 0.0, 0.0)
        self._every = self._effects()
        if any(effect.fell_back for effect in self._every.values()):
            # Intervals of one kind for all: ratios and differences cannot be ordered among each other.
            self.quantity = by_difference(quantity)
            self._every = self._effects()

    def _effects(self) -> dict[tuple[str, str], Effect]:
        effects = {both: self.effect(*both) for both in combinations(self.names, 2)}
        return {both: effect for both, effect in effects.items() if effect is not None}

    def effect(self, reference: str, other: str) -> Effect | None:
        # Return the effect of `other` against `reference`; `None` where no block has both.
        return effect(self._pairs_of(reference, other), self.quantity, self._alpha)

    def _span(self, effect: Effect | None) -> tuple[Scale, float, float] | None:
        # Return the scale and the bounds, higher being worse; `None` where means say otherwise than typical trials.
        if effect is None or effect.averages_disagree:
            return None
        low, high = sorted((self.toward * effect.interval.low, self.toward * effect.interval.high))
        return effect.scale, low, high

    def worse_than(self, name: str) -> tuple[str, ...]:
        """Return the treatments that `name` is certainly worse than."""
        return tuple(other for other in self.names if other != name and self._is_worse(name, other))

    def _is_worse(self, name: str, other: str) -> bool:
        mine, others = self._verdicts.get(name), self._verdicts.get(other)
        if mine is not None and others is not None and mine[1] > others[2] and self._comparable(mine, others):
            return True
        if (span := self._span(self._every.get((other, name)))) is not None:
            return span[1] > 0
        return (span := self._span(self._every.get((name, other)))) is not None and span[2] < 0

    def _comparable(self, mine: tuple[Scale, float, float], others: tuple[Scale, float, float]) -> bool:
        # Beside no effect any scale will do.
        return mine[0] == others[0] or mine[1:] == (0.0, 0.0) or others[1:] == (0.0, 0.0)

    def best(self, names: Sequence[str]) -> str:
        """Return the one of `names` that is better than most in the blocks with both; the first of several."""
        wins = dict.fromkeys(self.names, 0)
        for (first, second), difference in self._every.items():
            if difference.interval.mean:
                wins[second if self.toward * difference.interval.mean < 0 else first] += 1
        return max(names, key=lambda name: wins[name])


def _luck(table: _Table, winner: str, smallest_effect: float) -> Luck | None:
    baseline = table.baseline
    if winner == baseline or baseline not in table.names or table.quantity.quantile is not None:
        return None
    effects = {name: table.effect(baseline, name) for name in table.names if name != baseline}
    known = {name: effect for name, effect in effects.items() if effect is not None and effect.interval.n > 1}
    if len(known) < FEWEST - 1 or winner not in known:
        return None
    estimates = np.array([effect.interval.mean for effect in known.values()])
    # Half of the variance of a difference is the baseline's. That is the same for all, so it chooses none of them.
    blocks = np.array([effect.interval.n for effect in known.values()])
    spread = sum(effect.interval.variance * effect.interval.n for effect in known.values()) / float(np.sum(blocks - 1))
    variances = spread / 2 / blocks
    best = known[winner]
    if abs(best.interval.mean) < margin(best, smallest_effect):
        return None
    expected = float(shrunken(estimates, variances)[list(known).index(winner)])
    if abs(expected - best.interval.mean) <= LUCK * abs(best.interval.mean):
        return None
    return Luck(best, best.estimate, best.natural(expected))
