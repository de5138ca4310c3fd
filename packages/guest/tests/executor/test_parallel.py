"""CPUs of a guest that run at once: each has the time that it would have alone, and every repeat is the same."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ajuste.executor.executor import NOTES
from ajuste.machine.home import WORKLOADS, Home
from ajuste.model.error import RequestError
from ajuste.model.event import Exited, Output
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Attributes, Command, Plan
from ajuste.model.trial import Observation
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.executor.qemu import choose_emulator
from benchmarks import parallel

CPUS = 4
SPEC = "debian:6.12"
PROGRAM = f"/ajuste/bin/{WORKLOADS}"


@pytest.fixture(scope="module")
def across(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of ``across.c``."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    return parallel.built(tmp_path_factory.mktemp("across"))


@pytest.fixture(scope="module")
def target(place: Home, kernel: Callable[[str], KernelImage], across: Path) -> Iterator[GuestExecutor]:
    files = GuestFiles(study_files={"across": across})
    with GuestExecutor(kernel(SPEC), clock="virtual", cpus=CPUS, files=files, home=place) as entered:
        yield entered


def linpack(*busy: int) -> Plan:
    """LINPACK on the last CPU, beside others that compute."""

    def on(cpu: int, *words: str) -> Command:
        return Command(argv=(PROGRAM, *words), attributes=Attributes(affinity=(cpu,)))

    background = tuple(on(cpu, "matrix", "--size", "60", "--repetitions", "99999") for cpu in busy)
    return Plan(id="linpack", workload=on(CPUS - 1, "linpack", "--repetitions", "10"), background=background)


def wall_ns(observation: Observation) -> int:
    assert observation.problem == ""
    (ended,) = (e for e in observation.events if isinstance(e, Exited) and e.role == "workload")
    return ended.wall_ns


def across_ns(guest: GuestExecutor, *words: str) -> int:
    """The time that ``across`` prints."""
    observation = guest.run(Plan(id="across", workload=Command(argv=("/study/across", *words))))
    assert observation.problem == ""
    (text,) = (e.text for e in observation.events if isinstance(e, Output) and e.stream == "stdout")
    return int(re.findall(r"\d+", text)[0])


@pytest.mark.vm
def test_computations_on_two_and_four_cpus_take_what_one_takes(target: GuestExecutor) -> None:
    alone, beside, between = (wall_ns(target.run(linpack(*busy))) for busy in ((), (0,), (0, 1, 2)))
    assert beside == pytest.approx(alone, rel=0.005)
    assert between == pytest.approx(alone, rel=0.005)


@pytest.mark.vm
def test_equal_jobs_end_after_their_number_divided_by_the_cpus(target: GuestExecutor) -> None:
    on_one, two, four = (across_ns(target, "jobs", cpus, "4") for cpus in "124")
    assert two == pytest.approx(on_one / 2, rel=0.02)
    assert four == pytest.approx(on_one / 4, rel=0.02)


@pytest.mark.vm
def test_a_busy_host_changes_nothing_and_the_lens_neither(
    target: GuestExecutor, kinds_of_trials: Callable[[GuestExecutor, Command], int]
) -> None:
    assert kinds_of_trials(target, Command(argv=("/study/across", "futex", "2", "300"))) == 1


@pytest.mark.vm
@pytest.mark.slow
def test_a_shorter_quantum_changes_little(
    target: GuestExecutor, place: Home, kernel: Callable[[str], KernelImage], across: Path
) -> None:
    files = GuestFiles(study_files={"across": across})
    with GuestExecutor(kernel(SPEC), clock="virtual", cpus=CPUS, files=files, home=place, turn_us=1) as finer:
        for words in (("futex", "2", "1000"), ("lock", "2", "500")):
            assert across_ns(target, *words) == pytest.approx(across_ns(finer, *words), rel=0.02)


@pytest.mark.vm
@pytest.mark.slow
def test_cpus_that_share_a_clock_take_time_from_each_other(place: Home, kernel: Callable[[str], KernelImage]) -> None:
    guest = GuestExecutor(
        kernel(SPEC), clock="virtual", cpus=CPUS, parallel=False, files=GuestFiles(), home=place, turn_us=20
    )
    with guest:
        assert "on one clock" in guest.environment["CPUs run"]
        alone, beside = (wall_ns(guest.run(linpack(*busy))) for busy in ((), (0,)))
    assert beside > 1.5 * alone


@pytest.fixture
def bare_qemu(place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A QEMU that exports nothing: the real one behind a program of its own."""
    real = choose_emulator("virtual", CPUS, place, lambda _: None, {})
    firmware = f"-L {real.firmware}" if real.firmware else ""
    program = tmp_path / "qemu-system-x86_64"
    program.write_text(f'#!/bin/sh\nexec {real.binary} {firmware} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("AJUSTE_QEMU", str(program))


@pytest.mark.vm
def test_a_qemu_that_exports_no_clock_is_refused_where_cpus_have_to_run_at_once(
    place: Home, kernel: Callable[[str], KernelImage], bare_qemu: None
) -> None:
    guest = GuestExecutor(kernel(SPEC), clock="virtual", cpus=CPUS, parallel=True, files=GuestFiles(), home=place)
    with pytest.raises(RequestError, match="exports no bql_locked") as refused, guest:
        pass
    assert "parallel = false" in (refused.value.hint or "")


@pytest.mark.vm
@pytest.mark.slow
def test_a_qemu_that_exports_no_clock_has_cpus_share_one_with_a_note(
    place: Home, kernel: Callable[[str], KernelImage], bare_qemu: None
) -> None:
    with GuestExecutor(kernel(SPEC), clock="virtual", cpus=2, files=GuestFiles(), home=place) as guest:
        assert "on one clock" in guest.environment["CPUs run"]
        assert "2 CPUs of the guest share one clock" in guest.environment[NOTES]
