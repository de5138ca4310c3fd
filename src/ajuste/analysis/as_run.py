"""What was really run: levels as the kernel made them, where it rounded or clamped those of a range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ajuste.model.results import Measured
from ajuste.model.trial import Configuration, Factor


@dataclass(frozen=True)
class AsRun:
    """``factors`` and ``configurations`` by the levels that the kernel made of those that were written. Of several
    configurations that became the same one the first stands for all; ``notes`` say so.
    """

    factors: tuple[Factor, ...]
    configurations: tuple[Configuration, ...]
    notes: tuple[str, ...] = ()


def as_run(factors: Sequence[Factor], configurations: Sequence[Configuration], measured: Sequence[Measured]) -> AsRun:
    """Only numbers that every trial read back alike take the place of levels; whatever else differs stays as asked."""
    read = {one.name: one.read_back for one in measured}
    ranged = {factor.name for factor in factors if factor.span is not None}
    became = {
        (name, level): read[one.name][name]
        for one in configurations
        for name, level in one.levels.items()
        if name in ranged and _is_another_number(level, read[one.name].get(name, level))
    }
    if not became:
        return AsRun(tuple(factors), tuple(configurations))
    found: dict[tuple[str, ...], Configuration] = {}
    notes = [
        f"{name}: {level} became {value}; the results show it as {value}" for (name, level), value in became.items()
    ]
    for one in configurations:
        levels = {name: became.get((name, level), level) for name, level in one.levels.items()}
        first = found.setdefault(tuple(levels.values()), one.model_copy(update={"levels": levels}))
        if first.name != one.name:
            notes.append(f"{one.name} became the same as {first.name} in the kernel")
            if one.baseline:  # Whatever is compared with it must find it.
                found[tuple(levels.values())] = one.model_copy(update={"levels": levels})
    return AsRun(
        tuple(
            _factor(factor, {level: v for (name, level), v in became.items() if name == factor.name})
            for factor in factors
        ),
        tuple(found.values()),
        tuple(notes),
    )


def _factor(factor: Factor, became: dict[str, str]) -> Factor:
    levels = tuple(dict.fromkeys(became.get(level, level) for level in factor.levels))
    return factor.model_copy(update={"levels": levels, "baseline": became.get(factor.baseline, factor.baseline)})


def _is_another_number(level: str, read: str) -> bool:
    try:
        return int(level) != int(read)
    except ValueError:
        return False
