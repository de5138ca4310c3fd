"""Around writing and restoring a tunable: which other values to write, and what moves on a machine by itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.topology import cpu_list
from ajuste.model.tunable import Tunable, same_value

MOVES_BY_ITSELF: Mapping[str, str] = {
    r"/proc/sys/kernel/random/(uuid|entropy_avail)": "drawn anew, or counted, at every reading",
    r"/sys/fs/cgroup(/.*)?/(cpu|io|memory|irq)\.pressure": "what processes waited for; written only to be notified",
    r"/proc/sys/kernel/sched_domain/.*/max_newidle_lb_cost": "measured by the scheduler, and decays",
    r"/sys/kernel/debug/sched/domains/.*/max_newidle_lb_cost": "measured by the scheduler, and decays",
    r"/proc/irq/\d+/effective_affinity(_list)?": "where the kernel delivers it now, of the CPUs in smp_affinity",
    r"/sys/devices/virtual/bdi/.*/(min|max)_bytes": "worked out from the ratio and the memory that is free now",
    r"/sys/fs/cgroup(/.*)?/cgroup\.(procs|threads)": "names the processes that are there",
    r"/proc/sys/kernel/(ns_last_pid|pty/nr)": "counts processes and terminals as they come",
    r"/proc/sys/fs/(dentry-state|inode-nr|inode-state|file-nr|aio-nr)": "counts what file systems hold now",
    r"/proc/sys/kernel/perf_event_max_sample_rate": "lowered by the kernel while sampling takes it too long",
    r"/proc/sys/net/netfilter/nf_conntrack_count": "counts connections",
    r"/proc/sys/net/ipv4/tcp_available_congestion_control": "writing a module's name loads it, and it stays loaded",
    r"/sys/module/[^/]+/(refcnt|initsize|coresize|sections/.*)": "counts users of a module, and its memory",
    r"/proc/sys/kernel/tainted": "says until the next boot that the kernel has warned of something",
    r"/sys/kernel/(uevent_seqnum|vmcoreinfo)": "counts events since boot",
}
"""Paths that are no settings, with the reason: patterns of whole paths."""

_MOVING = re.compile(f"({'|'.join(MOVES_BY_ITSELF)})(:|$)")
_MOST = 8


def settled(line: str) -> bool:
    """Return whether a difference in ``line``, a path that may be followed by a colon and a value, was left behind."""
    return not _MOVING.match(line)


def others(tunable: Tunable, current: str, version: KernelVersion, cpus: int) -> list[str]:
    """Several values of ``tunable`` other than ``current`` that a machine survives for a moment, as a plan has them."""
    values: dict[str, None] = {}
    for text in _candidates(tunable, current, version, cpus):
        try:
            value = catalogue().check_level(tunable, text, version)
        except RequestError:
            continue
        if not same_value(value, current):
            values[value] = None
    return list(values)[:_MOST]


def _candidates(tunable: Tunable, current: str, version: KernelVersion, cpus: int) -> Iterable[str]:
    match tunable.type:
        case "text":  # of a server
            return ()
        case "boolean":
            return ("0", "1")
        case "choice":
            where = tunable.place_in(version)
            return (where.choices if where else ()) or tunable.choices
        case "cpu-list" | "cpu-mask":
            return tuple(cpu_list(list(range(count))) for count in range(1, cpus + 1))
        case "integers":
            words = [int(word) for word in current.split()]
            return tuple(" ".join(str(change(word)) for word in words) for change in (_double, _more, _half))
        case "integer":
            if not re.fullmatch(r"-?\d+", current):
                return tuple(tunable.special)
            near = tuple(str(change(int(current))) for change in (_more, _less, _double, _half))
            daring = () if tunable.risk == "hang" else (str(tunable.minimum), *tunable.special)
            return (*near, *daring, *(() if int(current) or tunable.risk == "hang" else ("4096", "65536", "1048576")))


def _double(value: int) -> int:
    return 2 * value


def _half(value: int) -> int:
    return value // 2


def _more(value: int) -> int:
    return value + 1


def _less(value: int) -> int:
    return value - 1
