"""Time that it takes to put back fifty tunables from a journal. Needs root: ``python -m benchmarks restore-time``.

In a network namespace of its own, so that nothing else sees the changed values; the time is that of the whole program.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from ajuste.machine.home import AGENT, native_program
from ajuste.machine.session import boot_id
from benchmarks.comparison import Comparison, seconds

TUNABLES = 50
ROUNDS = 10
GOAL_MS = 100.0


def measure() -> tuple[Comparison, ...]:
    """Whole processes, in a namespace of their own."""
    command = ["unshare", "--net", sys.executable, "-m", "benchmarks.restore_time"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures = json.loads(done.stdout)
    comparison = Comparison(
        name="restore-time",
        what=f"{TUNABLES} tunables put back by ajuste-agent restore",
        unit="ms",
        figures={"restore": figures},
        goal=f"under {GOAL_MS:.0f} ms",
        reached=median(figures) < GOAL_MS,
    )
    return (comparison,)


def changeable() -> dict[Path, str]:
    """Settings of TCP, IPv4 and its interfaces that take a value one more than theirs, and theirs again."""
    settings: dict[Path, str] = {}
    for path in sorted(Path("/proc/sys/net/ipv4").rglob("*")):
        if len(settings) == TUNABLES:
            break
        try:
            before = path.read_text().strip()
            if not before.isdecimal():
                continue
            path.write_text(f"{int(before) + 1}\n")
            changed = path.read_text().strip() != before
            path.write_text(f"{before}\n")
        except OSError:
            continue
        if changed and path.read_text().strip() == before:
            settings[path] = before
    return settings


def once(places: dict[Path, str], directory: Path) -> float:
    """Milliseconds."""
    header = {"journal": 1, "session": "s", "boot": boot_id(), "pid": 1, "started_ticks": 2, "began_s": 3}
    steps = [
        {"undo": "value", "tunable": path.name, "location": {"kind": "file", "path": str(path)}, "before": before}
        for path, before in places.items()
    ]
    journal = directory / "s.journal"
    journal.write_text("".join(json.dumps(line) + "\n" for line in (header, *steps)))
    journal.chmod(0o600)
    for path, before in places.items():
        path.write_text(f"{int(before) + 1}\n")
    permit = directory / "permit"
    permit.write_text(json.dumps([step["location"] for step in steps]))
    command = [str(native_program(AGENT)), "restore", "--permit", str(permit), str(journal)]
    taken = seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
    left = [str(path) for path, before in places.items() if path.read_text().strip() != before]
    if left or journal.exists():
        raise RuntimeError(f"not put back: {', '.join(left)}")
    return taken * 1000


def main() -> None:
    places = changeable()
    if len(places) < TUNABLES:
        raise RuntimeError(f"only {len(places)} tunables can be changed here")
    with tempfile.TemporaryDirectory() as directory:
        print(json.dumps([once(places, Path(directory)) for _ in range(ROUNDS)]))


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("changing settings needs root")
    main()
