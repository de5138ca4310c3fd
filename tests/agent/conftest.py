"""The two programs as they are built, and a way to run plans on this machine."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ajuste.executor.host.machine_lock import MachineLock
from ajuste.machine.home import AGENT, WORKLOADS, native_program
from ajuste.model.error import RequestError
from ajuste.model.event import Event, Exited, Failed, Output, parse_event

T = TypeVar("T")


@pytest.fixture(scope="session")
def agent() -> str:
    return str(native_program(AGENT))


@pytest.fixture(scope="session")
def workloads() -> str:
    return str(native_program(WORKLOADS))


@dataclass(frozen=True)
class Told:
    """Events of the agent for one plan, with its exit code and complaint."""

    exit_code: int
    complaint: str
    events: tuple[Event, ...]

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]

    def exited(self, role: str = "workload", index: int = 0) -> Exited:
        (exited,) = [event for event in self.of(Exited) if (event.role, event.index) == (role, index)]
        return exited

    def output(self, stream: str = "stdout", role: str = "workload") -> Output:
        (output,) = [event for event in self.of(Output) if (event.stream, event.role) == (stream, role)]
        return output

    @property
    def failed(self) -> Failed:
        (failed,) = self.of(Failed)
        return failed


def until(holds: Callable[[], bool]) -> None:
    """Wait for what another process brings about."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def registry_beside(directory: Path) -> Path:
    """A registry of journals that is only of the test with its journals in ``directory``."""
    return directory.with_name(f"{directory.name}-registry")


class Runner:
    """Runs plans, given as the fields that matter; with journals in a directory, if there is one."""

    def __init__(self, agent: str, journals: Path | None = None) -> None:
        self.arguments = [agent, "run"]
        if journals:
            registry = registry_beside(journals)
            self.arguments += ["--journal", str(journals), "--registry", str(registry)]

    def __call__(self, **plan: Any) -> Told:
        return self.document(json.dumps({"id": "t"} | plan))

    def shell(self, script: str, *, attributes: dict[str, Any] | None = None, **plan: Any) -> Told:
        """A plan whose workload is a shell script."""
        return self(workload=self.command(script, attributes), **plan)

    def document(self, document: str) -> Told:
        done = subprocess.run(self.arguments, input=document, capture_output=True, text=True, timeout=60)
        return self.trial(done.returncode, done.stderr, done.stdout)

    @staticmethod
    def command(script: str, attributes: dict[str, Any] | None = None) -> dict[str, Any]:
        return {"argv": ["/bin/sh", "-c", script], "attributes": attributes or {}}

    @staticmethod
    def trial(exit_code: int, complaint: str, stdout: str) -> Told:
        return Told(exit_code, complaint, tuple(parse_event(line) for line in stdout.splitlines()))


@pytest.fixture
def run(agent: str) -> Runner:
    return Runner(agent)


@pytest.fixture
def own_machine(machine_lock: None) -> Iterator[None]:
    """Keep other experiments away from a test that changes settings by the agent alone, also those of other users."""
    while True:
        with suppress(RequestError), MachineLock("measurement"):
            yield
            return
        time.sleep(0.1)
