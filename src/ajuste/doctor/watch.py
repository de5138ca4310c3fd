"""Looks at the machine while something else is measured: counters before and after, and a glance now and then."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from ajuste.doctor.counters import Counters, fastest_khz, read_counters, running_tasks
from ajuste.doctor.measurements import Busy
from ajuste.doctor.processes import Snapshot, family_ticks, read_processes, used_between
from ajuste.inventory.source import Source

_GLANCE_SECONDS: Final = 0.2
_GLANCES_PER_SNAPSHOT: Final = 10
_MOST_NAMED: Final = 8
_LEAST_PERCENT: Final = 0.1
"""Of one CPU: programs that use less are not named."""


@dataclass(frozen=True)
class Seen:
    """From entering to leaving. ``own_ticks`` are those of this process and all that it has started."""

    seconds: float
    before: Counters
    after: Counters
    own_ticks: int
    runnable: tuple[int, ...]
    khz: tuple[int, ...]
    busy: tuple[Busy, ...]


class Watch:
    """A context manager; ``seen`` is there once it was left."""

    def __init__(self, source: Source | None = None) -> None:
        self._source = source or Source()
        self._end = threading.Event()
        self._runnable: list[int] = []
        self._khz: list[int] = []
        self._snapshots: list[Snapshot] = []
        self._seen: Seen | None = None

    @property
    def seen(self) -> Seen:
        assert self._seen is not None, "the watch goes on"
        return self._seen

    def __enter__(self) -> Self:
        self._snapshots.append(read_processes(self._source))
        self._before = read_counters(self._source)
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._glance, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()
        seconds = time.monotonic() - self._began
        after = read_counters(self._source)
        self._snapshots.append(read_processes(self._source))
        own = [family_ticks(snapshot, os.getpid()) for snapshot in (self._snapshots[0], self._snapshots[-1])]
        self._seen = Seen(
            seconds=seconds,
            before=self._before,
            after=after,
            own_ticks=max(0, own[1] - own[0]),
            runnable=tuple(self._runnable),
            khz=tuple(self._khz),
            busy=self._busy(seconds),
        )

    def _glance(self) -> None:
        glances = 0
        while not self._end.wait(_GLANCE_SECONDS):
            running, khz = running_tasks(self._source), fastest_khz(self._source)
            if running is not None:
                self._runnable.append(running)
            if khz is not None:
                self._khz.append(khz)
            glances += 1
            if glances % _GLANCES_PER_SNAPSHOT == 0:
                self._snapshots.append(read_processes(self._source))

    def _busy(self, seconds: float) -> tuple[Busy, ...]:
        ticks_per_s = os.sysconf("SC_CLK_TCK")
        used = used_between(self._snapshots, os.getpid())
        shares = ((name, 100 * ticks / ticks_per_s / seconds) for name, ticks in used.items())
        return tuple(Busy(name=name, cpu_percent=share) for name, share in shares if share >= _LEAST_PERCENT)[
            :_MOST_NAMED
        ]
