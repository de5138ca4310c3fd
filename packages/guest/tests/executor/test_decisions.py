"""Decisions of the scheduler in the lens are those that the kernel itself records, one after the other."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pytest

from ajuste.machine.home import WORKLOADS, Home
from ajuste.model.decision import KINDS, Decisions, NamedDecisions
from ajuste.model.event import Output
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Attributes, Command, Plan
from ajuste.model.trial import Observation
from ajuste_guest.analysis.divergence import divergence
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.executor.lens import LARGEST_BYTES, read_decisions
from decisions import stream
from tiers import slow

GUESTS = [
    "debian:6.12",
    *slow("debian:5.10", "debian:6.1", "debian:6.18", "debian:7.3", "debian:6.1 2", "debian:6.1 3"),
]
"""Kernels and their CPUs."""
MOST_APART_NS = 20_000
"""The kernel's record of a switch is some instructions before the switch itself, and its clock has microseconds."""


NUMBERS = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
"""The kernel's numbers of its system calls; gcc's C library needs it, too."""


class Seen(NamedTuple):
    """A decision as the kernel recorded it."""

    kind: str
    cpu: int
    task: int
    other: int
    stays: bool
    time_ns: int


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of ``decided.c``."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    made = tmp_path_factory.mktemp("decided") / "decided"
    subprocess.run(["gcc", "-O1", "-static", "-o", made, Path(__file__).with_name("decided.c")], check=True)
    return made


@pytest.fixture(scope="module", params=GUESTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def cpus(name: str) -> int:
    return int(name.partition(" ")[2] or 1)


@pytest.fixture(scope="module")
def target(
    name: str, cpus: int, place: Home, kernel: Callable[[str], KernelImage], program: Path
) -> Iterator[GuestExecutor]:
    image, files = kernel(name.partition(" ")[0]), GuestFiles(study_files={"decided": program})
    with GuestExecutor(image, clock="virtual", cpus=cpus, files=files, home=place) as entered:
        yield entered


@pytest.fixture(scope="module")
def job(cpus: int) -> Plan:
    """Return a plan in which each of several CPUs that take turns has a task that keeps it busy."""
    spins = (
        Command(argv=(f"/ajuste/bin/{WORKLOADS}", "spin"), attributes=Attributes(affinity=(cpu,)))
        for cpu in range(cpus if cpus > 1 else 0)
    )
    return Plan(id="decided", workload=Command(argv=("/study/decided",)), background=tuple(spins))


@pytest.fixture(scope="module")
def observed(target: GuestExecutor, job: Plan) -> Observation:
    observation = target.count(job, "decisions")
    assert observation.problem == ""
    return observation


def named(target: GuestExecutor, observed: Observation) -> NamedDecisions:
    assert observed.costs is not None
    assert observed.decisions is not None
    return target.named_decisions(observed.costs, observed.decisions)


def printed(observed: Observation) -> list[str]:
    """Return the lines that the program has printed of what the kernel has recorded."""
    (text,) = (
        e.text for e in observed.events if isinstance(e, Output) and e.role == "workload" and e.stream == "stdout"
    )
    return text.splitlines()


def recorded(observed: Observation) -> list[Seen]:
    """The decisions that the kernel has recorded."""
    decisions = []
    for line in printed(observed):
        match line.split():
            case ["S", cpu, task, other, state, at]:
                tasks = number(task, cpu), number(other, cpu)
                decisions.append(Seen("switch", int(cpu), *tasks, state[0] == "R", int(at) * 1000))
            case ["W" | "N" as kind, cpu, other, at]:
                tasks = -1, number(other, cpu)
                decisions.append(Seen({"W": "wakeup", "N": "new"}[kind], int(cpu), *tasks, False, int(at) * 1000))
    return decisions


def number(task: str, cpu: str) -> int:
    """Return the number of a task; all idle tasks have the number 0."""
    return int(task) or -1 - int(cpu)


@pytest.mark.vm
def test_every_switch_and_wakeup_is_the_kernels_own(target: GuestExecutor, cpus: int, observed: Observation) -> None:
    decisions, seen = named(target, observed), recorded(observed)
    assert len(seen) > 300
    assert {decision.kind for decision in seen} == {"switch", "wakeup", "new"}
    assert {decision.stays for decision in seen if decision.kind == "switch"} == {True, False}
    assert {decision.cpu for decision in seen} == set(range(cpus))
    both = [pair for cpu in range(cpus) for pair in matched(decisions, seen, cpu)]
    assert are_same(decisions, both)
    apart = [decisions.time_ns(place) - decision.time_ns for place, decision in both]
    far = [difference_ns for difference_ns in apart if abs(difference_ns - median(apart)) >= MOST_APART_NS]
    # Another CPU can have its turn before what is decided is recorded.
    assert len(far) <= (len(apart) // 50 if cpus > 1 else 0)


@pytest.mark.vm
def test_every_system_call_is_the_kernels_own(target: GuestExecutor, cpus: int, observed: Observation) -> None:
    decisions, seen = named(target, observed), recorded(observed)
    pids = {
        decisions.others[place]: decision.other
        for cpu in range(cpus)
        for place, decision in matched(decisions, seen, cpu)
    }
    at_kernel = system_calls(observed)
    begins, ends = [], []
    for task in {task.number for task in decisions.tasks if task.role == "workload"} & set(pids):
        there = at_kernel[pids[task]]
        calls = [place for place, caller in enumerate(decisions.calls.tasks) if caller == task]
        names = [decisions.functions[decisions.calls.functions[place]].removeprefix("__x64_sys_") for place in calls]
        wanted = [name for name, *_ in there]
        (first,) = (start for start in range(len(names)) if names[start : start + len(wanted)] == wanted)
        for place, (_, begins_ns, ends_ns) in zip(calls[first:], there, strict=False):
            own_begins_ns, own_ends_ns = decisions.call_ns(place)
            begins.append(own_begins_ns - begins_ns)
            # Where the task has to make way before it is back in user space its end is later than the kernel says.
            if (
                own_ends_ns is not None
                and ends_ns is not None
                and not leaves(decisions, task, ends_ns + begins[0], own_ends_ns)
            ):
                ends.append(own_ends_ns - ends_ns)
    assert len(begins) > 450
    assert len(ends) > 400
    far = [difference_ns for difference_ns in (*begins, *ends) if abs(difference_ns - median(begins)) >= MOST_APART_NS]
    assert len(far) <= (len(begins) // 25 if cpus > 1 else 0)


def leaves(decisions: NamedDecisions, task: int, from_ns: int, until_ns: int) -> bool:
    """Return whether a task leaves its CPU then."""
    switch = KINDS.index("switch")
    return any(
        kind == switch and running == task and from_ns <= decisions.time_ns(place) <= until_ns
        for place, (kind, running) in enumerate(zip(decisions.kinds, decisions.running, strict=True))
    )


def system_calls(observed: Observation) -> dict[int, list[tuple[str, int, int | None]]]:
    """Return the calls that the kernel has recorded of each task: name, begin, end."""
    names = {int(place): name for name, place in re.findall(r"#define __NR_(\w+) (\d+)", NUMBERS.read_text())}
    calls: dict[int, list[tuple[str, int, int | None]]] = {}
    for line in printed(observed):
        match line.split():
            case ["B", task, which, at]:
                calls.setdefault(int(task), []).append((names[int(which)], int(at) * 1000, None))
            case ["E", task, which, at] if (of_task := calls.get(int(task))) and of_task[-1][0] == names[int(which)]:
                of_task[-1] = (*of_task[-1][:2], int(at) * 1000)
    return calls


def matched(decisions: NamedDecisions, seen: list[Seen], cpu: int) -> list[tuple[int, Seen]]:
    """The decisions of a CPU, and what it recorded of them. The program began to record after the workload's start, and
    ended before its end.
    """
    places = [
        place
        for place, kind in enumerate(decisions.kinds)
        if decisions.cpus[place] == cpu and KINDS[kind] in ("switch", "wakeup", "new")
    ]
    there = [decision for decision in seen if decision.cpu == cpu]
    possible = [list(zip(places[first:], there, strict=False)) for first in range(len(places) - len(there) + 1)]
    (fitting,) = (pairs for pairs in possible if are_same(decisions, pairs))
    return fitting


def are_same(decisions: NamedDecisions, pairs: list[tuple[int, Seen]]) -> bool:
    """Return whether they are the same decisions, each task of the first being one of the second."""
    tasks: dict[int, int] = {}
    for place, decision in pairs:
        if KINDS[decisions.kinds[place]] != decision.kind or decisions.stays[place] != decision.stays:
            return False
        both = [(decisions.others[place], decision.other)]
        if decision.kind == "switch":
            both.append((decisions.running[place], decision.task))
        if any(tasks.setdefault(task, pid) != pid for task, pid in both):
            return False
    return len(set(tasks.values())) == len(tasks)


@pytest.mark.slow
@pytest.mark.vm
def test_the_guest_does_not_notice_and_every_repeat_decides_the_same(
    target: GuestExecutor, job: Plan, observed: Observation, repeats: int
) -> None:
    assert target.run(job).lines == observed.lines
    first = named(target, observed)
    again = [target.count(job, "decisions") for _ in range(repeats)]
    assert {observation.lines for observation in again} == {observed.lines}
    assert {observation.decisions for observation in again} == {observed.decisions}
    divergent = divergence(first, named(target, again[0]))
    assert divergent.spread is None
    assert divergent.alike == divergent.baseline.decisions > 300


@pytest.mark.vm
def test_paths_say_why(target: GuestExecutor, observed: Observation) -> None:
    decisions = named(target, observed)
    assert decisions.has_clock
    paths: dict[str, list[tuple[str, ...]]] = {kind: [] for kind in KINDS}
    for place, kind in enumerate(decisions.kinds):
        paths[KINDS[kind]].append(decisions.path(place))
    assert all("__schedule" in path for path in paths["switch"])
    assert all("try_to_wake_up" in path or "sched_ttwu_pending" in path for path in paths["wakeup"])
    assert all("resched_curr" in path or "__resched_curr" in path for path in paths["resched"])
    assert any("entry_SYSCALL_64" in path[0] and "try_to_wake_up" in path for path in paths["wakeup"])
    assert any("asm_sysvec_apic_timer_interrupt" in path for path in paths["resched"])
    assert {task.name for task in decisions.tasks if task.role == "workload"} == {"decided"}
    assert {task.role for task in decisions.tasks} >= {"workload", "idle", "kernel"}


def document() -> dict[str, Any]:
    taken = stream([("new", 0), ("switch", 4)])
    return taken.model_dump(mode="json", exclude={"functions", "instruction_ns"}) | {"version": 1}


def test_what_the_lens_wrote_is_read(tmp_path: Path) -> None:
    file = tmp_path / "decisions"
    file.write_text(json.dumps(document()))
    assert read_decisions(file) == (Decisions.model_validate(document()), "")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "malformed"),
        (b"\xff", "malformed"),
        (b"[]", "malformed"),
        (b"[" * 100_000, "malformed"),
        (json.dumps(document() | {"at": [2, 1]}).encode(), "not in the order"),
        (json.dumps(document() | {"cpus": [-1, 0]}).encode(), "malformed (cpus.0: "),
        (b" " * (LARGEST_BYTES + 1), "more than 64 MiB"),
    ],
)
def test_whatever_stands_there_is_a_problem_in_one_line(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "decisions"
    file.write_bytes(content)
    decisions, problem_found = read_decisions(file)
    assert decisions is None
    assert problem in problem_found
    assert "\n" not in problem_found


def test_no_document_is_a_problem(tmp_path: Path) -> None:
    assert "wrote no decisions: it did not see" in read_decisions(tmp_path / "decisions")[1]
