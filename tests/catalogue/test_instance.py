"""Instances: one of several is named NAME[INSTANCE], and no name of one leads anywhere but to it."""

from __future__ import annotations

import re
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Choice, Coalesce, CpuLatency, DeviceFeature, FileLocation, Qdisc, Ring
from ajuste.model.tunable import CgroupLimit, InstanceKind, ScratchAttribute
from looped import each

NOW = KernelVersion.parse("6.18")
SEVERAL = [tunable for tunable in catalogue().tunables.values() if tunable.parts]


@pytest.mark.parametrize(
    ("name", "location"),
    [
        ("block.scheduler[sda]", Choice(path="/sys/block/sda/queue/scheduler")),
        ("block.scheduler[nvme0n1]", Choice(path="/sys/block/nvme0n1/queue/scheduler")),
        ("block.scheduler[dm-0]", Choice(path="/sys/block/dm-0/queue/scheduler")),
        ("block.scheduler[loop7]", Choice(path="/sys/block/loop7/queue/scheduler")),
        ("block.scheduler[/dev/sda]", Choice(path="/sys/block/sda/queue/scheduler")),
        ("idle.off[cpu3/state2]", FileLocation(path="/sys/devices/system/cpu/cpu3/cpuidle/state2/disable")),
        ("huge.pages[2048kB]", FileLocation(path="/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")),
        ("irq.affinity[24]", FileLocation(path="/proc/irq/24/smp_affinity_list")),
        ("net.gso[enp3s0f1]", DeviceFeature(device="enp3s0f1", name="tx-generic-segmentation")),
        ("net.gso[veth1@if2]", DeviceFeature(device="veth1", name="tx-generic-segmentation")),
        ("net.gso[eth0.100]", DeviceFeature(device="eth0.100", name="tx-generic-segmentation")),
        ("net.ring_rx[eth0]", Ring(device="eth0", name="rx")),
        ("net.rx_usecs[eth0]", Coalesce(device="eth0", name="rx-usecs")),
        ("net.qdisc[lo]", Qdisc(device="lo")),
        ("cpu.latency", CpuLatency()),
        ("cgroup.cpu.max", CgroupLimit(name="cpu.max")),
        ("fs.data", ScratchAttribute(name="data")),
        ("vm.one", FileLocation(path="/proc/sys/vm/one")),
    ],
)
def test_an_instance_is_located_by_the_catalogues_template(every_kind: Catalogue, name: str, location: Any) -> None:
    assert every_kind.locate(every_kind.find_tunable(name), NOW) == location


def test_the_name_of_an_instance_is_found_again(every_kind: Catalogue) -> None:
    for text in ("block.scheduler[/dev/sda]", "net.gso[veth1@if2]", "idle.off[cpu3/state2]"):
        tunable = every_kind.find_tunable(text)
        assert every_kind.find_tunable(tunable.name) == tunable
    assert every_kind.find_tunable("net.gso[veth1@if2]").name == "net.gso[veth1]"
    assert every_kind.find_tunable("net.gso[veth1@if2]").entry == "net.gso"


@pytest.mark.parametrize(
    "wrong",
    [
        *("net.gso[..]", "net.gso[.]", "net.gso[a..b]", "net.gso[a/b]", "net.gso[]", "net.gso[-x]", "net.gso[eth0 x]"),
        *(
            "net.gso[a23456789012345x]",
            "net.gso[ethé]",
            "net.gso[eth0\n]x",
            "net.gso[eth0",
            "net.gso]",
            "net.gso[a][b]",
        ),
        *("block.scheduler[..]", "block.scheduler[sda/queue]", "block.scheduler[/dev/]", "block.scheduler[/etc/sda]"),
        *("block.scheduler[/dev/../sda]", "idle.off[cpu0]", "idle.off[cpu0/state0/x]", "idle.off[state0/cpu0]"),
        *("irq.affinity[-1]", "irq.affinity[01]", "irq.affinity[1;2]", "huge.pages[2048]", "huge.pages[0kB]"),
        *("vm.one[cpu0]", "cpu.latency[0]", "cgroup.cpu.max[x]"),
    ],
)
def test_what_can_be_no_instance_is_refused(every_kind: Catalogue, wrong: str) -> None:
    with pytest.raises(RequestError):
        every_kind.find_tunable(wrong)


def test_where_there_are_several_one_must_be_named(every_kind: Catalogue) -> None:
    with pytest.raises(
        RequestError, match=r"idle\.off requires an instance, one for each idle state of a CPU"
    ) as raised:
        every_kind.locate(every_kind.find_tunable("idle.off"), NOW)
    assert raised.value.hint == "name one, such as idle.off[cpu0/state1]"


@given(st.sampled_from(sorted(catalogue().parts)), st.text())
def test_no_text_makes_a_part_that_can_leave_its_directory(name: str, text: str) -> None:
    read = catalogue().parts[name].read(text)
    assert read is None or re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.!-]*", read)
    assert read is None or ".." not in read


@given(st.sampled_from(sorted(catalogue().parts)), st.data())
def test_whatever_the_pattern_lets_through_is_one_plain_component(name: str, data: Any) -> None:
    part = catalogue().parts[name]
    read = part.read(data.draw(st.from_regex(part.pattern, fullmatch=True)))
    if read is not None:
        assert part.read(read) == read
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.!-]*", read)
        assert ".." not in read


def test_a_careless_pattern_lets_no_path_through() -> None:
    careless = InstanceKind(name="x", title="x", pattern=".*", example="a", there="/sys/x/*")
    assert [careless.read(text) for text in ("a/b", "..", ".", "", "a..b")] == [None] * 5


@each(SEVERAL, name=attrgetter("name"))
def test_every_entry_of_several_has_an_example_that_is_located(tunable: Any) -> None:
    example = catalogue().example(tunable)
    assert catalogue().find_tunable(example.name) == example
    for where in example.where:
        assert where.placeholders == ()
