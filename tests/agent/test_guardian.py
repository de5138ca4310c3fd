"""SIGKILL for the agent, its guardian, or both: the settings are what they were, and nothing is left."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.agent.conftest import registry_beside, until
from tests.agent.serving import EXPIRE, Serving, shell, values, write
from tests.agent.test_ends import is_gone

from ajuste.model.event import End, Restored, Started, Written

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: settings of this machine are changed")

KILLS = int(os.environ.get("AJUSTE_AGENT_KILLS", "30"))
CHANGES = [
    write(EXPIRE, "2987"),
    write("/proc/sys/vm/dirty_bytes", "536870912", "/proc/sys/vm/dirty_ratio"),
    write("/proc/sys/vm/dirty_background_bytes", "268435456", "/proc/sys/vm/dirty_background_ratio"),
    write("/proc/sys/vm/dirty_writeback_centisecs", "487"),
    write("/proc/sys/vm/vfs_cache_pressure", "103"),
    write("/proc/sys/vm/stat_interval", "2"),
    write("/proc/sys/vm/page-cluster", "2"),
    write("/proc/sys/vm/watermark_scale_factor", "11"),
    write("/proc/sys/vm/laptop_mode", "1"),
    write("/proc/sys/kernel/sched_rr_timeslice_ms", "90"),
]
PLACES = [change["location"]["path"] for change in CHANGES]
DEADLINE_S = 60


@pytest.fixture(autouse=True)
def as_before(own_machine: None) -> Iterator[dict[str, str]]:
    before = {place: Path(place).read_text() for place in PLACES} | values()
    yield before
    assert {place: Path(place).read_text() for place in PLACES} | values() == before


def links_of(process: Path) -> list[str]:
    """Return what its descriptors are; it may open and close some meanwhile."""
    links = []
    for descriptor in [path.name for path in (process / "fd").iterdir()]:
        with suppress(OSError):
            links.append(str((process / "fd" / descriptor).readlink()))
    return links


def holders(directory: Path) -> list[int]:
    """The guardians that have a journal in ``directory`` open."""
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_guardian = (process / "comm").read_text() == "ajuste-guardian\n"
            if is_guardian and any(link.startswith(str(directory)) for link in links_of(process)):
                pids.append(int(process.name))
    return pids


def guardian_of(directory: Path) -> int:
    (pid,) = holders(directory)
    return pid


def await_no_guardian(directory: Path) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while holders(directory):
        assert time.monotonic() < deadline, "the guardian does not end"
        time.sleep(0.005)


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def end(pid: int) -> None:
    """Kill it, and wait until it is gone: only then it has let go of its journal."""
    kill(pid)
    deadline = time.monotonic() + DEADLINE_S
    while not is_gone(pid):
        assert time.monotonic() < deadline, f"{pid} does not end"
        time.sleep(0.001)


def restore(agent: str, directory: Path) -> subprocess.CompletedProcess[str]:
    argv = [agent, "restore", "--registry", str(registry_beside(directory)), "--permit", "-", str(directory)]
    places = {location["path"] for change in CHANGES for location in (change["location"], *change["companions"])}
    permitted = json.dumps([{"kind": "file", "path": place} for place in sorted(places)])
    return subprocess.run(argv, input=permitted, capture_output=True, text=True, timeout=DEADLINE_S)


def started(agent: str, directory: Path, script: str = "sleep 1000") -> tuple[Serving, Started]:
    serving = Serving(agent, directory)
    serving.send(writes=CHANGES, workload=shell(script))
    event = serving.hear(Started)
    assert isinstance(event, Started)
    return serving, event


def test_the_guardian_restores_when_the_agent_is_killed(agent: str, tmp_path: Path, as_before: dict[str, str]) -> None:
    children = "sleep 1000 & setsid sleep 1000 & wait"
    serving, workload = started(agent, tmp_path, f"sh -c '{children}' & wait")
    assert values() != {place: as_before[place] for place in values()}
    serving.process.kill()
    serving.process.wait()
    await_no_guardian(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert is_gone(workload.pid)
    serving.process.communicate()


def test_nothing_in_the_killed_agents_process_groups_goes_on(agent: str, tmp_path: Path) -> None:
    mark = f"100{os.getpid()}"
    serving, _ = started(agent, tmp_path, f"sleep {mark} & (sleep {mark}; :) & sleep {mark}")
    serving.process.kill()
    serving.process.communicate()
    await_no_guardian(tmp_path)
    assert subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True).stdout == b""


def escaped(agent: str, directory: Path, mark: str) -> Serving:
    """An agent at work, whose workload has a daemon that nobody is the parent or the group of."""
    serving, _ = started(agent, directory, f"(setsid sh -c 'setsid sleep {mark} &' &); sleep 1000")
    until(lambda: running(mark))
    return serving


def running(mark: str) -> bool:
    return subprocess.run(["pgrep", "-xf", f"sleep {mark}"], capture_output=True).stdout != b""


def enclosures(serving: Serving) -> list[Path]:
    """Return those of this agent's session, whatever other agents have."""
    return list(Path("/sys/fs/cgroup").rglob(f"ajuste-session-{serving.process.pid}-*"))


def test_a_daemon_that_escaped_does_not_outlive_a_killed_agent(agent: str, tmp_path: Path) -> None:
    mark = f"200{os.getpid()}"
    serving = escaped(agent, tmp_path, mark)
    serving.process.kill()
    serving.process.communicate()
    await_no_guardian(tmp_path)
    assert not running(mark)
    assert enclosures(serving) == []


def test_restore_ends_a_daemon_that_escaped_from_a_session_without_a_guardian(agent: str, tmp_path: Path) -> None:
    mark = f"300{os.getpid()}"
    serving = escaped(agent, tmp_path, mark)
    end(guardian_of(tmp_path))
    serving.process.kill()
    serving.process.communicate()
    assert running(mark)
    assert restore(agent, tmp_path).returncode == 0
    assert not running(mark)
    assert enclosures(serving) == []


def test_the_agent_ends_a_daemon_that_escaped_and_its_enclosure(agent: str, tmp_path: Path) -> None:
    mark = f"400{os.getpid()}"
    serving, _ = started(agent, tmp_path, f"(setsid sh -c 'setsid sleep {mark} &' &); sleep 0.3")
    assert len(enclosures(serving)) == 1
    assert serving.finish().exit_code == 0
    assert not running(mark)
    assert enclosures(serving) == []


def test_whoever_started_the_agent_can_wait_for_its_guardian(agent: str, tmp_path: Path) -> None:
    """Wait for it: where the first process waits for nobody, it would stay as a zombie."""
    serving, _ = started(agent, tmp_path, "sleep 0.2")
    guardian = guardian_of(tmp_path)
    assert serving.finish().exit_code == 0
    assert os.waitpid(guardian, 0) == (guardian, 0)


def test_the_agent_goes_on_without_its_guardian_and_gets_another(agent: str, tmp_path: Path) -> None:
    serving, _ = started(agent, tmp_path, "sleep 0.2")
    first = guardian_of(tmp_path)
    kill(first)
    assert serving.hear(End).ok
    serving.send(writes=CHANGES, workload=shell("sleep 1000"))
    serving.hear(Started)
    assert guardian_of(tmp_path) != first
    serving.process.kill()
    serving.process.communicate()
    await_no_guardian(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_signals_do_not_move_the_guardian(agent: str, tmp_path: Path) -> None:
    serving, _ = started(agent, tmp_path)
    guardian = guardian_of(tmp_path)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
        os.kill(guardian, number)
    assert os.getsid(guardian) == guardian
    serving.process.kill()
    serving.process.communicate()
    await_no_guardian(tmp_path)


def test_restore_does_what_a_killed_guardian_cannot(agent: str, tmp_path: Path, as_before: dict[str, str]) -> None:
    serving, _ = started(agent, tmp_path)
    guardian = guardian_of(tmp_path)
    held = restore(agent, tmp_path)
    assert held.returncode == 1
    assert '"state":"held"' in held.stdout
    end(guardian)
    serving.process.kill()
    serving.process.communicate()
    assert Path(EXPIRE).read_text() == "2987\n"
    done = restore(agent, tmp_path)
    assert done.returncode == 0
    assert done.stdout.count('"restored"') == len(CHANGES) + 1
    assert '"state":"restored"' in done.stdout
    assert restore(agent, tmp_path).stdout == ""


@pytest.mark.parametrize("number", range(KILLS))
def test_whoever_is_killed_whenever_nothing_is_left(agent: str, tmp_path: Path, number: int) -> None:
    chance = random.Random(number)
    serving = Serving(agent, tmp_path)
    for _ in range(4):
        serving.send(writes=chance.sample(CHANGES, 10), workload=shell("sleep 0.01 & sleep 0.01"))
    time.sleep(chance.uniform(0, 0.15))
    victims = [[serving.process.pid], holders(tmp_path), [serving.process.pid, *holders(tmp_path)]][number % 3]
    chance.shuffle(victims)
    for victim in victims:
        kill(victim)
        time.sleep(chance.choice([0, 0, 0.001, 0.01]))
    trial = serving.finish()
    await_no_guardian(tmp_path)
    if list(tmp_path.iterdir()):
        assert restore(agent, tmp_path).returncode == 0
    assert list(tmp_path.iterdir()) == []
    if serving.process.pid not in victims:
        assert trial.exit_code == 0
        assert len(trial.of(Restored)) == len(trial.of(Written)) == 40
