"""Conditions of tunables, and what a guest cannot answer: what they name is there."""

from __future__ import annotations

from fnmatch import fnmatchcase
from operator import attrgetter
from typing import Any

import pytest
from pydantic import ValidationError

from ajuste.catalogue.loader import catalogue, figure_sources
from ajuste.machine.activity import read_figures
from ajuste.machine.inventory.source import InventorySource
from ajuste.model.relevance import RelevanceCondition
from ajuste.model.tunable import SERVER_KINDS
from looped import each

OF_A_NAMESPACE = ("snmp", "netstat", "snmp6", "netdev")
NOT_ALWAYS = {
    "diskstats:{disk}.flushes_completed": "Linux 5.5",
    "vmstat:zswpin": "zswap",
    "vmstat:zswpout": "zswap",
    "vmstat:numa_pte_updates": "CONFIG_NUMA_BALANCING",
    "vmstat:numa_hint_faults": "CONFIG_NUMA_BALANCING",
    "vmstat:pgdemote_kswapd": "CONFIG_NUMA",
    "vmstat:pgdemote_direct": "CONFIG_NUMA",
    "schedstat:cpu.wait_ns": "CONFIG_SCHEDSTATS",
}
"""Figures that a kernel built otherwise, or an earlier one, does not have."""

CONDITIONS = list(catalogue().conditions.values())


def test_every_condition_that_a_tunable_names_exists_and_each_is_named() -> None:
    named = {name for tunable in catalogue().tunables.values() for name in tunable.matters_if}
    assert named == set(catalogue().conditions)


def test_most_of_the_catalogue_says_when_it_can_matter() -> None:
    with_condition = [tunable.name for tunable in catalogue().tunables.values() if tunable.matters_if]
    assert len(with_condition) > 280


@each(CONDITIONS, name=attrgetter("name"))
def test_its_figures_are_those_of_a_source(condition: RelevanceCondition) -> None:
    example = {"disk": "sda", "interface": "eth0"}
    for group in condition.fill_figures(example):
        for figure in group:
            origin, _, name = figure.partition(":")
            source = next((candidate for known, candidate in figure_sources().items() if known == origin), None)
            assert origin in OF_A_NAMESPACE or (source is not None and source.find(name)), figure


MACHINE = InventorySource()
DISKS = [name for name in MACHINE.names("/sys/block") if not name.startswith(("loop", "ram", "zram"))]


def is_of_a_disk(condition: RelevanceCondition) -> bool:
    return any("{disk}" in figure for group in condition.figures for figure in group)


@each([condition for condition in CONDITIONS if not is_of_a_disk(condition)], name=attrgetter("name"))
def test_this_kernel_has_its_figures(condition: RelevanceCondition) -> None:
    has_its_figures(condition)


@pytest.mark.skipif(not DISKS, reason="this machine has no disk")
@each([condition for condition in CONDITIONS if is_of_a_disk(condition)], name=attrgetter("name"))
def test_a_disk_of_this_machine_has_its_figures(condition: RelevanceCondition) -> None:
    has_its_figures(condition)


def has_its_figures(condition: RelevanceCondition) -> None:
    parts = {"disk": (DISKS or ["sda"])[0], "interface": "lo"}
    wanted = {
        filled: name
        for group, plain in zip(condition.fill_figures(parts), condition.figures, strict=True)
        for filled, name in zip(group, plain, strict=True)
    }
    missing = wanted.keys() - read_figures(wanted, MACHINE).keys()
    assert not {name for figure in missing if (name := wanted[figure]) not in NOT_ALWAYS and not _is_protocol(name)}


def _is_protocol(name: str) -> bool:
    """Modules such as IPv6 and MPTCP may not be there."""
    return name.startswith(("snmp6:", "netstat:MPTcpExt."))


def test_a_setting_of_one_disk_looks_at_that_disk() -> None:
    disk = catalogue().conditions["disk"]
    assert disk.fill_figures({"disk": "sdb"})[0][0] == "diskstats:sdb.reads_completed"
    assert disk.fill_figures({}) == (), "of no disk there is nothing to look at"


def test_every_tunable_of_a_disk_or_an_interface_whose_condition_needs_one_has_it() -> None:
    for tunable in catalogue().tunables.values():
        for condition in catalogue().relevance_conditions(tunable):
            parts = dict.fromkeys(tunable.parts, "x")
            assert len(condition.fill_figures(parts)) == len(condition.figures), (tunable.name, condition.name)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "nothing says whether it is met"),
        ({"figures": [["pswpin"]]}, "is no figure"),
        ({"file": "/proc/x"}, "belong together"),
        ({"file": "/etc/passwd", "holds": "x"}, "file"),
    ],
)
def test_a_condition_that_cannot_be_told_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        RelevanceCondition.model_validate({"name": "x", "met": "m", "unmet": "u", "instead": "i", **fields})


def test_what_a_guest_cannot_answer_names_tunables_of_the_catalogue() -> None:
    for question in catalogue().guest_questions.values():
        for pattern in question.tunables:
            is_server = pattern.partition(".")[0] in SERVER_KINDS  # whose settings are made from their names
            assert is_server or any(fnmatchcase(name, pattern) for name in catalogue().tunables), pattern
