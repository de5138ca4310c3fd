"""A small catalogue of every kind of place."""

from __future__ import annotations

import pytest

from ajuste.catalogue.loader import Catalogue, catalogue
from entries import entry, place

QUEUE = "/sys/block/{disk}/queue"


@pytest.fixture
def every_kind() -> Catalogue:
    """The parts are the real ones."""
    entries = [
        entry("vm.one", where=place("sysctl", "/proc/sys/vm/one"), companions=["vm.other"], aliases=["the_one"]),
        entry("vm.other", where=place("sysctl", "/proc/sys/vm/other"), companions=["vm.one"]),
        entry(
            "block.scheduler",
            **dict(instances="disk", where=place("choice", f"{QUEUE}/scheduler"), companions=["block.depth"]),
            companion_directories=[f"{QUEUE}/iosched"],
        ),
        entry("block.depth", instances="disk", where=place("sysfs", f"{QUEUE}/nr_requests")),
        entry(
            "idle.off",
            **dict(
                instances="cpu/state", where=place("sysfs", "/sys/devices/system/cpu/{cpu}/cpuidle/{state}/disable")
            ),
        ),
        entry(
            "huge.pages",
            **dict(instances="size", where=place("sysfs", "/sys/kernel/mm/hugepages/hugepages-{size}/nr_hugepages")),
        ),
        entry("irq.affinity", instances="irq", where=place("procfs", "/proc/irq/{irq}/smp_affinity_list")),
        entry("net.gso", instances="interface", where=place("feature", attribute="tx-generic-segmentation")),
        entry("net.ring_rx", instances="interface", where=place("ring", attribute="rx")),
        entry("net.rx_usecs", instances="interface", where=place("coalesce", attribute="rx-usecs")),
        entry("net.qdisc", instances="interface", where=place("qdisc")),
        entry("cpu.latency", where=place("latency")),
        entry("cgroup.cpu.max", where=place("cgroup", attribute="cpu.max")),
        entry("fs.data", where=place("scratch", attribute="data")),
    ]
    return Catalogue({entry.name: entry for entry in entries}, {}, {}, catalogue().parts)
