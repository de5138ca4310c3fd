"""A ranking of several configurations: the winner, what cannot be distinguished from it, and ratios to it.

Any two configurations are compared within the blocks that hold both, with the intervals of ``analysis.effects``. All of
these intervals, of all pairs and metrics, hold together (Bonferroni's inequality) and at all numbers of blocks. So
those against the winner hold although the same figures chose the winner, and whatever is *worse* is worse for certain:
the true best is left out only if one of the intervals is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

from ajuste.analysis.effects import Effect, effect, margin
from ajuste.analysis.pairs import Clean, pairs
from ajuste.analysis.verdict import figures_of, word_of
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration
from ajuste.model.verdict import AcrossMachines, Ranked, Ranking

FEWEST: Final = 3
"""Configurations; of two the verdict says it all."""

MOST: Final = 20
"""Configurations. The more there are, the wider all intervals must be; of a large grid there is a surface."""


def rankings(
    configurations: Sequence[Configuration],
    clean: Clean,
    metrics: Sequence[Metric],
    *,
    confidence: float,
    smallest_effect: float,
    order_matters: bool = True,
    across: Sequence[AcrossMachines] = (),
) -> tuple[Ranking, ...]:
    """One for each of ``metrics`` that has a better direction. None where there are too few or too many configurations,
    and of metrics on which machines certainly say different things (``across``).
    """
    names = [one.name for one in configurations]
    if not FEWEST <= len(names) <= MOST:
        return ()
    wanted = [metric for metric in metrics if metric.direction != "none"]
    disputed = {one.metric for one in across if one.agreement == "depends"}
    comparisons = len(wanted) * len(names) * (len(names) - 1) // 2
    tables = [
        _Table(clean, names, metric, (1 - confidence) / comparisons, order_matters)
        for metric in wanted
        if metric.name not in disputed
    ]
    found = (_ranking(table, confidence, smallest_effect, comparisons) for table in tables)
    return tuple(one for one in found if one is not None)


class _Table:
    """The effects between any two configurations on one metric."""

    def __init__(self, clean: Clean, names: Sequence[str], metric: Metric, alpha: float, order_matters: bool) -> None:
        self._clean = clean
        self._alpha = alpha
        self._order_matters = order_matters
        self.metric = metric
        self.names = [name for name in names if len(clean.values(name, metric.column))]
        self._every = self._effects()
        if any(found.fell_back for found in self._every.values()):
            # Intervals of one kind for all: ratios of some and differences of others cannot be set in order.
            self.metric = metric.model_copy(update={"scale": "difference"})
            self._every = self._effects()

    def _effects(self) -> dict[tuple[str, str], Effect]:
        found = {both: self.effect(*both) for both in combinations(self.names, 2)}
        return {both: one for both, one in found.items() if one is not None}

    def effect(self, one: str, other: str) -> Effect | None:
        """Of ``other`` against ``one``; ``None`` where no block has both."""
        both = pairs(self._clean, one, other, self.metric.column, order_matters=self._order_matters)
        return effect(both, self.metric, self._alpha)

    @property
    def winner(self) -> str:
        """What is better than most others in the blocks with both; the first of several."""
        toward = -1.0 if self.metric.direction == "lower" else 1.0
        wins = dict.fromkeys(self.names, 0)
        for (one, other), found in self._every.items():
            if found.interval.mean:
                wins[other if toward * found.interval.mean > 0 else one] += 1
        return max(self.names, key=lambda name: wins[name])


def _ranking(table: _Table, confidence: float, smallest_effect: float, comparisons: int) -> Ranking | None:
    if len(table.names) < FEWEST:
        return None
    winner = table.winner
    found = {name: table.effect(winner, name) for name in table.names if name != winner}
    known = {name: one for name, one in found.items() if one is not None}
    if len(known) < len(found):  # Some two were never measured in one block.
        return None
    toward = 1.0 if table.metric.direction == "lower" else -1.0
    others = sorted(known, key=lambda name: toward * known[name].interval.mean)
    return Ranking(
        metric=table.metric.name,
        winner=winner,
        contenders=(winner, *(name for name in others if not _is_worse(known[name], toward))),
        others=tuple(
            _ranked(name, known[name], table.metric, confidence=confidence, smallest_effect=smallest_effect)
            for name in others
        ),
        level=confidence,
        comparisons=comparisons,
    )


def _is_worse(found: Effect, toward: float) -> bool:
    """For certain, be it by much or little."""
    return found.interval.low > 0 if toward > 0 else found.interval.high < 0


def _ranked(name: str, found: Effect, metric: Metric, *, confidence: float, smallest_effect: float) -> Ranked:
    word = word_of(found, metric, margin(found, smallest_effect))
    return Ranked(
        configuration=name,
        verdict=word,
        **figures_of(found, metric),
        level=confidence,
        blocks=found.interval.n,
        deciding=False,
        reason=_reason(found),
    )


def _reason(found: Effect) -> str:
    if found.one_order:
        return "the same of the two ran first in every block, so a drift would look like an effect"
    if found.low is None and found.high is None:
        return "too few blocks for an interval"
    return ""
