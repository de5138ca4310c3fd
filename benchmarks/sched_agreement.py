"""Agreement of what ``ajuste why`` records with ``perf sched``, of the same runs of the same commands.

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
"""Commands by the name that the kernel knows them by."""

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
    return tuple(_comparison(name, figure, records) for name, records in seen.items() for figure in UNITS)


def _comparison(name: str, figure: str, records: list[tuple[dict[str, float], dict[str, float]]]) -> Comparison:
    ours, theirs = (
        [agent_figures[figure] for agent_figures, _ in records],
        [perf_figures[figure] for _, perf_figures in records],
    )
    apart = median(
        100 * abs(our_figure / their_figure - 1) for our_figure, their_figure in zip(ours, theirs, strict=True)
    )
    return Comparison(
        name=f"sched-{name}-{figure.replace(' ', '-')}",
        what=f"{figure} of {name}",
        unit=UNITS[figure],
        figures={"Ajuste": ours, "perf sched": theirs},
        goal=f"{apart:.2g} % apart in the median; goal: {MOST_PERCENT[figure]:g} % at most",
        reached=apart <= MOST_PERCENT[figure],
    )


def _record(host: HostExecutor, directory: Path, name: str) -> tuple[dict[str, float], dict[str, float]]:
    """Return what the agent and what ``perf sched`` saw of one run."""
    data_file = str(directory / "perf.data")
    command = Command(
        argv=("perf", "sched", "record", "-o", data_file, "--", *_JOBS[name]), environment=dict(os.environ)
    )
    trace = Trace(buffer_bytes=BUFFER_BYTES)
    observation = host.run(Plan(id=name, workload=command, trace=trace, timeout_ns=10**11))
    recording = next((event.recording for event in observation.events if isinstance(event, Traced)), None)
    if observation.problem or recording is None:
        raise RuntimeError(observation.problem or "nothing was recorded")
    share_of_command = next(share for share in recording.shares if share.command == name and share.part == "workload")
    return {"switches": share_of_command.switches, "run time": share_of_command.run_ns / 1e6}, _listed(data_file, name)


def _listed(data_file: str, name: str) -> dict[str, float]:
    """Sum up a task's switches and run time: who leaves a CPU has had it since the switch before."""
    since: dict[str, float] = {}
    totals = {"switches": 0.0, "run time": 0.0}
    for cpu, at, who in _SWITCH.findall(_perf("script", "--ns", "-i", data_file, "-F", "cpu,time,event,trace")):
        if who == name:
            totals["switches"] += 1
            totals["run time"] += 1e3 * (float(at) - since.get(cpu, float(at)))
        since[cpu] = float(at)
    return totals


def _perf(*words: str) -> str:
    return subprocess.run(["perf", *words], check=True, capture_output=True, text=True).stdout
