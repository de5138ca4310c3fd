"""``process:NAME#FIELD`` or ``process:PID#FIELD``: a figure of a service's processes, all of that name together.

``cpu`` is per cent of one CPU, ``rss`` bytes, ``threads`` a number; ``read_bytes``, ``write_bytes``,
``voluntary_switches``, ``involuntary_switches`` and ``run_delay`` (per cent of the time) are rates. Processes come and
go: those that exist at two readings in a row count.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

from ajuste.machine.session import started_ticks
from ajuste.model.error import RequestError
from ajuste_live.reading import Figures, Fold, NothingShownError, Source, level, rate

KIND: Final = "process"


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return 100.0 * (times.user + times.system)


def _run_delay(process: psutil.Process) -> float:
    # Source: Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat.
    files = list(Path(f"/proc/{process.pid}/task").glob("*/schedstat"))
    return sum(float(file.read_text().split()[1]) for file in files) / 1e7


_FIELDS: Final[dict[str, tuple[Callable[[psutil.Process], float], Fold]]] = {
    "cpu": (_cpu, rate),
    "rss": (lambda process: float(process.memory_info().rss), level),
    "threads": (lambda process: float(process.num_threads()), level),
    "read_bytes": (lambda process: float(process.io_counters().read_bytes), rate),
    "write_bytes": (lambda process: float(process.io_counters().write_bytes), rate),
    "voluntary_switches": (lambda process: float(process.num_ctx_switches().voluntary), rate),
    "involuntary_switches": (lambda process: float(process.num_ctx_switches().involuntary), rate),
    "run_delay": (_run_delay, rate),
}


def open_source(where: str) -> Source:
    """Open a figure of processes. Raises RequestError for an unknown field or process."""
    name, _, field = where.rpartition("#")
    if field not in _FIELDS:
        raise RequestError(f"{field!r} is not a figure of a process; expected one of {', '.join(_FIELDS)}")
    if not _named(name):
        raise RequestError(f"process {name!r} not found", hint="give its name as ps -e shows it, or its number")
    read, fold = _FIELDS[field]
    gathered = _Gathered(name, read, grows=fold is rate)
    return Source("files", gathered.now, fold)


def _named(name: str) -> list[psutil.Process]:
    if name.isdecimal():
        return [psutil.Process(int(name))] if psutil.pid_exists(int(name)) else []
    return [process for process in psutil.process_iter(["name"]) if process.info["name"] == name]


class _Gathered:
    # One counter of all processes of a name: it grows by their growth, so a process that ends does not lower it.
    def __init__(self, name: str, read: Callable[[psutil.Process], float], *, grows: bool) -> None:
        self._name = name
        self._read = read
        self._grows = grows
        self._last: dict[tuple[int, int], float] = {}
        self._total = 0.0

    def now(self) -> Figures:
        counters: dict[tuple[int, int], float] = {}
        for process in _named(self._name):
            try:
                counters[process.pid, started_ticks(process.pid)] = self._read(process)
            except (psutil.Error, OSError, IndexError, ValueError):
                continue
        if not counters:
            raise NothingShownError(f"process {self._name} is not there any more")
        if not self._grows:
            return (sum(counters.values()),)
        self._total += sum(max(0.0, value - self._last[key]) for key, value in counters.items() if key in self._last)
        self._last = counters
        return (self._total,)
