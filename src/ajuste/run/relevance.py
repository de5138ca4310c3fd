"""Looking whether what a study varies has a chance to matter: before it is measured, and during its first block.

On a host the kernel's counters are read before and after the first block. In a guest there are more trials for that,
which are no part of the results: each starts from the same snapshot, so nothing that is measured changes.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Final

from ajuste.analysis.relevance import (
    Activity,
    conditions_for,
    difference,
    factors_without_chance,
    is_level,
    tunables_by_factor,
)
from ajuste.catalogue.loader import Catalogue, figure_sources
from ajuste.executor.executor import TrialRequest
from ajuste.machine.activity import facts_here, read_figures, read_texts
from ajuste.machine.inventory.source import InventorySource
from ajuste.model.error import AjusteError
from ajuste.model.event import Exited, Failed, Sample
from ajuste.model.plan import Sampler
from ajuste.model.relevance import NoChance
from ajuste.model.trial import Observation
from ajuste.model.wording import count_of
from ajuste.study.resolved import Machine, ResolvedStudy

if TYPE_CHECKING:
    from ajuste.model.cost import Costs
    from ajuste.run.runner import Executors

_LOG: Final = logging.getLogger(__name__)

MOST_PROBES: Final = 8
"""In a guest no more trials than these are made to see what moves."""

# Samplers read before the workload's start and after its end in any case; more is not wanted.
_SELDOM_NS: Final = 3_600_000_000_000

_MOST_FRAMES: Final = 50_000
# Of a task and of all: what has no frame of its own any more may have run unseen (native/lens).
_MOST_FRAMES_OF_ALL: Final = 250_000


class ActivityObserver(ABC):
    """Sees what moves on the machines of a study."""

    def __init__(self, resolved: ResolvedStudy, catalogue: Catalogue) -> None:
        self.resolved = resolved
        self.catalogue = catalogue
        found = tuple(conditions_for(resolved, catalogue))
        self.figures = tuple(dict.fromkeys(name for _, groups in found for group in groups for name in group))
        self.files = tuple(dict.fromkeys(condition.file for condition, _ in found if condition.file))
        self.functions = frozenset(name for condition, _ in found for name in condition.functions)

    def before(self) -> tuple[NoChance, ...]:
        """What has no chance to matter, as can be told before anything is measured."""
        return factors_without_chance(self.resolved, self.catalogue, self.standing(), standing=True)

    @abstractmethod
    def standing(self) -> Activity:
        """What is there before anything is measured."""

    @abstractmethod
    def begin(self) -> None:
        """The first block is about to begin."""

    @abstractmethod
    def end(self, executors: Executors) -> tuple[NoChance, ...]:
        """What had no chance to matter, as the first block shows, which has just ended."""


def idle_from_the_start(resolved: ResolvedStudy, catalogue: Catalogue) -> tuple[NoChance, ...]:
    """Return what has no chance to matter on the target of a study, as far as that is known before it is measured."""
    if resolved.study.target.on_host:
        return HostObserver(resolved, catalogue).before()
    return GuestObserver(resolved, catalogue, lambda _: frozenset()).before()


class HostObserver(ActivityObserver):
    """This machine: whatever moves a counter, also another program's work, counts as a chance."""

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


class GuestObserver(ActivityObserver):
    """Guests of this machine. ``names_of`` gives the functions that the kernel of a machine has."""

    def __init__(
        self, resolved: ResolvedStudy, catalogue: Catalogue, names_of: Callable[[Machine], frozenset[str]]
    ) -> None:
        super().__init__(resolved, catalogue)
        self._names_of = names_of

    def standing(self) -> Activity:
        target = self.resolved.study.target
        return Activity(facts={"cpus": target.cpus, "nodes": max(1, len(target.nodes))})

    def begin(self) -> None:
        """Nothing: its trials are made afterwards."""

    def end(self, executors: Executors) -> tuple[NoChance, ...]:
        known_before = self.before()
        if len(known_before) == len(tunables_by_factor(self.resolved, self.catalogue)):
            return known_before  # No trial can tell more.
        names, every = probed(self.resolved)
        samplers = _samplers(self.figures)
        activity = self.standing()
        if samplers or self._counts:
            requests = [executors.first_trial(self.resolved, name) for name in names]
            with ThreadPoolExecutor(min(len(requests), requests[0].executor.parallel)) as pool:
                seen = list(pool.map(lambda request: self._probe(request, samplers), requests))
            known = [one for one in seen if one is not None]
            if len(known) < len(seen):
                return ()
            activity = replace(reduce(Activity.with_more, known), facts=activity.facts)
        trials = count_of(len(names), "trial")
        where = f"in {trials} beside those of the study"
        found = factors_without_chance(self.resolved, self.catalogue, activity, where=where)
        return tuple(one if one.factor in every else one.model_copy(update={"hardly": True}) for one in found)

    @property
    def _counts(self) -> bool:
        # Whether functions of the kernel are to be counted: where the study counts instructions anyway, or where no
        # sampler can tell. What happens after the workload's end is not counted.
        study = self.resolved.study
        if study.target.clock != "virtual" or study.workload.observe_s:
            return False
        return bool(self.functions) and (self.resolved.counts_instructions or self._needs_functions)

    @property
    def _needs_functions(self) -> bool:
        # Whether there is a condition that only functions can tell of in a guest.
        found = conditions_for(self.resolved, self.catalogue)
        return any(condition.functions and not any(map(_samplers, groups)) for condition, groups in found)

    def _probe(self, request: TrialRequest, samplers: tuple[Sampler, ...]) -> Activity | None:
        # What one more trial moves; None if it fails.
        plan = request.plan().model_copy(update={"samplers": samplers})
        try:
            if self._counts:
                observed = request.executor.count(plan, "functions")
                machine = self.resolved.find(request.slot.configuration).machine
                has = self.functions & self._names_of(machine)
                return _activity(observed, self._ran(observed.costs, request), has)
        except AjusteError as failure:  # No QEMU with plugins, or no symbols.
            _LOG.info("functions not counted", extra={"reason": failure.message})
            if not samplers:
                return None
        try:
            return _activity(request.executor.run(plan))
        except AjusteError as failure:
            _LOG.warning("probe failed", extra={"reason": failure.message})
            return None

    def _ran(self, costs: Costs | None, request: TrialRequest) -> frozenset[str] | None:
        if costs is None:
            return None
        frames = [len(task.frames) for task in costs.tasks]
        if max(frames, default=0) >= _MOST_FRAMES or sum(frames) >= _MOST_FRAMES_OF_ALL:
            return None
        named = request.executor.named(costs)
        return self.functions.intersection(one.name for one in named.functions if one.space == "kernel")


def probed(resolved: ResolvedStudy) -> tuple[tuple[str, ...], frozenset[str]]:
    """Configurations that have every level of every factor, as few as come first and no more than ``MOST_PROBES``; and
    the factors of which they have every level.
    """
    missing = {(factor.name, level) for factor in resolved.factors for level in factor.levels}
    chosen: list[str] = []
    first = sorted(resolved.configurations, key=lambda one: not one.configuration.baseline)
    for one in first:
        new = missing.intersection(one.configuration.levels.items())
        if new and len(chosen) < MOST_PROBES:
            chosen.append(one.configuration.name)
            missing -= new
    return tuple(chosen), frozenset(factor.name for factor in resolved.factors) - {name for name, _ in missing}


def _samplers(figures: Iterable[str]) -> tuple[Sampler, ...]:
    # What reads these figures in a guest; those that only a host can be asked for are left out.
    keys: dict[str, list[str]] = {}
    for figure in figures:
        origin, _, key = figure.partition(":")
        keys.setdefault(origin, []).append(key)
    return tuple(
        Sampler(source=source, keys=tuple(keys[source]), interval_ns=_SELDOM_NS)
        for source in figure_sources()
        if source in keys
    )


def _activity(
    observed: Observation, ran: frozenset[str] | None = None, has: frozenset[str] | None = None
) -> Activity | None:
    # What a trial shows; None if it failed.
    if observed.problem or any(isinstance(event, Failed) for event in observed.events):
        return None
    if not any(isinstance(event, Exited) and event.role == "workload" for event in observed.events):
        return None
    samples = [event for event in observed.events if isinstance(event, Sample)]
    times = [event.at_ns for event in samples]
    figures: dict[str, float] = {}
    for source in dict.fromkeys(event.source for event in samples):
        own = [
            {f"{source}:{key}": value for key, value in one.values.items()} for one in samples if one.source == source
        ]
        figures |= difference(own[0], own[-1])
    seconds = (max(times) - min(times)) / 1e9 if times else 0.0
    return Activity(figures, seconds, ran=ran, has=has)


# The look of one run.


@dataclass
class RelevanceLook:
    """Looks once in a run. ``kept`` is what an earlier process found, None if none did; ``keep`` keeps what is found,
    and ``warn`` tells it to the person at once.
    """

    observer: ActivityObserver
    keep: Callable[[tuple[NoChance, ...]], None]
    warn: Callable[[str], None]
    kept: tuple[NoChance, ...] | None = None
    _said: list[str] = field(default_factory=list)

    @property
    def is_due(self) -> bool:
        """Whether there is something to look for that is not known yet."""
        depends = conditions_for(self.observer.resolved, self.observer.catalogue)
        return self.kept is None and any(True for _ in depends)

    def remind(self) -> None:
        """What an earlier process has found is said again."""
        self._tell(self.kept or ())

    def begin(self) -> None:
        """Before the first block: what is known without measuring is said."""
        self._tell(self.observer.before())
        self.observer.begin()

    def end(self, executors: Executors) -> None:
        """After it."""
        self.kept = self.observer.end(executors)
        self.keep(self.kept)
        self._tell(self.kept)

    def _tell(self, found: Iterable[NoChance]) -> None:
        for one in found:
            if one.warning not in self._said:
                self._said.append(one.warning)
                self.warn(one.warning)


def chances_before(resolved: ResolvedStudy, catalogue: Catalogue) -> tuple[NoChance, ...]:
    """What of ``resolved`` has no chance to matter, as can be told without measuring, on this machine or in guests."""
    if resolved.study.target.on_host:
        return HostObserver(resolved, catalogue).before()
    return GuestObserver(resolved, catalogue, lambda _: frozenset()).before()
