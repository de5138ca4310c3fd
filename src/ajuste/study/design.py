"""Whether a study's design can be carried out with its factors."""

from __future__ import annotations

from collections.abc import Iterator

from ajuste.design.screening import FEWEST
from ajuste.model.metric import split_percentile
from ajuste.study.problem import Problem
from ajuste.study.schema import FactorTable, Study

_EXPECTED = "screening takes two levels of each factor, or three of each with the baseline in the middle"
_ALL = 'combine = "all" measures every combination, "one-at-a-time" each level by itself'


def check_design(study: Study) -> Iterator[Problem]:
    """What is wrong with the table ``design``, and with factors that do not suit it."""
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


def _of_one(index: int, factor: FactorTable, levels: int) -> Iterator[Problem]:
    if len(factor.levels) != levels:
        said = f"{factor.name} has {len(factor.levels)} levels"
        yield Problem(("factor", index, "levels"), f"{said}; {_EXPECTED}", _ALL)
    elif levels == 3 and factor.baseline_level != factor.levels[1]:
        where = ("factor", index, "baseline" if factor.baseline is not None else "levels")
        yield Problem(where, f"the baseline of {factor.name} is {factor.baseline_level}; {_EXPECTED}", _ALL)
