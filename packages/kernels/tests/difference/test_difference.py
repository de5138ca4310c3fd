"""Differences between two configurations, and what they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ajuste_guest.kernel.config import parse_config
from ajuste_kernels.difference import KernelDifference, KnownOptions, OptionDifference, changes

if TYPE_CHECKING:
    from packages.kernels.tests.difference.conftest import Compare

WITH_NUMA = "CONFIG_SMP=y\nCONFIG_NUMA=y\n"
WITHOUT = "CONFIG_SMP=y\n# CONFIG_NUMA is not set\n"


def changes_by_name(difference: KernelDifference) -> dict[str, OptionDifference]:
    return {change.name: change for change in difference.changes}


def test_the_same_differs_in_nothing(compared: Compare) -> None:
    assert compared(WITH_NUMA, WITH_NUMA).changes == ()


def test_what_was_switched_off_was_asked_for_and_takes_others_with_it(compared: Compare) -> None:
    changed = changes_by_name(compared(WITH_NUMA, WITHOUT))
    assert (changed["NUMA"].a, changed["NUMA"].b, changed["NUMA"].reason) == ("y", "n", "asked")
    for name in ("HAVE_NODES", "NUMA_BALANCING"):
        assert (changed[name].reason, changed[name].follows_from) == ("follows", ("NUMA",))
    assert changed["NUMA_BALANCING"].b == "absent"
    assert "NUMA_BALANCING is n: it requires NUMA (it is n)" in changed["NUMA_BALANCING"].why


def test_what_was_switched_on_brings_others_with_it(compared: Compare) -> None:
    changed = changes_by_name(compared(WITHOUT, WITH_NUMA))
    assert changed["NUMA"].reason == "asked"
    assert changed["HAVE_NODES"].follows_from == ("NUMA",)
    # It has a prompt: where nobody says otherwise it is on with what it needs.
    assert (changed["NUMA_BALANCING"].reason, changed["NUMA_BALANCING"].follows_from) == ("follows", ("NUMA",))


def test_what_could_be_chosen_and_was_set_against_its_default_was_asked_for(compared: Compare) -> None:
    changed = changes_by_name(compared(WITH_NUMA, f"{WITH_NUMA}# CONFIG_NUMA_BALANCING is not set\n"))
    assert list(changed) == ["NUMA_BALANCING"]
    assert changed["NUMA_BALANCING"].reason == "asked"


def test_of_a_choice_the_one_that_was_taken_was_asked_for(compared: Compare) -> None:
    changed = changes_by_name(compared("CONFIG_HZ_250=y\n", "CONFIG_HZ_100=y\n"))
    assert changed["HZ_100"].reason == "asked"
    assert changed["HZ_250"].follows_from == ("HZ_100",)
    assert changed["HZ"].follows_from == ("HZ_100",)


def test_a_default_that_moves_with_another_option_was_not_asked_for(compared: Compare) -> None:
    changed = changes_by_name(compared("", "CONFIG_SMP=y\n"))
    assert (changed["NR_CPUS"].a, changed["NR_CPUS"].b) == ("1", "8")
    assert changed["NR_CPUS"].reason == "default"


def test_what_only_could_be_chosen_is_counted_apart(compared: Compare) -> None:
    difference = compared("", "CONFIG_SMP=y\n")
    assert changes_by_name(difference)["NUMA"].in_neither
    assert "NUMA" not in [change.name for change in difference.effective]
    assert difference.counts() == {"total": 2, "asked": 1, "default": 1, "in_neither": 1}


def test_what_differs_is_grouped_by_menu_with_the_causes_first(compared: Compare) -> None:
    groups = compared(WITH_NUMA, f"{WITHOUT}CONFIG_NET=y\n").groups()
    assert {name: [change.name for change in group] for name, group in groups.items()} == {
        "General setup": ["NET"],
        "Processor type and features": ["NUMA", "HAVE_NODES", "NUMA_BALANCING"],
    }


def test_a_part_is_chosen_by_name_menu_or_file(compared: Compare) -> None:
    difference = compared(WITH_NUMA, f"{WITHOUT}CONFIG_NET=y\nCONFIG_VETH=y\n")
    assert set(changes_by_name(difference.within("processor"))) == {"HAVE_NODES", "NUMA", "NUMA_BALANCING"}
    assert "VETH" in changes_by_name(difference.within("net/"))
    assert list(changes_by_name(difference.within("balancing"))) == ["NUMA_BALANCING"]


def test_without_a_source_no_reason_is_claimed_but_what_was_asked_for_when_building() -> None:
    a, b = parse_config("CONFIG_NUMA=y\nCONFIG_MIGRATION=y\n"), parse_config("# CONFIG_NUMA is not set\n")
    made = {
        change.name: change
        for change in changes(KnownOptions(a), KnownOptions(b, requested={"NUMA": "n"}), same_source=False)
    }
    assert made["NUMA"].reason == "asked"
    assert made["MIGRATION"].reason == "unknown"


def test_a_difference_of_the_compilers_is_called_so() -> None:
    a, b = parse_config('CONFIG_CC_VERSION_TEXT="gcc 12"\n'), parse_config('CONFIG_CC_VERSION_TEXT="gcc 15"\n')
    (change,) = changes(KnownOptions(a), KnownOptions(b), same_source=False)
    assert (change.name, change.reason) == ("CC_VERSION_TEXT", "compiler")
