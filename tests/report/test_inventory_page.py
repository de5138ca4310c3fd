from __future__ import annotations

from typing import Any

import pytest

from ajuste.machine.inventory.devices import Disk, Nic
from ajuste.machine.inventory.inventory import Inventory
from ajuste.machine.inventory.processor import Cpu, Frequency
from ajuste.report.document import Fact
from ajuste.report.inventory_page import inventory_page, value_text


def lines_of(title: str, inventory: Inventory) -> tuple[Fact, ...]:
    return next(area.facts for area in inventory_page(inventory) if area.title == title)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("read_ahead_bytes", 131072, "128 KiB"),
        ("total_bytes", 25276510208, "23.5 GiB"),
        ("size_kib", 32768, "32 MiB"),
        ("highest_khz", "4700000", "4.7 GHz"),
        ("highest_khz", "4700000 (0-7), 3600000 (8-15)", "4.7 GHz (0-7), 3.6 GHz (8-15)"),
        ("exit_latency_us", 133, "133 µs"),
        ("speed_mbit_s", 1000, "1000 Mbit/s"),
        ("rotational", False, "no"),
        ("isolated", "", "none"),
        ("distances", [10, 21], "10 21"),
        ("model", None, "not there"),
    ],
)
def test_values_have_the_unit_of_their_field(field: str, value: Any, text: str) -> None:
    assert value_text(field, value) == text


def test_what_is_unknown_says_why() -> None:
    inventory = Inventory(frequency=Frequency(driver="x", unknown={"turbo": "needs root", "base_khz": "needs root"}))
    assert lines_of("Frequency", inventory) == (
        Fact("Driver", "x"),
        Fact("Needs root", "turbo, base", tone="dim"),
    )


def test_things_are_told_by_their_names_with_their_mappings_below() -> None:
    features = {f"f{number}": "off, fixed" for number in range(8)} | {"rx-gro": "on"}
    inventory = Inventory(
        disks={"sda": Disk(kind="ata", read_ahead_bytes=131072, unknown={"model": "not offered by this device"})},
        nics={"eth0": Nic(mtu_bytes=1500, features=features)},
        virtual_nics=3,
    )
    assert lines_of("Disks", inventory) == (
        Fact("sda", "kind ata; read ahead 128 KiB"),
        Fact("", "not offered by this device: model", tone="dim"),
    )
    assert lines_of("Network interfaces", inventory) == (
        Fact("eth0", "MTU 1,500 B"),
        Fact("", "features: on: rx-gro; off, fixed: 8 others"),
        Fact("virtual", "3 (bridges, tunnels, containers), not described"),
    )


def test_vulnerabilities_that_do_not_concern_it_are_told_together() -> None:
    inventory = Inventory(mitigations={"mds": "Not affected", "meltdown": "Mitigation: PTI", "l1tf": "Not affected"})
    assert lines_of("Mitigations", inventory) == (
        Fact("meltdown", "Mitigation: PTI"),
        Fact("Not affected", "mds, l1tf"),
    )


def test_flags_are_counted() -> None:
    assert Fact("Flags", "3 (--json lists them)") in lines_of("CPU", Inventory(cpu=Cpu(flags=("a", "b", "c"))))
