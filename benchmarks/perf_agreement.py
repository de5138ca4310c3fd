"""The agent's counters beside those of ``perf stat``, of the same runs of the same commands.

The agent runs ``perf stat COMMAND`` and counts both of them, ``perf stat`` counts the command. What ``perf stat``
itself takes is known from running it with ``true``, and is taken off. So it does not matter what else the machine does.
"""

from __future__ import annotations

import tempfile
from functools import partial
from statistics import median

from ajuste.executor.host.host import HostExecutor
from ajuste.machine.home import WORKLOADS, native_program
from ajuste.model.event import Counter
from ajuste.model.plan import Command, Plan
from benchmarks.comparison import Comparison, by_turns

ROUNDS = 15
EVENTS = ("task-clock", "context-switches", "cpu-migrations", "page-faults")
MOST_PERCENT = 1.0
MOST_COUNTS = 4
MOST_MS = 3.0
"""Difference below which figures are the same: ``perf stat`` itself does not take the same every time."""

_PROGRAM = str(native_program(WORKLOADS))
_NOTHING = "true"
_JOBS = {
    _NOTHING: ("true",),
    "matrix": (_PROGRAM, "matrix", "--size", "200", "--repetitions", "300"),
    "sleeps": (_PROGRAM, "jitter", "--sleeps", "300", "--interval-us", "1000"),
    "hackbench": ("hackbench", "-g", "1", "-l", "200", "-T"),
}
_ENVIRONMENT = {"PATH": "/usr/bin:/bin"}

_Counts = dict[str, float]
"""Counts by event; ``task-clock`` in ms."""


def measure() -> tuple[Comparison, ...]:
    """A comparison for each command and event."""
    seen: dict[str, list[tuple[_Counts, _Counts]]] = {name: [] for name in _JOBS}

    def once(host: HostExecutor, name: str) -> float:
        seen[name].append(_count(host, name))
        return 0.0

    with HostExecutor() as host:
        by_turns({name: partial(once, host, name) for name in _JOBS}, ROUNDS)
    share = {event: median(ours[event] - theirs[event] for ours, theirs in seen[_NOTHING]) for event in EVENTS}
    return tuple(
        _comparison(
            f"perf-{name}-{event}",
            f"{event} of {name}",
            [ours[event] - share[event] for ours, _ in seen[name]],
            [theirs[event] for _, theirs in seen[name]],
            "ms" if event == "task-clock" else "",
        )
        for name in _JOBS
        if name != _NOTHING
        for event in EVENTS
    )


def _comparison(name: str, what: str, ours: list[float], theirs: list[float], unit: str) -> Comparison:
    apart = median(abs(our_count - their_count) for our_count, their_count in zip(ours, theirs, strict=True))
    most = max(median(theirs) * MOST_PERCENT / 100, MOST_MS if unit else MOST_COUNTS)
    return Comparison(
        name=name,
        what=what,
        unit=unit,
        figures={"Ajuste": ours, "perf stat": theirs},
        goal=f"{apart:.3g} apart in the median; goal: {most:.3g} at most",
        reached=apart <= most,
    )


def _count(host: HostExecutor, name: str) -> tuple[_Counts, _Counts]:
    """Return what the agent and what ``perf stat`` counted in one run."""
    with tempfile.NamedTemporaryFile("r") as report:
        argv = ("perf", "stat", "-x,", "-o", report.name, "-e", ",".join(EVENTS), *_JOBS[name])
        observation = host.run(
            Plan(id=name, workload=Command(argv=argv, environment=_ENVIRONMENT), counters=EVENTS, timeout_ns=10**11)
        )
        if observation.problem:
            raise RuntimeError(observation.problem)
        rows = [line.split(",") for line in report if line.count(",") > 2]
    counters = [event for event in observation.events if isinstance(event, Counter)]
    ours = {counter.name: (counter.value or 0) / (1e6 if counter.name == "task-clock" else 1) for counter in counters}
    return ours, {row[2]: float(row[0]) for row in rows}
