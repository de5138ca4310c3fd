"""Guest as a program of its own: boots a kernel from nothing and runs one command in it.

``python -m benchmarks.guest SPEC`` is the whole cold start, Python's own and all that is built for it included.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from ajuste.machine.home import Home, home
from ajuste.model.event import Exited
from ajuste.model.plan import Command, Plan
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.kernel.fetch import fetch_kernel

MEMORY_MIB = 1024


def nothing() -> Path:
    """A program that does nothing."""
    return Path(shutil.which("true") or "/bin/true")


def target(spec: str, clock: str = "wall", *, place: Home | None = None, snapshot: bool = True) -> GuestExecutor:
    """Return a guest with one CPU, emulated, not yet entered."""
    place = place or home()
    return GuestExecutor(
        fetch_kernel(spec, place),
        clock="wall" if clock == "wall" else "virtual",
        cpus=1,
        memory_mib=MEMORY_MIB,
        files=GuestFiles(programs=(nothing(),)),
        home=place,
        snapshot=snapshot,
    )


def do_nothing(guest: GuestExecutor, name: str) -> float:
    """Run ``true`` from the guest's snapshot; how long the whole trial took here, in seconds."""
    seen = guest.run(Plan(id=name, workload=Command(argv=(str(nothing()),))))
    if seen.problem or not any(isinstance(event, Exited) and event.exit_code == 0 for event in seen.events):
        raise SystemExit(f"the trial failed: {seen.problem or seen.lines}")
    return seen.host_seconds


if __name__ == "__main__":
    with target(sys.argv[1]) as entered:
        do_nothing(entered, "cold")
