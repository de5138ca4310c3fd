"""Tunables that the lines of profiles mean."""

from __future__ import annotations

from ajuste.catalogue.loader import catalogue
from ajuste.catalogue.place import sysctl_name, sysctl_path
from ajuste_profiles.meanings import OPTIONS, paired_tunable


def test_every_option_means_a_tunable_of_the_catalogue() -> None:
    assert set(OPTIONS.values()) <= set(catalogue().tunables)


def test_a_sysctl_goes_by_its_name_and_back() -> None:
    everywhere = [where for tunable in catalogue().tunables.values() for where in tunable.where]
    paths = [where.path for where in everywhere if where.kind == "sysctl"]
    assert len(paths) > 150
    for path in paths:
        name = sysctl_name(path)
        assert name is not None
        assert sysctl_path(name) == path


def test_features_go_by_ethtools_short_names_too() -> None:
    tunables = catalogue().tunables
    assert paired_tunable("features", "tso", tunables) == "net.tso"
    assert paired_tunable("features", "tcp-segmentation-offload", tunables) == "net.tso"
    assert paired_tunable("ring", "tx", tunables) == "net.ring_tx"
    assert paired_tunable("coalesce", "nothing", tunables) is None
