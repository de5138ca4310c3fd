"""Guests are booted here, and nowhere else in these tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ajuste.machine.home import WORKLOADS, Home, home
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Command, Plan
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.kernel.fetch import fetch_kernel


@pytest.fixture(scope="session")
def repeats() -> int:
    """Number of repeats of a trial where every repeat is to be the same: a difference that comes with the guest, its
    snapshot or the lens shows in the first; rare ones are for `make fuzz`, which asks for 20.
    """
    return int(os.environ.get("AJUSTE_REPEATS", "1"))


@pytest.fixture
def kinds_of_trials(repeats: int) -> Callable[[GuestExecutor, Command], int]:
    """Return a function that counts the different trials of a program beside others; the lens looks at half of them."""

    def count(guest: GuestExecutor, program: Command) -> int:
        load = Command(argv=(f"/ajuste/bin/{WORKLOADS}", "jitter", "--sleeps", "100000", "--interval-us", "130"))
        plan = Plan(id="again", workload=program, background=(load,))

        def trial(number: int) -> str:
            observation = guest.count(plan, "functions") if number % 2 else guest.run(plan)
            assert observation.problem == ""
            return observation.lines

        with ThreadPoolExecutor() as pool:
            return len(set(pool.map(trial, range(2 * repeats))))

    return count


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home of the tests' own, with the ordinary cache, so that kernels are downloaded only once."""
    root = tmp_path_factory.mktemp("home")
    return Home(root / "data", home().cache, root / "state")


@pytest.fixture(scope="session")
def kernel(place: Home) -> Callable[[str], KernelImage]:
    return lambda spec: fetch_kernel(spec, place)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of ``hostile.c``."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    program = tmp_path_factory.mktemp("hostile") / "hostile"
    source = Path(__file__).with_name("hostile.c")
    subprocess.run(["gcc", "-O1", "-static", "-o", program, source], check=True)
    return program


@pytest.fixture(scope="session")
def guest(place: Home, kernel: Callable[[str], KernelImage], hostile: Path) -> Iterator[GuestExecutor]:
    """A guest with 5.10, one CPU and the virtual clock, with the hostile program in /study."""
    files = GuestFiles(study_files={"hostile": hostile})
    with GuestExecutor(kernel("debian:5.10"), clock="virtual", files=files, home=place) as target:
        yield target
