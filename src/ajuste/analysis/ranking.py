"""A ranking of several configurations: the winner, what cannot be distinguished from it, and ratios to it.

Any two configurations are compared within the blocks that hold both, with the intervals of ``analysis.effects``. All of
these intervals, of all pairs and metrics, hold together (Bonferroni's inequality) and at all numbers of blocks. So
those against the winner hold although the same figures chose the winner, and whatever is *worse* is worse for certain:
the true best is left out only if one of the intervals is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.effects import Effect, effect, margin
from ajuste.analysis.pairs import Clean, pairs
from ajuste.analysis.verdict import figures_of, word_of
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration
from ajuste.model.verdict import AcrossMachines, Ranked, Ranking

Array = NDArray[np.float64]

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
    baseline = next((one.name for one in configurations if one.baseline), names[0])
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
    found = (_ranking(table, baseline, confidence, smallest_effect, comparisons) for table in tables)
    return tuple(one for one in found if one is not None)


def shrunken(estimates: Array, variances: Array) -> Array:
    """Each of several ``estimates`` towards their mean, as far as their spread is chance by their ``variances``.

    Empirical Bayes (Morris 1983, "Parametric empirical Bayes inference", Journal of the American Statistical
    Association 78) with the spread of true effects by DerSimonian and Laird 1986, "Meta-analysis in clinical trials",
    Controlled Clinical Trials 7. What is chosen as the largest of estimates is too large on average; what is chosen
    as the largest of these is not, where true effects spread as normal ones do.
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


LUCK: Final = 0.1
"""A smaller part of the winner's effect that is luck is not worth a sentence."""


def _luck(table: _Table, winner: str, baseline: str) -> dict[str, Any]:
    """What the winner looks like against the baseline, and what is to be expected of it."""
    if winner == baseline or baseline not in table.names or table.metric.quantile is not None:
        return {}
    found = {name: table.effect(baseline, name) for name in table.names if name != baseline}
    known = {name: one for name, one in found.items() if one is not None and one.interval.n > 1}
    if len(known) < FEWEST - 1 or winner not in known:
        return {}
    estimates = np.array([one.interval.mean for one in known.values()])
    # Half of the variance of a difference is the baseline's. That is the same for all, so it chooses none of them.
    blocks = np.array([one.interval.n for one in known.values()])
    spread = sum(one.interval.variance * one.interval.n for one in known.values()) / float(np.sum(blocks - 1))
    variances = spread / 2 / blocks
    own = known[winner]
    expected = float(shrunken(estimates, variances)[list(known).index(winner)])
    if abs(expected - own.interval.mean) <= LUCK * abs(own.interval.mean):
        return {}
    return {
        "looks": own.estimate,
        "expected": own.natural(expected),
        "scale": own.scale,
        "unit": table.metric.unit if own.scale == "difference" else "",
    }


def _ranking(
    table: _Table, baseline: str, confidence: float, smallest_effect: float, comparisons: int
) -> Ranking | None:
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
        **_luck(table, winner, baseline),
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
