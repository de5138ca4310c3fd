"""A study as `ajuste tune` takes it: what it seeks, and every combination of levels as the space to search."""

from __future__ import annotations

from typing import Final

from ajuste.catalogue.loader import Catalogue
from ajuste.design.combinations import combinations, spaced
from ajuste.design.goal import constrained_metric, split_objective
from ajuste.model.error import RequestError
from ajuste.model.search import Search
from ajuste.study.metrics import find_metric
from ajuste.study.ranges import factor_numbers, factor_span
from ajuste.study.resolve import Resolver
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import FactorTable, Study
from ajuste_search.tuning.goal import resolve_goal

# Number of levels of a range that are searched, besides those of the study.
FINE: Final = 20


def searched_study(study: Study, search: Search, catalogue: Catalogue) -> Study:
    """Return ``study`` with the metrics of ``search`` as deciding ones, and its ranges in fine steps.

    Raises RequestError for a metric that it has not, and where there is nothing to choose.
    """
    named = [
        *(split_objective(text)[0] for text in search.objectives),
        *(constrained_metric(text) for text in search.constraints),
    ]
    metrics = tuple(dict.fromkeys(named))
    resolve_goal(search, [find_metric(name, study, catalogue) for name in metrics])
    before = study.analysis.metrics
    described = study.analysis.describe
    if described is not None:
        described = tuple(name for name in dict.fromkeys((*before, *described)) if name not in metrics)
    factors = tuple(_fine(factor, study, catalogue) for factor in study.factors)
    if all(len(factor.levels) < 2 for factor in factors):
        raise RequestError(
            "there is nothing to tune; expected a factor with at least two levels", place=study.place("factor")
        )
    return study.model_copy(
        update={
            "factors": factors,
            "analysis": study.analysis.model_copy(update={"metrics": metrics, "describe": described}),
            "design": study.design.model_copy(update={"combine": "one-at-a-time", "allocation": "all"}),
        }
    )


def _fine(factor: FactorTable, study: Study, catalogue: Catalogue) -> FactorTable:
    # A factor with a range has more levels within it; those of the study among them.
    span = factor_span(factor, study, catalogue)
    if span is None or len(factor.levels) >= FINE:
        return factor
    number_of_level = dict(zip(factor.levels, factor_numbers(factor, study, catalogue), strict=True))
    levels = sorted({*number_of_level.values(), *spaced(span.low, span.high, FINE, span.scale)})
    return factor.model_copy(
        update={"levels": tuple(map(str, levels)), "baseline": str(number_of_level[factor.baseline_level])}
    )


def first_study(study_resolver: Resolver, search: Search) -> ResolvedStudy:
    """Return the study that a search begins with: the baseline, and each level of each factor by itself, so that all
    that can be wrong with one is known before anything is measured.
    """
    levels = combinations(study_resolver.factors, "one-at-a-time")
    resolved = study_resolver.build_study(tuple(map(study_resolver.configuration, levels)))
    goal = {metric.name: metric for metric in resolve_goal(search, resolved.deciding).objectives}
    deciding = tuple(goal.get(metric.name, metric) for metric in resolved.deciding)
    return resolved.model_copy(update={"search": search, "deciding": deciding})
