"""Trials by the clocks of several machines: two that share nothing but a cable, with settings of their own."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from ajuste_fleet.cluster.keys import make_key
from labs import Host, address_of, needs_root, scheduler, started, two_hosts
from shell import Shell

pytestmark = [needs_root, pytest.mark.timeout(900)]

PATIENCE_SECONDS = 240
SETTING = "net.ipv4.tcp_fin_timeout"
FOUND, TRIED = "60", "31"
BLOCKS = 16
"""Enough that the second machine is busy for seconds after its first."""


@dataclass(frozen=True)
class Labs:
    """``homes`` of both machines' workers, which are ``working``."""

    shell: Shell
    hosts: tuple[Host, Host]
    working: tuple[subprocess.Popen[str], ...]

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """``ajuste`` on the first machine, with the cluster."""
        there = ("--cluster", address_of(self.hosts[0]), "--cluster-keys", str(self.shell.directory / "keys"))
        arguments = (*words[: words.index("--")], *there, *words[words.index("--") :])
        return self.shell.start(*arguments, enter=self.hosts[0].enter, **options)

    @property
    def settings(self) -> list[str]:
        return [host.output("sysctl", "-n", SETTING) for host in self.hosts]

    def wait_for_a_change(self) -> None:
        """Until every machine is in the middle of a trial with the other value."""
        seen: set[Host] = set()

        def all_seen() -> bool:
            seen.update(host for host in self.hosts if host.output("sysctl", "-n", SETTING) == TRIED)
            return len(seen) == len(self.hosts)

        wait_for(all_seen)

    def journals(self) -> list[Path]:
        return [path for host in self.hosts for path in (self.home(host) / "state" / "journals").glob("*.journal")]

    def home(self, host: Host) -> Path:
        return self.shell.directory / host.name


@pytest.fixture(scope="module")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Labs]:
    root = tmp_path_factory.mktemp("labs")
    with ExitStack() as stack:
        hosts = stack.enter_context(two_hosts(root))
        make_key(root / "keys")
        stack.enter_context(started(hosts[0], *scheduler(hosts[0], root / "keys"), prints="scheduler at", home=root))
        there = ("--scheduler", address_of(hosts[0]), "--cluster-keys", str(root / "keys"))
        worker = ("ajuste", "cluster", "worker", "--bench", *there)
        working = tuple(
            stack.enter_context(started(host, *worker, prints="one block at a time", home=root / host.name))
            for host in hosts
        )
        yield Labs(Shell(root, root / "home"), hosts, working)


def wait_for(happens: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not happens():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def blocks_of(shell: Shell, machine: str) -> int:
    """Return the number of blocks that a machine has measured in all runs."""
    path = shell.home / "data" / "store.sqlite"
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as store:
        if not store.execute("SELECT 1 FROM sqlite_master WHERE name = 'trials'").fetchone():
            return 0
        return int(
            store.execute(
                "SELECT count(DISTINCT run_id || block) FROM trials WHERE machine = ?", (machine,)
            ).fetchone()[0]
        )


def test_what_is_interrupted_is_put_back_everywhere(labs: Labs) -> None:
    words = ("--set", f"{SETTING}={FOUND},{TRIED}", "--blocks", "1000", "--", "sleep", "0.3")
    running = labs.start("compare", *words, start_new_session=True)
    labs.wait_for_a_change()
    os.killpg(running.pid, signal.SIGINT)  # as the terminal does
    _, complained = running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == 130
    assert complained.startswith("ajuste: interrupted\n"), complained
    assert labs.settings == [FOUND, FOUND], "at once, and not only some time later"
    assert not labs.journals()


@pytest.mark.slow
def test_blocks_are_shared_out_whole_and_one_that_is_lost_with_its_machine_is_measured_elsewhere(labs: Labs) -> None:
    words = ("--set", f"{SETTING}={FOUND},{TRIED}", "--blocks", str(BLOCKS), "--json", "--", "sleep", "0.3")
    running = labs.start("compare", *words)
    wait_for(lambda: running.poll() is not None or blocks_of(labs.shell, "lab2"))
    wait_for(lambda: running.poll() is not None or labs.hosts[1].output("sysctl", "-n", SETTING) == TRIED)
    assert running.poll() is None, "over before the second machine was seen in the middle of a block"
    psutil.Process(labs.working[1].pid).kill()
    output, complained = running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == 0, complained
    wait_for(lambda: labs.settings == [FOUND, FOUND])
    wait_for(lambda: not labs.journals())

    results = json.loads(output)
    trials = results["trials"]
    # A trial that was disturbed is repeated: the same place in the block, another attempt.
    measured = [(trial["block"], trial["position"], trial["attempt"]) for trial in trials]
    assert len(set(measured)) == len(measured), "no block is there twice"
    places = {(trial["block"], trial["machine"], trial["position"]) for trial in trials}
    assert {block for block, _, _ in places} == set(range(BLOCKS + 1)), "one to warm up, and those asked for"
    assert len(places) == 2 * (BLOCKS + 1), "no block is split or half counted"
    assert {machine for _, machine, _ in places} == {"lab1", "lab2"}
    (compared,) = [comparison for comparison in results["machines"] if comparison["metric"] == "elapsed"]
    # On a machine that is disturbed all the time, the attempts at a place run out: its block does not count.
    clean = {(trial["block"], trial["position"]) for trial in trials if trial["status"] == "ok" and trial["block"]}
    whole = sum({(block, 0), (block, 1)} <= clean for block in range(1, BLOCKS + 1))
    assert sum(machine["blocks"] for machine in compared["machines"]) == results["blocks"] == whole
    assert all("inventory" in results["environment"]["machines"][name] for name in ("lab1", "lab2"))
    assert results["configurations"][1]["read_back"][SETTING] == TRIED


def test_a_guard_that_the_first_machine_breaks_stops_both_and_is_an_exit_code(labs: Labs) -> None:
    """The tried value makes the command slow, by the command's own words."""
    job = f"read v < /proc/sys/{SETTING.replace('.', '/')}; case $v in 3*) sleep 0.9;; *) sleep 0.1;; esac"
    words = ("--set", f"{SETTING}={FOUND},{TRIED}", "--canary", "1,all", "--guard", "elapsed < 600ms", "--json")
    running = labs.start("compare", *words, "--", "sh", "-c", job)
    output, complained = running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == 3, complained
    assert labs.settings == [FOUND, FOUND]
    assert not labs.journals()
    results = json.loads(output)
    assert len({trial["machine"] for trial in results["trials"]}) == 1
    assert results["canary"]["reached"] == 1
    assert "elapsed < 600ms" in results["canary"]["stopped"]


@pytest.mark.slow
def test_a_coordinator_that_is_killed_leaves_every_machine_as_it_was(labs: Labs) -> None:
    remaining = next(host for host, process in zip(labs.hosts, labs.working, strict=True) if process.poll() is None)
    words = ("--set", f"{SETTING}={FOUND},{TRIED}", "--blocks", "1000", "--", "sleep", "0.3")
    running = labs.start("compare", *words)
    wait_for(lambda: remaining.output("sysctl", "-n", SETTING) == TRIED)
    psutil.Process(running.pid).kill()
    running.communicate(timeout=PATIENCE_SECONDS)
    wait_for(lambda: not labs.journals())
    assert remaining.output("sysctl", "-n", SETTING) == FOUND
