"""A ranking of several configurations: the winner, what cannot be distinguished from it, and ratios to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ajuste.analysis.pairs import Clean, pairs
from ajuste.analysis.verdict import Family, effect_fields
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, compared
from ajuste.model.verdict import AcrossMachines, Ranked, Ranking
from ajuste_stats import ranking as statistics
from ajuste_stats.effects import Effect
from ajuste_stats.ranking import FEWEST, Luck, RankedTreatment, rank_pairs

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
            clean,
            names,
            metric,
            family,
            smallest_effect,
            order_matters=order_matters,
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


def _ranking(
    clean: Clean,
    names: Sequence[str],
    metric: Metric,
    family: Family,
    smallest_effect: float,
    *,
    order_matters: bool,
    reference: str,
) -> Ranking | None:
    ranking = rank_pairs(
        [name for name in names if len(clean.values(name, metric.column))],
        names[0],
        lambda first, other: pairs(clean, first, other, metric.column, order_matters=order_matters),
        metric,
        family.alpha,
        smallest_effect,
    )
    return None if ranking is None else _in_words(ranking, metric, family, reference)


def _in_words(ranking: statistics.Ranking, metric: Metric, family: Family, reference: str) -> Ranking:
    return Ranking(
        metric=metric.name,
        reference=reference,
        winner=ranking.winner,
        contenders=ranking.contenders,
        others=tuple(_ranked(other, metric, ranking.winner, family.confidence) for other in ranking.others),
        level=family.confidence,
        comparisons=family.comparisons,
        **_luck(ranking.luck, metric),
    )


def _luck(luck: Luck | None, metric: Metric) -> dict[str, Any]:
    if luck is None:
        return {}
    scale = luck.of.scale
    unit = metric.unit if scale == "difference" else ""
    return {"looks": luck.looks, "expected": luck.expected, "scale": scale, "unit": unit}


def _ranked(other: RankedTreatment, metric: Metric, winner: str, confidence: float) -> Ranked:
    return Ranked(
        configuration=other.name,
        verdict=other.word,
        **effect_fields(other.effect, metric),
        level=confidence,
        blocks=other.effect.interval.n,
        deciding=False,
        reason=_reason(other, winner),
    )


def _reason(other: RankedTreatment, winner: str) -> str:
    if other.worse_than and other.through_others:
        return "" if winner in other.worse_than else f"worse than {other.worse_than[0]} for certain"
    return _unknown(other.effect)


def _unknown(effect: Effect) -> str:
    if effect.same_order:
        return "the same of the two ran first in every block, so a drift would look like an effect"
    if effect.low is None and effect.high is None:
        return "too few blocks for an interval"
    return ""
