"""The lens: what it counts is exact, and nothing in the guest shows that it looks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import AGENT, LENS, WORKLOADS, Home, native_program
from ajuste.model.cost import Costs, CostTask
from ajuste.model.error import RequestError
from ajuste.model.event import Exited, Started
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Command, Plan
from ajuste.model.trial import Observation
from ajuste_guest.executor import lens
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.executor.qemu import Emulator
from ajuste_guest.kernel.symbols import function_names, kernel_symbols

INSTRUCTION_NS = 2


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of ``counted.c``."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    program = tmp_path_factory.mktemp("counted") / "counted"
    subprocess.run(["gcc", "-O1", "-static", "-o", program, Path(__file__).with_name("counted.c")], check=True)
    return program


@pytest.fixture(scope="module")
def target(place: Home, kernel: Callable[[str], KernelImage], counted: Path) -> Iterator[GuestExecutor]:
    files = GuestFiles(study_files={"counted": counted})
    with GuestExecutor(kernel("debian:5.10"), clock="virtual", files=files, home=place) as entered:
        yield entered


def job(loops: int = 100_000, pages: int = 100_000, calls: int = 100_000) -> Plan:
    """The figures are those of ``counted.c`` plus 100,000, so that all have six digits."""
    argv = ("/study/counted", str(loops), str(pages % 100_000 or 1).zfill(6), str(calls % 100_000 or 1).zfill(6))
    spin = Command(argv=(f"/ajuste/bin/{WORKLOADS}", "spin"))
    return Plan(id="lens", workload=Command(argv=argv), background=(spin,))


def costs_of(observation: Observation) -> Costs:
    assert observation.problem == ""
    assert observation.costs is not None
    return observation.costs


def workload(costs: Costs) -> CostTask:
    (task,) = (task for task in costs.tasks if task.role == "workload")
    return task


@pytest.mark.vm
def test_the_guest_does_not_notice_and_every_repeat_counts_the_same(target: GuestExecutor, repeats: int) -> None:
    alone = target.run(job())
    assert alone.costs is None
    by_function = target.count(job(), "functions")
    assert by_function.lines == alone.lines
    again = [target.count(job(), "counts") for _ in range(repeats)]
    assert {observation.lines for observation in again} == {alone.lines}
    assert len({costs_of(observation).model_dump_json() for observation in again}) == 1
    first = costs_of(again[0])
    assert (first.user, first.kernel, first.faulted) == (
        costs_of(by_function).user,
        costs_of(by_function).kernel,
        costs_of(by_function).faulted,
    )


@pytest.mark.vm
def test_what_a_program_carries_out_is_counted_to_the_instruction(target: GuestExecutor) -> None:
    # strtol(3) needs as long for the one as for the other.
    less, more = (workload(costs_of(target.count(job(loops=loops), "counts"))) for loops in (200_000, 300_000))
    assert more.user - less.user == 2 * 100_000
    of_kernel = abs(more.kernel - less.kernel)  # it may do a little more or less meanwhile
    assert abs(more.branches - less.branches - 100_000) <= of_kernel


@pytest.mark.vm
def test_an_instruction_that_faults_is_counted_each_time_that_it_is_begun(target: GuestExecutor) -> None:
    few, many = (costs_of(target.count(job(pages=pages), "counts")) for pages in (100_100, 100_900))
    assert many.faulted - few.faulted == 800


@pytest.mark.vm
def test_the_sum_is_what_the_emulator_counted(target: GuestExecutor) -> None:
    """The guest's clock is the emulator's own count. The kernel knows its rate to some millionths."""
    observation = target.count(job(loops=9_000_000), "counts")
    costs = costs_of(observation)
    (began,) = (e.at_ns for e in observation.events if isinstance(e, Started) and e.role == "workload")
    (ended,) = (e.at_ns for e in observation.events if isinstance(e, Exited) and e.role == "workload")
    assert costs.instructions - costs.faulted == pytest.approx((ended - began) / INSTRUCTION_NS, rel=1e-3)


@pytest.mark.vm
def test_system_calls_are_counted_by_name_and_all_tasks_have_roles(
    target: GuestExecutor, place: Home, kernel: Callable[[str], KernelImage]
) -> None:
    costs = costs_of(target.count(job(calls=100_077), "functions"))
    costs_of_workload = workload(costs)
    names = function_names(kernel_symbols(kernel("debian:5.10"), place))
    calls = {names.get(frame.address, ""): frame.calls for frame in costs_of_workload.frames if frame.space == "kernel"}
    assert calls["__x64_sys_getppid"] == 77
    entries = [frame for frame in costs_of_workload.frames if frame.kind == "syscall"]
    assert {names[frame.address] for frame in entries} == {"entry_SYSCALL_64"}
    assert sum(frame.calls for frame in costs_of_workload.frames if frame.kind == "exception") > 0
    assert {task.role for task in costs.tasks} >= {"workload", "background", "agent"}
    (agent,) = (task.number for task in costs.tasks if task.role == "agent")
    assert costs_of_workload.parent == agent
    assert costs_of_workload.entry is not None
    assert {code.address for code in costs_of_workload.code} >= {costs_of_workload.entry}


@pytest.mark.vm
def test_a_lens_that_crashes_fails_the_trial(
    target: GuestExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "crash.c"
    source.write_text(
        "#include <stdlib.h>\n"
        "int qemu_plugin_version = 1;\n"
        "void qemu_plugin_register_vcpu_tb_trans_cb(unsigned long, void (*)(void));\n"
        "int qemu_plugin_install(unsigned long id) { qemu_plugin_register_vcpu_tb_trans_cb(id, abort); return 0; }\n"
    )
    for name in (AGENT, WORKLOADS):
        (tmp_path / name).symlink_to(native_program(name))
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / LENS, source], check=True)
    monkeypatch.setenv("AJUSTE_NATIVE", str(tmp_path))
    observation = target.count(job(), "counts")
    assert observation.problem.startswith("QEMU ended by signal 6")
    assert observation.costs is None


def test_only_guests_with_the_virtual_clock_are_counted(place: Home) -> None:
    image = KernelImage(spec="debian:5.10", release="5.10", vmlinuz=Path("/k/vmlinuz"), sha256="0" * 64)
    with pytest.raises(RequestError, match="under the virtual clock"):
        GuestExecutor(image, clock="wall", files=GuestFiles(), home=place).count(job(), "counts")


def test_a_qemu_without_plugins_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "qemu"
    program.write_text("#!/bin/sh\necho 'qemu: -plugin: invalid option' >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(RequestError, match="without plugins"):
        lens.require_plugins(Emulator(binary=program, version="7.2.0"))


@pytest.mark.parametrize(
    ("library", "version"),
    [("glibc 2.31", "glibc 2.31"), ("glibc 2.9", "glibc 2.9"), (None, "another C library")],
    ids=str,
)
def test_a_c_library_that_is_older_than_the_lens_is_told_and_its_guests_do_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, library: str | None, version: str
) -> None:
    program = tmp_path / "qemu"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    qemu = Emulator(binary=program, version="10.0.2")
    monkeypatch.setattr(os, "confstr", lambda _: library)
    assert lens.lens_of_turns(qemu, None) is None
    with pytest.raises(RequestError, match=rf"requires glibc 2\.\d+ or later; this machine has {version}$"):
        lens.lens_of_turns(qemu, 100)
    monkeypatch.setattr(os, "confstr", lambda _: "glibc 2.100")
    assert lens.lens_of_turns(qemu, 100) == native_program(LENS)


TASK: dict[str, Any] = {"number": 0, "parent": None, "role": "workload", "user": 3, "kernel": 2, "entry": None}
TASK |= {"loads": 0, "stores": 0, "branches": 1, "switches_in": 1, "frames": [], "code": []}
DOCUMENT: dict[str, Any] = {"version": 1, "depth": "counts", "user": 3, "kernel": 2, "faulted": 0, "tasks": [TASK]}


def test_what_the_lens_wrote_is_read(tmp_path: Path) -> None:
    file = tmp_path / "costs"
    file.write_text(json.dumps(DOCUMENT))
    costs, problem = lens.read_costs(file, "counts")
    assert problem == ""
    assert costs is not None
    assert costs.instructions == 5


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "malformed"),
        (b"\xff", "malformed"),
        (b"[]", "malformed"),
        (json.dumps(DOCUMENT | {"user": 4}).encode(), "do not add up"),
        (json.dumps(DOCUMENT | {"user": -1}).encode(), "malformed (user: "),
        (json.dumps(DOCUMENT | {"secret": 1}).encode(), "malformed (secret: "),
        (json.dumps(DOCUMENT | {"depth": "functions", "tasks": []}).encode(), "do not add up"),
        (b" " * (lens.LARGEST_BYTES + 1), "more than 64 MiB"),
        (b"[" * 100_000, "malformed"),
    ],
)
def test_whatever_stands_there_is_a_problem_in_one_line(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "costs"
    file.write_bytes(content)
    costs, problem_found = lens.read_costs(file, "counts")
    assert costs is None
    assert problem in problem_found
    assert "\n" not in problem_found


def test_no_document_and_one_of_another_depth_are_problems(tmp_path: Path) -> None:
    file = tmp_path / "costs"
    assert "did not see the workload start" in lens.read_costs(file, "counts", "warning: of QEMU")[1]
    assert lens.read_costs(file, "counts", "lens: c: full")[1] == "the lens wrote no costs: c: full"
    file.write_text(json.dumps(DOCUMENT))
    assert lens.read_costs(file, "functions")[1] == "the lens counted counts, not functions"


def test_a_document_of_another_machine_than_was_asked_for_is_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "costs"
    space = {"loads": 1, "stores": 1, "misses": [0, 1, 0, 0, 0, 0, 0]}
    modelled = {"user": space, "kernel": space}
    textbook = catalogue().machines["textbook"]
    file.write_text(json.dumps(DOCUMENT | {"tasks": [TASK | {"modelled": modelled}]}))
    costs, problem = lens.read_costs(file, "counts", machine=textbook)
    assert problem == ""
    assert costs is not None
    assert costs.machine == textbook
    assert lens.read_costs(file, "counts")[1] == "the lens modelled a machine that nobody asked for"
    file.write_text(json.dumps(DOCUMENT))
    assert lens.read_costs(file, "counts", machine=textbook)[1] == "the lens modelled no machine"


@pytest.mark.parametrize(
    ("misses", "problem"), [([0, 2, 0, 0, 0, 0, 0], "do not add up"), ([0, -1, 0, 0, 0, 0, 0], "malformed")]
)
def test_misses_add_up(tmp_path: Path, misses: list[int], problem: str) -> None:
    file = tmp_path / "costs"
    space = {"loads": 1, "stores": 1, "misses": [0, 1, 0, 0, 0, 0, 0]}
    frame = {"parent": -1, "space": "user", "address": 1, "kind": "start", "calls": 1, "instructions": 5}
    none = space | {"misses": [0] * 7}
    task = TASK | {"modelled": {"user": space, "kernel": none}, "frames": [frame | {"misses": misses}]}
    file.write_text(json.dumps(DOCUMENT | {"depth": "functions", "tasks": [task]}))
    assert problem in lens.read_costs(file, "functions", machine=catalogue().machines["textbook"])[1]
