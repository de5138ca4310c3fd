"""Studies on several workers: the same digest as in one process, whatever happens to the workers."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from ajuste.machine.home import home
from ajuste_fleet.cluster.keys import make_key
from ajuste_fleet.cluster.messages import PLANS, Answer, Ask
from ajuste_fleet.cluster.worker import Workplace
from clusters import lab
from labs import address_of, needs_root, scheduler, started, two_hosts
from own_home import own_home
from shell import SMALL, Shell

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900)]

PATIENCE_SECONDS = 280


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shell, str]:
    """A shell, and the digest of the small study in one process."""
    root = tmp_path_factory.mktemp("cluster")
    (root / "small.toml").write_text(SMALL)
    shell = Shell(root, own_home(root / "home"))
    return shell, shell.json("run", "small.toml")["digest"]


def wait_for(happens: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not happens():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def trials_kept(shell: Shell) -> int:
    """Return the number of stored trials of all runs."""
    with closing(sqlite3.connect(shell.home / "data" / "store.sqlite")) as store:
        return int(store.execute("SELECT count(*) FROM trials").fetchone()[0])


def guests_of(pid: int) -> list[psutil.Process]:
    """The guests below ``pid`` that were started from a snapshot."""
    guests = []
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "qemu" in process.name() and "-incoming" in process.cmdline():
                guests.append(process)
    return guests


@pytest.mark.slow
def test_an_interruption_ends_all_guests_and_the_same_command_goes_on(undisturbed: tuple[Shell, str]) -> None:
    shell, digest = undisturbed
    running = shell.start("run", "small.toml", "--fresh", "--workers", "2", start_new_session=True)
    wait_for(lambda: guests_of(running.pid))
    below = psutil.Process(running.pid).children(recursive=True)
    os.killpg(running.pid, signal.SIGINT)  # as the terminal does
    _, complained = running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == 130
    assert complained.startswith("ajuste: interrupted\n"), complained
    wait_for(
        lambda: (
            not any(
                process.is_running() and "qemu" in process.name() for process in below if psutil.pid_exists(process.pid)
            )
        )
    )
    assert not list((shell.home / "state" / "sessions").glob("vm-*"))
    assert shell.json("run", "small.toml")["digest"] == digest


def test_a_cluster_that_does_not_answer_is_named_with_the_reason(undisturbed: tuple[Shell, str]) -> None:
    shell, _ = undisturbed
    make_key(shell.directory / "own-keys")
    there = ("--cluster", "tls://127.0.0.1:1", "--cluster-keys", "own-keys")
    _, complained = shell("run", "small.toml", "--fresh", *there, expect=2)
    assert complained.startswith("ajuste: cannot reach the scheduler tls://127.0.0.1:1: Connection refused\n")


class Measuring:
    """A worker with a ``place`` of its own, which says ``more`` switches than there were."""

    def __init__(self, place: Path, more: int = 0) -> None:
        self.workplace = Workplace(home({"AJUSTE_HOME": str(own_home(place))}))
        self.more = more

    def answer(self, ask: Ask, job: str, body: bytes) -> Answer:
        match ask:
            case "receive":
                return self.workplace.receive(body)
            case "carry-out":
                answered = self.workplace.carry_out(job, PLANS.validate_json(body))
                done = [trial.model_copy(update={"lines": self._wrong(trial.lines)}) for trial in answered.done or ()]
                return answered.model_copy(update={"done": tuple(done)}) if done else answered
            case _:
                return dict(survey=self.workplace.survey, open=self.workplace.open, close=self.workplace.close)[ask](
                    job
                )

    def _wrong(self, lines: str) -> str:
        return re.sub(
            r'("involuntary_switches": ?)(\d+)', lambda match: f"{match[1]}{int(match[2]) + self.more}", lines
        )


@pytest.mark.slow
def test_a_worker_that_lies_is_named_and_changes_nothing(undisturbed: tuple[Shell, str], tmp_path: Path) -> None:
    shell, digest = undisturbed
    make_key(tmp_path / "keys")
    with ExitStack() as stack:
        place = stack.enter_context(lab(tmp_path / "keys"))
        liar, honest = Measuring(tmp_path / "liar", more=1), Measuring(tmp_path / "honest")
        named = place.worker(liar).address
        place.worker(honest)
        for worker in (liar, honest):
            stack.callback(worker.workplace.close)
        there = ("--cluster", place.cluster.address, "--cluster-keys", str(tmp_path / "keys"))
        results = shell.json("run", "small.toml", "--fresh", *there)
    assert results["digest"] == digest
    assert any(f"{named} returned a wrong result for the trial " in note for note in results["notes"])


@needs_root
@pytest.mark.parametrize(
    "words",
    ["run small.toml --cluster", "cluster worker --bench --scheduler", "worker --scheduler", "scheduler --listen"],
)
def test_root_refuses_plain_tcp(undisturbed: tuple[Shell, str], words: str) -> None:
    shell, _ = undisturbed
    for more in ((), ("--insecure",)):
        _, complained = shell(*words.split(), "tcp://127.0.0.1:8786", *more, expect=2)
        assert "root does not use plain TCP" in complained


def test_nobody_else_can_reach_workers_of_this_machine(undisturbed: tuple[Shell, str]) -> None:
    shell, _ = undisturbed
    running = shell.start("run", "small.toml", "--fresh", "--workers", "2")
    wait_for(lambda: guests_of(running.pid))
    below = psutil.Process(running.pid).children(recursive=True)
    doors: list[Any] = []
    for process in (psutil.Process(running.pid), *below):
        with suppress(psutil.NoSuchProcess):
            doors += [door for door in process.net_connections("inet") if door.status == psutil.CONN_LISTEN]
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=PATIENCE_SECONDS)
    assert doors == []


@needs_root
def test_another_host_is_sent_all_it_needs_and_when_the_cluster_is_lost_everything_is_kept(
    undisturbed: tuple[Shell, str], tmp_path: Path
) -> None:
    shell, digest = undisturbed
    there = tmp_path / "there"
    with two_hosts(tmp_path) as (lab1, lab2):
        address, keys = address_of(lab1), tmp_path / "keys"
        make_key(keys)
        worker = ("ajuste", "cluster", "worker", "--scheduler", address, "--threads", "2", "--cluster-keys", str(keys))
        with (
            started(lab1, *scheduler(lab1, keys), prints="scheduler at", home=tmp_path) as scheduling,
            started(lab2, *worker, prints="working for", home=there) as working,
        ):
            before = trials_kept(shell)
            cluster = ("--cluster", address, "--cluster-keys", str(keys))
            running = shell.start("run", "small.toml", "--fresh", *cluster, enter=lab1.enter)
            wait_for(lambda: running.poll() is not None or trials_kept(shell) > before)
            scheduling.kill()
            _, complained = running.communicate(timeout=PATIENCE_SECONDS)
            assert running.returncode == 1, complained
            assert f"ajuste: the cluster {address} was lost during the run\n" in complained
            working.wait(PATIENCE_SECONDS)
            assert working.returncode == 1
    assert len(list((there / "cache" / "cluster").iterdir())) == 2, "a kernel and an initramfs were sent"
    assert not list((there / "state" / "sessions").iterdir()), "no guest is left behind"
    assert trials_kept(shell) > before
    assert shell.json("run", "small.toml")["digest"] == digest
