"""What ``ajuste why`` records beside ``perf sched``, of the same runs of the same commands.

The agent runs ``perf sched record COMMAND`` and records it, so that both see the very same events: how often the
command's tasks left a CPU, and for how long they had one, as it follows from perf's own list of the switches.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

from ajuste.executor.host.host import HostExecutor
from ajuste.machine.files import locked
from ajuste.machine.home import WORKLOADS, Home, native_program
from ajuste.model.event import Traced
from ajuste.model.plan import Command, Plan, Trace
from benchmarks.comparison import Comparison, by_turns
from benchmarks.kills import TESTS_LOCK

ROUNDS = 5
MOST_PERCENT = {"switches": 0.5, "run time": 0.5}
UNITS = {"switches": "", "run time": "ms"}
BUFFER_BYTES = 64 << 20

_JOBS = {
    "ajuste-workload": (str(native_program(WORKLOADS)), "matrix", "--size", "200", "--repetitions", "100"),
    "hackbench": ("hackbench", "-g", "1", "-l", "100", "-T"),
}
"""By the name that the kernel knows them by."""

_SWITCH = re.compile(r"^\s*\[(\d+)\]\s+(\d+\.\d+):\s+sched:sched_switch: prev_comm=(.*?) prev_pid=", re.MULTILINE)
"""A line of ``perf script``: on which CPU, when, and who left it."""


def measure() -> tuple[Comparison, ...]:
    """A comparison for each command and figure."""
    if os.geteuid() != 0:
        raise SystemExit("the scheduler's events are for root only")
    seen: dict[str, list[tuple[dict[str, float], dict[str, float]]]] = {name: [] for name in _JOBS}

    def once(host: HostExecutor, directory: Path, name: str) -> float:
        seen[name].append(_record(host, directory, name))
        return 0.0

    with locked(TESTS_LOCK), tempfile.TemporaryDirectory() as made:
        root = Path(made)
        with HostExecutor(Home(root / "data", root / "cache", root / "state")) as host:
            by_turns({name: partial(once, host, root, name) for name in _JOBS}, ROUNDS)
    return tuple(_comparison(name, figure, found) for name, found in seen.items() for figure in UNITS)


def _comparison(name: str, figure: str, found: list[tuple[dict[str, float], dict[str, float]]]) -> Comparison:
    ours, theirs = [own[figure] for own, _ in found], [other[figure] for _, other in found]
    apart = median(100 * abs(one / other - 1) for one, other in zip(ours, theirs, strict=True))
    return Comparison(
        name=f"sched-{name}-{figure.replace(' ', '-')}",
        what=f"{figure} of {name}",
        unit=UNITS[figure],
        figures={"Ajuste": ours, "perf sched": theirs},
        goal=f"{apart:.2g} % apart in the median; goal: {MOST_PERCENT[figure]:g} % at most",
        reached=apart <= MOST_PERCENT[figure],
    )


def _record(host: HostExecutor, directory: Path, name: str) -> tuple[dict[str, float], dict[str, float]]:
    """What the agent and what ``perf sched`` saw of one run."""
    kept = str(directory / "perf.data")
    command = Command(argv=("perf", "sched", "record", "-o", kept, "--", *_JOBS[name]), environment=dict(os.environ))
    trace = Trace(buffer_bytes=BUFFER_BYTES)
    observation = host.run(Plan(id=name, workload=command, trace=trace, timeout_ns=10**11))
    recording = next((event.recording for event in observation.events if isinstance(event, Traced)), None)
    if observation.problem or recording is None:
        raise RuntimeError(observation.problem or "nothing was recorded")
    own = next(share for share in recording.shares if share.command == name and share.part == "workload")
    return {"switches": own.switches, "run time": own.run_ns / 1e6}, _listed(kept, name)


def _listed(kept: str, name: str) -> dict[str, float]:
    """Who leaves a CPU has had it since the switch before."""
    since: dict[str, float] = {}
    found = {"switches": 0.0, "run time": 0.0}
    for cpu, at, who in _SWITCH.findall(_perf("script", "--ns", "-i", kept, "-F", "cpu,time,event,trace")):
        if who == name:
            found["switches"] += 1
            found["run time"] += 1e3 * (float(at) - since.get(cpu, float(at)))
        since[cpu] = float(at)
    return found


def _perf(*words: str) -> str:
    return subprocess.run(["perf", *words], check=True, capture_output=True, text=True).stdout
