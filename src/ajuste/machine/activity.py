"""Activity of this machine so far: counters of the kernel, by the names of samplers' figures.

Whole files are read, in well under a millisecond each, between trials and never during one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from ajuste.machine.inventory.source import InventorySource, Missing

_MOST_BYTES: Final = 1 << 22
# Fields of /proc/diskstats (Documentation/admin-guide/iostats.rst).
_DISK: Final = (
    *("reads_completed", "reads_merged", "sectors_read", "read_ms", "writes_completed", "writes_merged"),
    *("sectors_written", "write_ms", "ios_in_progress", "io_ms", "weighted_io_ms", "discards_completed"),
    *("discards_merged", "sectors_discarded", "discard_ms", "flushes_completed", "flush_ms"),
)
# The field of /proc/schedstat with the time that tasks waited (Documentation/scheduler/sched-stats.rst), from 0.
_WAIT: Final = 7
# The field of /proc/net/dev with the packets that were sent, from 0.
_SENT_PACKETS: Final = 9

Figures = Iterator[tuple[str, int]]


def read_figures(names: Iterable[str], source: InventorySource) -> dict[str, int]:
    """Return the present figures ``SOURCE:NAME``, without those that this machine does not have."""
    counted: dict[str, int] = {}
    wanted = frozenset(names)
    for origin in sorted({name.partition(":")[0] for name in wanted}):
        path, read = _FILES[origin]
        text = source.text(path, _MOST_BYTES)
        if not isinstance(text, Missing):
            figures = ((f"{origin}:{name}", value) for name, value in read(text))
            counted |= {name: value for name, value in figures if name in wanted}
    return {name: value for name, value in counted.items() if _is_counted(name, source)}


def facts_here(source: InventorySource) -> dict[str, int]:
    """Return how many CPUs and NUMA nodes this machine has."""
    nodes = [name for name in source.names("/sys/devices/system/node") if name[4:].isdecimal()]
    return {"cpus": os.cpu_count() or 2, "nodes": len(nodes) or 2}


def read_texts(paths: Iterable[str], source: InventorySource) -> dict[str, str]:
    """Return the contents of these files, by path, without unreadable ones."""
    contents = {path: source.text(path) for path in paths}
    return {path: text for path, text in contents.items() if not isinstance(text, Missing)}


def _is_counted(name: str, source: InventorySource) -> bool:
    # A disk counts nothing where that was turned off.
    origin, _, key = name.partition(":")
    return origin != "diskstats" or source.line(f"/sys/block/{key.partition('.')[0]}/queue/iostats") != "0"


def _pairs(text: str) -> Figures:
    for line in text.splitlines():
        name, _, value = line.replace("\t", " ").partition(" ")
        if value.strip().isdecimal():
            yield name, int(value)


def _meminfo(text: str) -> Figures:
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdecimal():
            yield name, int(words[0]) * (1024 if words[1:] == ["kB"] else 1)


def _diskstats(text: str) -> Figures:
    for words in map(str.split, text.splitlines()):
        if len(words) > 3:
            yield from ((f"{words[2]}.{field}", int(word)) for field, word in zip(_DISK, words[3:], strict=False))


def _schedstat(text: str) -> Figures:
    # The time that tasks waited, on all CPUs together.
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith("cpu")]
    if lines:
        yield "cpu.wait_ns", sum(int(fields[_WAIT]) for fields in lines if len(fields) > _WAIT)


def _by_cpu(text: str) -> Figures:
    # `NAME: COUNT COUNT …`, of all CPUs together.
    for line in text.splitlines()[1:]:
        name, _, rest = line.partition(":")
        yield name.strip(), sum(int(word) for word in rest.split() if word.isdecimal())


def _protocols(text: str) -> Figures:
    # Two lines each: `Tcp: NAME NAME …`, `Tcp: VALUE VALUE …`.
    for above, below in pairwise(text.splitlines()):
        protocol, _, names = above.partition(": ")
        other, _, values = below.partition(": ")
        if protocol == other and not names[:1].isdecimal():
            for name, value in zip(names.split(), values.split(), strict=False):
                if value.isdecimal():
                    yield f"{protocol}.{name}", int(value)


def _interfaces(text: str) -> Figures:
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) > _SENT_PACKETS and all(word.isdecimal() for word in words):
            yield f"{name.strip()}.rx_packets", int(words[1])
            yield f"{name.strip()}.tx_packets", int(words[_SENT_PACKETS])


# Where the figures of each source are on a host, and how they are read.
_FILES: Final[Mapping[str, tuple[str, Callable[[str], Figures]]]] = MappingProxyType(
    {
        "vmstat": ("/proc/vmstat", _pairs),
        "meminfo": ("/proc/meminfo", _meminfo),
        "diskstats": ("/proc/diskstats", _diskstats),
        "schedstat": ("/proc/schedstat", _schedstat),
        "softirqs": ("/proc/softirqs", _by_cpu),
        "snmp": ("/proc/net/snmp", _protocols),
        "netstat": ("/proc/net/netstat", _protocols),
        "snmp6": ("/proc/net/snmp6", _pairs),
        "netdev": ("/proc/net/dev", _interfaces),
    }
)
