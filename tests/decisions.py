"""Streams of decisions, made up, for tests of what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from ajuste.model.decision import KINDS, NamedDecisions

IDLE, AGENT, KERNEL, FIRST = 0, 1, 2, 3
"""Tasks that are always there, and the number of the first one of the workload."""
FUNCTIONS = (
    "resched_curr",
    "check_preempt_wakeup",
    "try_to_wake_up",
    "entry_SYSCALL_64",
    "asm_sysvec_apic_timer_interrupt",
    "__x64_sys_write",
    "__x64_sys_read",
)
PATHS = ((0, 1, 2, 3), (2, 3), (4,))

Step = tuple[str, int]
"""A kind, and which of the tasks that are there it is about."""


def steps(least: int = 0) -> st.SearchStrategy[list[Step]]:
    return st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 20)), min_size=least, max_size=60)


def stream(steps: Sequence[Step], *, each: int = 100, moved: int = 0, **changes: Any) -> NamedDecisions:
    """Return what comes of ``steps``, one every ``each`` instructions. Numbers of tasks are ``moved``, as where a task
    that is not seen came before them.
    """
    tasks: list[dict[str, Any]] = [
        {"number": IDLE + moved, "parent": None, "role": "idle", "birth": 0},
        {"number": AGENT + moved, "parent": None, "role": "agent", "birth": 0},
        {"number": KERNEL + moved, "parent": None, "role": "kernel", "birth": 0, "name": "rcu_gp_kthread"},
        {"number": FIRST + moved, "parent": AGENT + moved, "role": "workload", "birth": 1},
    ]
    births = {FIRST + moved: 0, AGENT + moved: 2}
    running = FIRST + moved
    columns: dict[str, list[Any]] = {name: [] for name in ("kinds", "running", "others", "stays", "ways")}
    for kind, choice in steps:
        other = tasks[choice % len(tasks)]["number"]
        if kind == "new":
            other = len(tasks) + moved
            births[running] = births.get(running, 0) + 1
            tasks.append({"number": other, "parent": running, "role": "workload", "birth": births[running] - 1})
        row = (KINDS.index(kind), running, -1 if kind == "timer" else other, kind == "switch" and choice % 2 == 0)
        for name, value in zip(columns, (*row, choice % len(PATHS)), strict=True):
            columns[name].append(value)
        running = other if kind == "switch" else running
    count = len(columns["kinds"])
    figures: dict[str, Any] = {
        "has_clock": True,
        "instructions": each * (count + 1),
        "left_out": 0,
        "instruction_ns": 2,
        "functions": FUNCTIONS,
        "paths": PATHS,
        "cpus": [0] * count,
        "at": [each * (place + 1) for place in range(count)],
        "idle_ns": [0] * count,
    }
    return NamedDecisions.model_validate(figures | {"tasks": tasks, **columns} | changes)


def calling(calls: Sequence[tuple[int, int, int | None]]) -> dict[str, Any]:
    """System calls for ``stream``: the task, when it begins, and how long it takes (None: to the end)."""
    ordered = sorted(calls, key=lambda call: call[1])
    return {
        "tasks": [task for task, *_ in ordered],
        "functions": [len(FUNCTIONS) - 1 - at % 2 for _, at, _ in ordered],
        "at": [at for _, at, _ in ordered],
        "idle_ns": [0] * len(ordered),
        "ended_at": [None if long is None else at + long for _, at, long in ordered],
        "ended_idle_ns": [None if long is None else 0 for _, _, long in ordered],
    }


Said = tuple[str, int, int, int]
"""A kind, a CPU, who runs there, and whom the decision is about."""

CPUS = 3
"""Tasks below are idle, each on its CPU; further ones are the workload's."""


def on_cpus(decided: Sequence[Said], *, each: int = 100) -> NamedDecisions:
    """Decisions of several CPUs, as they are said."""
    count = max((task for _, _, *both in decided for task in both), default=0) + 1
    tasks = [
        {"number": number, "parent": None, "role": "idle" if number < CPUS else "workload", "birth": 0}
        for number in range(max(CPUS, count))
    ]
    plain = stream([("wakeup", 0)] * len(decided), each=each).model_dump()
    columns = {
        name: [row[place] for row in decided] for place, name in enumerate(("kinds", "cpus", "running", "others"))
    }
    columns["kinds"] = [KINDS.index(kind) for kind in columns["kinds"]]
    return NamedDecisions.model_validate(plain | columns | {"tasks": tasks})
