"""Relevance of settings, their chance to matter: the conditions of the catalogue against what moved in trials. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ajuste.catalogue.loader import Catalogue, figure_sources
from ajuste.model.error import RequestError
from ajuste.model.relevance import NoChance, RelevanceCondition, explains_all
from ajuste.model.tunable import Tunable
from ajuste.model.verdict import Verdict
from ajuste.study.factors import is_tunable, names_set
from ajuste.study.resolved import ResolvedStudy

_MOST_NAMED: Final = 3
_CERTAIN: Final = ("improves", "worsens", "differs")


@dataclass(frozen=True)
class Activity:
    """The activity of a machine in ``seconds``.

    ``figures`` has of each figure (``SOURCE:NAME``) that could be read how far a counter grew or how high a level was.
    ``facts`` and ``files`` (by path) are what was there. ``ran`` are the functions of the kernel that ran, of those
    that it ``has``; both ``None`` where functions were not counted.
    """

    figures: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    facts: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    ran: frozenset[str] | None = None
    has: frozenset[str] | None = None

    def with_more(self, other: Activity) -> Activity:
        """Combine two trials. A level is as high as it ever was; what one of them lacks counts as seen."""
        names = {*self.figures, *other.figures}
        both = self.ran is not None and other.ran is not None
        return Activity(
            figures={name: self.figures.get(name, 0) + other.figures.get(name, 0) for name in names},
            seconds=self.seconds + other.seconds,
            facts={**self.facts, **other.facts},
            files={**self.files, **other.files},
            ran=(self.ran or frozenset()) | (other.ran or frozenset()) if both else None,
            has=(self.has or frozenset()) & (other.has or frozenset()) if both else None,
        )


def difference(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, float]:
    """Return ``Activity.figures`` from two readings: a counter's growth, the higher level."""
    return {
        name: max(before[name], value) if is_level(name) else abs(value - before[name])
        for name, value in after.items()
        if name in before
    }


def is_level(figure: str) -> bool:
    """Return whether ``SOURCE:NAME`` goes up and down. What no sampler reads is a counter."""
    origin, _, name = figure.partition(":")
    source = next((source for known, source in figure_sources().items() if known == origin), None)
    known_figure = source.find(name) if source else None
    return known_figure is not None and known_figure.kind == "level"


def tunables_by_factor(resolved: ResolvedStudy, catalogue: Catalogue) -> dict[str, tuple[Tunable, ...]]:
    """Return the tunables of each factor that varies and sets nothing else."""
    by_factor: dict[str, tuple[Tunable, ...]] = {}
    for table, factor in zip(resolved.study.factors, resolved.factors, strict=True):
        names = names_set(table) if table.settings else (factor.name,)
        if len(factor.levels) > 1 and (tunables := _tunables(names, catalogue)):
            by_factor[factor.name] = tunables
    return by_factor


def _tunables(names: Sequence[str], catalogue: Catalogue) -> tuple[Tunable, ...]:
    # Return none if any is something else, such as the kernel, or another tunable on another kernel.
    try:
        return tuple(catalogue.find_tunable(name) for name in names) if all(map(is_tunable, names)) else ()
    except RequestError:
        return ()


def conditions_for(
    resolved: ResolvedStudy, catalogue: Catalogue
) -> Iterator[tuple[RelevanceCondition, tuple[tuple[str, ...], ...]]]:
    """Yield every condition that a factor of the study depends on, with the figures that tell whether it is met."""
    for tunables in tunables_by_factor(resolved, catalogue).values():
        for tunable in tunables:
            for condition in catalogue.relevance_conditions(tunable):
                yield condition, condition.fill_figures(tunable.chosen)


def factors_without_chance(
    resolved: ResolvedStudy, catalogue: Catalogue, activity: Activity, *, where: str = "", standing: bool = False
) -> tuple[NoChance, ...]:
    """Return the factors of ``resolved`` that had no chance to matter: each of their settings lacks a condition.

    ``where`` names the place observed. ``standing`` uses only conditions that are known before measuring.
    """
    written = frozenset(getattr(write.location, "path", "") for write in resolved.writes)
    without_chance = []
    for factor, tunables in tunables_by_factor(resolved, catalogue).items():
        lacking = [_lacking(tunable, catalogue, activity, written, standing=standing) for tunable in tunables]
        lacks = [lack for lack in lacking if lack is not None]
        if len(lacks) == len(lacking):
            without_chance.append(_no_chance(factor, lacks, where))
    return tuple(without_chance)


@dataclass(frozen=True)
class _Lack:
    # An unmet condition; `never_ran` are the functions that would have run if it was met.
    condition: RelevanceCondition
    never_ran: tuple[str, ...] = ()


def _no_chance(factor: str, lacks: Sequence[_Lack], where: str) -> NoChance:
    saw = list(dict.fromkeys(lack.condition.unmet for lack in lacks))
    return NoChance(
        factor=factor,
        saw="; ".join(saw[:_MOST_NAMED]) + (" …" if len(saw) > _MOST_NAMED else ""),
        where=where,
        instead=lacks[0].condition.instead,
        never_ran=lacks[0].never_ran if len(saw) == 1 else (),
        hardly=any(lack.condition.hardly for lack in lacks),
    )


def _lacking(
    tunable: Tunable, catalogue: Catalogue, activity: Activity, written: Collection[str], *, standing: bool
) -> _Lack | None:
    # The first condition of `tunable` that was not met, those first that leave no doubt.
    conditions = [
        condition for condition in catalogue.relevance_conditions(tunable) if condition.standing or not standing
    ]
    for condition in sorted(conditions, key=lambda condition: condition.hardly):
        if _never_ran(condition, activity):
            return _Lack(condition, condition.functions)
        if _is_unmet(condition, tunable, activity, written):
            return _Lack(condition)
    return None


def _is_unmet(condition: RelevanceCondition, tunable: Tunable, activity: Activity, written: Collection[str]) -> bool:
    # Return whether anything tells that `condition` was not met. The files that are `written` tell nothing.
    if condition.fact and activity.facts.get(condition.fact, 2) < 2:
        return True
    text = activity.files.get(condition.file)
    if text is not None and condition.file not in written and not re.search(condition.holds, text, re.MULTILINE):
        return True
    groups = condition.fill_figures(tunable.chosen)
    return any(_is_still(group, condition, activity, written) for group in groups)


def _never_ran(condition: RelevanceCondition, activity: Activity) -> bool:
    # Return whether the kernel has all ways to the code that reads the setting, and took none.
    if not condition.functions or activity.ran is None or activity.has is None:
        return False
    return activity.has.issuperset(condition.functions) and not activity.ran.intersection(condition.functions)


def _is_still(
    group: Sequence[str], condition: RelevanceCondition, activity: Activity, written: Collection[str]
) -> bool:
    if group[0] not in activity.figures:
        return False
    if group[0].startswith("diskstats:") and any(path.endswith("/queue/iostats") for path in written):
        return False  # The trials themselves turn these counters off.
    most = condition.at_least * activity.seconds
    return all(activity.figures.get(name, 0) <= most for name in group)


def unrefuted(
    no_chance: Sequence[NoChance], verdicts: Sequence[Verdict], resolved: ResolvedStudy
) -> tuple[NoChance, ...]:
    """Return those of ``no_chance`` that no verdict contradicts: a level that certainly matters had its chance."""
    certain = [verdict.configuration for verdict in verdicts if verdict.deciding and verdict.verdict in _CERTAIN]
    baseline = {factor.name: factor.baseline for factor in resolved.factors}
    changed = {
        factor
        for name in certain
        for factor, level in resolved.find(name).configuration.levels.items()
        if level != baseline[factor]
    }
    return tuple(row for row in no_chance if row.factor not in changed)


def without_more_blocks(
    verdicts: Sequence[Verdict], no_chance: Sequence[NoChance], resolved: ResolvedStudy
) -> tuple[Verdict, ...]:
    """Return ``verdicts`` without further blocks where nothing that varies had a chance to matter."""
    if not explains_all(no_chance, resolved.factors):
        return tuple(verdicts)
    return tuple(verdict.model_copy(update={"more_blocks": None}) for verdict in verdicts)


def reasons(no_chance: Sequence[NoChance], resolved: ResolvedStudy) -> str:
    """Say why nothing that varies can matter, in a sentence for each; empty if something can."""
    return " ".join(f"{row.sentence}." for row in explains_all(no_chance, resolved.factors))
