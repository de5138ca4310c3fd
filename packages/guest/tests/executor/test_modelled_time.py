"""Guests that have the time of a modelled machine: what their accesses cost there, the same in every repeat."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import WORKLOADS, Home
from ajuste.model.error import RequestError
from ajuste.model.event import Exited, Output
from ajuste.model.kernel import KernelImage
from ajuste.model.modelled import ModelledMachine
from ajuste.model.plan import Command, MemoryNode, Plan
from ajuste.model.topology import Topology
from ajuste.model.trial import Observation
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.executor.lens import machine_text
from ajuste_guest.executor.qemu import GuestLayout
from benchmarks import parallel

SPEC = "debian:6.12"
TOPOLOGY = Topology(cores=4, llc_groups=2)
PROGRAM = f"/ajuste/bin/{WORKLOADS}"


def textbook(cores: int = 1, cores_of_llc: int = 1) -> ModelledMachine:
    """L1 of 4 KiB, LLC of 64 KiB; an instruction takes 1 ns, the LLC 10, memory 100, a walk 20."""
    machine = catalogue().machines["textbook"]
    assert machine.llc is not None
    return machine.model_copy(update={"cores": cores, "llc": machine.llc.model_copy(update={"cores": cores_of_llc})})


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> GuestFiles:
    """The programs of ``across.c`` and ``costs.c``."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    folder = tmp_path_factory.mktemp("programs")
    return GuestFiles(study_files={name: parallel.built(folder, name) for name in ("across", "costs")})


@pytest.fixture(scope="module")
def target(place: Home, kernel: Callable[[str], KernelImage], costs: GuestFiles) -> Iterator[GuestExecutor]:
    """Four CPUs, of which two share an LLC each."""
    guest = GuestExecutor(
        kernel(SPEC), clock="virtual", cpus=4, files=costs, home=place, topology=TOPOLOGY, paced_by=textbook(4, 4)
    )
    with guest as entered:
        yield entered


def plan_of(*words: object) -> Plan:
    return Plan(id="costs", workload=Command(argv=("/study/costs", *map(str, words))))


def printed(observation: Observation) -> list[float]:
    """Return the times that the workload printed, in ns."""
    assert observation.problem == ""
    (text,) = (e.text for e in observation.events if isinstance(e, Output) and e.stream == "stdout")
    return [int(figure) / 1000 for figure in re.findall(r"\d+", text)]


@pytest.mark.slow
@pytest.mark.vm
def test_a_load_takes_what_the_level_that_has_it_takes(target: GuestExecutor) -> None:
    (loop,) = printed(target.run(plan_of("chase", 2, 0)))
    (llc,) = printed(target.run(plan_of("chase", 48, 0)))
    (memory,) = printed(target.run(plan_of("chase", 1024, 0)))
    assert 3 <= loop <= 8
    assert llc - loop == pytest.approx(10, rel=0.15)
    # Of 256 pages the second TLB knows a quarter, and the others are walked to.
    assert memory - loop == pytest.approx(100 + 5 * 64 / 256 + 20 * (1 - 64 / 256), rel=0.06)


@pytest.mark.slow
@pytest.mark.vm
def test_cpus_that_store_to_one_line_wait_for_it_each_time(target: GuestExecutor) -> None:
    ways = ((64, 1), (8, 1), (8, 2))
    (apart,), (near,), (far,) = (printed(target.run(plan_of("share", by, 20_000, 0, cpu))) for by, cpu in ways)
    assert apart < 8
    assert near - apart == pytest.approx(10, rel=0.2)
    # A turn may end between the load and the store, which then costs nothing: not each round waits.
    assert 3 * (near - apart) < far - apart < 110


@pytest.mark.slow
@pytest.mark.vm
def test_tasks_that_share_a_last_level_cache_hand_on_faster(target: GuestExecutor) -> None:
    (near,), (far,) = (printed(target.run(plan_of("pass", 32, 300, 0, other))) for other in (1, 2))
    # Both fetch 32 lines in each round trip.
    assert far - near == pytest.approx(2 * 32 * (100 - 10), rel=0.2)


@pytest.mark.slow
@pytest.mark.vm
def test_a_task_that_moves_finds_a_cold_cache(target: GuestExecutor) -> None:
    lines = (32 << 10) // 64
    for other, latency in ((1, 10), (2, 100)):
        stays, moves = printed(target.run(plan_of("move", 32, 10, 0, other)))
        assert moves - stays > 0.5 * lines * (latency - 10) / 1000, other


@pytest.mark.vm
def test_memory_of_another_node_is_as_far_as_its_distance_says(
    place: Home, kernel: Callable[[str], KernelImage], costs: GuestFiles
) -> None:
    """Compare the time of a chase on one CPU."""
    nodes = (MemoryNode(cpus=1, memory_mib=192, distances=(10, 31)), MemoryNode(memory_mib=96, distances=(31, 10)))
    guest = GuestExecutor(
        kernel(SPEC), clock="virtual", memory_mib=288, files=costs, home=place, nodes=nodes, paced_by=textbook()
    )
    with guest:
        (near,), (far,) = (printed(guest.run(plan_of("chase", 512, 0, node))) for node in (0, 1))
    assert far - near == pytest.approx(100 * 2.1, rel=0.05)


@pytest.mark.vm
def test_a_busy_host_changes_nothing_and_the_lens_neither(
    target: GuestExecutor, kinds_of_trials: Callable[[GuestExecutor, Command], int]
) -> None:
    assert kinds_of_trials(target, Command(argv=("/study/across", "futex", "4", "100"))) == 1


@pytest.mark.vm
def test_the_time_on_a_cpu_is_what_the_model_says_of_it(target: GuestExecutor) -> None:
    plan = Plan(id="time", workload=Command(argv=(PROGRAM, "matrix", "--size", "100", "--repetitions", "4")))
    observation = target.count(plan, "counts")
    assert observation.problem == ""
    assert observation.costs is not None
    assert observation.costs.machine is not None
    (ended,) = (e for e in observation.events if isinstance(e, Exited) and e.role == "workload")
    (task,) = (task for task in observation.costs.tasks if task.role == "workload")
    assert task.modelled is not None
    missed = task.modelled.user.misses.plus(task.modelled.kernel.misses)
    modelled_s = observation.costs.machine.seconds(task.user + task.kernel, missed)
    assert (ended.user_ns + ended.system_ns) / 1e9 == pytest.approx(modelled_s, rel=0.01)
    assert ended.wall_ns / 1e9 == pytest.approx(modelled_s, rel=0.02)


def test_the_lens_is_told_what_takes_how_long() -> None:
    machine, layout = catalogue().machines["zen4-8c"], GuestLayout(256)
    assert "times" not in json.loads(machine_text(machine, layout))
    times = json.loads(machine_text(machine, layout, 100))["times"]
    assert times["quantum_ns"] == 100
    assert times["memory_fs"] == 73_000_000
    assert times["instruction_fs"] * 6 == pytest.approx(1e9 / 4500, rel=1e-5)
    assert times["second_fs"] * 50 == pytest.approx(times["last_fs"] * 14, rel=1e-5)


def test_a_guest_that_boots_for_each_trial_is_refused(place: Home) -> None:
    image = KernelImage(spec="debian:6.12", release="6.12", vmlinuz=Path("/k/vmlinuz"), sha256="0" * 64)
    with pytest.raises(RequestError, match="starts every trial from a snapshot"):
        GuestExecutor(image, clock="virtual", files=GuestFiles(), home=place, paced_by=textbook(), snapshot=False)


def test_no_other_machine_is_modelled_in_it(place: Home) -> None:
    image = KernelImage(spec="debian:6.12", release="6.12", vmlinuz=Path("/k/vmlinuz"), sha256="0" * 64)
    guest = GuestExecutor(image, clock="virtual", files=GuestFiles(), home=place, paced_by=textbook())
    with pytest.raises(RequestError, match="has the time of the modelled machine textbook"):
        guest.count(plan_of("chase", 2, 0), "counts", catalogue().machines["zen4-8c"])
