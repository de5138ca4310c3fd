"""Factors and configurations named shortly: the factor once, then its levels as people say them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ajuste.model.results import Measured, Results
from ajuste.model.trial import COMMAND_FACTOR, SETTINGS_FACTOR, Factor
from ajuste.model.wording import visible_line
from ajuste.report.format import level_text

_SPEAK_FOR_THEMSELVES: Final = (COMMAND_FACTOR, SETTINGS_FACTOR)


@dataclass(frozen=True)
class Labels:
    """``levels[factor][level]`` is how a level is said; ``units`` are the factors' units from the catalogue.

    ``fixed`` are the factors with one level, where others vary: they are the same in all configurations.
    """

    factors: tuple[Factor, ...]
    levels: Mapping[str, Mapping[str, str]]
    units: Mapping[str, str]
    fixed: tuple[Factor, ...] = ()

    def level(self, factor: str, level: str) -> str:
        return self.levels.get(factor, {}).get(level) or visible_line(level)

    def of(self, configuration: Measured) -> tuple[str, ...]:
        """The levels of a configuration, in the factors' order."""
        shown = {factor.name for factor in self.factors}
        return tuple(self.level(name, level) for name, level in configuration.levels.items() if name in shown)

    def short(self, configuration: Measured) -> str:
        """All levels in one line; the configuration's name if it has none."""
        return ", ".join(self.of(configuration)) or visible_line(configuration.name)

    def setting(self, configuration: Measured) -> str:
        """As it stands in a sentence: ``vm.swappiness = 10``; what speaks for itself without the factor's name."""
        said = [
            self.level(factor.name, configuration.levels[factor.name])
            if factor.name in _SPEAK_FOR_THEMSELVES
            else f"{visible_line(factor.name)} = {self.level(factor.name, configuration.levels[factor.name])}"
            for factor in self.factors
            if factor.name in configuration.levels
        ]
        return ", ".join(said) or visible_line(configuration.name)

    @property
    def heading(self) -> str:
        """The factors' names, in the order of ``short``."""
        return ", ".join(visible_line(factor.name) for factor in self.factors)


def labels_of(results: Results) -> Labels:
    """Labels for all factors of ``results``, with the units that the explanations give. Where a profile was taken apart
    configurations go by their names: which lines there are.
    """
    units = {explained.name: explained.unit for explained in results.explained}
    varied = tuple(factor for factor in results.factors if len(factor.levels) > 1)
    return Labels(
        factors=() if results.lines else varied or results.factors,
        fixed=tuple(factor for factor in results.factors if len(factor.levels) == 1) if varied else (),
        levels={factor.name: _levels(factor, units.get(factor.name, "")) for factor in results.factors},
        units=units,
    )


def fixed_levels(labels: Labels) -> tuple[str, ...]:
    """``NAME = LEVEL`` for what is the same in all configurations."""
    return tuple(f"{visible_line(f.name)} = {labels.level(f.name, f.levels[0])}" for f in labels.fixed)


def numeric_levels(factor: Factor) -> list[float] | None:
    """The levels as numbers, or ``None`` if one of them is none."""
    try:
        return [float(int(level)) for level in factor.levels]
    except ValueError:
        return None


def _levels(factor: Factor, unit: str) -> dict[str, str]:
    """Levels as people say them; as they were written where two would be said alike."""
    said = {level: visible_line(level_text(level, unit)) for level in factor.levels}
    if len(set(said.values())) < len(said):
        return {level: visible_line(level) for level in factor.levels}
    return said
