"""A ranking of several configurations: the winner, what cannot be distinguished from it, and ratios to it.

The evidence is that of the verdicts. A configuration cannot be the best if it is worse than any other: within the
blocks that hold both, at the error rate of one verdict, or because its verdict's interval lies on the worse side of the
other's (the baseline's is no effect). The true best is left out only if one of *its own* comparisons is wrong, so as
many as there are verdicts suffice for all pairs (Hsu 1984, "Constrained simultaneous confidence intervals for multiple
comparisons with the best", Annals of Statistics 12): direct ones and those through the baseline each take one side of
an interval, and both sides together the error rate of the verdicts, at all numbers of blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.pairs import Clean, pairs
from ajuste.analysis.verdict import Family, effect_fields
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, compared
from ajuste.model.verdict import AcrossMachines, Ranked, Ranking
from ajuste_stats.decision import verdict_word
from ajuste_stats.effects import Effect, effect, margin
from ajuste_stats.terms import Scale

Array = NDArray[np.float64]

FEWEST: Final = 3
"""Configurations; of two the verdict is the ranking."""

MOST: Final = 20
"""Configurations; a large grid has a surface."""


def rankings(
    configurations: Sequence[Configuration],
    clean: Clean,
    metrics: Sequence[Metric],
    family: Family,
    *,
    smallest_effect: float,
    order_matters: bool = True,
    across: Sequence[AcrossMachines] = (),
) -> tuple[Ranking, ...]:
    """Return a ranking for each of ``metrics`` that has a better direction; ``family`` is that of the verdicts.

    None where there are too few or too many configurations, and of metrics on which machines certainly differ
    (``across``).
    """
    groups = _groups(configurations)
    disputed = {row.metric for row in across if row.agreement == "depends"}
    ranked = (
        _ranking(
            _Table(clean, names, baseline, metric, family.alpha, order_matters),
            family,
            smallest_effect,
            reference=baseline if len(groups) > 1 else "",
        )
        for metric in metrics
        if metric.direction != "none" and metric.name not in disputed
        for baseline, names in groups.items()
        if FEWEST <= len(names) <= MOST
    )
    return tuple(ranking for ranking in ranked if ranking is not None)


def _groups(configurations: Sequence[Configuration]) -> dict[str, list[str]]:
    # Return what is compared with each baseline, which is the first: that of the study, and those of its conditions.
    groups: dict[str, list[str]] = {}
    for made in compared(configurations):
        groups.setdefault(made.reference, [made.reference]).append(made.name)
    return groups


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
        self, clean: Clean, names: Sequence[str], baseline: str, metric: Metric, alpha: float, order_matters: bool
    ) -> None:
        self._clean = clean
        self._alpha = alpha
        self._order_matters = order_matters
        self.baseline = baseline
        self.metric = metric
        self.names = [name for name in names if len(clean.values(name, metric.column))]
        self._toward = 1.0 if metric.direction == "lower" else -1.0
        self._verdicts = {name: self._span(self.effect(baseline, name)) for name in self.names if name != baseline}
        self._verdicts[baseline] = (metric.scale, 0.0, 0.0)
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

    def _span(self, effect: Effect | None) -> tuple[Scale, float, float] | None:
        # Return the scale and the bounds, higher being worse; `None` where means say otherwise than typical trials.
        if effect is None or effect.averages_disagree:
            return None
        low, high = sorted((self._toward * effect.interval.low, self._toward * effect.interval.high))
        return effect.scale, low, high

    def worse_than(self, name: str) -> tuple[str, ...]:
        """Return the configurations that `name` is certainly worse than."""
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
                wins[second if self._toward * difference.interval.mean < 0 else first] += 1
        return max(names, key=lambda name: wins[name])


LUCK: Final = 0.1
"""A smaller part of the winner's effect that is luck is not worth a sentence."""


def _luck(table: _Table, winner: str, smallest_effect: float) -> dict[str, Any]:
    # Return the winner's effect against the baseline as it looks, and as it is expected to be.
    baseline = table.baseline
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
    if abs(best.interval.mean) < margin(best, smallest_effect):
        return {}
    expected = float(shrunken(estimates, variances)[list(known).index(winner)])
    if abs(expected - best.interval.mean) <= LUCK * abs(best.interval.mean):
        return {}
    return {
        "looks": best.estimate,
        "expected": best.natural(expected),
        "scale": best.scale,
        "unit": table.metric.unit if best.scale == "difference" else "",
    }


def _ranking(table: _Table, family: Family, smallest_effect: float, *, reference: str) -> Ranking | None:
    if len(table.names) < FEWEST:
        return None
    worse = {name: table.worse_than(name) for name in table.names}
    possible = [name for name in table.names if not worse[name]]
    if not possible:  # Each is worse than another one: some interval is wrong.
        return None
    winner = table.best(possible)
    effects = {name: table.effect(winner, name) for name in table.names if name != winner}
    known = {name: effect for name, effect in effects.items() if effect is not None}
    if len(known) < len(effects):  # Some two were never measured in one block.
        return None
    toward = 1.0 if table.metric.direction == "lower" else -1.0
    others = sorted(known, key=lambda name: toward * known[name].interval.mean)
    return Ranking(
        metric=table.metric.name,
        reference=reference,
        winner=winner,
        contenders=(winner, *(name for name in others if name in possible)),
        others=tuple(
            _ranked(name, known[name], table.metric, worse[name], winner, family.confidence, smallest_effect)
            for name in others
        ),
        level=family.confidence,
        comparisons=family.comparisons,
        **_luck(table, winner, smallest_effect),
    )


def _ranked(
    name: str,
    effect: Effect,
    metric: Metric,
    worse_than: Sequence[str],
    winner: str,
    confidence: float,
    smallest_effect: float,
) -> Ranked:
    word, reason = verdict_word(effect, metric, margin(effect, smallest_effect)), _reason(effect)
    if worse_than and word == "undecided":
        word, reason = "worsens", "" if winner in worse_than else f"worse than {worse_than[0]} for certain"
    return Ranked(
        configuration=name,
        verdict=word,
        **effect_fields(effect, metric),
        level=confidence,
        blocks=effect.interval.n,
        deciding=False,
        reason=reason,
    )


def _reason(effect: Effect) -> str:
    if effect.same_order:
        return "the same of the two ran first in every block, so a drift would look like an effect"
    if effect.low is None and effect.high is None:
        return "too few blocks for an interval"
    return ""
