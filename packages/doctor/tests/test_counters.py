"""Counters and processes, of machines made of files and of this one."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ajuste.machine.inventory.source import InventorySource
from ajuste_doctor.measuring import (
    MachineWatch,
    Process,
    family_ticks,
    fastest_khz,
    read_counters,
    read_processes,
    running_tasks,
    used_between,
)
from tree import CPUS, Tree

STAT = """cpu  100 20 30 4000 50 6 7 80 9 10
cpu0 100 20 30 4000 50 6 7 80 9 10
intr 123456 0 9 0
ctxt 654321
btime 1700000000
procs_running 3
procs_blocked 0"""


def process(pid: int, name: str, parent: int, ticks: tuple[int, int, int, int], start: int) -> dict[str, str]:
    user, system, children_user, children_system = ticks
    rest = f"{user} {system} {children_user} {children_system} 20 0 1 0 {start} 0 0"
    return {f"proc/{pid}/stat": f"{pid} ({name}) S {parent} 1 1 0 -1 4194560 1 2 3 4 {rest}"}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "root")


def test_ticks_are_divided_into_busy_stolen_and_idle(tree: Tree) -> None:
    tree.write({"proc/stat": STAT})
    counters = read_counters(InventorySource(tree.root))
    assert (counters.busy, counters.steal, counters.total) == (163, 80, 4293)
    assert (counters.interrupts, counters.switches) == (123456, 654321)
    assert running_tasks(InventorySource(tree.root)) == 3
    assert counters.throttled is None
    assert counters.pressure_us == {}


def test_pressure_frequency_and_throttling_are_read_where_they_are(tree: Tree) -> None:
    tree.write({"proc/pressure/io": "some avg10=1.0 avg60=0 avg300=0 total=12345\nfull avg10=0 total=99"})
    tree.write({f"{CPUS}/cpufreq/policy{n}/scaling_cur_freq": f"{khz}" for n, khz in enumerate((800000, 3100000))})
    tree.write({f"{CPUS}/cpu{n}/thermal_throttle/core_throttle_count": f"{n + 1}" for n in range(2)})
    counters = read_counters(InventorySource(tree.root))
    assert counters.pressure_us == {"io": 12345}
    assert counters.throttled == 3
    assert fastest_khz(InventorySource(tree.root)) == 3100000


def test_this_machines_counters_only_grow() -> None:
    first = read_counters(InventorySource())
    other = read_counters(InventorySource())
    assert 0 < first.total <= other.total
    assert 0 < first.interrupts <= other.interrupts
    assert first.busy + first.steal < first.total


def test_a_process_may_be_called_anything(tree: Tree) -> None:
    tree.write(process(7, "evil) R 1 2 3\n(x", 1, (5, 6, 7, 8), 99))
    assert read_processes(InventorySource(tree.root)) == {(7, 99): Process("evil) R 1 2 3\n(x", 1, 11, 26)}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=80).map(lambda text: text.encode(errors="replace"))))
def test_whatever_the_files_say_nothing_is_raised(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    tree = Tree(tmp_path_factory.mktemp("hostile"))
    tree.write({"proc/stat": content, "proc/pressure/cpu": content, "proc/12/stat": content})
    source = InventorySource(tree.root)
    read_counters(source)
    running_tasks(source)
    read_processes(source)


def test_what_others_used_is_told_by_name_and_ours_is_not(tree: Tree) -> None:
    us, child, grandchild = 100, 101, 102
    tree.write(process(us, "ajuste", 1, (10, 0, 0, 0), 1) | process(child, "agent", us, (0, 0, 0, 0), 2))
    tree.write(process(200, "browser", 1, (50, 50, 0, 0), 3) | process(201, "browser", 1, (1, 0, 0, 0), 4))
    tree.write(process(300, "idler", 1, (7, 0, 0, 0), 5))
    first = read_processes(InventorySource(tree.root))
    tree.write(process(us, "ajuste", 1, (20, 0, 0, 0), 1) | process(child, "agent", us, (5, 5, 30, 0), 2))
    tree.write(process(grandchild, "job", child, (40, 0, 0, 0), 6))
    tree.write(process(200, "browser", 1, (60, 60, 0, 0), 3) | process(201, "browser", 1, (6, 0, 0, 0), 4))
    tree.write(process(400, "compiler", 1, (90, 0, 0, 0), 7))
    second = read_processes(InventorySource(tree.root))
    assert used_between([first, second], us) == {"compiler": 90, "browser": 25}
    assert family_ticks(second, us) - family_ticks(first, us) == 10 + 40 + 40


def test_processes_of_this_machine_are_those_that_psutil_sees() -> None:
    processes = {pid: process for (pid, _), process in read_processes(InventorySource()).items()}
    this_process = processes[os.getpid()]
    assert this_process.parent == os.getppid()
    assert this_process.name == psutil.Process().name()[:15]
    assert len(set(processes) & set(psutil.pids())) > len(processes) // 2


def test_a_watch_sees_what_we_ourselves_and_our_children_use() -> None:
    with MachineWatch() as watch:
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass
        subprocess.run(["python3", "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True)
    seen = watch.seen
    assert seen.self_ticks >= 0.5 * os.sysconf("SC_CLK_TCK")
    assert seen.after.busy - seen.before.busy >= seen.self_ticks // 2
