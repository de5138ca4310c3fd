"""Shares of the CPU: what the workload and each background load got of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ajuste.model.event import Exited

CPU_SHARE: Final = "cpu-share"


def background_share(number: int) -> str:
    """The metric of the background load of that number, counted from 1 as in the study."""
    return f"{CPU_SHARE}.background-{number}"


def shares(exits: Iterable[Exited], loads: Sequence[int]) -> dict[str, float]:
    """CPU time, user and system, by elapsed time, in per cent of one CPU.

    ``loads`` has for each background command the number of its load: commands of the same one are added up. Their
    window is not quite the workload's: the agent counts them from their own start.
    """
    found: dict[str, float] = {}
    for event in exits:
        if event.role not in ("workload", "background") or not event.wall_ns:
            continue
        if event.role == "background" and event.index >= len(loads):
            continue
        name = CPU_SHARE if event.role == "workload" else background_share(loads[event.index])
        found[name] = found.get(name, 0.0) + 100 * (event.user_ns + event.system_ns) / event.wall_ns
    return found
