"""The runner: a resolved study becomes plans for its targets, and their answers become trials in the store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from ajuste.analysis.results import verdicts
from ajuste.design.blocks import block
from ajuste.design.perturbation import perturbation
from ajuste.design.stopping import MOST_ATTEMPTS, Limits, Stop, stop, wants_repeat
from ajuste.model.plan import Plan
from ajuste.model.trial import Slot, Status, Trial
from ajuste.model.verdict import Verdict
from ajuste.parse.trial import Reading, trial
from ajuste.store.store import Run, Store
from ajuste.study.resolved import ResolvedStudy
from ajuste.target.target import Target

Attempt = tuple[Slot, int]
"""A slot of the design, and how often it was tried before."""


class Watcher(Protocol):
    """Is told what happens, from several threads."""

    def say(self, text: str) -> None: ...

    def trial_started(self, configuration: str, block: int) -> None: ...

    def trial_done(self, configuration: str, block: int, status: Status) -> None: ...

    def block_done(self, block: int, verdicts: Sequence[Verdict]) -> None: ...


class Targets:
    """The targets of a run by kernel spec. Each is made ready when the first plan is for it, so that a run whose trials
    are all in the store boots nothing. Leaving ends whatever runs.
    """

    def __init__(self, open_target: Callable[[str], Target], ready: Callable[[str, Target], None]) -> None:
        self._open = open_target
        self._ready = ready
        self._stack = ExitStack()
        self._entered: dict[str, Target] = {}

    def __enter__(self) -> Targets:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def end(self) -> None:
        """End all that runs. Whoever waits for a plan gets an answer at once."""
        self._stack.close()

    def prepare(self, kernel: str) -> None:
        """Make the target for ``kernel`` ready, if it is not yet. To be called from one thread only."""
        if kernel not in self._entered:
            self._entered[kernel] = self._stack.enter_context(self._open(kernel))
            self._ready(kernel, self._entered[kernel])

    def __getitem__(self, kernel: str) -> Target:
        """A target that was prepared."""
        return self._entered[kernel]

    @property
    def parallel(self) -> int:
        """How many plans may run at once on all of them."""
        return min((target.parallel for target in self._entered.values()), default=1)


def plan_for(study: ResolvedStudy, slot: Slot, attempt: int) -> Plan:
    """What one trial writes, runs and counts. Follows from study, slot and attempt alone."""
    resolved = study.find(slot.configuration)
    table = study.study.workload
    return Plan(
        id=f"b{slot.block}p{slot.position}a{attempt}",
        writes=resolved.writes,
        scratch=resolved.scratch,
        before=resolved.before,
        background=resolved.background,
        settle_ns=round(table.settle_s * 1e9),
        workload=resolved.workload,
        timeout_ns=round(table.timeout_s * 1e9),
        counters=study.counters,
        samplers=study.samplers,
        observe_ns=round(table.observe_s * 1e9),
        after=resolved.after,
        perturbation=perturbation(slot.seed),
    )


def reading_of(study: ResolvedStudy, configuration: str) -> Reading:
    """How the outputs of the study's workload are read under that configuration."""
    loads = study.find(configuration).loads
    return Reading(
        parser=study.parser,
        patterns=study.patterns,
        pointers=study.pointers,
        timelines=study.timelines,
        endless=tuple(load.endless for load in loads),
        shares_of=tuple(load.number for load in loads) if study.shares else None,
        any_exit=study.study.workload.ignore_failure,
    )


@dataclass
class Runner:
    """Carries out one run, block by block, until there is a reason to stop. What the store has is not measured again.

    Trials of a block run at once where the target allows it (virtual clock); between blocks all wait for each other, so
    that what is measured does not depend on which trial was quicker.
    """

    study: ResolvedStudy
    run: Run
    store: Store
    targets: Targets
    watcher: Watcher
    _kept: dict[tuple[int, int], list[Trial]] = field(default_factory=dict, init=False)
    _ended: threading.Event = field(default_factory=threading.Event, init=False)

    def carry_out(self) -> Stop:
        """Measure until the study is decided or a budget is spent. Raises what targets and store raise."""
        for one in self.store.trials(self.run):
            self._kept.setdefault((one.slot.block, one.slot.position), []).append(one)
        tables = self.study.study
        limits = Limits(tables.budget.min_blocks, tables.budget.max_blocks, tables.budget.max_minutes)
        number = 0
        while True:
            self._measure_block(number)
            measured = number + 1 - tables.design.warm_up
            if measured > 0:
                trials = self._trials(number)
                found = verdicts(self.study, trials)
                self.watcher.block_done(number, found)
                reason = stop(found, measured, minutes_of(trials), limits)
                if reason is not None:
                    return reason
            number += 1

    def _measure_block(self, number: int) -> None:
        design = self.study.study.design
        slots = block(number, self.study.names, design.seed, warm_up=design.warm_up)
        for _ in range(MOST_ATTEMPTS):
            self._measure([attempt for slot in slots if (attempt := self._next_attempt(slot))])

    def _next_attempt(self, slot: Slot) -> Attempt | None:
        attempts = self._kept.get((slot.block, slot.position), [])
        if attempts and not wants_repeat(attempts, self.study.study.target.clock):
            return None
        return None if len(attempts) >= MOST_ATTEMPTS else (slot, len(attempts))

    def _measure(self, attempts: list[Attempt]) -> None:
        if not attempts:
            return
        for kernel in dict.fromkeys(self.study.find(slot.configuration).kernel for slot, _ in attempts):
            self.targets.prepare(kernel)
        with ThreadPoolExecutor(self.targets.parallel, thread_name_prefix="trial") as pool:
            futures: list[Future[None]] = []
            try:
                futures = [pool.submit(self._try, slot, attempt) for slot, attempt in attempts]
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
            except BaseException:
                # The pool would wait for what runs: end it instead. What was cut short is no trial.
                self._ended.set()
                pool.shutdown(wait=False, cancel_futures=True)
                self.targets.end()
                raise

    def _try(self, slot: Slot, attempt: int) -> None:
        plan = plan_for(self.study, slot, attempt)
        self.watcher.trial_started(slot.configuration, slot.block)
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        observation = self.targets[self.study.find(slot.configuration).kernel].run(plan)
        if self._ended.is_set():
            return
        found = trial(slot, attempt, plan, observation, reading_of(self.study, slot.configuration), started=started)
        self.store.add_trial(self.run, found)
        self._kept.setdefault((slot.block, slot.position), []).append(found)
        self.watcher.trial_done(slot.configuration, slot.block, found.status)

    def _trials(self, number: int) -> list[Trial]:
        """All trials up to block ``number``: a run that was interrupted may have kept some of the next one."""
        return [one for (where, _), own in sorted(self._kept.items()) if where <= number for one in own]


def minutes_of(trials: Sequence[Trial]) -> float:
    """For how many minutes of the host's time at least one of ``trials`` was running."""
    total, until = 0.0, 0.0
    spans = ((datetime.fromisoformat(one.started).timestamp(), one.host_seconds) for one in trials)
    for begin, seconds in sorted(spans):
        total += max(0.0, begin + seconds - max(begin, until))
        until = max(until, begin + seconds)
    return total / 60
