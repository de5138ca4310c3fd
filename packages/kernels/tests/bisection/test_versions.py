"""Bisection over versions, by a small archive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ajuste.kernel.spec import PackagedKernel, parse_spec
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste_kernels.bisection.revisions import bisect_versions, versions_between

if TYPE_CHECKING:
    from tests.debian_archive import Archive


def packaged(text: str) -> PackagedKernel:
    spec = parse_spec(text)
    assert isinstance(spec, PackagedKernel)
    return spec


@pytest.fixture
def here(archive: Archive, tmp_path: Path) -> Home:
    archive.add_kernel("bullseye", "5.10.0-2-cloud-amd64", "5.10.9-1")
    archive.add_kernel("bullseye", "5.10.0-3-cloud-amd64", "5.10.12-1")
    archive.add_kernel("bullseye", "5.10.0-3-rt-amd64", "5.10.12-1")
    archive.publish()
    return Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")


def between(good: str, bad: str, home: Home, *, every: bool = True) -> list[str]:
    return versions_between(packaged(good), packaged(bad), home, print, every=every)


def test_the_versions_are_in_order_from_good_to_bad(here: Home) -> None:
    assert between("debian:5.10.9", "debian:5.10.12", here) == ["debian:5.10.9", "debian:5.10.12"]
    assert between("debian:5.10.12", "debian:5.10.9", here) == ["debian:5.10.12", "debian:5.10.9"]


def test_two_flavours_have_no_versions_between_them(here: Home) -> None:
    with pytest.raises(RequestError, match="different sources or flavours"):
        between("debian:5.10", "debian:5.10/rt", here)


def test_one_kernel_is_no_pair_of_ends(here: Home) -> None:
    with pytest.raises(RequestError, match="are the same kernel"):
        between("debian:5.10", "debian:5.10.12", here)


def test_the_version_with_the_difference_is_named() -> None:
    specs = ["debian:5.10", "debian:6.1", "debian:6.12", "debian:6.18", "debian:7.3"]
    later = ("debian:6.12", "debian:6.18", "debian:7.3")
    assert bisect_versions(specs, lambda label, kernel: "there" if kernel() in later else "absent") == ("debian:6.12",)
