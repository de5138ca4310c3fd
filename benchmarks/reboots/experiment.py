"""An experiment across reboots of a played machine, as `ajuste run --reboots` conducts it, with played trials."""

from __future__ import annotations

import hashlib
import math
import os
import random
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Self

from ajuste.catalogue.loader import catalogue
from ajuste.executor.executor import Executor
from ajuste.model.event import Accepted, End, Event, Exited, Hello, Started
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation
from ajuste.report.progress import Progress
from ajuste.run.runner import Executors, Runner
from ajuste.store.store import Run, Store
from ajuste.study.read import parse_study
from ajuste.study.resolve import HOST_KERNEL, resolve
from ajuste.study.resolved import Machine, ResolvedStudy
from ajuste_boots.session import BootPlan, BootSession, RebootWanted, Step, plan_entries
from ajuste_boots.testbed import RebootingExecutor
from benchmarks.reboots.played import PlayedMachine

EFFECT = -0.10
"""Change that mitigations=off is played to make."""
BETWEEN = 0.02
WITHIN = 0.01


@cache
def played_study(blocks: int = 2, rounds: int = 1, factor: str = "boot.mitigations") -> ResolvedStudy:
    """Two states, a warm-up and so many blocks in each boot."""
    levels = ["default", "6.1"] if factor == "boot.kernel" else ["default", "off"]
    study = parse_study(
        {
            "name": "played",
            "workload": {"command": ["true"]},
            "target": {"kind": "host"},
            "analysis": {"metrics": ["elapsed"], "smallest_effect": 0.02},
            "factor": [{"name": factor, "levels": levels}],
            "design": {"blocks_per_boot": blocks, "warm_up": 1},
            "budget": {"min_blocks": blocks * rounds, "max_blocks": blocks * rounds, "max_minutes": 1e5},
        }
    )
    here = {HOST_KERNEL: KernelVersion(major=6, minor=12)}
    return resolve(study, catalogue(), here, lambda name: f"/bin/{name}").model_copy(update={"counters": ()})


class PlayedTrials(Executor):
    """Trials whose time is drawn: an effect of the command line, what the boot drew once, and what each trial draws."""

    environment: dict[str, str] = {}

    def __init__(self, machine: PlayedMachine, step: Step) -> None:
        self._machine = machine
        self._step = step

    @property
    def hello(self) -> Hello:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def run(self, plan: Plan) -> Observation:
        self._step("trial")
        rebootable = self._machine.rebootable
        drawn = random.Random(rebootable.boot_id).gauss(0, BETWEEN)
        digest = hashlib.sha256(f"{rebootable.boot_id} {plan.id}".encode()).digest()
        drawn += random.Random(digest).gauss(0, WITHIN)
        drawn += math.log1p(EFFECT) if "mitigations=off" in rebootable.command_line else 0.0
        events = tuple(_events(plan.id, round(1e9 * math.exp(drawn))))
        lines = "".join(f"{event.model_dump_json()}\n" for event in events)
        self._step("trial done")
        return Observation(lines=lines, events=events, host_seconds=1.0)


def _events(plan: str, wall_ns: int) -> list[Event]:
    used: dict[str, Any] = {"user_ns": 1, "system_ns": 1, "voluntary_switches": 1, "involuntary_switches": 1}
    used |= {"minor_faults": 1, "major_faults": 0, "peak_rss_bytes": 1, "wall_ns": wall_ns}
    return [
        Accepted(at_ns=1, id=plan),
        Started(at_ns=1, role="workload", index=0, pid=2),
        Exited(at_ns=1, role="workload", index=0, exit_code=0, **used),
        End(at_ns=2, id=plan, ok=True, events=3),
    ]


def go_on(machine: PlayedMachine, study: ResolvedStudy, home: Path, step: Step) -> str:
    """Begin the experiment or go on with it in this boot, until another one is wanted or it is over. Returns the run.

    Raises Rebooted where the machine reboots, RunError for a kernel that does not come up.
    """
    session = BootSession.load(home / "reboots", machine.rebootable, step)
    if session is None:
        loader = machine.rebootable.choose(machine.loader)
        entries = plan_entries(study.boots, machine.rebootable)
        machine.rebootable.require_bootable(loader, entries)
        session = BootSession.begin(home / "reboots", plan_of(study, machine), machine.rebootable, step)
    if session.plan.phase == "ending":
        return _end(session)
    try:
        session.take_up()
        with Store(f"sqlite:///{home / 'store.sqlite'}") as store:
            run = store.find_run(session.plan.run) if session.plan.run else _new_run(store, study)
            session.keep_run(run.id)
            if run.stopped:
                return _end(session)
            with Executors(_opened(machine, session, step), _keep_boots(run, store)) as executors:
                stop = Runner(study, run, store, executors, _quiet()).carry_out()
                run_executor = executors.prepared(study.configurations[0].machine)
                _keep_boots(run, store)(study.configurations[0].machine, run_executor)
            store.stop_run(run, stop.why, stop.words)
    except RebootWanted:
        session.reboot()
    return _end(session)


def _end(session: BootSession) -> str:
    is_own = bool(session.machine.mark)
    session.end()
    if is_own:
        session.machine.run(("systemctl", "reboot"))
    return session.plan.run


def plan_of(study: ResolvedStudy, machine: PlayedMachine) -> BootPlan:
    """The experiment before it begins."""
    entries = plan_entries(study.boots, machine.rebootable)
    return BootPlan(
        loader=machine.loader,
        command=("/usr/bin/ajuste", "run", "played", "--reboots"),
        environment={},
        directory="/",
        kernel=machine.rebootable.release,
        marks={},
        states=study.boots,
        kernels=tuple(entry.kernel for entry in entries),
        each=study.study.blocks_per_boot,
        warm_up=study.study.design.warm_up,
    )


def _new_run(store: Store, study: ResolvedStudy) -> Run:
    document = study.model_dump_json()
    return store.new_run(
        study="played", fingerprint="f", seed=1, ajuste="0", named="played", resolved=document, environment={}
    )


def _opened(machine: PlayedMachine, session: BootSession, step: Step) -> Callable[[Machine], Executor]:
    return lambda _: RebootingExecutor(PlayedTrials(machine, step), session)


def _keep_boots(run: Run, store: Store) -> Callable[[Machine, Executor], None]:
    def keep(_machine: Machine, executor: Executor) -> None:
        store.set_environment(run, dict(executor.records))

    return keep


def _quiet() -> Progress:
    return Progress(min_blocks=1, max_blocks=1, quiet=True)


def in_a_child(work: Callable[[], object]) -> int:
    """``work`` in a process forked from this one; its exit code: 0, 1 for an error, -9 if it was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:  # noqa: BLE001 - whatever it is, it is seen
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
