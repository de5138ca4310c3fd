"""The lens in guests whose CPUs take turns: every instruction belongs to the task that carried it out."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import WORKLOADS, Home
from ajuste.model.cost import Costs
from ajuste.model.event import Exited, Started
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Attributes, Command, Plan
from ajuste.model.trial import Observation
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.kernel.symbols import function_names, kernel_symbols
from benchmarks import planted

INSTRUCTION_NS = 2
CPUS = 2


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The programs of ``counted.c``, ``wander.c`` and ``counters.c``."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    place = tmp_path_factory.mktemp("programs")
    sources = [Path(__file__).with_name(name) for name in ("counted.c", "wander.c")]
    for source in (*sources, Path(planted.__file__).with_name("counters.c")):
        options = ("-O1", "-static", "-pthread", "-o", place / source.stem)
        subprocess.run(["gcc", *options, source], check=True)
    return {program.name: program for program in place.iterdir()}


@pytest.fixture(scope="module")
def target(place: Home, kernel: Callable[[str], KernelImage], programs: dict[str, Path]) -> Iterator[GuestExecutor]:
    image, files = kernel("debian:6.1"), GuestFiles(study_files=programs)
    with GuestExecutor(image, clock="virtual", cpus=CPUS, parallel=False, files=files, home=place) as entered:
        yield entered


def job(program: str, *words: str, cpu: int | None = None, busy: tuple[int, ...] = (0, 1)) -> Plan:
    """``program`` on ``cpu``, or wherever it goes, beside a task on each of the CPUs that are to be ``busy``: where all
    are idle the clock goes on without instructions.
    """
    on = Attributes(affinity=(cpu,)) if cpu is not None else Attributes()
    spins = (
        Command(argv=(f"/ajuste/bin/{WORKLOADS}", "spin"), attributes=Attributes(affinity=(number,))) for number in busy
    )
    return Plan(id="lens", workload=Command(argv=(f"/study/{program}", *words), attributes=on), background=tuple(spins))


def counted(loops: int, cpu: int) -> Plan:
    return job("counted", str(loops), "000001", "000001", cpu=cpu)


def costs_of(observation: Observation) -> Costs:
    assert observation.problem == ""
    assert observation.costs is not None
    return observation.costs


@pytest.mark.vm
@pytest.mark.parametrize("cpu", range(CPUS))
def test_a_task_is_counted_on_the_cpu_that_carries_it_out(target: GuestExecutor, cpu: int) -> None:
    # strtol(3) needs as long for the one as for the other.
    less, more = (costs_of(target.count(counted(loops, cpu), "counts")) for loops in (200_000, 500_000))
    (shorter,) = (task for task in less.tasks if task.role == "workload")
    (longer,) = (task for task in more.tasks if task.role == "workload")
    assert longer.user - shorter.user == 2 * 300_000
    assert sum(task.user for task in more.tasks if task.role == "background") > longer.user // 2


@pytest.mark.slow
@pytest.mark.vm
def test_the_guest_does_not_notice_and_every_repeat_counts_the_same(target: GuestExecutor, repeats: int) -> None:
    plan = job("wander", "20", "5")
    alone = target.run(plan)
    again = [target.count(plan, "counts") for _ in range(repeats)]
    assert {observation.lines for observation in again} == {alone.lines}
    assert len({costs_of(observation).model_dump_json() for observation in again}) == 1
    by_function = target.count(plan, "functions")
    assert by_function.lines == alone.lines
    first, second = costs_of(again[0]), costs_of(by_function)
    assert (first.user, first.kernel, first.faulted) == (second.user, second.kernel, second.faulted)
    assert [task.user for task in first.tasks] == [task.user for task in second.tasks]


@pytest.mark.vm
def test_the_sum_of_all_cpus_is_what_the_emulator_counted(target: GuestExecutor) -> None:
    """The guest's clock is the emulator's own count. The kernel knows its rate to some millionths."""
    observation = target.count(job("wander", "40", "20"), "counts")
    costs = costs_of(observation)
    (began,) = (e.at_ns for e in observation.events if isinstance(e, Started) and e.role == "workload")
    (ended,) = (e.at_ns for e in observation.events if isinstance(e, Exited) and e.role == "workload")
    assert costs.instructions - costs.faulted == pytest.approx((ended - began) / INSTRUCTION_NS, rel=1e-4)


@pytest.mark.vm
@pytest.mark.slow
def test_a_task_keeps_its_calls_when_it_goes_to_another_cpu(
    target: GuestExecutor, place: Home, kernel: Callable[[str], KernelImage]
) -> None:
    rounds = 30
    costs = costs_of(target.count(job("wander", str(rounds), "10"), "functions"))
    names = function_names(kernel_symbols(kernel("debian:6.1"), place))
    family = [task for task in costs.tasks if task.role == "workload"]
    assert len(family) == rounds + 1
    parent, *children = sorted(family, key=lambda task: task.number)
    assert {child.parent for child in children} == {parent.number}

    def calls(task_frames: tuple[tuple[str, int], ...], name: str) -> int:
        return sum(count for known, count in task_frames if known == name)

    of_parent = tuple((names.get(frame.address, ""), frame.calls) for frame in parent.frames)
    assert calls(of_parent, "__x64_sys_getppid") == calls(of_parent, "__x64_sys_sched_setaffinity") == rounds
    # All of them by one way: main, wander, go_to, the system call.
    (way,) = (f for f in parent.frames if names.get(f.address) == "__x64_sys_getppid")
    assert way.calls == rounds
    assert all(
        sum(f.calls for f in child.frames if names.get(f.address) == "__x64_sys_sched_setaffinity") == 1
        for child in children
    )
    for task in costs.tasks:
        assert sum(frame.instructions for frame in task.frames) == task.user + task.kernel


@pytest.mark.vm
def test_every_cpu_has_an_idle_task_of_its_own(target: GuestExecutor) -> None:
    costs = costs_of(target.count(job("wander", "20", "5", busy=()), "counts"))
    idle = [task for task in costs.tasks if task.role == "idle"]
    assert len(idle) == CPUS
    assert all(task.user == 0 and task.kernel > 0 for task in idle)


@pytest.mark.vm
@pytest.mark.slow
def test_cpus_that_halt_do_so_at_the_same_moment_each_time(target: GuestExecutor) -> None:
    """Repeat a trial: without the lens one of five on a busy machine differed by nanoseconds (`benchmarks.repeats`)."""
    sleeps = [
        Command(argv=(f"/ajuste/bin/{WORKLOADS}", "jitter", "--interval-us", interval)) for interval in ("100", "130")
    ]
    plan = Plan(id="halts", workload=sleeps[0], background=(sleeps[1],))
    with ThreadPoolExecutor(3) as pool:
        transcripts = {observation.lines for observation in pool.map(target.run, [plan] * 9)}
    assert len(transcripts) == 1
    assert target.count(plan, "functions").lines in transcripts


def counters(bytes_apart: int) -> Plan:
    return Plan(id="turns", workload=Command(argv=("/study/counters", f"{bytes_apart:02}", "100000")))


def shared_lines(guest: GuestExecutor, bytes_apart: int) -> tuple[Observation, int]:
    """Return what was seen of two threads that count in words so far apart, and the lines taken from each other."""
    observation = guest.count(counters(bytes_apart), "counts", catalogue().machines["zen4-8c"])
    modelled = [task.modelled for task in costs_of(observation).tasks if task.role == "workload"]
    return observation, sum(costs.user.misses.lost for costs in modelled if costs is not None)


@pytest.mark.vm
@pytest.mark.slow
def test_cpus_that_take_short_turns_take_lines_from_each_other(
    place: Home, kernel: Callable[[str], KernelImage], programs: dict[str, Path], target: GuestExecutor
) -> None:
    image, files = kernel("debian:6.1"), GuestFiles(study_files=programs)
    turn_us = 5
    with GuestExecutor(
        image, clock="virtual", cpus=CPUS, parallel=False, files=files, home=place, turn_us=turn_us
    ) as guest:
        seen, together = shared_lines(guest, 8)
        again, _ = shared_lines(guest, 8)
        _, apart = shared_lines(guest, 64)
        assert guest.run(counters(8)).lines == seen.lines == again.lines
    _, long_turns = shared_lines(target, 8)
    # Both CPUs have a part of each turn, and take the line in it; what is left of a turn is shared once more.
    instructions = sum(task.user for task in costs_of(seen).tasks if task.role == "workload")
    turns = instructions * INSTRUCTION_NS / (turn_us * 1000)
    assert 0.9 * CPUS * turns <= together - apart <= 2 * CPUS * turns
    assert long_turns - apart < turns / 10
