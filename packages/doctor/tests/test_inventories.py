"""Differences between two inventories, and how much each can matter."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.machine.inventory.devices import Disk, Mount, Nic
from ajuste.machine.inventory.inventory import Inventory, take_inventory
from ajuste.machine.inventory.processor import Cpu, Frequency, Memory
from ajuste.machine.inventory.software import Kernel
from ajuste_doctor.inventories import ORDER, InventoryComparison, compare_inventories, find_rule, rules

SERVER = Inventory(
    cpu=Cpu(model="Xeon", cpus=32, smt="on", isolated="", flags=("avx2", "avx512f", "sse2")),
    frequency=Frequency(governor="performance", turbo=True),
    mitigations={"meltdown": "Mitigation: PTI", "l1tf": "Not affected"},
    kernel=Kernel(release="6.1.0", tainted=0, command_line={"quiet": "", "mitigations": "auto"}, options={"HZ": "250"}),
    memory=Memory(total_bytes=64 << 30),
    disks={"sda": Disk(kind="ata", model="ST4000", scheduler="mq-deadline"), "sdb": Disk(kind="usb", model="Flash")},
    mounts={"/": Mount(type="ext4", device="sda1", options={"rw": "", "data": "ordered"})},
    nics={"eth0": Nic(driver="igb", mtu_bytes=1500, features={"rx-gro": "on"})},
)


def changed(**sections: Any) -> Inventory:
    return SERVER.model_copy(update=sections)


def paths(comparison: InventoryComparison) -> dict[str, tuple[Any, Any]]:
    return {difference.path: (difference.a, difference.b) for difference in comparison.differences}


def test_a_machine_does_not_differ_from_itself() -> None:
    here = take_inventory()
    assert compare_inventories(here, here) == InventoryComparison(differences=(), not_compared=())
    assert compare_inventories(SERVER, SERVER).differences == ()


def test_another_governor_is_said_with_its_reason() -> None:
    comparison = compare_inventories(SERVER, changed(frequency=Frequency(governor="powersave", turbo=True)))
    (difference,) = comparison.differences
    assert (difference.path, difference.a, difference.b) == ("frequency.governor", "performance", "powersave")
    assert difference.importance == "high"
    assert "governor" in difference.why


def test_what_can_matter_most_comes_first() -> None:
    other = changed(
        kernel=SERVER.kernel.model_copy(update={"tainted": 4096, "command_line": {"mitigations": "off"}}),
        mounts={"/": Mount(type="ext4", device="sda1", options={"rw": "", "data": "journal"})},
        frequency=Frequency(governor="powersave", turbo=True),
    )
    differences = compare_inventories(SERVER, other).differences
    areas = list(dict.fromkeys(difference.area for difference in differences))
    assert areas == ["frequency", "kernel", "mounts"]
    kernel = [difference.importance for difference in differences if difference.area == "kernel"]
    assert kernel == ["high", "low", "low"]
    assert {
        difference.field: (difference.a, difference.b) for difference in differences if difference.area == "kernel"
    } == {
        "command_line.mitigations": ("auto", "off"),
        "tainted": (0, 4096),
        "command_line.quiet": ("", None),
    }


def test_a_disk_that_only_one_has_is_one_difference() -> None:
    comparison = compare_inventories(SERVER, changed(disks={"sda": SERVER.disks["sda"]}))
    assert paths(comparison) == {"disks.sdb": ("usb, Flash", None)}


def test_of_flags_only_those_are_named_that_the_other_lacks() -> None:
    comparison = compare_inventories(
        SERVER, changed(cpu=SERVER.cpu.model_copy(update={"flags": ("avx2", "sse2", "sve")}))
    )
    assert paths(comparison) == {"cpu.flags": ("avx512f", "sve")}


def test_what_one_of_them_does_not_know_is_not_a_difference() -> None:
    hidden = SERVER.kernel.model_copy(
        update={"scheduler_features": None, "unknown": {"scheduler_features": "needs root and debugfs"}}
    )
    known = SERVER.kernel.model_copy(update={"scheduler_features": ("NO_HRTICK",)})
    comparison = compare_inventories(changed(kernel=hidden), changed(kernel=known))
    assert comparison.differences == ()
    assert [(lacking.path, lacking.reason) for lacking in comparison.not_compared] == [
        ("kernel.scheduler_features", "needs root and debugfs")
    ]


def test_what_a_machine_does_not_offer_differs_from_what_another_has() -> None:
    comparison = compare_inventories(
        SERVER, changed(frequency=Frequency(unknown={"governor": "not visible here: no cpufreq driver"}, turbo=True))
    )
    assert paths(comparison) == {"frequency.governor": ("performance", "not visible here: no cpufreq driver")}


@pytest.mark.parametrize(("bytes_more", "differs"), [(1 << 20, False), (8 << 30, True)])
def test_memory_that_the_kernel_keeps_for_itself_is_no_difference(bytes_more: int, differs: bool) -> None:
    other = changed(memory=Memory(total_bytes=(64 << 30) + bytes_more))
    assert bool(compare_inventories(SERVER, other).differences) is differs


def test_without_a_configuration_options_are_not_compared() -> None:
    comparison = compare_inventories(SERVER, changed(kernel=SERVER.kernel.model_copy(update={"options": {}})))
    assert comparison.differences == ()
    assert [lacking.path for lacking in comparison.not_compared] == ["kernel.options"]


@given(st.sampled_from(["cpu", "kernel", "disks", "mounts"]), st.text(max_size=20), st.text(max_size=20))
def test_the_other_way_round_the_same_differs(area: str, a: str, b: str) -> None:
    left = changed(mitigations={area: a, "x": b})
    right = changed(mitigations={area: b})
    forth, back = compare_inventories(left, right), compare_inventories(right, left)
    assert paths(forth) == {path: (b, a) for path, (a, b) in paths(back).items()}


def leaves(path: str, value: Any) -> list[str]:
    if not isinstance(value, dict):
        return [path]
    return [path, *(leaf for name, inner in value.items() for leaf in leaves(f"{path}.{name}", inner))]


def all_fields() -> list[str]:
    """Return every path at which two machines can differ: those of this machine, which has most kinds of thing."""
    document = take_inventory().model_dump(mode="json", exclude={"inventory"})
    things = {"disks": "sdz", "mounts": "/", "nics": "eth9", "caches": "L9", "numa": "node9"}
    examples: dict[str, Any] = {"disks": Disk(), "mounts": Mount(), "nics": Nic()}
    for area, name in things.items():
        example = examples.get(area)
        document[area][name] = example.model_dump(mode="json") if example else {}
    paths_here = [leaf for area, value in document.items() for leaf in leaves(area, value)]
    plain = set(document) | {
        "kernel.command_line",
        "kernel.options",
        "kernel.settings",
        "memory.swaps",
        "memory.huge_pages",
    }
    return [path for path in paths_here if "unknown" not in path.split(".") and path not in plain - {"virtual_nics"}]


def test_the_importance_of_every_field_is_known() -> None:
    forgotten = [path for path in all_fields() if "Not known" in find_rule(path).why]
    assert forgotten == []


def test_rules_are_reachable_and_say_why() -> None:
    for rule in rules():
        assert rule.importance in ORDER
        assert rule.why.endswith(".")
        for pattern in rule.fields:
            example = pattern.replace("*", "x").replace("?", "x")
            assert find_rule(example) == rule, f"{pattern} never decides: {find_rule(example).fields} comes before it"
