"""What Debian packages cost a guest that has them from the cache, and whether a server in it repeats to the bit."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Final

from ajuste.executor.guest.guest import GuestExecutor
from ajuste.executor.guest.initramfs import GuestFiles
from ajuste.executor.guest.packages import fetch_root
from ajuste.executor.guest.root import root_arguments
from ajuste.kernel.fetch import fetch_kernel
from ajuste.machine.home import WORKLOADS, Home, native_program
from ajuste.model.event import Exited
from ajuste.model.plan import Command, Plan
from ajuste.study.site import GUEST_HOME, GUEST_USER
from benchmarks.comparison import Comparison, by_turns, seconds
from benchmarks.place import own_home

SPEC: Final = "debian:6.12"
ASKED: Final = ("redis-server", "redis-tools")
ROUNDS: Final = 3
TRIALS: Final = 5
REPEATS: Final = 4
MEMORY_MIB: Final = 512
MOST_SECONDS: Final = 10.0
_WITHOUT: Final = "without"
_WITH: Final = "redis-server, redis-tools"
_NOTHING: Final = Plan(
    id="nothing",
    workload=Command(argv=(f"/ajuste/bin/{WORKLOADS}", "matrix", "--size", "10", "--repetitions", "1")),
)
_SERVED: Final = """\
redis-server --port 7000 --save '' > /tmp/log &
until redis-cli -p 7000 ping > /tmp/ping 2>&1; do sleep 0.01; done
redis-benchmark -p 7000 -n 1000 -c 4 -t set,get --csv
redis-cli -p 7000 shutdown nosave
wait
"""
_REDIS: Final = Plan(
    id="redis",
    timeout_ns=60_000_000_000,
    workload=Command(
        argv=("/bin/sh", "-c", _SERVED),
        user=GUEST_USER,
        directory=GUEST_HOME,
        environment={"PATH": "/usr/bin:/bin", "HOME": GUEST_HOME},
    ),
)


def measure() -> tuple[Comparison, ...]:
    """Set-up and trials of guests with packages and without, by turns; then a server beside a quiet and a busy host."""
    with own_home() as place:
        fetch_root(ASKED, place, print)
        cpu: dict[str, list[float]] = {_WITHOUT: [], _WITH: []}
        ready = by_turns({name: _ready(name, place, cpu[name]) for name in cpu}, ROUNDS)
        with _guest(_WITHOUT, place) as bare, _guest(_WITH, place) as packed:
            trials = by_turns({_WITHOUT: _trial(bare), _WITH: _trial(packed)}, TRIALS)
            quiet = [_served(packed) for _ in range(REPEATS)]
            with _busy():
                busy = [_served(packed) for _ in range(REPEATS)]
    more = median(ready[_WITH]) - median(ready[_WITHOUT])
    more_cpu = median(cpu[_WITH]) - median(cpu[_WITHOUT])
    return (
        Comparison(
            name="packages-ready",
            what=f"from the cached packages to a snapshot, virtual clock ({SPEC})",
            unit="s",
            figures=ready,
            goal=f"under {MOST_SECONDS:g} s more with packages ({more:.1f} s)",
            reached=more < MOST_SECONDS,
        ),
        Comparison(
            name="packages-ready-cpu",
            what="the same in CPU time, which other programs disturb less",
            unit="s",
            figures=cpu,
            goal=f"under {MOST_SECONDS:g} s more with packages ({more_cpu:.1f} s)",
            reached=more_cpu < MOST_SECONDS,
        ),
        Comparison(
            name="packages-trial",
            what=f"a trial that does nothing, virtual clock ({SPEC})",
            unit="s",
            figures=trials,
            goal="described only",
            reached=True,
        ),
        Comparison(
            name="packages-repeats",
            what=f"kinds of trials of redis-benchmark among {REPEATS} on a quiet host and {REPEATS} on a busy one",
            unit="kinds",
            figures={"quiet": [float(len(set(quiet)))], "busy": [float(len(set(busy)))]},
            goal="one and the same",
            reached=len({*quiet, *busy}) == 1,
        ),
    )


def _guest(name: str, place: Home) -> GuestExecutor:
    root = fetch_root(ASKED, place, print) if name == _WITH else None
    return GuestExecutor(
        fetch_kernel(SPEC, place),
        clock="virtual",
        memory_mib=MEMORY_MIB,
        files=GuestFiles(root=root),
        home=place,
        kernel_arguments=root_arguments(root),
    )


def _ready(name: str, place: Home, cpu: list[float]) -> Callable[[], float]:
    """Appends the seconds of CPU time to ``cpu``."""

    def once() -> float:
        for kept in place.booted.glob("*.snapshot"):
            kept.unlink()
        before = _cpu_seconds()
        taken = seconds(lambda: _enter(name, place))
        cpu.append(_cpu_seconds() - before)
        return taken

    return once


def _cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _enter(name: str, place: Home) -> None:
    with _guest(name, place):
        pass


def _trial(guest: GuestExecutor) -> Callable[[], float]:
    return lambda: guest.run(_NOTHING).host_seconds


def _served(guest: GuestExecutor) -> str:
    """What all that the trial said comes to."""
    seen = guest.run(_REDIS)
    if seen.problem or not any(isinstance(event, Exited) and event.exit_code == 0 for event in seen.events):
        raise SystemExit(f"the trial failed: {seen.problem or seen.lines}")
    return hashlib.sha256(seen.lines.encode()).hexdigest()


@contextmanager
def _busy() -> Iterator[None]:
    """More load than this machine has CPUs."""
    hogs = [subprocess.Popen([native_program(WORKLOADS), "spin"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
