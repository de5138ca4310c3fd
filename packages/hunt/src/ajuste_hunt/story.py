"""The story of a trial that shows what was hunted: who ran when a CPU stood still, where its scheduling parts from that
of a trial without pauses, and who waits at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ajuste.model.decision import KINDS, NamedDecisions
from ajuste.model.plan import CpuPause
from ajuste_guest.analysis.divergence import divergence
from ajuste_hunt.model import PauseThen, Story, TaskThen

_MOST_WAITING: Final = 12
# The time limit begins a little before the workload does.
_BEFORE_NS: Final = 1_000_000
_TOLD: Final = 4
# Of every way to sleep; what comes before says for what.
_SLEEPING: Final = frozenset(
    {"__switch_to_asm", "schedule", "__schedule", "schedule_timeout", "schedule_hrtimeout_range"}
)


def story(
    finding: NamedDecisions,
    plain: NamedDecisions | None,
    pauses: tuple[CpuPause, ...],
    functions: Mapping[CpuPause, str],
    limit_ns: int,
) -> Story:
    """Return the story of the trial that decided as ``finding``; ``plain`` is one of the same seed without pauses.
    ``functions`` had accessed shared memory just before a pause. At ``limit_ns`` a job that has not ended is killed.
    """
    notes = ("Only the first part of the decisions was kept.",) if finding.left_out else ()
    return Story(
        pauses=tuple(
            PauseThen(pause=pause, running=running_at(finding, pause), after=functions.get(pause, ""))
            for pause in pauses
        ),
        parts=None
        if plain is None or not pauses
        else divergence(plain, finding, ("without pauses", "with the pauses")),
        waiting=() if finding.left_out else waiting_at_end(finding, limit_ns - _BEFORE_NS),
        notes=notes,
    )


def running_at(stream: NamedDecisions, pause: CpuPause) -> str:
    """Return what ran on the CPU when it stood still: a task, and its system call if it was in one."""
    place = max(
        (p for p in range(len(stream)) if stream.cpus[p] == pause.cpu and stream.time_ns(p) <= pause.at_ns),
        default=None,
    )
    if place is None:
        place = next((p for p in range(len(stream)) if stream.cpus[p] == pause.cpu), None)
        task = None if place is None else stream.running[place]
    else:
        task = stream.others[place] if KINDS[stream.kinds[place]] == "switch" else stream.running[place]
    if task is None:
        return ""
    name = task_name(stream, task)
    for call in reversed(range(len(stream.calls))):
        begins_ns, ends_ns = stream.call_ns(call)
        if stream.calls.tasks[call] == task and begins_ns <= pause.at_ns and (ends_ns is None or pause.at_ns < ends_ns):
            return f"{name} in {stream.functions[stream.calls.functions[call]]}"
    return name


def waiting_at_end(stream: NamedDecisions, until_ns: int) -> tuple[TaskThen, ...]:
    """Return the tasks of the workload that sleep at its end, or at that time, and that nobody has woken."""
    of_workload = {task.number for task in stream.tasks if task.role == "workload"}
    asleep: dict[int, int] = {}
    for place, kind in enumerate(stream.kinds):
        if stream.time_ns(place) > until_ns:
            break
        running, other = stream.running[place], stream.others[place]
        match KINDS[kind]:
            case "switch":
                asleep.pop(other, None)
                if running in of_workload and not stream.stays[place]:
                    asleep[running] = place
            case "wakeup" | "new":
                asleep.pop(other, None)
            case _:
                pass
    then = []
    for task, place in sorted(asleep.items(), key=lambda entry: entry[1]):
        path = [name for name in stream.path(place) if name not in _SLEEPING]
        if any(name.startswith("do_exit") or name == "do_task_dead" for name in path):
            continue
        where = " ← ".join(reversed(path[-_TOLD:])) or "the kernel"
        then.append(
            TaskThen(
                name=task_name(stream, task), doing=f"waits since {stream.time_ns(place) / 1e6:.3f} ms, in {where}"
            )
        )
    return tuple(then[:_MOST_WAITING])


def task_name(stream: NamedDecisions, number: int) -> str:
    """Return the name of a task with its number, since several may have one name."""
    task = next(task for task in stream.tasks if task.number == number)
    return "idle" if task.role == "idle" else f"{task.name or task.role or 'task'} #{number}"
