"""The target ``host``: this machine as it is, and as it is again afterwards.

What is changed is the agent's to put back (see docs/explanation/safety.md). Here is who may begin, and what remains if
it dies.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self, TypeVar

from ajuste.catalogue.loader import catalogue
from ajuste.catalogue.programs import install_hint
from ajuste.design.stopping import Pace, StoppingLimits, in_a_moment
from ajuste.executor.executor import NOTES, Executor, OnStart, TrialDone, TrialRequest
from ajuste.executor.host.adoption import HeldPlan, adopted_from
from ajuste.executor.host.agent_process import AgentLostError, AgentProcess
from ajuste.executor.host.caller import (
    Completion,
    agents_directory,
    remove_left_groups,
    remove_left_services,
    services_directories,
)
from ajuste.executor.host.disturbance import (
    SHORTEST_SECONDS,
    DisturbanceReading,
    DisturbanceWatch,
    Remain,
    between,
    reading,
    remains,
    remains_note,
    throttle_counters,
)
from ajuste.executor.host.journals import Scope, journals_in, require_none_left, restore_all
from ajuste.executor.host.machine_lock import MachineLock
from ajuste.executor.host.rights import require_rights
from ajuste.executor.host.root_services import (
    changeable_settings,
    changes_notes,
    changes_of_services,
    root_services,
)
from ajuste.executor.stream import read_trial
from ajuste.machine.files import make_directory
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Event, Exited, Failed, Hello, parse_event
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Command, Plan, Read, User, Write
from ajuste.model.trial import Observation
from ajuste.model.wording import Say
from ajuste.outputs.services import cpu_seconds, with_advice
from ajuste.outputs.trial_status import with_last_words
from ajuste.study.resolved import ResolvedStudy

HELLO_SECONDS: Final = 30.0
_STAT = Path("/proc/stat")

ResultT = TypeVar("ResultT")
_SLACK_SECONDS = 60
_LONGEST_COMPLAINT = 300


class HostExecutor(Executor):
    """Runs plans on this machine, one at a time, by an agent that lives as long as the target is entered.

    With a ``home`` it may change the machine: entering takes the machine's lock, and refuses (RequestError) while
    another experiment goes on for more than ``wait_s`` seconds, or while an earlier one may have left something
    changed. Without one it only reads and runs. What needs root is refused before it begins if there is none.
    ``daemons`` are names of services whose changes of settings are undone after each plan.
    """

    keeps_values = True

    def __init__(
        self,
        home: Home | None = None,
        say: Say = lambda _: None,
        *,
        wait_s: float = 0,
        daemons: frozenset[str] = frozenset(),
    ) -> None:
        self._journals = home.journals if home is not None else None
        self._say = say
        self._wait_s = wait_s
        self._daemons = daemons
        self._stack = ExitStack()
        self._lock: MachineLock | None = None
        self._agent: AgentProcess | None = None
        self._hello: Hello | None = None
        self._turn = threading.Lock()
        self._in_plan = False
        self._watch = DisturbanceWatch()
        self._throttles = throttle_counters()
        self._ticks = os.sysconf("SC_CLK_TCK")
        self._completion: Completion | None = None
        self._settings: tuple[Read, ...] | None = None
        self._changed: dict[tuple[str, ...], dict[str, tuple[str, str]]] = {}

    @property
    def hello(self) -> Hello:
        assert self._hello is not None, "the target was not entered"
        return self._hello

    @property
    def environment(self) -> dict[str, str]:
        return {
            "kernel": self.hello.kernel,
            "kernel build": self.hello.build,
            "clock": "wall",
            "CPUs": str(self.hello.cpus),
            "memory": f"{self.hello.memory_bytes >> 20} MiB",
            **({NOTES: " ".join(notes)} if (notes := changes_notes(self._changed)) else {}),
        }

    def __enter__(self) -> Self:
        if shutil.which("setpriv") is None:
            raise RequestError("program setpriv not found", hint=install_hint("util-linux"))
        with ExitStack() as stack:
            if self._journals is not None:
                self._lock = stack.enter_context(MachineLock("experiment", wait_s=self._wait_s, say=self._say))
                for note in (*self._lock.notes, *require_none_left(self._journals)):
                    self._say(note)
                for left in remove_left_services():
                    self._say(f"Removed {left}, which services of a killed experiment left.")
            if self._journals is not None:
                remove_left_groups()
                stack.callback(remove_left_groups)
            stack.callback(self._say_remains, remains())
            self._start()
            stack.callback(self._end)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, plan: Plan) -> Observation:
        """Carry out one plan. Raises RequestError for missing rights, RunError where the agent is lost, and where a
        value could not be put back.
        """
        plan = self._with_keeps(plan)
        document = self._document(plan)
        began = time.monotonic()
        with self._turn:
            before = self._reading()
            self._in_plan = True
            stream = self._with_agent(lambda agent: agent.carry_out(document, _limit_s(plan)))
            self._in_plan = False
            after = self._reading()
        wall_s = time.monotonic() - began
        observation = self._read(plan, stream, wall_s)
        surroundings, disturbances = self._judge(plan, observation.events, before, after, wall_s)
        return replace(observation, console=surroundings, disturbances=(*observation.disturbances, *disturbances))

    def carry_out(self, requests: Sequence[TrialRequest], on_start: OnStart) -> Iterator[list[TrialDone]]:
        """Carry out trials; several short blocks come back together, because nothing may run between them."""
        if len({request.slot.block for request in requests}) == 1:
            yield from super().carry_out(requests, on_start)
            return
        on_start(requests[0])
        plans = [request.plan() for request in requests]
        done = self.run_in_turn(plans)
        yield [TrialDone(request, plan, *timed) for request, plan, timed in zip(requests, plans, done, strict=True)]

    def more_blocks(self, pace: Pace, limits: StoppingLimits) -> int:
        return in_a_moment(pace, limits)

    def run_in_turn(self, plans: Sequence[Plan]) -> list[tuple[str, Observation]]:
        """Run each of ``plans``, with when it began. Results are read when the last one has ended, and what else the
        machine does is not looked at: such trials are too short for it.
        """
        plans = [self._with_keeps(plan) for plan in plans]
        documents = [(self._document(plan), _limit_s(plan)) for plan in plans]
        with self._turn:
            # The agent's clock (CLOCK_MONOTONIC_RAW) says when each began and how long it took.
            zero_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
            self._in_plan = True
            streams = self._with_agent(lambda agent: agent.carry_out_in_turn(documents))
            self._in_plan = False
        timed: list[tuple[str, Observation]] = []
        for plan, stream in zip(plans, streams, strict=True):
            observation = self._read(plan, stream, 0.0)
            times = [event.at_ns for event in observation.events] or [time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)]
            started = datetime.fromtimestamp((zero_ns + times[0]) / 1e9, UTC).isoformat(timespec="milliseconds")
            timed.append((started, replace(observation, host_seconds=(times[-1] - times[0]) / 1e9)))
        return timed

    def _document(self, plan: Plan) -> bytes:
        if plan.writes and self._journals is None:
            raise RequestError("cannot change values without a journal: this target supports only reading")
        require_rights(plan)
        assert self._completion is not None, "the target was not entered"
        return self._completion.complete(plan).model_dump_json().encode()

    def _read(self, plan: Plan, content: bytes, wall_s: float) -> Observation:
        stream = read_trial(content, plan, restores=True)
        self._require_restored(stream.events)
        if services := root_services(plan, self._daemons):
            self._changed.setdefault(services, {}).update(changes_of_services(stream.events, plan))
        return Observation(
            lines=stream.lines,
            events=stream.events,
            problem=stream.problem,
            host_seconds=wall_s,
        )

    def _say_remains(self, before: frozenset[Remain]) -> None:
        if note := remains_note(before, remains()):
            self._say(note)

    def _with_keeps(self, plan: Plan) -> Plan:
        """Return ``plan`` with all settings to restore after it, if it starts daemons that may change any."""
        if self._journals is None or not root_services(plan, self._daemons):
            return plan
        if self._settings is None:
            self._settings = changeable_settings(self, catalogue())
        return plan.model_copy(update={"keeps": self._settings})

    def kill_unresponsive(self, overdue_s: float = 0.0) -> str:
        agent = self._agent
        return agent.kill_unresponsive(overdue_s) if agent is not None else ""

    @contextmanager
    def holding(self, plan: Plan) -> Iterator[HeldPlan]:
        """Hold the values of ``plan`` by an agent of its own that may leave them in force (see ``HeldPlan``)."""
        assert self._lock is not None, "the machine is not held"
        document = self._document(plan)
        self._end()
        with HeldPlan(document, self._lock.descriptor) as held:
            yield held
        remove_left_groups()
        self._start()

    def begin_anew(self) -> None:
        """End the agent, if need be in the middle of a plan, and take another one, still holding the machine."""
        self._end()
        self._start()

    def _start(self) -> None:
        options: list[str] = []
        keep: list[int] = []
        if self._lock is not None:
            options += ["--hold-fd", str(self._lock.descriptor)]
            keep.append(self._lock.descriptor)
        if self._journals is not None and os.geteuid() == 0:
            make_directory(self._journals)
            options += ["--journal", str(self._journals)]
        self._agent = agent = AgentProcess(options, keep)
        try:
            line = agent.read_line(HELLO_SECONDS)
            hello = parse_event(line)
        except (AgentLostError, ValueError) as error:
            self._end(at_once=True)
            complaint = agent.complaint[:_LONGEST_COMPLAINT] or str(error).splitlines()[0]
            raise RunError(f"the agent does not work on this machine: {complaint}") from error
        if not isinstance(hello, Hello):
            self._end(at_once=True)
            raise RunError(f"the agent does not work on this machine: it sent {hello.event} instead of hello")
        self._hello = hello
        self._completion = Completion(catalogue(), KernelVersion.parse(hello.kernel))

    def _end(self, *, at_once: bool = False) -> None:
        if self._agent is None:
            return
        agent, self._agent = self._agent, None
        agent.end(at_once=at_once or self._in_plan)
        if agent.was_killed:
            self._what_is_left()
        with self._turn:
            self._in_plan = False
            agent.close()

    def _with_agent(self, carry_out: Callable[[AgentProcess], ResultT]) -> ResultT:
        agent = self._agent
        if agent is None:
            raise RunError("the agent was ended")
        try:
            return carry_out(agent)
        except AgentLostError as error:
            if self._agent is None:
                raise RunError("the agent was ended") from error
            agent.end(at_once=True)
            complaint = f", saying: {agent.complaint[-_LONGEST_COMPLAINT:]}" if agent.complaint else ""
            raise RunError(f"the agent was lost: {error}{complaint}; {self._what_is_left()}") from error

    def _what_is_left(self) -> str:
        if self._journals is None:
            return "it had changed nothing"
        scope = Scope((self._journals,), registered=False)
        left = [journal for journal in journals_in(scope) if journal.stands_in_the_way]
        # A guardian that is at work is waited for, and may have done all of it before us.
        if not left or restore_all(scope).done:
            return "what it had changed was put back"
        left = [journal for journal in journals_in(scope) if journal.stands_in_the_way]
        if not left:
            return "what it had changed was put back"
        return f"what it had changed is NOT all put back; `ajuste restore` tries again from {left[0].path}"

    def _require_restored(self, events: tuple[Event, ...]) -> None:
        for event in events:
            if isinstance(event, Failed) and event.stage == "restore":
                about = f"{event.tunable}: " if event.tunable else ""
                raise RunError(
                    f"a value could not be put back: {about}{event.message}",
                    hint="run `ajuste restore`: it tries again, or says how to go on",
                )
            if isinstance(event, Failed) and event.stage == "journal":
                raise RunError(
                    f"cannot write the journal, so nothing was changed: {event.message}",
                    hint="free disk space, or set AJUSTE_HOME to another directory",
                )

    def _reading(self) -> DisturbanceReading:
        stat = _STAT.read_text()
        return reading(stat, [path.read_text() for path in self._throttles], self._ticks)

    def _judge(
        self,
        plan: Plan,
        events: tuple[Event, ...],
        before: DisturbanceReading,
        after: DisturbanceReading,
        wall_s: float,
    ) -> tuple[str, tuple[str, ...]]:
        if plan.workload is None or wall_s < SHORTEST_SECONDS:
            return "", ()
        cpu_s = sum(event.user_ns + event.system_ns for event in events if isinstance(event, Exited)) / 1e9
        cpu_s += cpu_seconds(events)
        difference = between(before, after, wall_s=wall_s, cpu_s=cpu_s)
        configuration = (plan.writes, plan.workload.model_dump_json(), plan.before)
        return str(difference), self._watch.judge(repr(configuration), difference)


def _limit_s(plan: Plan) -> float:
    commands = len(plan.before) + len(plan.after) + (plan.workload is not None)
    waits_ns = plan.settle_ns + plan.ready_timeout_ns + plan.perturbation.start_delay_ns + plan.observe_ns
    return (commands * plan.timeout_ns + waits_ns) / 1e9 + _SLACK_SECONDS


class PreparedHost(HostExecutor):
    """Entering tries each of the ``changes`` (the writes of one configuration) once and takes it back: RequestError for
    a value that the kernel refuses, a place that is locked or not there. Then it runs ``setup``; leaving runs
    ``cleanup`` if the set-up began, also after a failure or an interruption. Neither is measured; each of their
    commands may take ``timeout_ns``. ``first`` is called before anything is changed; ``servers`` are the users of
    services.
    """

    def __init__(
        self,
        home: Home | None = None,
        say: Say = lambda _: None,
        *,
        changes: Sequence[tuple[Write, ...]] = (),
        setup: tuple[Command, ...] = (),
        cleanup: tuple[Command, ...] = (),
        first: Callable[[Executor], None] = lambda _: None,
        timeout_ns: int,
        wait_s: float = 0,
        daemons: frozenset[str] = frozenset(),
        servers: Sequence[User | None] = (),
    ) -> None:
        super().__init__(home, say, wait_s=wait_s, daemons=daemons)
        self._first = first
        self._changes = tuple(dict.fromkeys(writes for writes in changes if writes))
        self._setup = setup
        self._cleanup = cleanup
        self._timeout_ns = timeout_ns
        self._servers = servers
        self._prepared = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(agents_directory())
            super().__enter__()
            stack.push(super().__exit__)
            stack.enter_context(services_directories(self._servers))
            for adoption in adopted_from(write.location for writes in self._changes for write in writes):
                self._say(f"{adoption}. What is adopted is the state that this experiment restores")
            self._first(self)
            for number, writes in enumerate(self._changes):
                self._try(Plan(id=f"change-{number}", writes=writes))
            stack.callback(self._clean_up)
            self._once("setup", self._setup)
            self._prepared = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._prepared.close()

    def _try(self, plan: Plan) -> None:
        observation = self.run(plan)
        for event in observation.events:
            if isinstance(event, Failed):
                raise RequestError(
                    f"{event.tunable or 'the change'} cannot be set on this machine: {event.message}",
                    hint="see what this machine accepts with `ajuste tunables show NAME`; nothing was changed",
                )
        if observation.problem:
            raise RunError(f"the changes could not be tried: {observation.problem}")

    def _clean_up(self) -> None:
        if self._cleanup:
            # A trial may have been cut short.
            self.begin_anew()
            self._once("cleanup", self._cleanup)

    def _once(self, name: str, commands: tuple[Command, ...]) -> None:
        if not commands:
            return
        observation = self.run(Plan(id=name, before=commands, timeout_ns=self._timeout_ns))
        failures = [event.message for event in observation.events if isinstance(event, Failed)]
        if failures or observation.problem:
            why = with_last_words("; ".join(failures) or observation.problem, observation.events)
            raise RunError(with_advice(f"the {name} command failed: {why}"))


def prepared_for(
    resolved: ResolvedStudy,
    home: Home,
    say: Say = lambda _: None,
    first: Callable[[Executor], None] = lambda _: None,
    *,
    wait_s: float = 0,
) -> PreparedHost:
    """Return this machine, made ready for that study; ``first`` is called before anything is changed."""
    return PreparedHost(
        home,
        say,
        first=first,
        changes=[configuration.writes for configuration in resolved.configurations],
        setup=resolved.setup,
        cleanup=resolved.cleanup,
        timeout_ns=round(resolved.study.workload.timeout_s * 1e9),
        wait_s=wait_s,
        daemons=frozenset(service.called for service in resolved.study.workload.services if service.when),
        servers=[
            service.command.user for configuration in resolved.configurations for service in configuration.services
        ],
    )
