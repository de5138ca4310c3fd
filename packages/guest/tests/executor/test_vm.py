"""Guests with real kernels: exactness, and that whatever they do becomes an observation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from ajuste.machine.files import file_sha256
from ajuste.machine.home import WORKLOADS, Home, native_program
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Exited, Output, ReadBack, Written
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Attributes, Command, FileLocation, Perturbation, Plan, Read, User, Write
from ajuste.model.trial import Observation
from ajuste.study.site import GUEST_USER
from ajuste_guest.executor import guest as vm
from ajuste_guest.executor import machine
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from tiers import slow

pytestmark = pytest.mark.vm

BUNDLED = f"/ajuste/bin/{WORKLOADS}"
GRANULARITY = FileLocation(path="/proc/sys/kernel/sched_min_granularity_ns")


def contest(granularity_ns: int = 750_000, seed: int = 0) -> Plan:
    """A fixed job against an endless one."""
    return Plan(
        id="contest",
        reads=(Read(tunable="granularity", location=GRANULARITY),),
        writes=(Write(tunable="granularity", location=GRANULARITY, value=str(granularity_ns)),),
        background=(Command(argv=(BUNDLED, "spin"), attributes=Attributes(nice=1)),),
        workload=Command(argv=(BUNDLED, "matrix", "--size", "100", "--repetitions", "10")),
        counters=("context-switches",),
        perturbation=Perturbation(entropy=seed, start_delay_ns=seed * 1000),
    )


def hostile_plan(what: str, user: User | None = None) -> Plan:
    """``hostile.c`` forges the end of a plan of this name."""
    command = Command(argv=("/study/hostile", what), user=user, directory="/tmp")
    return Plan(id="hostile", workload=command, timeout_ns=1_000_000_000, output_limit_bytes=1 << 16)


def measured(observation: Observation) -> Exited:
    """The workload's end as the agent saw it, in a trial without any problem."""
    assert observation.problem == ""
    return next(e for e in observation.events if isinstance(e, Exited) and e.role == "workload")


def printed(observation: Observation) -> str:
    return "".join(e.text for e in observation.events if isinstance(e, Output) and e.stream == "stdout")


@contextmanager
def busy_cpus() -> Iterator[None]:
    """More load than this machine has CPUs."""
    hogs = [subprocess.Popen([native_program(WORKLOADS), "spin"]) for _ in range(psutil.cpu_count() or 1)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def emulators() -> list[psutil.Process]:
    """Return this process's QEMUs."""
    return [p for p in psutil.Process().children(recursive=True) if "qemu" in p.name()]


def switches(plan: Plan, guest: GuestExecutor) -> int:
    observation = guest.run(plan)
    assert observation.problem == ""
    return next(e.involuntary_switches for e in observation.events if isinstance(e, Exited) and e.role == "workload")


def test_a_guest_says_what_it_is(guest: GuestExecutor, kernel: Callable[[str], KernelImage]) -> None:
    assert guest.hello.kernel == guest.environment["kernel"] == kernel("debian:5.10").release
    assert (guest.hello.guest, guest.hello.cpus) == (True, 1)
    assert guest.environment["clock"] == "virtual, 2 ns for each instruction"


def test_a_trial_is_exact_to_the_bit_also_on_a_busy_machine_and_in_parallel(guest: GuestExecutor) -> None:
    first = guest.run(contest())
    assert first.problem == ""
    assert [e.after for e in first.events if isinstance(e, Written)] == ["750000"]
    with busy_cpus(), ThreadPoolExecutor(2) as pool:
        for later in pool.map(guest.run, [contest(), contest()]):
            assert later.lines == first.lines
    assert guest.run(contest(seed=1)).lines != first.lines


@pytest.mark.slow
def test_booting_anew_is_as_exact_as_the_snapshot(
    guest: GuestExecutor, place: Home, kernel: Callable[[str], KernelImage], hostile: Path
) -> None:
    files = GuestFiles(study_files={"hostile": hostile})
    with GuestExecutor(kernel("debian:5.10"), clock="virtual", files=files, home=place, snapshot=False) as cold:
        assert cold.run(contest()).lines == guest.run(contest()).lines


@pytest.mark.slow
def test_an_initramfs_that_changes_while_guests_boot_from_it_ends_the_run(
    place: Home, kernel: Callable[[str], KernelImage]
) -> None:
    with GuestExecutor(
        kernel("debian:5.10"), clock="virtual", files=GuestFiles(), home=place, snapshot=False
    ) as target:
        assert target.run(Plan(id="before")).problem == ""
        archive = max(place.sessions.glob("vm-*/initramfs"), key=lambda path: path.stat().st_mtime_ns)
        content = bytearray(archive.read_bytes())
        content[len(content) // 2] ^= 1
        archive.write_bytes(content)
        with pytest.raises(RunError, match="initramfs changed during the run"):
            target.run(Plan(id="after"))


@pytest.mark.slow
def test_a_coarser_granularity_means_fewer_switches_and_each_trial_starts_afresh(guest: GuestExecutor) -> None:
    fine, coarse = switches(contest(750_000), guest), switches(contest(75_000_000), guest)
    assert fine > 3 * coarse
    assert switches(contest(750_000), guest) == fine
    read = guest.run(Plan(id="r", reads=(Read(tunable="granularity", location=GRANULARITY),)))
    assert "75000000" not in [e.value for e in read.events if isinstance(e, ReadBack)]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "LARGEST_OUTPUT_BYTES", 1 << 20)
    monkeypatch.setattr(machine, "LARGEST_CONSOLE_BYTES", 1 << 17)
    monkeypatch.setattr(machine, "_LOOK_EVERY_SECONDS", 1.0)
    monkeypatch.setattr(machine, "_GUEST_SLACK_SECONDS", 3)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("panic", "the guest's kernel panicked: sysrq triggered crash"),
        pytest.param("spin", "the guest hung", marks=pytest.mark.slow),
        ("halt", "the guest hung"),
        ("serial", "the guest printed more than"),
    ],
)
def test_whatever_root_does_in_a_guest_is_a_problem_in_words_and_the_next_trial_is_fine(
    guest: GuestExecutor, what: str, problem: str
) -> None:
    observation = guest.run(hostile_plan(what))
    assert problem in observation.problem
    assert "\x1b" not in observation.problem
    assert emulators() == []
    if what == "panic":
        assert "sysrq" in observation.console
    assert guest.run(Plan(id="next")).problem == ""


INTRUSIONS = (
    *("port-file", "kernel", "memory-file", "agent-memory", "firmware"),
    *("ptrace", "module", "kexec", "reboot"),
)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("user", [GUEST_USER, None], ids=["user", "root"])
@pytest.mark.parametrize(
    "what",
    [
        "ports",
        *slow(*INTRUSIONS),
    ],
)
def test_nobody_in_a_guest_can_reach_the_agent_or_its_port(guest: GuestExecutor, what: str, user: User | None) -> None:
    observation = guest.run(hostile_plan(what, user))
    exited = measured(observation)
    assert exited.exit_code == 0
    assert exited.wall_ns > 1
    assert printed(observation).startswith("refused: ")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("what", ["panic", *slow("spin", "halt", "sysctl", "kmsg")])
def test_an_ordinary_user_of_a_guest_cannot_disturb_its_kernel(guest: GuestExecutor, what: str) -> None:
    observation = guest.run(hostile_plan(what, GUEST_USER))
    assert measured(observation).exit_code == 0
    assert printed(observation).startswith("refused: ")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("what", "user"),
    [(what, user) for what in ("pids", "memory", "output") for user in (GUEST_USER, None)] + [("kmsg", None)],
)
@pytest.mark.slow
def test_who_uses_up_a_guest_is_stopped_or_killed_and_told(guest: GuestExecutor, what: str, user: User | None) -> None:
    observation = guest.run(hostile_plan(what, user))
    if not observation.problem:
        exited = measured(observation)
        assert exited.timed_out or exited.signal == 9
    else:
        assert (what, observation.problem) == ("pids", "the guest hung: it did not end within its time limit")
    assert guest.run(Plan(id="next")).problem == ""


def test_an_ordinary_user_has_a_home_and_the_priorities_of_a_trial(guest: GuestExecutor) -> None:
    def run(*argv: str, **attributes: object) -> str:
        requested = Attributes.model_validate(attributes)
        command = Command(argv=(BUNDLED, *argv), user=GUEST_USER, directory="/tmp", attributes=requested)
        return printed(guest.run(Plan(id="ordinary", workload=command)))

    assert run("hog", "--milliseconds", "10", nice=-20).startswith("hog ")
    assert run("hog", "--milliseconds", "10", policy="fifo", priority=99).startswith("hog ")


def test_no_event_that_is_kept_has_the_key_of_the_trial(guest: GuestExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = iter(["5" * 32, "a" * 32])
    monkeypatch.setattr(vm, "new_key", lambda: next(keys).encode())
    first, second = guest.run(contest()), guest.run(contest())
    assert first.problem == ""
    assert first.lines == second.lines
    assert "5" * 32 not in first.lines


@pytest.mark.slow
def test_several_cpus_are_exact_with_a_new_qemu(place: Home, kernel: Callable[[str], KernelImage]) -> None:
    def boot(*, snapshot: bool) -> GuestExecutor:
        image = kernel("debian:5.10")
        return GuestExecutor(image, clock="virtual", cpus=2, files=GuestFiles(), home=place, snapshot=snapshot)

    with boot(snapshot=True) as target:
        assert target.hello.cpus == 2
        first = target.run(contest())
        assert first.problem == ""
        with busy_cpus():
            assert target.run(contest()).lines == first.lines
    with boot(snapshot=False) as cold:
        assert cold.run(contest()).lines == first.lines


@pytest.mark.slow
def test_the_wall_clock_has_several_cpus_too(
    place: Home, kernel: Callable[[str], KernelImage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AJUSTE_ACCELERATOR", "tcg")
    quick = contest().model_copy(update={"timeout_ns": 120_000_000_000})
    with GuestExecutor(kernel("debian:5.10"), clock="wall", cpus=2, files=GuestFiles(), home=place) as target:
        assert target.hello.cpus == 2
        assert target.parallel == 1
        assert "AJUSTE_ACCELERATOR" in target.environment["accelerator"]
        for _ in range(2):
            assert measured(target.run(quick)).exit_code == 0


def test_a_kernel_that_does_not_come_up_is_a_wrong_request(place: Home, kernel: Callable[[str], KernelImage]) -> None:
    target = GuestExecutor(
        kernel("debian:5.10"), clock="virtual", files=GuestFiles(), home=place, kernel_arguments=("rdinit=/none",)
    )
    with pytest.raises(RequestError, match=r"did not come up in a guest.*panic"), target:
        pass
    assert emulators() == []


def test_a_file_that_is_no_kernel_is_a_wrong_request(place: Home, tmp_path: Path) -> None:
    vmlinuz = tmp_path / "vmlinuz"
    vmlinuz.write_bytes(bytes(100_000))
    image = KernelImage(spec="path:vmlinuz", release="6.1", vmlinuz=vmlinuz, sha256=file_sha256(vmlinuz))
    with (
        pytest.raises(RequestError, match="cannot boot"),
        GuestExecutor(image, clock="virtual", files=GuestFiles(), home=place),
    ):
        pass


@pytest.mark.parametrize("wrong", [{"cpus": 0}, {"cpus": 1000}, {"memory_mib": 1}, {"seed": -1}])
def test_impossible_machines_are_refused(place: Home, kernel: Callable[[str], KernelImage], wrong: Any) -> None:
    with pytest.raises(RequestError, match="a guest cannot have"):
        GuestExecutor(kernel("debian:5.10"), clock="virtual", files=GuestFiles(), home=place, **wrong)


VICTIM = """
import sys
from pathlib import Path
from ajuste.machine.home import Home
from ajuste_guest.kernel.fetch import fetch_kernel
from ajuste.model.plan import Command, Plan
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
place = Home(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[1]))
with GuestExecutor(fetch_kernel("debian:5.10", place), clock="virtual", files=GuestFiles(), home=place) as target:
    print("ready", flush=True)
    target.run(Plan(id="endless", workload=Command(argv=("/ajuste/bin/ajuste-workloads", "spin"))))
"""


@pytest.mark.slow
def test_a_killed_process_leaves_no_qemu_and_no_directory(place: Home, tmp_path: Path) -> None:
    victim = subprocess.Popen([sys.executable, "-c", VICTIM, tmp_path, place.cache], stdout=subprocess.PIPE, text=True)
    try:
        assert victim.stdout is not None
        assert victim.stdout.readline() == "ready\n"
        children: list[psutil.Process] = []
        while not any("qemu" in child.name() for child in children):
            children = psutil.Process(victim.pid).children(recursive=True)
        assert len(list((tmp_path / "sessions").iterdir())) == 1
    finally:
        victim.kill()
        victim.wait()
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []
    assert list((tmp_path / "sessions").iterdir()) == []
