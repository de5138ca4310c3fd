"""Relevance in guests: probes see which factors of a study can matter.

Probes are trials that are not part of the results. Each starts from the same snapshot, so they change nothing that is
measured.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Final

from ajuste.analysis.relevance import (
    Activity,
    conditions_for,
    factors_without_chance,
    tunables_by_factor,
)
from ajuste.catalogue.loader import Catalogue, figure_sources
from ajuste.executor.executor import TrialRequest
from ajuste.model.error import AjusteError
from ajuste.model.event import Exited, Failed, Sample
from ajuste.model.plan import Sampler
from ajuste.model.relevance import NoChance
from ajuste.model.trial import Observation
from ajuste.model.wording import count_of
from ajuste.run.relevance import ActivityObserver, figures_of, guest_activity
from ajuste.study.resolved import Machine, ResolvedStudy

if TYPE_CHECKING:
    from ajuste.model.cost import Costs
    from ajuste.run.runner import Executors

_LOG: Final = logging.getLogger(__name__)

MOST_PROBES: Final = 8
"""Maximum number of probes in guests."""

# No level makes a trial take so many times as long as others.
_LONGER: Final = 10

# Samplers read before and after the workload in any case; no reading in between is needed.
_SELDOM_NS: Final = 3_600_000_000_000

# Limits of the lens for a task and for all (native/lens): beyond them functions may run without a frame.
_MOST_FRAMES: Final = 50_000
_MOST_FRAMES_OF_ALL: Final = 250_000


class GuestObserver(ActivityObserver):
    """Observes guests by probes. ``names_of`` returns the functions of a machine's kernel."""

    def __init__(
        self, resolved: ResolvedStudy, catalogue: Catalogue, names_of: Callable[[Machine], frozenset[str]]
    ) -> None:
        super().__init__(resolved, catalogue)
        self._names_of = names_of

    def standing(self) -> Activity:
        return guest_activity(self.resolved)

    def begin(self) -> None:
        """Do nothing: probes run after the block."""

    def end(self, executors: Executors) -> tuple[NoChance, ...]:
        known_before = self.before()
        if len(known_before) == len(tunables_by_factor(self.resolved, self.catalogue)):
            return known_before  # Probes cannot add anything.
        names, every = probed(self.resolved)
        samplers = _samplers(self.figures)
        activity = self.standing()
        if samplers or self._counts:
            requests = [executors.first_trial(self.resolved, name) for name in names]
            at_once = min(len(requests), requests[0].executor.parallel)
            known: list[Activity] = []
            with ThreadPoolExecutor(at_once) as pool:
                for some in filter(None, (requests[:at_once], requests[at_once:])):
                    seen = list(pool.map(lambda request: self._probe(request, samplers), some))
                    known += [activity for activity in seen if activity is not None]
                    # A failed probe may have hidden activity, so nothing is sure to be idle.
                    if None in seen or self._all_matter(known, len(requests) - len(known)):
                        return ()
            activity = replace(reduce(Activity.with_more, known), facts=activity.facts)
        trials = count_of(len(names), "trial")
        where = f"in {trials} beside those of the study"
        entries = factors_without_chance(self.resolved, self.catalogue, activity, where=where)
        return tuple(entry if entry.factor in every else entry.model_copy(update={"hardly": True}) for entry in entries)

    def _all_matter(self, known: Sequence[Activity], left: int) -> bool:
        # Whether every factor has a chance even if the probes that are left take long and see nothing at all.
        longest_s = max(activity.seconds for activity in known)
        nothing = Activity(
            figures=dict.fromkeys(self.figures, 0.0),
            seconds=left * _LONGER * longest_s,
            ran=frozenset(),
            has=self.functions,
        )
        activity = reduce(Activity.with_more, (*known, nothing) if left else known)
        activity = replace(activity, facts=self.standing().facts)
        return not factors_without_chance(self.resolved, self.catalogue, activity)

    @property
    def _counts(self) -> bool:
        # Counting is slow: done if the study counts instructions anyway, or if no sampler can tell. It ends with the
        # workload, so it cannot show activity that is observed later.
        study = self.resolved.study
        if study.target.clock != "virtual" or study.workload.observe_s or not self.functions:
            return False
        if self.resolved.counts_instructions:
            return True
        conditions = conditions_for(self.resolved, self.catalogue)
        return any(condition.functions and not any(map(_samplers, groups)) for condition, groups in conditions)

    def _probe(self, request: TrialRequest, samplers: tuple[Sampler, ...]) -> Activity | None:
        # None if the probe fails.
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
        return self.functions.intersection(function.name for function in named.functions if function.space == "kernel")


def probed(resolved: ResolvedStudy) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the first configurations that add a level, at most ``MOST_PROBES``, and the factors all of whose levels
    they cover.
    """
    missing = {(factor.name, level) for factor in resolved.factors for level in factor.levels}
    chosen: list[str] = []
    first = sorted(resolved.configurations, key=lambda configuration: not configuration.configuration.baseline)
    for configuration in first:
        new = missing.intersection(configuration.configuration.levels.items())
        if new and len(chosen) < MOST_PROBES:
            chosen.append(configuration.configuration.name)
            missing -= new
    return tuple(chosen), frozenset(factor.name for factor in resolved.factors) - {name for name, _ in missing}


def _samplers(figures: Iterable[str]) -> tuple[Sampler, ...]:
    # Figures that only a host can read are left out.
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
    # None if the trial failed.
    if observed.problem or any(isinstance(event, Failed) for event in observed.events):
        return None
    if not any(isinstance(event, Exited) and event.role == "workload" for event in observed.events):
        return None
    times = [event.at_ns for event in observed.events if isinstance(event, Sample)]
    seconds = (max(times) - min(times)) / 1e9 if times else 0.0
    return Activity(figures_of(observed.events), seconds, ran=ran, has=has)
