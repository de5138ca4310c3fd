"""Effects of factors: what each does, averaged over the others, and which two depend on each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.effects import SMALLEST_RELATIVE_STEP, Effect, margin
from ajuste.analysis.pairs import Clean, Trials, clean_trials
from ajuste.analysis.sequence import fewest, mean_interval
from ajuste.analysis.signs import blind_spot
from ajuste.analysis.verdict import Family, figures_of, more_blocks, reason_of, word_of
from ajuste.design.combinations import low_and_high
from ajuste.model.metric import Metric, Scale
from ajuste.model.trial import Configuration, Factor
from ajuste.model.verdict import FactorCell, FactorEffect
from ajuste.model.wording import change, count_of, percent


@dataclass(frozen=True)
class Effects:
    """``found`` are the main effects, then the interactions, metric by metric; ``cells`` are what interactions of two
    factors look like; ``correction`` says in words how all of them hold together.
    """

    found: tuple[FactorEffect, ...] = ()
    cells: tuple[FactorCell, ...] = ()
    correction: str = ""


@dataclass(frozen=True)
class _Table:
    """A metric in the complete blocks: a row for each configuration, logarithms where ``scale`` is ``ratio``.

    ``rounding`` is the variance that each configuration's values have from their resolution alone.
    """

    values: NDArray[np.float64]
    scale: Scale
    rounding: NDArray[np.float64]
    baseline_mean: float
    fell_back: bool


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
    """The effects of ``factors`` on each of ``metrics``: of all their combinations, or of a screening design, where
    they are what decides.

    For each complete block an effect is a weighted sum of the logarithms of its values (see ``contrasts``), or
    of the values where ratios are not possible. The blocks' sums have the same anytime-valid interval as the pairs of
    two configurations. All effects on all metrics hold together with ``confidence`` (Bonferroni's inequality).
    """
    contrasts = (screening_contrasts if screening else factorial_contrasts)(factors, configurations)
    family = Family(len(contrasts) * len(metrics), confidence)
    clean = clean_trials(trials)
    found: list[FactorEffect] = []
    cells: list[FactorCell] = []
    for metric in metrics:
        table = _table(clean, configurations, metric)
        for contrast in contrasts:
            own = _effect(table, contrast.weights, metric, family.alpha) if table else None
            one = _finding(own, contrast, metric, family, smallest_effect, deciding=screening)
            found.append(one.model_copy(update={"of_rounds": clean.of_rounds}))
        if table and not screening:
            cells += _cells(table, factors, configurations, metric, family.alpha)
    return Effects(tuple(found), tuple(cells), _correction(family, len(contrasts), len(metrics)))


def _table(clean: Clean, configurations: Sequence[Configuration], metric: Metric) -> _Table | None:
    """``None`` where no block has the metric under every configuration."""
    column = clean.measured.metrics.get(metric.name)
    if column is None:
        return None
    rows = np.stack([clean.places(c.name) for c in configurations])
    values = column[rows[:, np.all(rows >= 0, axis=0)]]
    values = values[:, ~np.any(np.isnan(values), axis=0)]
    if not values.shape[1]:
        return None
    means = np.abs(np.mean(values, axis=1))
    rounding = np.full(len(values), (metric.resolution or SMALLEST_RELATIVE_STEP * float(np.max(means))) ** 2 / 12)
    baseline_mean = float(np.mean(values[next(place for place, c in enumerate(configurations) if c.baseline)]))
    if metric.scale == "ratio" and np.all(values > 0):
        return _Table(np.log(values), "ratio", rounding / means**2, baseline_mean, fell_back=False)
    return _Table(values, "difference", rounding, baseline_mean, fell_back=metric.scale == "ratio")


def _effect(table: _Table, weights: Weights, metric: Metric, alpha: float) -> Effect:
    of_blocks = weights @ table.values
    interval = mean_interval(of_blocks, alpha=alpha, floor=float(weights**2 @ table.rounding))
    same = bool(np.all(of_blocks == 0))
    return Effect(table.scale, interval, table.baseline_mean, metric.resolution, same, table.fell_back)


def _finding(
    own: Effect | None, contrast: Contrast, metric: Metric, family: Family, smallest_effect: float, *, deciding: bool
) -> FactorEffect:
    judged = metric if contrast.kind == "main" else metric.model_copy(update={"direction": "none"})
    zone = margin(own, smallest_effect) if own else 0.0
    word = word_of(own, judged, zone) if own else "undecided"
    return FactorEffect(
        kind=contrast.kind,
        factors=contrast.factors,
        levels=contrast.levels,
        against=contrast.against,
        verdict=word,
        **figures_of(own, judged),
        level=family.confidence,
        blocks=own.interval.n if own else 0,
        more_blocks=more_blocks(own, zone, family.alpha) if own and word == "undecided" else None,
        deciding=deciding,
        unseen=blind_spot(own.interval.n, family.confidence) if own else None,
        reason=_reason(own, contrast, judged, smallest_effect, family),
    )


def _reason(own: Effect | None, contrast: Contrast, metric: Metric, smallest_effect: float, family: Family) -> str:
    if own is None:
        return "no block has a clean trial of every configuration with this metric"
    word = word_of(own, metric, margin(own, smallest_effect))
    blocks = count_of(own.interval.n, "complete block")
    too_few = f"{blocks} of the {fewest(family.alpha)} that an interval requires"
    if contrast.kind == "main" or word == "undecided":
        return reason_of(word, own, metric, smallest_effect, too_few)
    (one, two), (_, there), (_, here) = contrast.factors, contrast.levels, contrast.against
    if word == "equivalent":
        return f"{one} does the same with {two} = {there} as with {two} = {here}, within ±{percent(smallest_effect)}"
    side, near, far = ("higher", own.low, own.high) if own.interval.mean > 0 else ("lower", own.high, own.low)
    by = " to ".join(change(value, own.scale, metric.unit, like=own.estimate).lstrip("+−") for value in (near, far))
    return f"with {two} = {there} the effect of {one} is {side} by {by} than with {two} = {here}"


def _cells(
    table: _Table, factors: Sequence[Factor], configurations: Sequence[Configuration], metric: Metric, alpha: float
) -> list[FactorCell]:
    cells, found = Cells(factors, configurations), []
    for one, two in interacting(factors):
        here = cells.mean((one.name, one.baseline), (two.name, two.baseline))
        for first, second in product(one.levels, two.levels):
            weights = cells.mean((one.name, first), (two.name, second)) - here
            own = _effect(table, weights, metric, alpha)
            certain = not np.any(weights)  # against itself
            found.append(
                FactorCell(
                    metric=metric.name,
                    factors=(one.name, two.name),
                    levels=(first, second),
                    scale=own.scale,
                    estimate=own.estimate,
                    low=own.estimate if certain else own.low,
                    high=own.estimate if certain else own.high,
                )
            )
    return found


def _correction(family: Family, effects: int, metrics: int) -> str:
    if family.comparisons < 2:
        return f"none needed: one effect, at {percent(family.confidence)}"
    named = count_of(metrics, "deciding metric")
    return (
        f"Bonferroni: {effects} effects × {named} = {family.comparisons}, each at {percent(1 - family.alpha)}, so that "
        f"all hold together at {percent(family.confidence)} whenever the study stops"
    )


# Contrasts: main effects and interactions of factors as weighted sums over the configurations of a block.
#
# Those of Box, Hunter and Hunter (2005, "Statistics for Experimenters", chapter 5); with marginal means for factors
# of more than two levels.


@dataclass(frozen=True)
class Contrast:
    """``weights`` has one figure for each configuration; they add up to 0. The rest as in ``FactorEffect``."""

    kind: Literal["main", "interaction"]
    factors: tuple[str, ...]
    levels: tuple[str, ...]
    against: tuple[str, ...]
    weights: NDArray[np.float64]


MOST_INTERACTIONS: Final = 200
"""With more of them than this only main effects are computed: corrected for so many, little could be said of any."""

Weights: TypeAlias = NDArray[np.float64]


class Cells:
    """The means over configurations with given levels, as weights."""

    def __init__(self, factors: Sequence[Factor], configurations: Sequence[Configuration]) -> None:
        self._have = {
            (factor.name, level): np.array([c.levels[factor.name] == level for c in configurations])
            for factor in factors
            for level in factor.levels
        }

    def mean(self, *levels: tuple[str, str]) -> Weights:
        """The weights of the mean over all configurations with these levels, each with its factor."""
        chosen = np.all([self._have[each] for each in levels], axis=0).astype(np.float64)
        weights: Weights = chosen / np.sum(chosen)
        return weights


def varied(factors: Sequence[Factor]) -> list[Factor]:
    """Those with more than one level."""
    return [factor for factor in factors if len(factor.levels) > 1]


def interacting(factors: Sequence[Factor]) -> list[tuple[Factor, Factor]]:
    """The pairs of factors whose interactions are computed: all, or none if there are too many."""
    found = list(combinations(varied(factors), 2))
    many = sum((len(one.levels) - 1) * (len(two.levels) - 1) for one, two in found)
    return found if many <= MOST_INTERACTIONS else []


def factorial_contrasts(factors: Sequence[Factor], configurations: Sequence[Configuration]) -> tuple[Contrast, ...]:
    """Of all combinations: every other level of each factor against its baseline, and the interactions of two."""
    cells = Cells(factors, configurations)
    mains = [_main(factor, factor.baseline, level, cells) for factor in varied(factors) for level in _others(factor)]
    return (*mains, *(each for one, two in interacting(factors) for each in _interactions(one, two, cells)))


def screening_contrasts(factors: Sequence[Factor], configurations: Sequence[Configuration]) -> tuple[Contrast, ...]:
    """Of a screening design: the main effect of each factor that varies."""
    cells = Cells(factors, configurations)
    return tuple(_main(factor, *low_and_high(factor), cells) for factor in varied(factors))


def _others(factor: Factor) -> list[str]:
    return [level for level in factor.levels if level != factor.baseline]


def _main(factor: Factor, low: str, high: str, cells: Cells) -> Contrast:
    weights = cells.mean((factor.name, high)) - cells.mean((factor.name, low))
    return Contrast("main", (factor.name,), (high,), (low,), weights)


def _interactions(one: Factor, two: Factor, cells: Cells) -> Iterator[Contrast]:
    def at(first: str, second: str) -> Weights:
        return cells.mean((one.name, first), (two.name, second))

    for first in _others(one):
        for second in _others(two):
            step_there = at(first, second) - at(one.baseline, second)
            step_here = at(first, two.baseline) - at(one.baseline, two.baseline)
            names, against = (one.name, two.name), (one.baseline, two.baseline)
            yield Contrast("interaction", names, (first, second), against, step_there - step_here)
