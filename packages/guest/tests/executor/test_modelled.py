"""The modelled machine: what it says is what a hand computes and another simulator finds, and the guest is the same."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import WORKLOADS, Home
from ajuste.model.cost import CostModelled, Costs
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage
from ajuste.model.modelled import ModelledMachine
from ajuste.model.plan import Attributes, Command, MemoryNode, Plan
from ajuste.model.topology import Topology
from ajuste.model.trial import Observation
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles

TEXTBOOK = catalogue().machines["textbook"]
LINE_BYTES = 64


@pytest.fixture(scope="module")
def accesses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of ``accesses.c``."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    program = tmp_path_factory.mktemp("accesses") / "accesses"
    source = Path(__file__).with_name("accesses.c")
    subprocess.run(["gcc", "-O1", "-static", "-o", program, source], check=True)
    return program


@pytest.fixture(scope="module")
def target(place: Home, kernel: Callable[[str], KernelImage], accesses: Path) -> Iterator[GuestExecutor]:
    files = GuestFiles(study_files={"accesses": accesses})
    with GuestExecutor(kernel("debian:5.10"), clock="virtual", files=files, home=place) as entered:
        yield entered


def words(what: str, kib: int, rounds: int) -> tuple[str, ...]:
    """Return arguments that are as long whatever they say."""
    return what, f"{kib:04}", f"{rounds:04}"


def job(what: str, kib: int, rounds: int) -> Plan:
    return Plan(id="model", workload=Command(argv=("/study/accesses", *words(what, kib, rounds))))


def costs_of(observation: Observation) -> Costs:
    assert observation.problem == ""
    assert observation.costs is not None
    return observation.costs


def in_user_space(costs: Costs) -> CostModelled:
    (task,) = (task for task in costs.tasks if task.role == "workload")
    assert task.modelled is not None
    return task.modelled.user


def rounds(target: GuestExecutor, what: str, kib: int, machine: ModelledMachine = TEXTBOOK) -> list[float]:
    """Return by line (chase) or pair of lines (copy): loads, and what missed L1, the LLC, the first TLB and both."""
    few, many = (in_user_space(costs_of(target.count(job(what, kib, n), "counts", machine))) for n in (100, 300))
    lines = 200 * (kib << 10) // LINE_BYTES
    counts = [
        (modelled.loads, modelled.misses.l1d, modelled.misses.llc, modelled.misses.tlb, modelled.misses.walks)
        for modelled in (few, many)
    ]
    return [(after - before) / lines for before, after in zip(*counts, strict=True)]


@pytest.mark.vm
def test_the_guest_does_not_notice_and_every_repeat_models_the_same(target: GuestExecutor, repeats: int) -> None:
    plan = job("chase", 8, 100)
    alone, counted = target.run(plan), target.count(plan, "counts")
    again = [target.count(plan, "counts", TEXTBOOK) for _ in range(repeats)]
    by_function = target.count(plan, "functions", TEXTBOOK)
    assert {observation.lines for observation in (counted, *again, by_function)} == {alone.lines}
    assert len({costs_of(observation).model_dump_json() for observation in again}) == 1
    modelled, plain = costs_of(again[0]), costs_of(counted)
    assert [task.user + task.kernel for task in modelled.tasks] == [task.user + task.kernel for task in plain.tasks]
    assert in_user_space(modelled) == in_user_space(costs_of(by_function))
    assert all(task.modelled is None for task in plain.tasks)


@pytest.mark.vm
@pytest.mark.slow
def test_the_steps_of_a_chase_are_where_the_sizes_say(target: GuestExecutor) -> None:
    """L1 has 4 KiB, the LLC 64 KiB, the TLBs 16 and 64 pages of 4 KiB."""
    loads, l1d, llc, tlb, walks = rounds(target, "chase", 2)
    assert loads == pytest.approx(1, rel=1e-9)
    assert max(l1d, llc, tlb, walks) < 0.02
    _, l1d, llc, tlb, walks = rounds(target, "chase", 32)
    assert l1d > 0.9
    assert max(llc, tlb, walks) < 0.02
    # 32 pages: the next of a random cycle is one of the 16 that the first TLB has half of the time.
    _, l1d, llc, tlb, walks = rounds(target, "chase", 128)
    assert l1d > 0.97
    assert llc > 0.9
    assert tlb == pytest.approx(0.5, abs=0.05)
    assert walks < 0.02
    _, l1d, llc, tlb, walks = rounds(target, "chase", 1024)
    assert min(l1d, llc) > 0.97
    assert walks == pytest.approx(1 - 64 / 256, abs=0.05)


@pytest.mark.vm
@pytest.mark.slow
def test_pages_are_as_large_as_the_guests_own(
    place: Home, kernel: Callable[[str], KernelImage], accesses: Path
) -> None:
    """The TLBs know 64 of 256 pages of 4 KiB; in pages of 2 MiB the same memory is one."""
    files = GuestFiles(study_files={"accesses": accesses})
    # With less than 512 MiB Linux gives no huge pages unless it is told to.
    guest = GuestExecutor(kernel("debian:6.1"), clock="virtual", memory_mib=640, files=files, home=place)
    with guest as target:
        assert rounds(target, "chase", 1024)[4] == pytest.approx(1 - 64 / 256, abs=0.05)
        *_, tlb, walks = rounds(target, "large", 1024)
        assert max(tlb, walks) < 0.02
        modelled = in_user_space(costs_of(target.count(job("large", 1024, 100), "counts", TEXTBOOK)))
        assert 0 < modelled.misses.skipped_levels <= modelled.misses.walks


@pytest.mark.vm
def test_a_copy_misses_once_for_each_line_of_both_arrays(target: GuestExecutor) -> None:
    loads, l1d, llc, _, walks = rounds(target, "copy", 256)
    assert loads == pytest.approx(LINE_BYTES / 8, rel=1e-9)
    assert l1d == pytest.approx(2, rel=0.01)
    assert llc == pytest.approx(2, rel=0.02)
    # Each page of both is walked to once in 64 lines.
    assert walks == pytest.approx(2 * LINE_BYTES / 4096, rel=0.05)


@pytest.mark.vm
@pytest.mark.parametrize(("what", "kib", "count"), [("matrix", 32, 4), ("copy", 256, 100), ("chase", 16, 9000)])
@pytest.mark.slow
def test_cachegrind_finds_the_same(
    target: GuestExecutor, accesses: Path, tmp_path: Path, what: str, kib: int, count: int
) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    out = tmp_path / "cachegrind"
    sizes = ("--I1=4096,2,64", "--D1=4096,2,64", "--LL=65536,4,64")
    options = ("--tool=cachegrind", "--cache-sim=yes", *sizes, f"--cachegrind-out-file={out}")
    subprocess.run(["valgrind", *options, accesses, *words(what, kib, count)], check=True, capture_output=True)
    lines = dict(line.split(": ", 1) for line in out.read_text().splitlines() if ": " in line)
    theirs = dict(zip(lines["events"].split(), map(int, lines["summary"].split()), strict=True))
    ours = in_user_space(costs_of(target.count(job(what, kib, count), "counts", TEXTBOOK)))
    assert ours.loads == pytest.approx(theirs["Dr"], rel=0.02)
    assert ours.misses.l1d == pytest.approx(theirs["D1mr"] + theirs["D1mw"], rel=0.02)
    if what == "copy":  # Sets of physical memory are others than those of virtual memory, where a set is not full.
        assert ours.misses.llc == pytest.approx(theirs["DLmr"] + theirs["DLmw"] + theirs["ILmr"], rel=0.02)


@pytest.mark.vm
@pytest.mark.slow
def test_lines_of_another_nodes_memory_are_as_many_as_the_kernel_has_pages_there(
    place: Home, kernel: Callable[[str], KernelImage]
) -> None:
    nodes = (
        MemoryNode(cpus=1, memory_mib=256, distances=(10, 31)),
        MemoryNode(memory_mib=128, distances=(31, 10)),
    )
    machine = catalogue().machines["skylake-server"]
    mib, lines_of_page = 16, 4096 // LINE_BYTES
    with GuestExecutor(
        kernel("debian:6.1"), clock="virtual", memory_mib=384, files=GuestFiles(), home=place, nodes=nodes
    ) as guest:
        for policy, share in (("local", 0.0), ("remote", 1.0), ("interleave", 0.5)):
            argv = (f"/ajuste/bin/{WORKLOADS}", "pages", "--policy", policy, "--mib", str(mib))
            observation = guest.count(Plan(id="nodes", workload=Command(argv=argv)), "counts", machine)
            there = re.search(r"remote=(\d+)", observation.lines)
            assert there is not None
            assert int(there[1]) == share * (mib << 20) / 4096
            missed = [task.modelled.misses for task in costs_of(observation).tasks if task.modelled is not None]
            remote, distance = sum(misses.remote for misses in missed), sum(misses.distance for misses in missed)
            assert distance == 21 * remote
            # Some more of the kernel's own are there, such as page tables.
            expected = int(there[1]) * lines_of_page
            assert expected <= remote <= 1.1 * expected + 1_000


@pytest.mark.vm
@pytest.mark.slow
def test_threads_of_a_core_drive_each_others_lines_out_and_cores_do_not(
    place: Home, kernel: Callable[[str], KernelImage], accesses: Path
) -> None:
    """L1 has room for the 48 lines of one program. Turns of 1 µs are some dozens of its rounds."""
    cores = {"cores": 2, "llc": TEXTBOOK.llc.model_copy(update={"cores": 2}) if TEXTBOOK.llc else None}
    machine = TEXTBOOK.model_copy(update=cores)
    shape = Topology(cores=2, threads=2)
    files = GuestFiles(study_files={"accesses": accesses})

    def on(cpu: int, rounds: int) -> Command:
        argv = ("/study/accesses", *words("chase", 3, rounds))
        return Command(argv=argv, attributes=Attributes(affinity=(cpu,)))

    def missed(guest: GuestExecutor, other: int) -> float:
        """Return the misses of each round."""
        plans = (Plan(id="model", workload=on(0, rounds), background=(on(other, 9999),)) for rounds in (200, 600))
        few, many = (in_user_space(costs_of(guest.count(plan, "counts", machine))) for plan in plans)
        assert many.loads - few.loads == 400 * 48
        return (many.misses.l1d - few.misses.l1d) / 400

    with GuestExecutor(
        kernel("debian:6.12"),
        clock="virtual",
        cpus=shape.cpus,
        topology=shape,
        turn_us=1,
        files=files,
        home=place,
    ) as guest:
        apart, together = missed(guest, 2), missed(guest, 1)
    assert apart < 1
    assert together > 10


def test_a_machine_that_does_not_fit_the_guest_is_refused(place: Home) -> None:
    image = KernelImage(spec="debian:5.10", release="5.10", vmlinuz=Path("/k/vmlinuz"), sha256="0" * 64)
    nodes = (MemoryNode(cpus=1, memory_mib=128), MemoryNode(cpus=2, memory_mib=128))
    guest = GuestExecutor(image, clock="virtual", cpus=3, files=GuestFiles(), home=place, nodes=nodes)
    with pytest.raises(RequestError, match="textbook does not fit the guest: it has 1 core, the guest 2 CPUs"):
        guest.count(job("copy", 4, 1), "counts", TEXTBOOK)
