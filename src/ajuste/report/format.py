"""Figures for people: a suitable unit, the significant digits, and the names of factors and configurations.

Factors and configurations are named shortly: the factor once, then its levels as people say them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from ajuste.model.explained import EXPLAINED
from ajuste.model.verdict import LINES
from ajuste.model.wording import quantity, visible_line

if TYPE_CHECKING:
    from ajuste.model.explained import Explained
    from ajuste.model.results import Measured, Results
    from ajuste.model.trial import Configuration, Factor
    from ajuste.study.resolved import ResolvedStudy

MINUS: Final = "−"
NOTHING: Final = "–"

_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "centisecs": 1e-2, "s": 1.0}
_TIME_STEPS: Final = (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0))
_BYTES: Final = {
    "B": 1.0,
    "byte": 1.0,
    "bytes": 1.0,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "TiB": 2.0**40,
}
_BYTE_STEPS: Final = (("B", 1.0), ("KiB", 2.0**10), ("MiB", 2.0**20), ("GiB", 2.0**30), ("TiB", 2.0**40))
_COUNT_STEPS: Final = (("", 1.0), ("million", 1e6), ("billion", 1e9))
_SHORTEST_PLURAL: Final = 3  # letters: ``requests``, ``pages``, not ``ms``
_SAME: Final = 1e-12  # relative: what is left of equal values after floating-point means

_FEWEST_DIGITS_OF_LARGEST: Final = 4
_FEWEST_DIGITS_OF_SMALLEST: Final = 2
_MOST_DIGITS_OF_LARGEST: Final = 6


@dataclass(frozen=True)
class NumberFormat:
    """The format of the figures of one row: divided by ``divisor`` they are in ``unit``, with ``decimals``."""

    unit: str
    divisor: float = 1.0
    decimals: int = 0

    def scaled(self, value: float) -> float:
        return value / self.divisor

    def text(self, value: float) -> str:
        """Return the figure without its unit."""
        return number(self.scaled(value), self.decimals)

    def signed(self, value: float) -> str:
        """Return the figure with its sign, for differences."""
        return signed(self.scaled(value), self.decimals)

    def with_unit(self, value: float) -> str:
        return quantity(self.text(value), self.unit)

    def at_least(self, digits: int, values: Iterable[float]) -> NumberFormat:
        """Return the format with at least so many significant digits of each value."""
        sizes = [size for value in values if (size := abs(self.scaled(value))) > 0 and math.isfinite(size)]
        wanted = max((digits - 1 - _exponent(size) for size in sizes), default=0)
        return replace(self, decimals=max(self.decimals, _clamp(wanted, 9)))


def in_unit(unit: str) -> str:
    """Return ``, in ms`` to follow a title; empty without a unit."""
    return f", in\u00a0{unit}" if unit else ""


def number(value: float, decimals: int) -> str:
    """Return ``value`` with thousands separated and a real minus sign; very large figures in powers of ten."""
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{value:.3e}" if abs(value) >= 1e15 else f"{value:,.{decimals}f}"
    if text.startswith("-"):
        is_zero = not any(digit in text for digit in "123456789")
        return text[1:] if is_zero else MINUS + text[1:]
    return text


def signed(value: float, decimals: int) -> str:
    """Return ``value`` as ``number`` does, with a plus sign above 0."""
    text = number(value, decimals)
    if value > 0 and any(digit in text for digit in "123456789∞"):
        return f"+{text}"
    return text


def significant(value: float, digits: int) -> str:
    """Return ``value`` to so many significant digits, never in powers of ten below 1e15."""
    if value == 0 or not math.isfinite(value):
        return number(value, 0)
    return number(value, _clamp(digits - 1 - _exponent(value), 15))


def common_format(values: Iterable[float], unit: str, spreads: Iterable[float] = ()) -> NumberFormat:
    """Return a common unit and number of decimals for figures in one column.

    ``values`` are in ``unit``: times, bytes and large counts get the unit in which the largest is easiest to read.
    ``spreads`` (standard deviations in ``unit``) keep the digits in which the figures differ.
    """
    finite = [value for value in values if math.isfinite(value)]
    name, divisor = _unit_for(max((abs(value) for value in finite), default=0.0), unit)
    scaled = [value / divisor for value in finite]
    noise = _SAME * max((abs(value) for value in scaled), default=0.0)
    visible_spreads = [s / divisor for s in spreads if math.isfinite(s) and s / divisor > noise]
    return NumberFormat(name, divisor, decimals_for(scaled, visible_spreads))


def decimals_for(values: Iterable[float], spreads: Iterable[float] = ()) -> int:
    """Return the decimals that show four significant digits of the largest figure.

    The smallest figure has two, the smallest spread one; never more than six digits of the largest figure or two of the
    smallest spread.
    """
    sizes = [abs(value) for value in values if value != 0]
    widths = [spread for spread in spreads if spread > 0]
    if not sizes or (not widths and all(size == int(size) for size in sizes)):
        return 0
    largest = _exponent(max(sizes))
    wanted = max(
        _FEWEST_DIGITS_OF_LARGEST - 1 - largest,
        _FEWEST_DIGITS_OF_SMALLEST - 1 - _exponent(min(sizes)),
        *(-_exponent(width) for width in widths),
    )
    most = [_MOST_DIGITS_OF_LARGEST - 1 - largest, *(1 - _exponent(width) for width in sorted(widths)[:1])]
    return _clamp(min(wanted, *most), 9)


def spread_percent(sd: float, mean: float) -> str:
    """Return a standard deviation in per cent of the mean: ``± 1.2 %``."""
    if mean == 0:
        return NOTHING
    part = abs(sd / mean)
    if part <= _SAME:
        return "± 0 %"
    percent = 100 * part
    if percent < 0.005:
        return "± <0.01 %"
    return f"± {number(percent, 2 if percent < 1 else 1 if percent < 10 else 0)} %"


def level_text(level: str, unit: str) -> str:
    """Return a level in a readable unit: ``7500000`` in ``ns`` is ``7.5 ms``. Nothing is rounded."""
    try:
        value = int(level)
    except ValueError:
        return level
    if unit not in _SECONDS and unit not in _BYTES:
        if value == 1 and len(unit) > _SHORTEST_PLURAL:
            return f"{level} {unit.removesuffix('s')}"
        return f"{level} {unit}".rstrip().replace("-", MINUS, 1) if value < 0 else f"{level} {unit}".rstrip()
    if value <= 0:
        return f"{number(value, 0)} {unit}"
    name, divisor = _unit_for(float(value), unit)
    scaled = value / divisor
    for decimals in range(4):
        if abs(round(scaled, decimals) * divisor - value) < 1e-3:  # levels are whole numbers
            return f"{number(scaled, decimals)} {name}"
    return f"{number(value, 0)} {unit}"


def duration(seconds: float) -> str:
    """Return a duration for progress and budgets: ``40 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, rest = divmod(whole, 3600)
    return f"{hours} h {rest // 60} min" if rest >= 60 else f"{hours} h"


def ago(text: str) -> str:
    """Return how long ago the time ``text`` (ISO 8601) was: ``5 min ago``, ``3 h ago``, or the day."""
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()
    except (ValueError, TypeError):
        return text
    if seconds < 90:
        return "just now"
    if seconds < 5400:
        return f"{round(seconds / 60)} min ago"
    if seconds < 86400 * 1.5:
        return f"{round(seconds / 3600)} h ago"
    return f"{round(seconds / 86400)} days ago" if seconds < 86400 * 30 else text[:10]


def _unit_for(largest: float, unit: str) -> tuple[str, float]:
    # Return the unit to show and how many of `unit` it is.
    if unit in _SECONDS:
        return _fitting(largest * _SECONDS[unit], _TIME_STEPS, _SECONDS[unit], unit)
    if unit in _BYTES:
        return _fitting(largest * _BYTES[unit], _BYTE_STEPS, _BYTES[unit], unit)
    if unit == "" and largest >= 1e7:
        return _fitting(largest, _COUNT_STEPS, 1.0, unit)
    return unit, 1.0


def _fitting(size: float, steps: tuple[tuple[str, float], ...], unit_size: float, unit: str) -> tuple[str, float]:
    if size == 0:
        return unit, 1.0
    name, step = next(
        ((name, step) for name, step in reversed(steps) if size >= step * (1 - 1e-9)),
        steps[0],
    )
    return name, step / unit_size


def _exponent(value: float) -> int:
    return math.floor(math.log10(abs(value)))


def _clamp(value: int, high: int) -> int:
    return max(0, min(high, value))


@dataclass(frozen=True)
class Labels:
    """``levels[factor][level]`` is the text of a level; ``units`` are the factors' units from the catalogue.

    ``fixed`` are the factors with one level, where others vary: they are the same in all configurations. ``conditions``
    are the names of the factors that are no choice.
    """

    factors: tuple[Factor, ...]
    levels: Mapping[str, Mapping[str, str]]
    units: Mapping[str, str]
    fixed: tuple[Factor, ...] = ()
    conditions: frozenset[str] = frozenset()

    @property
    def choices(self) -> Labels:
        """Return the labels of the factors to choose, without the conditions."""
        return replace(self, factors=tuple(f for f in self.factors if f.name not in self.conditions))

    def condition(self, configuration: Measured | Configuration) -> str:
        """Return ``load = disturbed``: the levels of the conditions alone."""
        only = replace(self, factors=tuple(f for f in self.factors if f.name in self.conditions))
        return only.setting(configuration)

    def level(self, factor: str, level: str) -> str:
        return self.levels.get(factor, {}).get(level) or visible_line(level)

    def of(self, configuration: Measured | Configuration) -> tuple[str, ...]:
        """Return the levels of a configuration, in the factors' order."""
        varied = {factor.name for factor in self.factors}
        return tuple(self.level(name, level) for name, level in configuration.levels.items() if name in varied)

    def short(self, configuration: Measured | Configuration) -> str:
        """Return all levels in one line; the configuration's name if it has none."""
        return ", ".join(self.of(configuration)) or visible_line(configuration.name)

    def named(self, configuration: Measured) -> str:
        """Return ``short``, with a mark of the baseline."""
        return f"{self.short(configuration)}{' (baseline)' if configuration.baseline else ''}"

    def setting(self, configuration: Measured | Configuration) -> str:
        """Return ``vm.swappiness = 10`` for a sentence, or the level alone where that is clear."""
        parts = [
            self.level(factor.name, configuration.levels[factor.name])
            if factor.speaks_for_itself
            else f"{visible_line(factor.name)} = {self.level(factor.name, configuration.levels[factor.name])}"
            for factor in self.factors
            if factor.name in configuration.levels
        ]
        return ", ".join(parts) or visible_line(configuration.name)

    def by_name(self, results: Results) -> dict[str, str]:
        """Return ``short`` of all configurations by their names."""
        return {configuration.name: self.short(configuration) for configuration in results.configurations}

    @property
    def heading(self) -> str:
        """The factors' names, in the order of ``short``."""
        return ", ".join(visible_line(factor.name) for factor in self.factors)


def result_labels(results: Results) -> Labels:
    """Return labels for ``results``; the configurations of a divided profile go by their names."""
    return labels_for(results.factors, EXPLAINED.of(results), by_name=bool(LINES.of(results)))


def labels_for(factors: tuple[Factor, ...], explained: Iterable[Explained], *, by_name: bool = False) -> Labels:
    """Return labels for ``factors`` with the units of ``explained``; ``by_name`` configurations go by their names."""
    entries = tuple(explained)
    units = {entry.name: entry.unit for entry in entries}
    varied = tuple(factor for factor in factors if len(factor.levels) > 1)
    return Labels(
        factors=() if by_name else varied or factors,
        fixed=tuple(factor for factor in factors if len(factor.levels) == 1) if varied else (),
        levels={factor.name: _levels(factor, units.get(factor.name, "")) for factor in factors},
        units=units,
        conditions=frozenset(entry.name for entry in entries if entry.condition),
    )


def study_labels(study: ResolvedStudy) -> Labels:
    """Return the labels of a study that is running, as ``result_labels`` those of its results."""
    return labels_for(study.factors, study.explained, by_name=study.study.design.combine == "ablation")


def study_settings(study: ResolvedStudy) -> dict[str, str]:
    """Return the settings of each configuration of ``study`` by its name: ``vm.swappiness = 10``."""
    labels = study_labels(study)
    return {
        configuration.name: labels.setting(configuration)
        for configuration in (resolved.configuration for resolved in study.configurations)
    }


def fixed_levels(labels: Labels) -> tuple[str, ...]:
    """Return ``NAME = LEVEL`` for levels that all configurations share."""
    return tuple(f"{visible_line(f.name)} = {labels.level(f.name, f.levels[0])}" for f in labels.fixed)


def numeric_levels(factor: Factor) -> list[float] | None:
    """Return the levels as numbers, or ``None`` if any of them is not a number."""
    try:
        return [float(int(level)) for level in factor.levels]
    except ValueError:
        return None


def _levels(factor: Factor, unit: str) -> dict[str, str]:
    # As they were written where two would get the same text.
    texts = {level: visible_line(level_text(level, unit)) for level in factor.levels}
    if len(set(texts.values())) < len(texts):
        return {level: visible_line(level) for level in factor.levels}
    return texts
