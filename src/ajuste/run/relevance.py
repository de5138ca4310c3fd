"""Relevance: checks whether factors of a study can matter, before it is measured and during its first block.

On this machine the kernel's counters are read before and after the first block.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ajuste.analysis.relevance import (
    Activity,
    conditions_for,
    difference,
    factors_without_chance,
    is_level,
)
from ajuste.catalogue.loader import Catalogue
from ajuste.machine.activity import facts_here, read_figures, read_texts
from ajuste.machine.inventory.source import InventorySource
from ajuste.model.event import Event, Sample
from ajuste.model.relevance import NoChance
from ajuste.study.resolved import ResolvedStudy

if TYPE_CHECKING:
    from ajuste.run.runner import Executors


class ActivityObserver(ABC):
    """Observes the activity of a study's machines."""

    def __init__(self, resolved: ResolvedStudy, catalogue: Catalogue) -> None:
        self.resolved = resolved
        self.catalogue = catalogue
        conditions = tuple(conditions_for(resolved, catalogue))
        self.figures = tuple(dict.fromkeys(name for _, groups in conditions for group in groups for name in group))
        self.files = tuple(dict.fromkeys(condition.file for condition, _ in conditions if condition.file))
        self.functions = frozenset(name for condition, _ in conditions for name in condition.functions)

    def before(self) -> tuple[NoChance, ...]:
        """Return the factors without a chance, as far as known before measuring."""
        return factors_without_chance(self.resolved, self.catalogue, self.standing(), standing=True)

    @abstractmethod
    def standing(self) -> Activity:
        """Return the levels and facts before measuring."""

    @abstractmethod
    def begin(self) -> None:
        """Prepare for the first block."""

    @abstractmethod
    def end(self, executors: Executors) -> tuple[NoChance, ...]:
        """Return the factors without a chance in the first block, which has just ended."""


def idle_from_the_start(resolved: ResolvedStudy, catalogue: Catalogue) -> tuple[NoChance, ...]:
    """Return the factors without a chance to matter on a study's target, as far as known before measuring."""
    return factors_without_chance(resolved, catalogue, standing_activity(resolved, catalogue), standing=True)


def standing_activity(resolved: ResolvedStudy, catalogue: Catalogue) -> Activity:
    """Return the levels, facts and files of a study's target that its factors depend on, before measuring."""
    if resolved.study.target.on_host:
        return HostObserver(resolved, catalogue).standing()
    return guest_activity(resolved)


def guest_activity(resolved: ResolvedStudy) -> Activity:
    """Return what is known of a study's guests before they boot."""
    target = resolved.study.target
    return Activity(facts={"cpus": target.cpus, "nodes": max(1, len(target.nodes))})


class HostObserver(ActivityObserver):
    """Observes this machine. Any change of a counter is a chance, even by another program."""

    def __init__(self, resolved: ResolvedStudy, catalogue: Catalogue, source: InventorySource | None = None) -> None:
        super().__init__(resolved, catalogue)
        self._source = source or InventorySource()
        self._before: Mapping[str, int] = {}
        self._began = 0.0

    def standing(self) -> Activity:
        levels = {name: value for name, value in self._read().items() if is_level(name)}
        return Activity(levels, facts=facts_here(self._source), files=read_texts(self.files, self._source))

    def begin(self) -> None:
        self._before = self._read()
        self._began = time.monotonic()

    def end(self, executors: Executors) -> tuple[NoChance, ...]:
        moved = difference(self._before, self._read())
        seconds = time.monotonic() - self._began
        activity = Activity(moved, seconds, facts_here(self._source), read_texts(self.files, self._source))
        return factors_without_chance(
            self.resolved, self.catalogue, activity, where="by the kernel's counters in the first block"
        )

    def _read(self) -> dict[str, int]:
        return read_figures(self.figures, self._source)


def figures_of(events: Iterable[Event]) -> dict[str, float]:
    """Return ``Activity.figures`` of one trial: what its samplers read first and last."""
    samples = [event for event in events if isinstance(event, Sample)]
    figures: dict[str, float] = {}
    for source in dict.fromkeys(event.source for event in samples):
        readings = [
            {f"{source}:{key}": value for key, value in sample.values.items()}
            for sample in samples
            if sample.source == source
        ]
        figures |= difference(readings[0], readings[-1])
    return figures


@dataclass
class RelevanceLook:
    """The look of one run. ``no_chance`` has the findings of an earlier process, None without one; ``keep`` stores new
    ones, and ``warn`` reports them at once.
    """

    observer: ActivityObserver
    keep: Callable[[tuple[NoChance, ...]], None]
    warn: Callable[[str], None]
    no_chance: tuple[NoChance, ...] | None = None
    _warned: list[str] = field(default_factory=list)

    @property
    def is_due(self) -> bool:
        """Return whether the study has conditions, and no process has looked yet."""
        depends = conditions_for(self.observer.resolved, self.observer.catalogue)
        return self.no_chance is None and any(True for _ in depends)

    def remind(self) -> None:
        """Repeat the warnings of an earlier process."""
        self._tell(self.no_chance or ())

    def begin(self) -> None:
        """Begin before the first block, with the warnings that need no measuring."""
        self._tell(self.observer.before())
        self.observer.begin()

    def end(self, executors: Executors) -> None:
        """End the look after the first block; store and report its findings."""
        self.no_chance = self.observer.end(executors)
        self.keep(self.no_chance)
        self._tell(self.no_chance)

    def _tell(self, entries: Iterable[NoChance]) -> None:
        for entry in entries:
            if entry.warning not in self._warned:
                self._warned.append(entry.warning)
                self.warn(entry.warning)
