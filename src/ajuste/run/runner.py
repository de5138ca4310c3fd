"""The runner: a resolved study becomes plans for its targets, and their answers become trials in the store."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from ajuste.analysis.precision import Precision
from ajuste.analysis.results import means
from ajuste.design.stopping import (
    MOMENT_SECONDS,
    MOST_ATTEMPTS,
    Mean,
    Stop,
    StoppingLimits,
    hopeless,
    in_a_moment,
    is_look,
    stop,
    stop_refining,
    up_to_a_look,
    wants_repeat,
)
from ajuste.executor.executor import Batch, Benches, Block, Brisk, Executor, SpreadExecutor, Untrusted
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation, Slot, Status, Trial
from ajuste.model.verdict import Finding
from ajuste.outputs.trial import is_broken, last_words, trial
from ajuste.run.course import Schedule
from ajuste.store.store import Place, Run, Store
from ajuste.study.resolve import HOST_KERNEL
from ajuste.study.resolved import Machine, ResolvedStudy
from ajuste.study.trial_plan import plan_for, reading_of

ROUNDS = 100
"""Where several trials run at once, blocks are measured together until each of those has come so often, unless it may
be time to stop before: only in the last round something waits for the others.
"""

Attempt = tuple[Slot, int]
"""A slot of the design, and how often it was tried before."""


class _Dropped(Exception):
    """Trials that were kept before are dropped again: what followed from them follows anew."""


class Watcher(Protocol):
    """Is told what happens, from several threads."""

    def say(self, text: str) -> None: ...

    def trial_started(self, configuration: str, block: int) -> None: ...

    def trial_done(self, configuration: str, block: int, status: Status, seconds: float) -> None: ...

    def block_done(self, block: int, findings: Sequence[Finding]) -> None: ...


class Executors:
    """The targets of a run by machine. Each is made ready when the first plan is for it, so that a run whose trials
    are all in the store boots nothing. Leaving ends whatever runs.
    """

    def __init__(self, open_target: Callable[[Machine], Executor], ready: Callable[[Machine, Executor], None]) -> None:
        self._open = open_target
        self._ready = ready
        self._stack = ExitStack()
        self._entered: dict[Machine, Executor] = {}

    def __enter__(self) -> Executors:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def end(self) -> None:
        """End all that runs. Whoever waits for a plan gets an answer at once."""
        self._stack.close()

    def prepare(self, machine: Machine) -> None:
        """Make the target for ``machine`` ready, if it is not yet. To be called from one thread only."""
        if machine not in self._entered:
            self._entered[machine] = self._stack.enter_context(self._open(machine))
            self._ready(machine, self._entered[machine])

    def told(self, machine: Machine) -> None:
        """What describes the target has changed."""
        self._ready(machine, self._entered[machine])

    def __getitem__(self, machine: Machine) -> Executor:
        """A target that was prepared."""
        return self._entered[machine]

    @property
    def entered(self) -> Mapping[Machine, Executor]:
        """All that were prepared."""
        return dict(self._entered)

    @property
    def any(self) -> Executor | None:
        """One that was prepared; all are of one kind."""
        return next(iter(self._entered.values()), None)

    @property
    def parallel(self) -> int:
        """How many plans may run at once on all of them."""
        return min((target.parallel for target in self._entered.values()), default=1)


@dataclass
class Runner:
    """Carries out one run, block by block, until there is a reason to stop. What the store has is not measured again.

    Trials run at once where the target allows it (virtual clock), also of several blocks, up to where something may be
    decided; there all wait for each other, so that what is measured does not depend on which trial was quicker.
    """

    study: ResolvedStudy
    run: Run
    store: Store
    targets: Executors
    watcher: Watcher
    _course: Schedule = field(init=False)
    _before: dict[str, dict[str, str]] = field(default_factory=dict, init=False)  # by machine
    _found: tuple[Finding, ...] = field(default=(), init=False)
    _looked: int = field(default=0, init=False)
    _ended: threading.Event = field(default_factory=threading.Event, init=False)
    _given: dict[str, list[Place]] = field(default_factory=dict, init=False)  # by who measured them, in this process
    _untrusted: set[str] = field(default_factory=set, init=False)

    def carry_out(self) -> Stop:
        """Measure until the study is decided or a budget is spent. Raises what targets and store raise.

        Where somebody turns out to have said what is not so, all that they gave is dropped and measured again.
        """
        while True:
            try:
                return self._carry_out()
            except _Dropped:
                continue

    def _carry_out(self) -> Stop:
        self._course = Schedule(self.study, self.store.trials(self.run), self.store.machines(self.run))
        tables = self.study.study
        budget = tables.budget
        limits = StoppingLimits(budget.min_blocks, budget.max_blocks, budget.max_minutes, budget.min_seconds)
        number = self._course.last_complete  # What came before it was looked at when it was measured.
        self._looked = max(0, number - tables.design.warm_up)
        number = self._measure_blocks(number, limits)
        if lost := hopeless(self._course.trials(0), is_broken):  # The first block is settled by now.
            return Stop("failed", _lost(lost))
        while (reason := self._look(number, limits)) is None:
            number = self._measure_blocks(number + 1, limits)
        return reason

    def _look(self, number: int, limits: StoppingLimits) -> Stop | None:
        """What the trials up to block ``number`` say, as often as there is a look; always whether the time is spent."""
        measured = number + 1 - self.study.study.design.warm_up
        if measured <= 0:
            return None
        minutes = self._course.minutes
        if is_look(measured, self._looked, limits) or minutes >= limits.max_minutes:
            self._looked = measured
            self._found = self._course.findings(number)
            self.watcher.block_done(number, self._found)
            if self.study.study.allocation == "refine":
                return stop_refining(self._course.known(number), measured, minutes, limits)
            return stop(self._found, measured, minutes, limits, self._means(number))
        self.watcher.block_done(number, self._found)
        return None

    def _means(self, number: int) -> list[Mean]:
        return [_mean(one) for one in means(self.study, self._course.trials(number))]

    def _measure_blocks(self, first: int, limits: StoppingLimits) -> int:
        """Measure block ``first``, and with it the next ones that nothing can be decided in between; returns the last
        one.
        """
        last = first + self._more_blocks(first, limits)
        alike = self._course.last_alike(first)
        last = last if alike is None else min(last, alike)
        slots = [slot for number in range(first, last + 1) for slot in self._course.block(number)]
        for _ in range(MOST_ATTEMPTS):
            self._measure([attempt for slot in slots if (attempt := self._next_attempt(slot))])
        for number in range(max(first, self.study.study.design.warm_up), last):
            self.watcher.block_done(number, self._found)
        return last

    def _more_blocks(self, first: int, limits: StoppingLimits) -> int:
        """How many more blocks to measure with block ``first``."""
        measured = first - self.study.study.design.warm_up
        seconds = self._course.seconds_of(first - 1)
        if not seconds:  # The first block is judged before anything else is measured.
            return 0
        if self._on_benches:
            return self._more_on_benches(first, seconds, measured, limits)
        if self.targets.parallel == 1:
            return in_a_moment(seconds, measured, limits) if self.study.study.target.kind == "host" else 0
        trials = len(self._course.block(first))
        left_s = 60 * max(0.0, limits.max_minutes - self._course.minutes)
        rounds = min(ROUNDS, left_s * trials / seconds)
        return up_to_a_look(math.ceil(rounds * self.targets.parallel / trials) - 1, measured, limits)

    @property
    def _on_benches(self) -> bool:
        return isinstance(self.targets.any, Benches)

    def _more_on_benches(self, first: int, seconds: float, measured: int, limits: StoppingLimits) -> int:
        """So many that every machine has a block, and more of those that take but a moment. What is under way when it
        could have been decided is measured to its end, and counts.
        """
        machines = self.targets.parallel
        each = max(1, int(MOMENT_SECONDS / seconds))
        end = limits.min_blocks if measured < limits.min_blocks else limits.max_blocks
        return max(0, min(machines * each - 1, end - measured - 1))

    def _next_attempt(self, slot: Slot) -> Attempt | None:
        attempts = self._course.attempts(slot)
        if attempts and not wants_repeat(attempts, self.study.study.target.clock):
            return None
        return None if len(attempts) >= MOST_ATTEMPTS else (slot, len(attempts))

    def _measure(self, attempts: list[Attempt]) -> None:
        if not attempts:
            return
        for machine in dict.fromkeys(self.study.find(slot.configuration).machine for slot, _ in attempts):
            self.targets.prepare(machine)
        if isinstance(target := self.targets[self.study.find(attempts[0][0].configuration).machine], Benches):
            self._measure_blocks_elsewhere(target, attempts)
            return
        if self.study.study.target.kind == "host":
            self._measure_in_turn(attempts)
            return
        by_machine = self._by_machine(attempts)
        if isinstance(self.targets[next(iter(by_machine))], SpreadExecutor):
            self._at_once([partial(self._spread, machine, own) for machine, own in by_machine.items()], len(by_machine))
            if self._untrusted:
                self._drop()
                raise _Dropped
        else:
            self._at_once([partial(self._try, slot, attempt) for slot, attempt in attempts], self.targets.parallel)

    def _drop(self) -> None:
        """Drop what cannot be trusted; and where blocks follow from trials, all that may have followed from it."""
        places = {place for where in self._untrusted for place in self._given.pop(where, ())}
        if places and self._follows_from_trials:
            first = min(block for block, _, _ in places)
            places |= {_place(one) for one in self.store.trials(self.run) if one.slot.block >= first}
        self._untrusted.clear()
        self.store.drop_trials(self.run, sorted(places))

    @property
    def _follows_from_trials(self) -> bool:
        return self.study.study.allocation != "all"

    def _by_machine(self, attempts: Sequence[Attempt]) -> dict[Machine, list[Attempt]]:
        found: dict[Machine, list[Attempt]] = {}
        for slot, attempt in attempts:
            found.setdefault(self.study.find(slot.configuration).machine, []).append((slot, attempt))
        return found

    def _at_once(self, works: Sequence[Callable[[], None]], threads: int) -> None:
        with ThreadPoolExecutor(threads, thread_name_prefix="trial") as pool:
            futures: list[Future[None]] = []
            try:
                futures = [pool.submit(work) for work in works]
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
            except BaseException:
                # The pool would wait for what runs: end it instead. What was cut short is no trial.
                self._ended.set()
                pool.shutdown(wait=False, cancel_futures=True)
                self.targets.end()
                raise

    def _measure_in_turn(self, attempts: list[Attempt]) -> None:
        """One after the other on this machine. Those that take but a moment are kept together afterwards, so that
        nothing comes between them.
        """
        target = self.targets[Machine(HOST_KERNEL)]
        if len({slot.block for slot, _ in attempts}) == 1 or not isinstance(target, Brisk):
            for slot, attempt in attempts:
                self._try(slot, attempt)
            return
        plans = [plan_for(self.study, slot, attempt) for slot, attempt in attempts]
        self.watcher.trial_started(attempts[0][0].configuration, attempts[0][0].block)
        done = target.run_in_turn(plans)
        self._keep(
            [
                self._read(slot, attempt, plan, started, observation)
                for (slot, attempt), plan, (started, observation) in zip(attempts, plans, done, strict=True)
            ]
        )

    def _measure_blocks_elsewhere(self, target: Benches, attempts: list[Attempt]) -> None:
        """Whole blocks on machines of their own: what is repeated, on the one that has the block."""
        by_block: dict[int, list[Attempt]] = {}
        for slot, attempt in attempts:
            by_block.setdefault(slot.block, []).append((slot, attempt))
        blocks = [
            Block(number, partial(self._plans, own), self._course.machine_of(number))
            for number, own in by_block.items()
        ]
        for done in target.run_blocks(blocks):
            found = [
                self._read(slot, attempt, plan, started, observation, done.where)
                for (slot, attempt), plan, (started, observation) in zip(
                    by_block[done.number], done.plans, done.observed, strict=True
                )
            ]
            self._keep(found, done.where)

    def _plans(self, attempts: Sequence[Attempt], resolved: ResolvedStudy) -> tuple[Plan, ...]:
        """Called when a block is on its way to a machine."""
        self.watcher.trial_started(attempts[0][0].configuration, attempts[0][0].block)
        return tuple(plan_for(resolved, slot, attempt) for slot, attempt in attempts)

    def _try(self, slot: Slot, attempt: int) -> None:
        plan = plan_for(self.study, slot, attempt)
        self.watcher.trial_started(slot.configuration, slot.block)
        started = now()
        observation = self.targets[self.study.find(slot.configuration).machine].run(plan)
        if not self._ended.is_set():
            self._keep([self._read(slot, attempt, plan, started, observation)])

    def _spread(self, machine: Machine, attempts: Sequence[Attempt]) -> None:
        """Have trials carried out elsewhere, many at once. They are kept as they come."""
        target = self.targets[machine]
        assert isinstance(target, SpreadExecutor)
        plans: dict[int, Plan] = {}

        def batches() -> Iterator[Batch]:
            for number, (slot, attempt) in enumerate(attempts):
                plans[number] = plan_for(self.study, slot, attempt)
                self.watcher.trial_started(slot.configuration, slot.block)
                yield Batch((plans[number],))

        try:
            for some in target.run_spread(batches()):
                found = [
                    (done.where, self._read(*attempts[done.number], plans.pop(done.number), started, observation))
                    for done in some
                    for started, observation in done.observed
                ]
                if not self._ended.is_set():
                    self._keep([one for _, one in found])
                    for where, one in found:
                        self._given.setdefault(where, []).append(_place(one))
        except Untrusted as untrusted:
            self._untrusted.update(untrusted.where)
            self.targets.told(machine)

    def _read(
        self, slot: Slot, attempt: int, plan: Plan, started: str, observation: Observation, where: str = ""
    ) -> Trial:
        on_host = self.study.study.target.kind == "host"
        reading = reading_of(self.study, slot.configuration)
        before = self._before.setdefault(where, {})
        earlier = before if on_host else {}
        found = trial(slot, attempt, plan, observation, reading, started=started, earlier=earlier)
        before.update({event.tunable: event.before for event in found.written})
        return found

    def _keep(self, trials: Sequence[Trial], machine: str = "") -> None:
        self.store.add_trials(self.run, trials, machine=machine)
        for one in trials:
            self._course.add(one, machine)
            self.watcher.trial_done(one.slot.configuration, one.slot.block, one.status, one.host_seconds)


def _place(trial: Trial) -> Place:
    return (trial.slot.block, trial.slot.position, trial.attempt)


def now() -> str:
    """The host's time, as trials are stamped with it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _mean(precision: Precision) -> Mean:
    return Mean(precision.metric.name, precision.known, precision.interval.n if precision.interval else 0)


def _lost(trial: Trial) -> str:
    """Why there is no point in going on, with what the workload said last."""
    said = last_words(trial)
    return f"{trial.slot.configuration}: {trial.reason}" + (f"; it said last: {said}" if said else "")
