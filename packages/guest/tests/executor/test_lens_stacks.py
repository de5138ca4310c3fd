"""The lens names functions that go on elsewhere than their caller returns to: other stacks, signals, preemption."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from ajuste.machine.home import Home
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Command, Plan
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.executor.lens import costs_by_name, read_programs

ROUNDS = 4_000_000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    place = tmp_path_factory.mktemp("programs") / "stacks"
    source = Path(__file__).with_name("stacks.c")
    subprocess.run(["gcc", "-O1", "-mno-red-zone", "-static", "-o", place, source], check=True)
    return place


@pytest.mark.vm
def test_each_loop_is_its_functions_own(place: Home, kernel: Callable[[str], KernelImage], program: Path) -> None:
    files = GuestFiles(study_files={"stacks": program})
    plan = Plan(id="stacks", workload=Command(argv=("/study/stacks", str(ROUNDS))))
    with GuestExecutor(kernel("debian:6.1"), clock="virtual", files=files, home=place) as guest:
        observation = guest.count(plan, "functions")
    assert observation.costs is not None, observation.problem
    named = costs_by_name(observation.costs, {}, read_programs([("stacks", program.read_bytes())]), lambda _: "")
    counted: Counter[str] = Counter()
    for part in named.parts:
        for number, instructions in zip(part.functions, part.instructions, strict=True):
            counted[named.functions[number].name] += instructions
    assert counted["taken"] > 0, "the timer's signals came"
    # Three parts of one round each beside three of two, and one at the end; two instructions a round.
    expected = {"aside": 6 * ROUNDS, "inner": 12 * ROUNDS, "main": 2 * ROUNDS}
    assert {name: counted[name] / ROUNDS for name in expected} == pytest.approx(
        {name: count / ROUNDS for name, count in expected.items()}, rel=1e-3
    )
