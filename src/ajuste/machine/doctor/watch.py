"""The kernel's counters of what goes on: read twice, their differences say what went on in between."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from ajuste.machine.doctor.diagnosis import Busy
from ajuste.machine.inventory.source import InventorySource, Missing

_THROTTLE: Final = ("core_throttle_count", "package_throttle_count")
_CPUS: Final = "/sys/devices/system/cpu"


@dataclass(frozen=True)
class Counters:
    """Ticks of all CPUs together (proc_stat(5)): ``total`` of every kind, ``busy`` neither idle nor waiting for I/O nor
    stolen. ``pressure_us`` by resource; ``throttled`` is ``None`` where no CPU counts it.
    """

    total: int = 0
    busy: int = 0
    steal: int = 0
    interrupts: int = 0
    switches: int = 0
    pressure_us: dict[str, int] = field(default_factory=dict)
    throttled: int | None = None


def read_counters(source: InventorySource) -> Counters:
    """What the counters are now; 0 for what is not there."""
    ticks: list[int] = []
    single = {"intr": 0, "ctxt": 0}
    for line in source.lines("/proc/stat", 1 << 20):
        words = line.split()
        if words and words[0] == "cpu":
            ticks = _numbers(words[1:9])
        elif words and words[0] in single and len(words) > 1:
            single[words[0]] = (_numbers(words[1:2]) or [0])[0]
    user, nice, system, idle, waiting, irq, softirq, steal = (*ticks, *[0] * (8 - len(ticks)))
    busy = user + nice + system + irq + softirq
    return Counters(
        total=busy + idle + waiting + steal,
        busy=busy,
        steal=steal,
        interrupts=single["intr"],
        switches=single["ctxt"],
        pressure_us=_pressure(source),
        throttled=_throttled(source),
    )


def running_tasks(source: InventorySource) -> int | None:
    """How many tasks run or wait for a CPU at this moment, ourselves among them."""
    for line in source.lines("/proc/stat", 1 << 20):
        match = re.fullmatch(r"procs_running ([0-9]{1,9})", line)
        if match:
            return int(match[1])
    return None


def fastest_khz(source: InventorySource) -> int | None:
    """The highest frequency that any CPU has at this moment; ``None`` where it is not visible."""
    place = f"{_CPUS}/cpufreq"
    found = [source.whole(f"{place}/{name}/scaling_cur_freq") for name in source.names(place)]
    return max((khz for khz in found if khz), default=None)


def _numbers(words: list[str]) -> list[int]:
    return [int(word) if re.fullmatch("[0-9]{1,19}", word) else 0 for word in words]


def _pressure(source: InventorySource) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in ("cpu", "io", "memory"):
        text = source.text(f"/proc/pressure/{name}")
        match = None if isinstance(text, Missing) else re.search(r"^some .*total=([0-9]{1,19})", text, re.MULTILINE)
        if match:
            found[name] = int(match[1])
    return found


def _throttled(source: InventorySource) -> int | None:
    counts = [
        source.whole(f"{_CPUS}/{cpu}/thermal_throttle/{name}")
        for cpu in source.names(_CPUS)
        if re.fullmatch("cpu[0-9]+", cpu)
        for name in _THROTTLE
    ]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


# The processes of this machine and the CPU time that they have used.


_STAT: Final = re.compile(
    r"\((?P<name>(?:.|\n)*)\) \S (?P<parent>-?\d+) (?:\S+ ){9}(?P<user>\d+) (?P<system>\d+) "
    r"(?P<children_user>\d+) (?P<children_system>\d+) (?:\S+ ){4}(?P<start>\d+)",
    re.ASCII,
)
"""proc_pid_stat(5): name (which can hold anything), parent, CPU times of itself and of its children, start."""


@dataclass(frozen=True)
class Process:
    """``ticks`` of its own, ``all_ticks`` with those of the children that it has waited for."""

    name: str
    parent: int
    ticks: int
    all_ticks: int


Snapshot = Mapping[tuple[int, int], Process]
"""By number and start: a number can be used again."""


def read_processes(source: InventorySource) -> Snapshot:
    """All processes now. One that ends while it is read is left out."""
    found: dict[tuple[int, int], Process] = {}
    for name in source.names("/proc"):
        if not (name.isascii() and name.isdecimal()):
            continue
        text = source.text(f"/proc/{name}/stat")
        match = None if isinstance(text, Missing) else _STAT.search(text)
        if match:
            own = int(match["user"]) + int(match["system"])
            children = int(match["children_user"]) + int(match["children_system"])
            process = Process(match["name"], int(match["parent"]), own, own + children)
            found[int(name), int(match["start"])] = process
    return found


def family(snapshot: Snapshot, ancestor: int) -> set[tuple[int, int]]:
    """``ancestor`` and all its descendants."""
    children: dict[int, list[tuple[int, int]]] = {}
    for key, process in snapshot.items():
        children.setdefault(process.parent, []).append(key)
    found = {key for key in snapshot if key[0] == ancestor}
    waiting = list(found)
    while waiting:
        for child in children.get(waiting.pop()[0], []):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def family_ticks(snapshot: Snapshot, ancestor: int) -> int:
    """All CPU time of a process and its descendants, those that have ended among them."""
    return sum(snapshot[key].all_ticks for key in family(snapshot, ancestor))


def used_between(snapshots: Iterable[Snapshot], ancestor: int) -> dict[str, int]:
    """Ticks that others used from the first to the last of ``snapshots``, by name, the most first.

    What was not there in the first counts from its start. One that came and went between two looks is not seen.
    """
    first: Snapshot | None = None
    used: dict[tuple[int, int], tuple[str, int]] = {}
    ours: set[tuple[int, int]] = set()
    for snapshot in snapshots:
        first = snapshot if first is None else first
        ours |= family(snapshot, ancestor)
        for key, process in snapshot.items():
            before = first[key].ticks if key in first else 0
            used[key] = (process.name, max(0, process.ticks - before))
    sums: dict[str, int] = {}
    for key, (name, ticks) in used.items():
        if key not in ours and ticks:
            sums[name] = sums.get(name, 0) + ticks
    return dict(sorted(sums.items(), key=lambda entry: -entry[1]))


# Looks at the machine while something else is measured: counters before and after, and a glance now and then.


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


class MachineWatch:
    """A context manager; ``seen`` is there once it was left."""

    def __init__(self, source: InventorySource | None = None) -> None:
        self._source = source or InventorySource()
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

    def __exit__(self, *_: object) -> None:
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
