"""Writing and restoring what is harmless on this machine leaves every setting of it as it was."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.executor.host.availability import Here, HostMachine, of_this_machine, tunables_here
from ajuste.executor.host.host import HostExecutor
from ajuste.machine.home import Home
from ajuste.model.event import Failed, Written
from ajuste.model.plan import Plan, Write
from left_behind import others, settled

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="changing settings needs root"),
    pytest.mark.usefixtures("machine_lock"),
    pytest.mark.timeout(300),
]

HARMLESS = re.compile(
    r"vm\.(dirty.*|swappiness|vfs_cache_pressure|page-cluster|stat_interval|laptop_mode|extfrag_threshold)"
    r"|net\.ipv4\.(tcp_(congestion_control|allowed_congestion_control|fin_timeout|keepalive.*|[rw]mem|.*retries.*|ecn.*))"
    r"|net\.core\.(default_qdisc|[rw]mem_.*|somaxconn|netdev_budget.*|optmem_max)"
    r"|thp\.(enabled|defrag|khugepaged\..*)|ksm\.(sleep_millisecs|pages_to_scan)"
    r"|inotify\..*|kernel\.(timer_migration|randomize_va_space)|sched_(autogroup_enabled|rr_timeslice_ms)"
)
FOLDERS = (
    *("/proc/sys", "/sys/block/*/queue", "/sys/module/*/parameters", "/sys/kernel/mm", "/sys/class/net/*"),
    *("/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/fs/cgroup"),
)
COUNTS = re.compile(r"/sys/fs/cgroup/.*(procs|tasks|\.pressure|usage.*|max_.*|force_empty|event_control)")


@pytest.fixture
def target(tmp_path: Path) -> Iterator[HostExecutor]:
    with HostExecutor(Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")) as target:
        yield target


def settings() -> dict[str, str]:
    """Return all sysctls that can be read, and what can be written of the rest; control groups only at the top."""
    values = {}
    for pattern in FOLDERS:
        for folder in Path("/").glob(pattern.lstrip("/")):
            for directory, below, names in os.walk(folder):
                if folder == Path("/sys/fs/cgroup"):
                    below[:] = below if Path(directory) == folder else []
                for path in (Path(directory, name) for name in names):
                    if settled(str(path)) and not COUNTS.fullmatch(str(path)):
                        values[str(path)] = value(path)
    return values


def value(path: Path) -> str:
    try:
        mode = path.lstat().st_mode
        sysctl = path.is_relative_to("/proc/sys")
        if not mode & 0o444 or not (sysctl or mode & 0o222):
            return ""
        return path.read_text(errors="replace")
    except OSError as error:
        return str(error.strerror)


def plans(tunables: list[Here]) -> list[Plan]:
    version = HostMachine().version
    return [
        Plan(id=level, writes=(Write(tunable=here.tunable.name, location=location, value=level),))
        for here in tunables
        if here.current.value is not None and not here.locked
        for location in [catalogue().locate(here.tunable, version)]
        for level in others(here.tunable, here.current.value, version, os.cpu_count() or 1)[:2]
    ]


def test_restoring_puts_back_whatever_the_kernel_changed_along(target: HostExecutor) -> None:
    chosen = [tunable for tunable in catalogue().tunables.values() if HARMLESS.fullmatch(tunable.name)]
    chosen_plans = plans(tunables_here(target, of_this_machine(catalogue()), chosen, HostMachine()))
    before = settings()
    written = 0
    for plan in chosen_plans:
        observation = target.run(plan)
        assert not [e for e in observation.events if isinstance(e, Failed) and e.stage == "restore"]
        written += any(isinstance(event, Written) for event in observation.events)
    after = settings()
    assert len(before) > 1000
    assert written > 50
    assert {p: (before.get(p), after.get(p)) for p in before | after if before.get(p) != after.get(p)} == {}
