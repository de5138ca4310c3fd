"""Snapshots: a machine that stopped at its gate, as a file from which any number of machines go on.

The file is passed as an open descriptor: QEMU gets no path, and no shell is involved.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ajuste.model.error import RunError
from ajuste.vm.machine import RunningMachine
from ajuste.vm.qmp import MonitorClosed

_SECONDS = 600.0
_UNLIMITED_BYTES_PER_SECOND = 2**63 - 1
_NAME = "snapshot"


def save(machine: RunningMachine, path: Path) -> None:
    """Write a stopped ``machine`` to ``path`` and end it. Raises RunError where that fails (no disk space)."""
    machine.lift_output_limit()
    machine.monitor.execute("migrate-set-parameters", {"max-bandwidth": _UNLIMITED_BYTES_PER_SECOND})
    _transfer(machine, "migrate", path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    machine.quit()


def restore(machine: RunningMachine, path: Path) -> None:
    """Load ``path`` into a ``machine`` that was started as ``restored``. It stays stopped."""
    # QEMU would announce its network cards by timers of this machine's time, which shorten the turns that several CPUs
    # take under the virtual clock (also where there is no such card).
    machine.monitor.execute("migrate-set-parameters", {"announce-rounds": 0})
    _transfer(machine, "migrate-incoming", path, os.O_RDONLY)


def _transfer(machine: RunningMachine, command: str, path: Path, flags: int) -> None:
    monitor = machine.monitor
    try:
        monitor.execute("migrate-set-capabilities", {"capabilities": [{"capability": "events", "state": True}]})
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
        try:
            monitor.pass_file(_NAME, descriptor)
        finally:
            os.close(descriptor)
        monitor.execute(command, {"uri": f"fd:{_NAME}"})
        event = monitor.wait_for(_is_settled, _SECONDS)
    except MonitorClosed as error:
        raise RunError(f"QEMU ended during {command}: {machine.complaint()}") from error
    if event is None or event["data"]["status"] != "completed":
        reason = monitor.execute("query-migrate").get("error-desc", "") or machine.complaint()
        raise RunError(f"{command} failed: {reason or 'no reason given'}")


def _is_settled(event: dict[str, Any]) -> bool:
    return event.get("event") == "MIGRATION" and event["data"].get("status") in ("completed", "failed", "cancelled")
