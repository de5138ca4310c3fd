"""An executor that a test plays: nothing to make ready, nothing to end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Self

from ajuste.catalogue.loader import catalogue
from ajuste.design.stopping import Stop
from ajuste.executor.executor import Executor, TrialRequest
from ajuste.kernel.spec import parse_spec
from ajuste.model.event import Accepted, End, Event, Exited, Hello, Output, Started, Written
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Plan
from ajuste.model.trial import Slot
from ajuste.model.verdict import Finding
from ajuste.run.runner import Executors, Runner
from ajuste.store.store import Run, Store
from ajuste.study.read import parse_study, read_study
from ajuste.study.resolve import HOST_KERNEL, resolve
from ajuste.study.resolved import ResolvedStudy


class PlayedExecutor(Executor):
    """Keeps the ``plans`` that it was given; what becomes of them is the test's to say, in ``run``."""

    environment: dict[str, str] = {}
    parallel = 1

    def __init__(self) -> None:
        self.plans: list[Plan] = []

    @property
    def hello(self) -> Hello:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


@cache
def one_command() -> ResolvedStudy:
    """A study of one command on this machine, with one configuration."""
    tables = {"target": {"kind": "host"}, "analysis": {"metrics": ["elapsed"]}, "factor": []}
    study = parse_study({"name": "one", "workload": {"command": ["true"]}, **tables})
    here = {HOST_KERNEL: KernelVersion(major=6, minor=1)}
    return resolve(study, catalogue(), here, lambda name: f"/bin/{name}").model_copy(update={"counters": ()})


def trials(executor: Executor, blocks: int, *, each: int = 1, machine: str = "", first: int = 0) -> list[TrialRequest]:
    """Return the trials of some blocks: their plans are b0p0a0, b0p1a0 …"""
    study = one_command()
    return [
        TrialRequest(executor, study, Slot(block=n, position=place, configuration=study.baseline, seed=1), 0, machine)
        for n in range(first, first + blocks)
        for place in range(each)
    ]


def said_of(plan: str, at_ns: int = 1) -> str:
    """Return what an agent says of a trial of that study, as lines."""
    used: dict[str, Any] = {"user_ns": 1, "system_ns": 1, "voluntary_switches": 1, "involuntary_switches": 1}
    used |= {"minor_faults": 1, "major_faults": 0, "peak_rss_bytes": 1, "wall_ns": 1}
    events = (
        Accepted(at_ns=at_ns, id=plan),
        Started(at_ns=at_ns, role="workload", index=0, pid=2),
        Exited(at_ns=at_ns, role="workload", index=0, exit_code=0, **used),
        End(at_ns=at_ns + 1, id=plan, ok=True, events=3),
    )
    return "".join(f"{event.model_dump_json()}\n" for event in events)


def agent_events(plan: Plan, switches: int, exit_code: int = 0) -> Iterator[Event]:
    """Yield what an agent says of a clean trial of the workload ``matrix`` beside one background load."""
    yield Accepted(at_ns=1, id=plan.id)
    for write in plan.writes:
        yield Written(at_ns=2, tunable=write.tunable, asked=write.value, before="750000", after=write.value)
    yield Started(at_ns=3, role="background", index=0, pid=2)
    yield Started(at_ns=3, role="workload", index=0, pid=3)
    common: dict[str, Any] = {"user_ns": 1, "system_ns": 1, "voluntary_switches": 1, "minor_faults": 1}
    common |= {"major_faults": 0, "peak_rss_bytes": 1, "wall_ns": 10**9, "index": 0, "at_ns": 4}
    yield Exited(role="workload", exit_code=exit_code, involuntary_switches=switches, **common)
    yield Exited(role="background", signal=9, involuntary_switches=0, **common)
    text = "matrix size=100 repetitions=2 checksum=1\n"
    yield Output(at_ns=4, role="workload", index=0, stream="stdout", text=text)
    yield End(at_ns=5, id=plan.id, ok=True, events=7)


class Notes:
    """A watcher that remembers the blocks."""

    def __init__(self) -> None:
        self.blocks: list[int] = []

    def say(self, text: str) -> None: ...

    def warn(self, text: str) -> None: ...

    def study_begins(self, study: object) -> None: ...

    def trial_started(self, configuration: str, block: int) -> None: ...

    def trial_done(self, configuration: str, block: int, status: str, seconds: float) -> None: ...

    def block_done(self, block: int, findings: Sequence[Finding] | None) -> None:
        self.blocks.append(block)


def study_for_5_10(text: str, place: Path, *changes: tuple[str, str]) -> ResolvedStudy:
    """The study file ``text``, with ``changes`` of it, as it is carried out on that kernel."""
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path = place / "study.toml"
    path.write_text(text)
    read = read_study(path, catalogue(), parse_kernel=parse_spec)
    return resolve(read, catalogue(), {"debian:5.10": KernelVersion(major=5, minor=10)}, lambda name: f"/bin/{name}")


def begin(store: Store) -> Run:
    """A new run of whatever study."""
    return store.new_run(study="s", fingerprint="f", seed=1, ajuste="0", named="s", resolved="", environment={})


def carry_out(study: ResolvedStudy, run: Run, store: Store, target: Executor) -> Stop:
    """Carry ``study`` out on ``target``, and why that ended."""
    with Executors(lambda _: target, lambda *_: None) as targets:
        return Runner(study, run, store, targets, Notes()).carry_out()
