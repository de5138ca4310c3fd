"""Recording on this machine: in an instance of its own, which is gone afterwards whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.conftest import Runner, until

from ajuste.model.event import Failed, Traced

INSTANCES = Path("/sys/kernel/tracing/instances")
TRACE: dict[str, Any] = {"trace": {"buffer_bytes": 4 << 20}}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="tracing needs root")


@pytest.fixture(scope="module", autouse=True)
def tracing() -> Iterator[None]:
    """The kernel's tracing is there, also on a machine where nobody has mounted it yet."""
    missing = not INSTANCES.is_dir()
    if missing and subprocess.run(["mount", "-t", "tracefs", "tracefs", INSTANCES.parent]).returncode:
        pytest.skip("this kernel has no tracing")
    yield
    if missing:
        subprocess.run(["umount", "--lazy", INSTANCES.parent], check=True)


def instance_of(pid: int) -> Path:
    return INSTANCES / f"ajuste-{pid}"


@pytest.fixture
def journals(tmp_path: Path) -> Path:
    (tmp_path / "journals").mkdir()
    return tmp_path / "journals"


def test_a_workload_of_this_machine_is_recorded(agent: str, journals: Path) -> None:
    trial = Runner(agent, journals).shell("for i in 1 2 3 4 5; do sleep 0.01; done", **TRACE)
    (traced,) = trial.of(Traced)
    assert trial.exit_code == 0
    assert traced.recording is not None, traced.not_supported
    workload = traced.recording.workload
    assert workload.tasks == workload.switches.exited == 6
    assert workload.switches.slept >= 5
    assert traced.recording.lost == 0
    assert list(journals.iterdir()) == []
    assert not [
        instance for instance in INSTANCES.iterdir() if instance.name.startswith("ajuste-") and not alive(instance)
    ]


def alive(instance: Path) -> bool:
    """Return whether it is another test's agent."""
    return Path("/proc", instance.name.removeprefix("ajuste-")).exists()


def is_on(instance: Path) -> bool:
    """Return whether it records; the kernel makes the directory before its files."""
    try:
        return (instance / "tracing_on").read_text() == "1\n"
    except OSError:
        return False


def test_the_instance_of_a_killed_agent_is_removed(agent: str, journals: Path) -> None:
    arguments = Runner(agent, journals).arguments
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({"id": "t", "workload": Runner.command("sleep 1000"), **TRACE}))
            process.stdin.close()
            until(lambda: is_on(instance_of(process.pid)))
        finally:
            process.send_signal(signal.SIGKILL)
    until(lambda: list(journals.iterdir()) == [])
    assert not instance_of(process.pid).exists()


def test_without_a_journal_nothing_is_recorded(agent: str) -> None:
    trial = Runner(agent).shell("true", **TRACE)
    assert [failed.message for failed in trial.of(Failed)] == ["writing on this machine needs a journal: --journal DIR"]
