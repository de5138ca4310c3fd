"""The kernel's counters of what goes on: read twice, their differences say what went on in between."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from ajuste.inventory.source import Missing, Source

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


def read_counters(source: Source) -> Counters:
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


def running_tasks(source: Source) -> int | None:
    """How many tasks run or wait for a CPU at this moment, ourselves among them."""
    for line in source.lines("/proc/stat", 1 << 20):
        match = re.fullmatch(r"procs_running ([0-9]{1,9})", line)
        if match:
            return int(match[1])
    return None


def fastest_khz(source: Source) -> int | None:
    """The highest frequency that any CPU has at this moment; ``None`` where it is not visible."""
    place = f"{_CPUS}/cpufreq"
    found = [source.whole(f"{place}/{name}/scaling_cur_freq") for name in source.names(place)]
    return max((khz for khz in found if khz), default=None)


def _numbers(words: list[str]) -> list[int]:
    return [int(word) if re.fullmatch("[0-9]{1,19}", word) else 0 for word in words]


def _pressure(source: Source) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in ("cpu", "io", "memory"):
        text = source.text(f"/proc/pressure/{name}")
        match = None if isinstance(text, Missing) else re.search(r"^some .*total=([0-9]{1,19})", text, re.MULTILINE)
        if match:
            found[name] = int(match[1])
    return found


def _throttled(source: Source) -> int | None:
    counts = [
        source.whole(f"{_CPUS}/{cpu}/thermal_throttle/{name}")
        for cpu in source.names(_CPUS)
        if re.fullmatch("cpu[0-9]+", cpu)
        for name in _THROTTLE
    ]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
