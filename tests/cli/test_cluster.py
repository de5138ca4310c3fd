"""Studies on several workers: the same digest as in one process, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import psutil
import pytest

from ajuste.home import home
from shell import SMALL, Shell

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900)]

PATIENCE_SECONDS = 280


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shell, str]:
    """A shell, and the digest of the small study in one process."""
    root = tmp_path_factory.mktemp("cluster")
    (root / "home").mkdir()
    (root / "home" / "cache").symlink_to(home().cache)
    (root / "small.toml").write_text(SMALL.replace("min_blocks = 3\nmax_blocks = 3", "min_blocks = 6\nmax_blocks = 6"))
    shell = Shell(root, root / "home")
    return shell, shell.json("run", "small.toml")["digest"]


def wait_for(happens: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not happens():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def trials_kept(shell: Shell) -> int:
    listed = [run for run in shell.json("report") if run["stopped"] == ""]
    return int(listed[0]["trials"]) if listed else 0


def emulators_of(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [one for one in process.children(recursive=True) if "qemu" in one.name()]
    except psutil.NoSuchProcess:
        return []


def workers_with_a_guest(pid: int) -> list[psutil.Process]:
    """The processes below ``pid`` that started a guest from its snapshot."""
    found = []
    for emulator in emulators_of(psutil.Process(pid)):
        try:
            if "-incoming" in emulator.cmdline():
                found.append(emulator.parent())
        except psutil.NoSuchProcess:
            continue
    return [one for one in found if one is not None and one.pid != pid]


def test_a_worker_that_is_killed_in_the_middle_changes_nothing(undisturbed: tuple[Shell, str]) -> None:
    shell, digest = undisturbed
    running = shell.start("run", "small.toml", "--fresh", "--workers", "2", "--json")
    wait_for(lambda: workers_with_a_guest(running.pid))
    workers_with_a_guest(running.pid)[0].kill()
    said, complained = running.communicate(timeout=PATIENCE_SECONDS)
    assert (running.returncode, complained) == (0, "")
    assert f'"digest": "{digest}"' in said


def test_an_interruption_ends_all_guests_and_the_same_command_goes_on(undisturbed: tuple[Shell, str]) -> None:
    shell, digest = undisturbed
    running = shell.start("run", "small.toml", "--fresh", "--workers", "2", start_new_session=True)
    wait_for(lambda: workers_with_a_guest(running.pid))
    below = psutil.Process(running.pid).children(recursive=True)
    os.killpg(running.pid, signal.SIGINT)  # as the terminal does
    _, complained = running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == 130
    assert complained.startswith("ajuste: interrupted\n"), complained
    wait_for(lambda: not any(one.is_running() and "qemu" in one.name() for one in below if psutil.pid_exists(one.pid)))
    assert not list((shell.home / "state" / "sessions").glob("vm-*"))
    assert shell.json("run", "small.toml")["digest"] == digest


def test_a_cluster_that_does_not_answer_is_named_with_the_reason(undisturbed: tuple[Shell, str]) -> None:
    shell, _ = undisturbed
    _, complained = shell("run", "small.toml", "--fresh", "--cluster", "tcp://127.0.0.1:1", expect=2)
    assert complained.startswith("ajuste: the cluster tcp://127.0.0.1:1 cannot be reached: Connection refused\n")
