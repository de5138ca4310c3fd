"""Which tunables profiles' lines mean, and back."""

from __future__ import annotations

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.catalogue.place import sysctl_name, sysctl_path
from ajuste.profile.mapping import OPTIONS, paired_tunable, tuned_place

PLACES = [
    (tunable, where)
    for tunable in catalogue().tunables.values()
    for where in tunable.where
    if tuned_place(tunable, where) is not None
]


def test_every_option_means_a_tunable_of_the_catalogue() -> None:
    assert set(OPTIONS.values()) <= set(catalogue().tunables)


def test_a_sysctl_goes_by_its_name_and_back() -> None:
    sysctls = [(tunable, where) for tunable, where in PLACES if where.kind == "sysctl"]
    assert len(sysctls) > 150
    for tunable, where in sysctls:
        name = sysctl_name(where.path)
        assert name is not None
        assert sysctl_path(name) == where.path
        place = tuned_place(tunable, where)
        assert place is not None
        assert (place.plugin, place.option) == ("sysctl", name)


@pytest.mark.parametrize(
    ("name", "plugin", "option", "word"),
    [
        ("thp.enabled", "vm", "transparent_hugepages", ""),
        ("cpu.governor", "cpu", "governor", ""),
        ("block.read_ahead_kb", "disk", "readahead", ""),
        ("net.tso", "net", "features", "tcp-segmentation-offload"),
        ("net.coalesce.rx-usecs", "net", "coalesce", "rx-usecs"),
        ("net.ring_rx", "net", "ring", "rx"),
        ("ksm.run", "sysfs", "/sys/kernel/mm/ksm/run", ""),
    ],
)
def test_a_tunable_has_a_place_in_a_tuned_profile(name: str, plugin: str, option: str, word: str) -> None:
    tunable = catalogue().tunables[name]
    assert tuned_place(tunable, tunable.where[-1]) == (plugin, option, word)


def test_features_go_by_ethtools_short_names_too() -> None:
    tunables = catalogue().tunables
    assert paired_tunable("features", "tso", tunables) == "net.tso"
    assert paired_tunable("features", "tcp-segmentation-offload", tunables) == "net.tso"
    assert paired_tunable("ring", "tx", tunables) == "net.ring_tx"
    assert paired_tunable("coalesce", "nothing", tunables) is None


def test_what_tuned_has_no_line_for_has_no_place() -> None:
    tunable = catalogue().tunables["nice"]
    assert tuned_place(tunable, tunable.where[0]) is None
