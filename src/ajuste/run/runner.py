"""The runner: executors carry out the blocks of a schedule, and the store keeps their trials."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from ajuste.design.blocks import block
from ajuste.design.stopping import MOST_ATTEMPTS, Pace, Stop, wants_repeat
from ajuste.executor.executor import Executor, TrialDone, TrialRequest, Untrusted
from ajuste.machine.home import KINDS, plugin_of
from ajuste.model.event import Restored, Written
from ajuste.model.relevance import explains_all
from ajuste.model.trial import Slot, Status, Trial
from ajuste.outputs.pattern import BACKTRACKS
from ajuste.outputs.trial_status import trial
from ajuste.run.boot_schedule import BootSchedule
from ajuste.run.machine_order import MachineOrder, StopAll
from ajuste.run.schedule import (
    BestSchedule,
    BlockWatcher,
    FixedSchedule,
    NarrowingSchedule,
    Schedule,
    TrialHistory,
)
from ajuste.study.commands import trial_reading
from ajuste.study.resolve import Resolver
from ajuste.study.resolved import Machine, ResolvedStudy

if TYPE_CHECKING:
    from ajuste.run.relevance import RelevanceLook
    from ajuste.store.store import Place, Run, Store

_LOG: Final = logging.getLogger(__name__)

_SCHEDULES: Final[Mapping[str, type[Schedule]]] = MappingProxyType(
    {"all": FixedSchedule, "undecided": NarrowingSchedule, "best": BestSchedule}
)
"""Schedules of the core, by the allocation of a study."""

_SHORTEST_TRIAL_S: Final = 0.1
"""A trial that begins within the time budget gets as many seconds at least."""


class _Dropped(Exception):
    """Stored trials were deleted, so the schedule must be computed again."""


class _Hopeless(Exception):
    # No later trial can succeed.
    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.words)
        self.stop = stop


class Watcher(BlockWatcher, Protocol):
    """A display of what happens. Its methods are called from several threads."""

    def say(self, text: str) -> None: ...

    def warn(self, text: str) -> None: ...

    def study_begins(self, study: ResolvedStudy) -> None: ...

    def trial_started(self, configuration: str, block: int) -> None: ...

    def trial_done(self, configuration: str, block: int, status: Status, seconds: float) -> None: ...


class Executors:
    """The executors of a run by machine. Each is entered when its first trial is requested, so a run with all trials in
    the store boots nothing. Leaving ends all of them.
    """

    def __init__(
        self, open_executor: Callable[[Machine], Executor], ready: Callable[[Machine, Executor], None]
    ) -> None:
        self._open = open_executor
        self._ready = ready
        self._stack = ExitStack()
        self._entered: dict[Machine, Executor] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def prepared(self, machine: Machine) -> Executor:
        """Return the executor for ``machine``, entered if it is not yet. Not thread-safe."""
        if machine not in self._entered:
            self._entered[machine] = self._stack.enter_context(self._open(machine))
            self._ready(machine, self._entered[machine])
        return self._entered[machine]

    def first_trial(self, study: ResolvedStudy, configuration: str) -> TrialRequest:
        """Return the request for a configuration's trial in the first block after the warm-up."""
        return self.trial(study, configuration, study.study.design.warm_up)

    def trial(self, study: ResolvedStudy, configuration: str, number: int) -> TrialRequest:
        """Return the request for a configuration's trial with the seed of block ``number``."""
        slots = block(number, study.names, study.study.design.seed)
        slot = next(slot for slot in slots if slot.configuration == configuration)
        return TrialRequest(self.prepared(study.find(configuration).machine), study, slot, 0)

    def refresh_environments(self) -> None:
        """Report all executors as ready again, after their environments may have changed."""
        for machine, executor in self._entered.items():
            self._ready(machine, executor)

    @property
    def entered(self) -> Mapping[Machine, Executor]:
        """The executors entered so far, all of one kind."""
        return dict(self._entered)


@dataclass
class Runner:
    """Carries out one run, block by block, until there is a reason to stop. Stored trials are not measured again.

    Executors may run trials in parallel (virtual clock), also of several blocks, up to the next decision. There all
    trials wait for each other, so the result does not depend on which trial was faster.

    With a ``resolver`` the run is a search: the study grows by suggestions. ``look`` checks in the first block whether
    the factors can matter at all. An ``order`` assigns blocks to machines.
    """

    study: ResolvedStudy
    run: Run
    store: Store
    executors: Executors
    watcher: Watcher
    resolver: Resolver | None = None
    look: RelevanceLook | None = None
    order: MachineOrder | None = None
    _schedule: Schedule = field(init=False)
    _history: TrialHistory = field(init=False)
    _unfinished: set[int] = field(default_factory=set, init=False)  # blocks measured together, not complete
    _before: dict[str, dict[str, str]] = field(default_factory=dict, init=False)  # by machine
    _places_by_worker: dict[str, list[Place]] = field(default_factory=dict, init=False)  # of this process only

    def carry_out(self) -> Stop:
        """Measure until the study is decided or a budget is spent. Raises the errors of executors and store.

        All trials of an untrusted worker are dropped and measured again.
        """
        begin_study = self.study
        while True:
            try:
                return self._carry_out()
            except (StopAll, _Hopeless) as end:
                return end.stop
            except _Dropped:
                if self.study is not begin_study:  # Later suggestions may rest on dropped trials.
                    self._keep_study(begin_study)

    def _carry_out(self) -> Stop:
        self._history = TrialHistory(self.store.trials(self.run), self.store.machines(self.run))
        self._schedule = schedule = schedule_of(self.study, self._history, self.resolver)
        stored_legs = 0 if self.resolver is None else len(ResolvedStudy.model_validate_json(self.run.resolved).legs)
        self.watcher.study_begins(self.study)
        number = schedule.first
        while (stop := schedule.stop_before(number)) is None:
            self.study = schedule.study
            if len(self.study.legs) > stored_legs:
                self._keep_study(self.study)
            looks = self._begin_look(number)
            last = self._measure_blocks(number)
            if number == schedule.first and (stop := schedule.hopeless()):  # The first block has all its attempts now.
                return stop
            if self.look is not None:
                if looks:
                    self.look.end(self.executors)
                schedule.no_chance = explains_all(self.look.no_chance or (), self.study.factors)
            stop = schedule.look(last) or self._harm(last)
            schedule.tell(last, self.watcher)
            if stop is not None:
                return stop
            number = last + 1
        return stop

    def _harm(self, last: int) -> Stop | None:
        counts = last >= self.study.study.design.warm_up
        if self.order is None or not isinstance(self._schedule, FixedSchedule) or not counts:
            return None
        return self.order.harm(self._schedule.findings(last), self._history.trials(last), self._history)

    def _begin_look(self, number: int) -> bool:
        # Stored trials show no activity: the look needs a trial that is measured now.
        wanted = filter(self._is_wanted, self._schedule.block(number))
        if self.look is None or not self.look.is_due or (slot := next(wanted, None)) is None:
            return False
        self.executors.prepared(self.study.find(slot.configuration).machine)
        self.look.begin()
        return True

    def _keep_study(self, study: ResolvedStudy) -> None:
        # So the run can be read without computing its suggestions again.
        self.study = study
        self.watcher.study_begins(study)
        self.run = self.store.go_on(self.run, named=self.run.named, resolved=study.model_dump_json())

    def _measure_blocks(self, first: int) -> int:
        # Blocks without a decision in between are measured together. Returns the last one.
        schedule, warm_up = self._schedule, self.study.study.design.warm_up
        if self.order is None:
            last = first + self._more_blocks(first)
        else:
            self.executors.prepared(self.study.find(self.study.baseline).machine)
            last, schedule.limits = self.order.assign(first, self._history, schedule.limits)
        alike = schedule.last_alike(first)
        last = max(last if alike is None else min(last, alike), schedule.together(first))
        parts = schedule.parts([slot for number in range(first, last + 1) for slot in schedule.block(number)])
        if first == schedule.first == 0 and self._fails_at_once(parts[0]):
            return last
        self._unfinished = set(range(max(first, warm_up), last))
        self._tell_finished(frozenset(self._unfinished))
        for slots in parts:
            for _ in range(MOST_ATTEMPTS):
                self._measure([slot for slot in slots if self._is_wanted(slot)])
        return last

    def _tell_finished(self, blocks: AbstractSet[int]) -> None:
        # The last block of a wave is reported after the look, with its findings.
        for number in sorted(self._unfinished & blocks):
            if not any(map(self._is_wanted, self._schedule.block(number))):
                self._unfinished.remove(number)
                self.watcher.block_done(number, None)

    def _fails_at_once(self, slots: Sequence[Slot]) -> bool:
        # A broken workload shows in the first trials: only as many at a time as keep the executor busy, each failure
        # repeated at once.
        if not any(map(self._is_wanted, slots)):
            return False
        executor = self.executors.prepared(self.study.find(slots[0].configuration).machine)
        if executor.whole_blocks:
            return False
        is_lost = self._schedule.is_lost
        for begin in range(0, len(slots), executor.parallel):
            some = slots[begin : begin + executor.parallel]
            for _ in range(MOST_ATTEMPTS):
                self._measure(
                    [slot for slot in some if self._is_wanted(slot) and all(map(is_lost, self._history.attempts(slot)))]
                )
            if self._schedule.hopeless() is not None:
                return True
        return False

    def _more_blocks(self, first: int) -> int:
        seconds = self._history.seconds_of(first - 1)
        executor = next(iter(self.executors.entered.values()), None)
        if not seconds or executor is None:  # The first block is judged alone.
            return 0
        limits = self._schedule.limits
        left_s = 60 * max(0.0, limits.max_minutes - self._history.minutes)
        measured = first - self.study.study.design.warm_up
        return executor.more_blocks(Pace(seconds, measured, len(self._schedule.block(first)), left_s), limits)

    def _is_wanted(self, slot: Slot) -> bool:
        attempts = self._history.attempts(slot)
        if not attempts:
            return self._left_s(slot) > 0
        is_over = self._history.minutes >= self._schedule.limits.max_minutes
        return not is_over and wants_repeat(attempts, self.study.study.target.clock)

    def _left_s(self, slot: Slot) -> float:
        # Seconds that a first attempt may take: the first block is completed in any case, and what a guest measures
        # must not depend on this machine's time.
        if not self.study.study.target.on_host or slot.block <= self.study.study.design.warm_up:
            return math.inf
        return 60 * (self._schedule.limits.max_minutes - self._history.minutes)

    def _measure(self, slots: Sequence[Slot]) -> None:
        if not slots:
            return
        requests = [self._request(slot) for slot in slots]
        try:
            for done in requests[0].executor.carry_out(requests, self._tell_started):
                self._keep(done)
                self._tell_finished({trial.request.slot.block for trial in done})
        except Untrusted as untrusted:
            self.executors.refresh_environments()
            places = {place for where in untrusted.where for place in self._places_by_worker.pop(where, ())}
            # If blocks depend on earlier trials, all later trials may rest on the untrusted ones.
            if places and self._schedule.follows_from_trials:
                first = min(block for block, _, _ in places)
                places |= {_place(trial) for trial in self.store.trials(self.run) if trial.slot.block >= first}
            self.store.drop_trials(self.run, sorted(places))
            raise _Dropped from None

    def _request(self, slot: Slot) -> TrialRequest:
        executor = self.executors.prepared(self.study.find(slot.configuration).machine)
        assigned = {} if self.order is None else self.order.assigned
        machine = self._history.machines.get(slot.block) or assigned.get(slot.block, "")
        # Machines of a cluster carry out only what they find in the study themselves.
        limit_s = math.inf if executor.whole_blocks else max(_SHORTEST_TRIAL_S, self._left_s(slot))
        return TrialRequest(executor, self.study, slot, len(self._history.attempts(slot)), machine, limit_s=limit_s)

    def _tell_started(self, request: TrialRequest) -> None:
        _LOG.info("trial begun", extra=_which(request.slot, request.attempt))
        self.watcher.trial_started(request.slot.configuration, request.slot.block)

    def _read(self, done: TrialDone) -> Trial:
        request, before = done.request, self._before.setdefault(done.machine, {})
        result = trial(
            request.slot,
            request.attempt,
            done.plan,
            done.observation,
            trial_reading(self.study, request.slot.configuration),
            started=done.started,
            # Values outlast a trial only on a host: another value now means that somebody changed it.
            earlier=before if request.executor.keeps_values else {},
        )
        before.update({event.tunable: event.before for event in result.written})
        return result

    def _keep(self, done: Sequence[TrialDone]) -> None:
        trials = [self._read(finished) for finished in done]
        self.store.add_trials(self.run, trials, machine=done[0].machine)
        for finished, result in zip(done, trials, strict=True):
            _log_trial(finished, result)
            self._history.add(result, finished.machine)
            if finished.by:
                self._places_by_worker.setdefault(finished.by, []).append(_place(result))
            self.watcher.trial_done(result.slot.configuration, result.slot.block, result.status, result.host_seconds)
        if self.order is not None:
            for finished, result in zip(done, trials, strict=True):
                self.order.require_guards(result, finished.machine, self._history)
        if endless := next((result for result in trials if BACKTRACKS in result.reason), None):
            raise _Hopeless(Stop("failed", f"{endless.slot.configuration}: {endless.reason}"))


def schedule_of(study: ResolvedStudy, history: TrialHistory, resolver: Resolver | None = None) -> Schedule:
    """Return the schedule of ``study``; a ``resolver`` makes it a search. Raises RequestError for too few trials."""
    if study.study.across_boots and resolver is None:
        return BootSchedule(study, history)
    kind: str = "ablation" if study.kind == "ablation" else study.study.allocation
    if resolver is not None:
        kind = "search"
    if kind in _SCHEDULES:
        return _SCHEDULES[kind](study, history)
    schedule: Callable[..., Schedule] = plugin_of(KINDS[kind], "schedules", kind)
    return schedule(study, history, resolver)


def _which(slot: Slot, attempt: int) -> dict[str, Any]:
    return {"configuration": slot.configuration, "block": slot.block, "position": slot.position, "attempt": attempt}


def _log_trial(done: TrialDone, trial: Trial) -> None:
    if not _LOG.isEnabledFor(logging.INFO):
        return
    which, events = _which(trial.slot, trial.attempt), done.observation.events
    if written := {event.tunable: [event.before, event.after] for event in events if isinstance(event, Written)}:
        _LOG.info("settings written", extra=which | {"settings": written})
    if restored := {event.tunable: event.value for event in events if isinstance(event, Restored)}:
        _LOG.info("settings restored", extra=which | {"settings": restored})
    level = logging.INFO if trial.status == "ok" else logging.WARNING
    ended = {"status": trial.status, "reason": trial.reason, "seconds": trial.host_seconds}
    _LOG.log(level, "trial ended", extra=which | ended)


def _place(trial: Trial) -> Place:
    return (trial.slot.block, trial.slot.position, trial.attempt)
