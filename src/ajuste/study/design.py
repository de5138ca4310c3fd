"""Whether a study's design can be carried out with its factors."""

from __future__ import annotations

from collections.abc import Iterator

from ajuste.catalogue.quantity import unit_of
from ajuste.design.refinement import FEWEST_LEVELS, MOST_FACTORS
from ajuste.design.screening import FEWEST
from ajuste.model.metric import split_percentile
from ajuste.study.location import Path
from ajuste.study.problem import Problem
from ajuste.study.schema import FactorTable, Study

MOST_LINES = 60
"""Of more a block would be hundreds of trials."""

_EXPECTED = "screening takes two levels of each factor, or three of each with the baseline in the middle"
_ALL = 'combine = "all" measures every combination, "one-at-a-time" each level by itself'


def check_design(study: Study) -> Iterator[Problem]:
    """What is wrong with the table ``design``, and with factors that do not suit it."""
    if study.design.allocation == "refine":
        yield from _refined(study)
    if study.design.combine == "ablation":
        yield from _ablation(study)
    if study.design.combine != "screening":
        return
    if study.design.allocation == "undecided":
        yield Problem(
            ("design", "allocation"), "a screening design needs every block to be complete", 'allocation = "all"'
        )
    for index, name in enumerate(study.analysis.metrics):
        if split_percentile(name)[1] is not None:
            yield Problem(
                ("analysis", "metrics", index), f"{name} is a quantile; screening tells effects on means only"
            )
    varied = [(index, factor) for index, factor in enumerate(study.factors) if len(factor.levels) > 1]
    if not varied:
        yield Problem(("design", "combine"), "there is nothing to screen: no factor has more than one level", _ALL)
        return
    levels = 3 if len(varied[0][1].levels) == 3 else 2
    wrong = [problem for index, factor in varied for problem in _of_one(index, factor, levels)]
    yield from wrong
    if not wrong and len(varied) < FEWEST[levels]:
        yield Problem(
            ("design", "combine"),
            f"screening is for {FEWEST[levels]} factors or more that have {levels} levels; of these {len(varied)}, all "
            f"combinations are only {levels ** len(varied)} configurations",
            _ALL,
        )


def _refined(study: Study) -> Iterator[Problem]:
    """Whether the levels make a grid with a surface over it, and replicates tell its noise."""
    whole = 'allocation = "all" measures every combination'
    where: Path = ("design", "allocation")
    if study.design.combine != "all":
        yield Problem(where, f'refine takes a grid of all combinations, and combine is "{study.design.combine}"')
    varied = [(index, factor) for index, factor in enumerate(study.factors) if len(factor.levels) > 1]
    if not 1 <= len(varied) <= MOST_FACTORS:
        said = f"{len(varied)} factors have several levels"
        yield Problem(where, f"{said}; a surface to refine is over one to {MOST_FACTORS}", whole)
    elif all(len(factor.levels) < FEWEST_LEVELS for _, factor in varied):
        yield Problem(where, f"no factor has {FEWEST_LEVELS} levels or more: there is nothing to refine", whole)
    for index, factor in varied:
        if factor.settings or not all(unit_of(level) or _is_number(level) for level in factor.levels):
            yield Problem(("factor", index, "levels"), f"{factor.name} has levels that are no numbers", whole)
    for index, name in enumerate(study.analysis.metrics):
        if split_percentile(name)[1] is not None:
            yield Problem(("analysis", "metrics", index), f"{name} is a quantile; refine is for means")
    if study.budget.min_blocks < 2:
        yield Problem(("budget", "min_blocks"), "found 1; refine learns from 2 blocks or more how large the noise is")


def _is_number(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


def _ablation(study: Study) -> Iterator[Problem]:
    if study.design.allocation == "undecided":
        yield Problem(("design", "allocation"), "an ablation needs every block to be complete", 'allocation = "all"')
    for index, name in enumerate(study.analysis.metrics):
        if split_percentile(name)[1] is not None:
            yield Problem(("analysis", "metrics", index), f"{name} is a quantile; ablation shares out means only")
    for index, factor in enumerate(study.factors):
        if len(factor.levels) > 2:
            said = f"{factor.name} has {len(factor.levels)} levels; a line of a profile is there or not: two levels"
            yield Problem(("factor", index, "levels"), said, _ALL)
    lines = sum(len(factor.levels) == 2 for factor in study.factors)
    if not lines:
        yield Problem(("design", "combine"), "there is no line to take away: no factor has two levels")
    if lines > MOST_LINES:
        yield Problem(("factor",), f"there are {lines} lines; ablation is for at most {MOST_LINES}")


def _of_one(index: int, factor: FactorTable, levels: int) -> Iterator[Problem]:
    if len(factor.levels) != levels:
        said = f"{factor.name} has {len(factor.levels)} levels"
        yield Problem(("factor", index, "levels"), f"{said}; {_EXPECTED}", _ALL)
    elif levels == 3 and factor.baseline_level != factor.levels[1]:
        where = ("factor", index, "baseline" if factor.baseline is not None else "levels")
        yield Problem(where, f"the baseline of {factor.name} is {factor.baseline_level}; {_EXPECTED}", _ALL)
