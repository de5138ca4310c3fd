"""Instances that a machine has, by the directories that its kernel shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.executor.host.availability import files_in, instances_here
from ajuste.model.kernel import KernelVersion
from entries import entry, place

NOW = KernelVersion.parse("6.18")
CPU = "/sys/devices/system/cpu/{cpu}"
ENTRIES = [
    entry("b.scheduler", instances="disk", where=place("choice", "/sys/block/{disk}/queue/scheduler")),
    entry("c.off", instances="cpu/state", where=place("sysfs", f"{CPU}/cpuidle/{{state}}/disable")),
    entry("c.governor", instances="cpu", where=place("sysfs", f"{CPU}/cpufreq/scaling_governor", since="7.0")),
    entry("n.gso", instances="interface", where=place("feature", attribute="gso")),
    entry("v.one", where=place("sysctl", "/proc/sys/vm/one")),
]
PLAYED = Catalogue({entry.name: entry for entry in ENTRIES}, {}, {}, catalogue().parts)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    cpus = [f"sys/devices/system/cpu/cpu{number}/cpuidle/state1/disable" for number in (0, 2, 10)]
    names = ("sys/block/sda/queue/scheduler", "sys/block/.x/queue/scheduler", "sys/block/md0/queue/other")
    for name in (*cpus, *names, "sys/class/net/eth0/mtu", "sys/class/net/lo/mtu", "sys/class/net/bonding_masters"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def here(name: str, machine: Path) -> tuple[str, ...]:
    return instances_here(PLAYED, PLAYED.tunables[name], NOW, machine)


def test_only_those_that_have_the_file_are_there_in_natural_order(machine: Any) -> None:
    assert here("b.scheduler", machine) == ("sda",)
    assert here("c.off", machine) == ("cpu0/state1", "cpu2/state1", "cpu10/state1")
    assert here("n.gso", machine) == ("eth0", "lo")


def test_what_there_is_only_one_of_or_none_has_no_instances(machine: Any) -> None:
    assert here("v.one", machine) == ()
    assert here("c.governor", machine) == ()


def test_every_instance_that_is_there_is_found_by_its_name(machine: Any) -> None:
    for name in ("b.scheduler", "c.off", "n.gso"):
        for which in here(name, machine):
            assert PLAYED.find_tunable(f"{name}[{which}]").name == f"{name}[{which}]"


def test_files_of_a_directory(machine: Any) -> None:
    assert files_in("/sys/block/sda/queue", machine) == ("/sys/block/sda/queue/scheduler",)
    assert files_in("/sys/block/sda", machine) == ()
    assert files_in("/sys/block/none", machine) == ()


def test_the_real_machine_has_its_network_interfaces() -> None:
    assert "lo" in instances_here(PLAYED, PLAYED.tunables["n.gso"], NOW)
