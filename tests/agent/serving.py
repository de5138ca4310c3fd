"""``ajuste-agent serve`` as its listener sees it, and harmless settings of this machine to change."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.agent.conftest import Told, registry_beside

from ajuste.model.event import parse_event

EXPIRE = "/proc/sys/vm/dirty_expire_centisecs"
SETTINGS = [
    EXPIRE,
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/dirty_bytes",
    "/proc/sys/vm/stat_interval",
    "/proc/sys/vm/vfs_cache_pressure",
]


def values() -> dict[str, str]:
    return {place: Path(place).read_text().strip() for place in SETTINGS}


def write(place: str, value: str, *companions: str) -> dict[str, Any]:
    def location(path: str) -> dict[str, str]:
        return {"kind": "file", "path": path}

    return {
        "tunable": Path(place).name,
        "location": location(place),
        "value": value,
        "companions": [location(path) for path in companions],
    }


def shell(script: str) -> dict[str, Any]:
    return {"argv": ["/bin/sh", "-c", script]}


class Serving:
    """``ajuste-agent serve`` with journals in ``directory``."""

    def __init__(self, agent: str, directory: Path, **options: Any) -> None:
        arguments = options.pop("arguments", [])
        self.process = subprocess.Popen(
            [agent, "serve", "--journal", str(directory), "--registry", str(registry_beside(directory)), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        self.lines: list[str] = []

    def send(self, **plan: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"id": "t"} | plan) + "\n")
        self.process.stdin.flush()

    def hear(self, kind: type[Any]) -> Any:
        """The next event of this kind; those before it are kept as well."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            self.lines.append(line)
            event = parse_event(line)
            if isinstance(event, kind):
                return event
        raise AssertionError(f"the agent ended without saying {kind.__name__}")

    def finish(self) -> Told:
        """Return all its output, after it ended by itself."""
        rest, complaint = self.process.communicate(timeout=60)
        events = tuple(parse_event(line) for line in [*self.lines, *rest.splitlines()])
        return Told(self.process.returncode, complaint, events)
