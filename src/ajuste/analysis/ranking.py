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
from ajuste.analysis.verdict import effect_fields, verdict_word
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration
from ajuste.model.verdict import AcrossMachines, Ranked, Ranking

Array = NDArray[np.float64]

FEWEST: Final = 3
"""Configurations; of two the verdict is the ranking."""

MOST: Final = 20
"""Configurations. The more there are, the wider all intervals must be; a large grid has a surface."""


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
    """Return a ranking for each of ``metrics`` that has a better direction.

    None where there are too few or too many configurations, and of metrics on which machines certainly differ
    (``across``).
    """
    names = [configuration.name for configuration in configurations]
    baseline = next((configuration.name for configuration in configurations if configuration.baseline), names[0])
    if not FEWEST <= len(names) <= MOST:
        return ()
    wanted = [metric for metric in metrics if metric.direction != "none"]
    disputed = {row.metric for row in across if row.agreement == "depends"}
    comparisons = len(wanted) * len(names) * (len(names) - 1) // 2
    tables = [
        _Table(clean, names, metric, (1 - confidence) / comparisons, order_matters)
        for metric in wanted
        if metric.name not in disputed
    ]
    ranked = (_ranking(table, baseline, confidence, smallest_effect, comparisons) for table in tables)
    return tuple(ranking for ranking in ranked if ranking is not None)


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
    def __init__(self, clean: Clean, names: Sequence[str], metric: Metric, alpha: float, order_matters: bool) -> None:
        self._clean = clean
        self._alpha = alpha
        self._order_matters = order_matters
        self.metric = metric
        self.names = [name for name in names if len(clean.values(name, metric.column))]
        self._every = self._effects()
        if any(effect.fell_back for effect in self._every.values()):
            # Intervals of one kind for all: ratios and differences cannot be ordered among each other.
            self.metric = metric.model_copy(update={"scale": "difference"})
            self._every = self._effects()

    def _effects(self) -> dict[tuple[str, str], Effect]:
        effects = {both: self.effect(*both) for both in combinations(self.names, 2)}
        return {both: effect for both, effect in effects.items() if effect is not None}

    def effect(self, reference: str, other: str) -> Effect | None:
        # Return the effect of `other` against `reference`; `None` where no block has both.
        both = pairs(self._clean, reference, other, self.metric.column, order_matters=self._order_matters)
        return effect(both, self.metric, self._alpha)

    @property
    def winner(self) -> str:
        # Return the configuration better than most others in the blocks with both; the first of several.
        toward = -1.0 if self.metric.direction == "lower" else 1.0
        wins = dict.fromkeys(self.names, 0)
        for (first, second), difference in self._every.items():
            if difference.interval.mean:
                wins[second if toward * difference.interval.mean > 0 else first] += 1
        return max(self.names, key=lambda name: wins[name])


LUCK: Final = 0.1
"""A smaller part of the winner's effect that is luck is not worth a sentence."""


def _luck(table: _Table, winner: str, baseline: str) -> dict[str, Any]:
    # Return the winner's effect against the baseline as it looks, and as it is expected to be.
    if winner == baseline or baseline not in table.names or table.metric.quantile is not None:
        return {}
    effects = {name: table.effect(baseline, name) for name in table.names if name != baseline}
    known = {name: effect for name, effect in effects.items() if effect is not None and effect.interval.n > 1}
    if len(known) < FEWEST - 1 or winner not in known:
        return {}
    estimates = np.array([effect.interval.mean for effect in known.values()])
    # Half of the variance of a difference is the baseline's. That is the same for all, so it chooses none of them.
    blocks = np.array([effect.interval.n for effect in known.values()])
    spread = sum(effect.interval.variance * effect.interval.n for effect in known.values()) / float(np.sum(blocks - 1))
    variances = spread / 2 / blocks
    best = known[winner]
    expected = float(shrunken(estimates, variances)[list(known).index(winner)])
    if abs(expected - best.interval.mean) <= LUCK * abs(best.interval.mean):
        return {}
    return {
        "looks": best.estimate,
        "expected": best.natural(expected),
        "scale": best.scale,
        "unit": table.metric.unit if best.scale == "difference" else "",
    }


def _ranking(
    table: _Table, baseline: str, confidence: float, smallest_effect: float, comparisons: int
) -> Ranking | None:
    if len(table.names) < FEWEST:
        return None
    winner = table.winner
    effects = {name: table.effect(winner, name) for name in table.names if name != winner}
    known = {name: effect for name, effect in effects.items() if effect is not None}
    if len(known) < len(effects):  # Some two were never measured in one block.
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


def _is_worse(effect: Effect, toward: float) -> bool:
    return effect.interval.low > 0 if toward > 0 else effect.interval.high < 0


def _ranked(name: str, effect: Effect, metric: Metric, *, confidence: float, smallest_effect: float) -> Ranked:
    word = verdict_word(effect, metric, margin(effect, smallest_effect))
    return Ranked(
        configuration=name,
        verdict=word,
        **effect_fields(effect, metric),
        level=confidence,
        blocks=effect.interval.n,
        deciding=False,
        reason=_reason(effect),
    )


def _reason(effect: Effect) -> str:
    if effect.same_order:
        return "the same of the two ran first in every block, so a drift would look like an effect"
    if effect.low is None and effect.high is None:
        return "too few blocks for an interval"
    return ""
