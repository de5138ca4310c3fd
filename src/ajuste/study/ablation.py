"""An ablation as a study: each factor with two levels is a line of the profile, off or on."""

from __future__ import annotations

from ajuste.design.ablation import of_block, subsets
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import FactorTable, Study
from ajuste.study.settings import set_by


def lines_of(study: Study) -> tuple[FactorTable, ...]:
    """The factors that are lines."""
    return tuple(factor for factor in study.factors if len(factor.levels) > 1)


def line_sets(study: Study) -> dict[str, dict[str, str]]:
    """What each line sets, by its name."""
    return {
        line.name: set_by(line, next(level for level in line.levels if level != line.baseline_level))
        for line in lines_of(study)
    }


def ablation_names(resolved: ResolvedStudy, block: int) -> tuple[str, ...]:
    """The names of the configurations that a block holds: ``resolved`` has them in the order of ``subsets``."""
    lines = len(lines_of(resolved.study))
    names = dict(zip(subsets(lines), resolved.names, strict=True))
    return tuple(names[subset] for subset in of_block(lines, block))
