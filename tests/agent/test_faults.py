"""A fault at every file operation of a session in turn: values are back, or ``restore`` puts them back, and nothing is
claimed that is not so. The agent is built with the cargo feature ``faults`` for it (native/agent/src/disk/fault.rs).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from tests.agent.conftest import registry_beside
from tests.agent.serving import EXPIRE, SETTINGS, values, write
from tests.agent.test_guardian import await_no_guardian

from ajuste.machine.home import AGENT, native_program
from ajuste.model.event import End, Event, Exited, Output, Sampled, Written, parse_event

EVERY: Final = bool(os.environ.get("AJUSTE_DISK_ALL"))
"""Try every fault at every operation, instead of one of them at some; for ``make fuzz``."""
AT_MOST: Final = 90
KINDS: Final = ("enospc", "eio", "erofs", "eintr", "short", "torn", "kill")
STAYING: Final = ("+:enospc", "+:eio", "+:erofs")
FAULTS: Final = (*(f":{kind}" for kind in KINDS), *STAYING)
PRESSURE: Final = "/proc/sys/vm/vfs_cache_pressure"
INTERVAL: Final = "/proc/sys/vm/stat_interval"
TREE: Final = Path(__file__).parents[2]
PATIENCE_S: Final = 8
NOT_HERE: Final = {"Link", "Allocate", "Seek", "Owner"}
"""Operations of guests, of a scratch file system and of workloads of other users only."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: settings of this machine are changed")


@pytest.fixture(scope="module")
def faulty() -> Path:
    """The agent with faults."""
    target = TREE / "target" / "faults"
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("cargo is not installed")
    build = [cargo, "build", "--quiet", "--locked", "--package", "ajuste-agent", "--features", "faults"]
    subprocess.run([*build, "--target-dir", target], cwd=TREE, check=True)
    return target / "x86_64-unknown-linux-gnu" / "debug" / AGENT


@dataclass(frozen=True)
class Ended:
    exit_code: int
    complaint: str
    lines: tuple[str, ...]

    @property
    def events(self) -> list[Event]:
        """Return the events without a last line that was cut short."""
        return [parse_event(line) for line in self.lines if line.endswith("}")]

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def claims_success(self) -> bool:
        return any(end.ok for end in self.of(End))


class Session:
    """Runs of the plan, with journals and a registry of their own."""

    def __init__(self, agent: Path, folder: Path) -> None:
        self.agent = agent
        self.folder = folder
        self.journals = folder / "journals"
        self.registry = registry_beside(self.journals)
        self.log = folder / "log"

    @property
    def plan(self) -> dict[str, Any]:
        command = {"argv": ["/bin/true"]}
        return {
            "id": "t",
            "reads": [{"tunable": "ostype", "location": {"kind": "file", "path": "/proc/sys/kernel/ostype"}}],
            "writes": [write(EXPIRE, "2987"), write(PRESSURE, "103", INTERVAL)],
            "samplers": [
                {"source": "vmstat", "keys": ["nr_dirty"], "interval_ns": 10_000_000},
                {"source": "process", "keys": ["*"], "interval_ns": 10_000_000},
            ],
            "before": [command],
            "after": [command],
            "background": [{"argv": ["/bin/sleep", "1000"]}],
            "workload": {"argv": ["sh", "-c", f"cat {EXPIRE}; sleep 0.015"], "environment": {"PATH": "/usr/bin:/bin"}},
        }

    def run(self, command: list[str], plan: Any, fault: str | None = None) -> Ended:
        environment = {"AJUSTE_FAULT_LOG": str(self.log)} | ({"AJUSTE_FAULT": fault} if fault else {})
        argv = [str(self.agent), *command, "--registry", str(self.registry)]
        done = subprocess.run(
            argv,
            input=json.dumps(plan),
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            errors="replace",
        )
        return Ended(done.returncode, done.stderr, tuple(done.stdout.splitlines()))

    def measure(self, fault: str | None = None, **changed: Any) -> Ended:
        self.journals.mkdir(exist_ok=True)
        ended = self.run(["run", "--journal", str(self.journals)], self.plan | changed, fault)
        await_no_guardian(self.journals)
        return ended

    def restore(self, fault: str | None = None) -> Ended:
        permitted = [{"kind": "file", "path": path} for path in SETTINGS]
        return self.run(["restore", "--all", "--permit", "-", str(self.journals)], permitted, fault)

    def operations(self) -> list[str]:
        """Return the operations since the last time."""
        try:
            return self.log.read_text().split()
        finally:
            self.log.unlink(missing_ok=True)

    def left(self) -> list[Path]:
        places = [place for place in (self.journals, self.registry) if place.exists()]
        return [file for place in places for file in place.iterdir()]


@pytest.fixture
def before(own_machine: None) -> Iterator[dict[str, str]]:
    saved = values()
    yield saved
    for place, value in saved.items():
        if Path(place).read_text().strip() != value:
            Path(place).write_text(value)


@pytest.fixture
def session(faulty: Path, tmp_path: Path) -> Session:
    return Session(faulty, tmp_path)


def faults_at(operations: int) -> list[str]:
    """Return all faults, or a share that has every kind."""
    faults = [f"{place}{fault}" for place in range(operations) for fault in FAULTS]
    if EVERY:
        return faults
    step = max(len(faults) // AT_MOST, 1)
    # Of no common factor with the number of kinds, so that each has its turn.
    while any(step % factor == 0 for factor in (2, 5)):
        step += 1
    return faults[::step]


def check_told(ended: Ended) -> None:
    """Nothing is claimed that is not so, and nobody meets a program that broke."""
    assert "panicked" not in ended.complaint
    assert ended.exit_code in (0, 1, 2, -signal.SIGKILL)
    if not ended.claims_success:
        return
    (workload,) = [event for event in ended.of(Exited) if event.role == "workload"]
    (output,) = [event for event in ended.of(Output) if event.role == "workload" and event.stream == "stdout"]
    assert (workload.exit_code, output.text) == (0, "2987\n")
    assert [(event.tunable, event.after) for event in ended.of(Written)] == [
        ("dirty_expire_centisecs", "2987"),
        ("vfs_cache_pressure", "103"),
    ]
    assert all(event.readings > 1 or event.not_supported for event in ended.of(Sampled))


def check_values(session: Session, ended: Ended, before: dict[str, str]) -> None:
    """Check that they are back, or that the agent did not claim it and they are put back."""
    if ended.exit_code == 0:
        assert values() == before
        assert session.left() == []
        return
    changed = values() != before
    restored = session.restore()
    assert values() == before, f"changed after the run: {changed}; {restored}"
    assert restored.exit_code == 0 or session.left(), restored
    if changed:
        assert "restored" in "".join(restored.lines)


@pytest.mark.slow
def test_a_fault_at_any_operation_leaves_nothing_behind(session: Session, before: dict[str, str]) -> None:
    undisturbed = session.measure()
    assert (undisturbed.exit_code, undisturbed.claims_success, session.left()) == (0, True, [])
    check_told(undisturbed)
    operations = session.operations()
    assert len(operations) > 100
    layer = (TREE / "native/agent/src/disk/fault.rs").read_text()
    known = re.findall(r"^    (\w+),$", layer.partition("pub enum Operation {")[2].partition("}")[0], re.MULTILINE)
    assert session.restore().exit_code == 0
    assert set(known) - NOT_HERE <= {*operations, *session.operations()} <= set(known)
    broken = []
    for number, fault in enumerate(faults_at(len(operations))):
        here = Session(session.agent, session.folder / str(number))
        here.folder.mkdir()
        ended = None
        try:
            ended = here.measure(fault)
            check_told(ended)
            check_values(here, ended, before)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            broken.append(f"AJUSTE_FAULT={fault}: {str(error).splitlines()[0]}\n{ended}")
            for place, value in before.items():
                if Path(place).read_text().strip() != value:
                    Path(place).write_text(value)
        shutil.rmtree(here.folder)
    assert not broken, f"{len(broken)} faults\n" + "\n".join(broken[:20])


def test_the_build_of_users_knows_no_faults() -> None:
    program = native_program(AGENT).read_bytes()
    assert re.search(b"AJUSTE_FAULT|enospc|erofs", program) is None
