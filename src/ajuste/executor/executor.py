"""The interface of all places that run trials, the only one that the runner knows."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import chain
from queue import SimpleQueue
from threading import Event, Semaphore
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, TypeVar

from ajuste.design.stopping import Pace, StoppingLimits, up_to_a_look
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Hello
from ajuste.model.plan import Plan, Trace
from ajuste.model.trial import Observation, Slot
from ajuste.study.commands import plan_for
from ajuste.study.resolved import ResolvedStudy

if TYPE_CHECKING:
    from ajuste.model.cost import Costs, NamedCosts
    from ajuste.model.decision import Decisions, NamedDecisions
    from ajuste.model.modelled import ModelledMachine

NOTES: Final = "notes"
"""The key in an executor's environment for sentences that a reader of the results must know."""

ROUNDS: Final = 100
"""Maximum number of trials in a row on each of several parallel places, unless the study may stop before.

Blocks are measured together for so many rounds, because at the end of the last round places wait for each other.
"""

Depth = Literal["counts", "functions", "decisions"]
"""The depth of the lens: instructions by task, also by function, or with the scheduler's decisions as well."""

Some = TypeVar("Some")


class TrialRequest(NamedTuple):
    """A trial to carry out: the slot of the design, and how often it was tried before. ``machine`` names the one of
    several that must do it; empty where any will do. With a ``trace`` it is recorded. The workload gets no more than
    ``limit_s`` seconds.
    """

    executor: Executor
    study: ResolvedStudy
    slot: Slot
    attempt: int
    machine: str = ""
    trace: Trace | None = None
    limit_s: float = math.inf

    def plan(self) -> Plan:
        plan = plan_for(self.study, self.slot, self.attempt)
        if 1e9 * self.limit_s < plan.timeout_ns:
            plan = plan.model_copy(update={"timeout_ns": round(1e9 * self.limit_s)})
        return plan if self.trace is None else plan.model_copy(update={"trace": self.trace})

    def carry_out(self, plan: Plan) -> Observation:
        """Carry out ``plan``, counting its instructions if the study asks for that."""
        if not self.study.counts_instructions or self.trace is not None:
            return self.executor.run(plan)
        return self.executor.count(plan, "counts", self.study.machine_of_trials)


class TrialDone(NamedTuple):
    """A trial that was carried out: when it began and what came of it. ``machine`` names the one of several that its
    block belongs to from now on, ``by`` who has to be trusted for it.
    """

    request: TrialRequest
    plan: Plan
    started: str
    observation: Observation
    machine: str = ""
    by: str = ""


OnStart = Callable[[TrialRequest], None]
"""The callback for trials that start, called from any thread; of trials that run as one unit only for the first."""


class Untrusted(Exception):
    """The machines ``where`` returned wrong results: all their trials have to be dropped. They get no others."""

    def __init__(self, where: Sequence[str]) -> None:
        super().__init__(", ".join(where))
        self.where = tuple(where)


class Executor(ABC):
    """A place that carries out plans.

    A context manager: entering makes it ready (a guest boots), leaving removes all of it, and may be done twice.
    """

    keeps_values = False
    """True if a trial starts from the values that the one before it left."""
    whole_blocks = False
    """True if the trials of a block must be requested together."""

    @property
    @abstractmethod
    def hello(self) -> Hello: ...

    @property
    @abstractmethod
    def environment(self) -> dict[str, str]:
        """Return facts for people, once entered, such as kernel, QEMU version and command line."""

    @property
    def machines(self) -> dict[str, dict[str, Any]]:
        """Return facts on each machine of several that has measured, by name."""
        return {}

    @property
    def present(self) -> tuple[str, ...]:
        """Return the names of the machines, of several, that can measure now."""
        return ()

    @property
    def records(self) -> Mapping[str, Any]:
        """Return what the run's environment keeps of it, as documents by key; they change while it measures."""
        return {}

    @property
    def parallel(self) -> int:
        """Return how many plans may run at once without disturbing what is measured (1 on a wall clock)."""
        return 1

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...

    def run(self, plan: Plan) -> Observation:
        """Carry out one plan from the initial state. Safe to call from several threads at once.

        Never raises for what the guest does: that is in ``Observation.problem``. Raises RunError where the place itself
        is lost (no QEMU, no disk space), and where it is many.
        """
        raise RunError("no single machine stands for many")

    def kill_unresponsive(self, overdue_s: float = 0.0) -> str:
        """Kill whichever process of the plan is stopped, or should have ended ``overdue_s`` ago; the others restore all
        values. Safe to call from another thread. Return the killed ones, in words.
        """
        return ""

    def count(self, plan: Plan, depth: Depth, machine: ModelledMachine | None = None) -> Observation:
        """Run as ``run``, with the costs of the trial, also on a modelled ``machine``. Raises RequestError where the
        place cannot tell them.
        """
        raise RequestError(
            "instructions can be counted only in guests of this machine under the virtual clock",
            hint='use --vm --clock virtual, or clock = "virtual" in [target]; elsewhere the metric "instructions" is '
            "what the hardware counts",
        )

    def named(self, costs: Costs) -> NamedCosts:
        """Return ``costs`` of a trial that it counted, with the names of the functions."""
        raise RequestError("only guests of this machine know the names of functions")

    def named_decisions(self, costs: Costs, decisions: Decisions) -> NamedDecisions:
        """Return ``decisions`` of a trial that it counted, with the names of functions and tasks."""
        raise RequestError("only guests of this machine know the names of functions")

    def carry_out(self, requests: Sequence[TrialRequest], on_start: OnStart) -> Iterator[list[TrialDone]]:
        """Carry out trials, each in its own executor (all of this kind); yield them as they are done.

        They start in this order, as many at once as ``parallel`` allows. Trials that ran as one unit come together.
        Trials whose machine is gone are left out.

        Raises:
            Untrusted: Machines returned wrong results.
            AjusteError: As ``run``.
        """
        parallel = min(request.executor.parallel for request in requests)
        works = (_trial(request, on_start) for request in requests)
        yield from done_by(works, parallel, {request.executor for request in requests})

    def more_blocks(self, pace: Pace, limits: StoppingLimits) -> int:
        """Return how many more blocks to measure together with the next one."""
        if self.parallel == 1:
            return 0
        rounds = min(ROUNDS, pace.left_s * pace.trials / pace.seconds)
        return up_to_a_look(math.ceil(rounds * self.parallel / pace.trials) - 1, pace.measured, limits)


def _trial(request: TrialRequest, on_start: OnStart) -> Iterator[list[TrialDone]]:
    plan = request.plan()
    on_start(request)
    started = now()
    yield [TrialDone(request, plan, started, request.carry_out(plan))]


def done_by(works: Iterable[Iterator[Some]], threads: int, executors: Iterable[Executor]) -> Iterator[Some]:
    """Yield the results of ``works``, one after the other or, with more ``threads``, side by side."""
    return chain.from_iterable(works) if threads == 1 else side_by_side(works, threads, executors)


def side_by_side(works: Iterable[Iterator[Some]], threads: int, executors: Iterable[Executor]) -> Iterator[Some]:
    """Yield the results of ``works``, of which ``threads`` run at once, started in this order.

    None continues before its result was taken: a trial is stored before the next one starts. Where one raises
    Untrusted, the others finish first. Where one raises anything else, or the consumer stops, ``executors`` are left.
    """
    results: SimpleQueue[tuple[Some | None, Future[None] | None]] = SimpleQueue()
    was_taken, is_over = Semaphore(0), Event()
    untrusted: list[str] = []

    def follow(work: Iterator[Some]) -> None:
        try:
            for some in work:
                results.put((some, None))
                if not is_over.is_set():
                    was_taken.acquire()
        except Untrusted as error:
            untrusted.extend(error.where)

    pool = ThreadPoolExecutor(threads, thread_name_prefix="trial")
    try:
        futures = [pool.submit(follow, work) for work in works]
        for future in futures:
            future.add_done_callback(lambda ended: results.put((None, ended)))
        left = len(futures)
        while left:
            some, ended = results.get()
            if some is not None:
                yield some
                was_taken.release()
            if ended is not None:
                ended.result()
                left -= 1
    except BaseException:
        # The pool would wait for running trials: leaving the executors ends them. What was cut short is dropped.
        pool.shutdown(wait=False, cancel_futures=True)
        is_over.set()
        was_taken.release(threads)
        for executor in executors:
            executor.__exit__(None, None, None)
        raise
    finally:
        pool.shutdown()
    if untrusted:
        raise Untrusted(untrusted)


def now() -> str:
    """Return the host's time, as trials are stamped with it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
