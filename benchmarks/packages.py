"""Cost of Debian packages for a guest that has them from the cache, and whether a server in it repeats to the bit."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Final

from ajuste.machine.home import WORKLOADS, Home, native_program
from ajuste.model.event import Exited
from ajuste.model.plan import Command, Plan
from ajuste.study.site import GUEST_HOME, GUEST_USER
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.executor.root import fetch_root, root_arguments
from ajuste_guest.kernel.fetch import fetch_kernel
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
_POSTGRESQL: Final = ("postgresql",)
_POSTGRESQL_MIB: Final = 1024
_POSTGRESQL_REPEATS: Final = 2
_TRANSACTIONS: Final = """\
export PATH="$PATH:/usr/lib/postgresql/15/bin" PGHOST=/tmp PGUSER=ajuste PGDATABASE=postgres
initdb -D /tmp/data -A trust -U ajuste --no-sync > /tmp/made
pg_ctl -D /tmp/data -w -l /tmp/log -o '-k /tmp -c listen_addresses=' start > /tmp/started
pgbench -i -q -s 1 2> /tmp/filled
pgbench -n -t 50 -c 2 -r
pg_ctl -D /tmp/data -m fast stop > /tmp/stopped
"""


def _served_by(name: str, script: str) -> Plan:
    """A trial with a server and its client."""
    return Plan(
        id=name,
        timeout_ns=120_000_000_000,
        workload=Command(
            argv=("/bin/sh", "-ec", script),
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
            redis = _repeated(packed, _served_by("redis", _SERVED), REPEATS)
        fetch_root(_POSTGRESQL, place, print)
        with _guest("postgresql", place, _POSTGRESQL, _POSTGRESQL_MIB) as packed:
            postgresql = _repeated(packed, _served_by("pgbench", _TRANSACTIONS), _POSTGRESQL_REPEATS)
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
        _kinds("redis-benchmark", redis, REPEATS),
        _kinds("pgbench", postgresql, _POSTGRESQL_REPEATS),
    )


def _kinds(client: str, digests: tuple[set[str], set[str]], repeats: int) -> Comparison:
    quiet, busy = digests
    return Comparison(
        name=f"packages-repeats-{client}",
        what=f"kinds of trials of {client} among {repeats} on a quiet host and {repeats} on a busy one",
        unit="kinds",
        figures={"quiet": [float(len(quiet))], "busy": [float(len(busy))]},
        goal="one and the same",
        reached=len(quiet | busy) == 1,
    )


def _repeated(guest: GuestExecutor, plan: Plan, repeats: int) -> tuple[set[str], set[str]]:
    """Return the digests of trials on a quiet host and on a busy one."""
    quiet = {_digest(guest, plan) for _ in range(repeats)}
    with _busy():
        return quiet, {_digest(guest, plan) for _ in range(repeats)}


def _guest(name: str, place: Home, packages: tuple[str, ...] = ASKED, memory_mib: int = MEMORY_MIB) -> GuestExecutor:
    root = None if name == _WITHOUT else fetch_root(packages, place, print)
    return GuestExecutor(
        fetch_kernel(SPEC, place),
        clock="virtual",
        memory_mib=memory_mib,
        files=GuestFiles(root=root),
        home=place,
        kernel_arguments=root_arguments(root),
    )


def _ready(name: str, place: Home, cpu: list[float]) -> Callable[[], float]:
    """Appends the seconds of CPU time to ``cpu``."""

    def once() -> float:
        for snapshot in place.booted.glob("*.snapshot"):
            snapshot.unlink()
        before = _cpu_seconds()
        taken = seconds(lambda: _enter(name, place))
        cpu.append(_cpu_seconds() - before)
        return taken

    return once


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _enter(name: str, place: Home) -> None:
    with _guest(name, place):
        pass


def _trial(guest: GuestExecutor) -> Callable[[], float]:
    return lambda: guest.run(_NOTHING).host_seconds


def _digest(guest: GuestExecutor, plan: Plan) -> str:
    """Return the digest of all that a trial printed."""
    seen = guest.run(plan)
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
