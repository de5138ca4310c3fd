"""Effects of factors: what each does, averaged over the others, and which two depend on each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.pairs import Clean, Trials, clean_trials
from ajuste.analysis.verdict import Family, effect_fields, verdict_reason
from ajuste.design.combinations import low_and_high
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, Factor
from ajuste.model.verdict import FactorCell, FactorEffect
from ajuste.model.wording import change, count_of, percent
from ajuste_stats.confidence_sequences import fewest
from ajuste_stats.contrasts import ContrastTable, contrast_effect, contrast_table
from ajuste_stats.decision import more_blocks, verdict_word
from ajuste_stats.effects import Effect, margin
from ajuste_stats.sign_intervals import blind_spot


@dataclass(frozen=True)
class Effects:
    """The main effects, then the interactions, by metric; the interactions' ``cells``; the ``correction`` in words."""

    findings: tuple[FactorEffect, ...] = ()
    cells: tuple[FactorCell, ...] = ()
    correction: str = ""


def factor_effects(
    factors: Sequence[Factor],
    configurations: Sequence[Configuration],
    trials: Trials,
    metrics: Sequence[Metric],
    *,
    confidence: float,
    smallest_effect: float,
    screening: bool = False,
) -> Effects:
    """Return the effects of ``factors`` on each of ``metrics``: of all their combinations, or of a screening design.

    For each complete block an effect is a weighted sum of the logarithms of its values (see ``Contrast``), or of the
    values where ratios are not possible. The blocks' sums have the same anytime-valid interval as the pairs of two
    configurations. All effects on all metrics hold together with ``confidence`` (Bonferroni's inequality). They decide
    a screening.
    """
    contrasts = (screening_contrasts if screening else factorial_contrasts)(factors, configurations)
    family = Family(len(contrasts) * len(metrics), confidence)
    clean = clean_trials(trials)
    findings: list[FactorEffect] = []
    cells: list[FactorCell] = []
    for metric in metrics:
        table = _table(clean, configurations, metric)
        for contrast in contrasts:
            effect = contrast_effect(table, contrast.weights, metric, family.alpha) if table else None
            finding = _finding(effect, contrast, metric, family, smallest_effect, deciding=screening)
            findings.append(finding.model_copy(update={"of_rounds": clean.of_rounds}))
        if table and not screening:
            cells += _cells(table, factors, configurations, metric, family.alpha)
    return Effects(tuple(findings), tuple(cells), _correction(family, len(contrasts), len(metrics)))


def _table(clean: Clean, configurations: Sequence[Configuration], metric: Metric) -> ContrastTable | None:
    column = clean.measured.metrics.get(metric.name)
    if column is None:
        return None
    rows = np.stack([clean.places(c.name) for c in configurations])
    values = column[rows[:, np.all(rows >= 0, axis=0)]]
    values = values[:, ~np.any(np.isnan(values), axis=0)]
    if not values.shape[1]:
        return None
    baseline = next(place for place, c in enumerate(configurations) if c.baseline)
    return contrast_table(values, baseline, metric)


def _finding(
    effect: Effect | None, contrast: Contrast, metric: Metric, family: Family, smallest_effect: float, *, deciding: bool
) -> FactorEffect:
    judged = metric if contrast.kind == "main" else metric.model_copy(update={"direction": "none"})
    zone = margin(effect, smallest_effect) if effect else 0.0
    word = verdict_word(effect, judged, zone) if effect else "undecided"
    return FactorEffect(
        kind=contrast.kind,
        factors=contrast.factors,
        levels=contrast.levels,
        against=contrast.against,
        verdict=word,
        **effect_fields(effect, judged),
        level=family.confidence,
        blocks=effect.interval.n if effect else 0,
        more_blocks=more_blocks(effect, zone, family.alpha) if effect and word == "undecided" else None,
        deciding=deciding,
        unseen=blind_spot(effect.interval.n, family.confidence) if effect else None,
        reason=_reason(effect, contrast, judged, smallest_effect, family),
    )


def _reason(effect: Effect | None, contrast: Contrast, metric: Metric, smallest_effect: float, family: Family) -> str:
    if effect is None:
        return "no block has a clean trial of every configuration with this metric"
    word = verdict_word(effect, metric, margin(effect, smallest_effect))
    blocks = count_of(effect.interval.n, "complete block")
    too_few = f"{blocks} of the {fewest(family.alpha)} that an interval requires"
    if contrast.kind == "main" or word == "undecided":
        return verdict_reason(word, effect, metric, smallest_effect, too_few)
    (first, second), (_, there), (_, here) = contrast.factors, contrast.levels, contrast.against
    if word == "equivalent":
        same = f"{first} does the same with {second} = {there} as with {second} = {here}"
        return f"{same}, within ±{percent(smallest_effect)}"
    side, near, far = (
        ("higher", effect.low, effect.high) if effect.interval.mean > 0 else ("lower", effect.high, effect.low)
    )
    by = " to ".join(
        change(value, effect.scale, metric.unit, like=effect.estimate).lstrip("+−") for value in (near, far)
    )
    return f"with {second} = {there} the effect of {first} is {side} by {by} than with {second} = {here}"


def _cells(
    table: ContrastTable,
    factors: Sequence[Factor],
    configurations: Sequence[Configuration],
    metric: Metric,
    alpha: float,
) -> list[FactorCell]:
    cells, rows = Cells(factors, configurations), []
    for first_factor, second_factor in interacting(factors):
        here = cells.mean((first_factor.name, first_factor.baseline), (second_factor.name, second_factor.baseline))
        for first, second in product(first_factor.levels, second_factor.levels):
            weights = cells.mean((first_factor.name, first), (second_factor.name, second)) - here
            effect = contrast_effect(table, weights, metric, alpha)
            certain = not np.any(weights)  # against itself
            rows.append(
                FactorCell(
                    metric=metric.name,
                    factors=(first_factor.name, second_factor.name),
                    levels=(first, second),
                    scale=effect.scale,
                    estimate=effect.estimate,
                    low=effect.estimate if certain else effect.low,
                    high=effect.estimate if certain else effect.high,
                )
            )
    return rows


def _correction(family: Family, effects: int, metrics: int) -> str:
    if family.comparisons < 2:
        return f"none needed: one effect, at {percent(family.confidence)}"
    named = count_of(metrics, "deciding metric")
    return (
        f"Bonferroni: {effects} effects × {named} = {family.comparisons}, each at {percent(1 - family.alpha)}, so that "
        f"all hold together at {percent(family.confidence)} whenever the study stops"
    )


@dataclass(frozen=True)
class Contrast:
    """A main effect or interaction of factors as a weighted sum over the configurations of a block.

    ``weights`` has one figure for each configuration; they add up to 0. The rest as in ``FactorEffect``. Those of Box,
    Hunter and Hunter (2005, "Statistics for Experimenters", chapter 5); with marginal means for factors of more than
    two levels.
    """

    kind: Literal["main", "interaction"]
    factors: tuple[str, ...]
    levels: tuple[str, ...]
    against: tuple[str, ...]
    weights: NDArray[np.float64]


MOST_INTERACTIONS: Final = 200
"""Maximum number of interactions computed: corrected for more, few could be decided."""

Weights: TypeAlias = NDArray[np.float64]


class Cells:
    """Means over configurations with given levels, as weights."""

    def __init__(self, factors: Sequence[Factor], configurations: Sequence[Configuration]) -> None:
        self._have = {
            (factor.name, level): np.array([c.levels[factor.name] == level for c in configurations])
            for factor in factors
            for level in factor.levels
        }

    def mean(self, *levels: tuple[str, str]) -> Weights:
        """Return the weights of the mean over all configurations with these levels, each with its factor."""
        chosen = np.all([self._have[each] for each in levels], axis=0).astype(np.float64)
        weights: Weights = chosen / np.sum(chosen)
        return weights


def varied(factors: Sequence[Factor]) -> list[Factor]:
    """Return the factors with more than one level."""
    return [factor for factor in factors if len(factor.levels) > 1]


def interacting(factors: Sequence[Factor]) -> list[tuple[Factor, Factor]]:
    """Return the pairs of factors whose interactions are computed: all, or none if there are too many."""
    pairs = list(combinations(varied(factors), 2))
    many = sum((len(first.levels) - 1) * (len(second.levels) - 1) for first, second in pairs)
    return pairs if many <= MOST_INTERACTIONS else []


def factorial_contrasts(factors: Sequence[Factor], configurations: Sequence[Configuration]) -> tuple[Contrast, ...]:
    """Return every other level of each factor against its baseline, and the interactions of two."""
    cells = Cells(factors, configurations)
    mains = [_main(factor, factor.baseline, level, cells) for factor in varied(factors) for level in _others(factor)]
    return (*mains, *(each for first, second in interacting(factors) for each in _interactions(first, second, cells)))


def screening_contrasts(factors: Sequence[Factor], configurations: Sequence[Configuration]) -> tuple[Contrast, ...]:
    """Return the main effect of each factor that varies, for a screening design."""
    cells = Cells(factors, configurations)
    return tuple(_main(factor, *low_and_high(factor), cells) for factor in varied(factors))


def _others(factor: Factor) -> list[str]:
    return [level for level in factor.levels if level != factor.baseline]


def _main(factor: Factor, low: str, high: str, cells: Cells) -> Contrast:
    weights = cells.mean((factor.name, high)) - cells.mean((factor.name, low))
    return Contrast("main", (factor.name,), (high,), (low,), weights)


def _interactions(first_factor: Factor, second_factor: Factor, cells: Cells) -> Iterator[Contrast]:
    def at(first: str, second: str) -> Weights:
        return cells.mean((first_factor.name, first), (second_factor.name, second))

    for first in _others(first_factor):
        for second in _others(second_factor):
            step_there = at(first, second) - at(first_factor.baseline, second)
            step_here = at(first, second_factor.baseline) - at(first_factor.baseline, second_factor.baseline)
            names, against = (first_factor.name, second_factor.name), (first_factor.baseline, second_factor.baseline)
            yield Contrast("interaction", names, (first, second), against, step_there - step_here)
