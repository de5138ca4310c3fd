"""Kernels that package lists offer."""

from __future__ import annotations

import subprocess
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from ajuste.kernel.spec import kernel_sources
from ajuste_guest.kernel.archive.download import Package
from ajuste_guest.kernel.candidate import assemble, upstream_version

DEBIAN = kernel_sources()["debian"]


def package(name: str, version: str) -> Package:
    return Package(name=name, version=version, size_bytes=10, installed_bytes=20, depends="", path="", sha256="0" * 64)


VERSIONS = st.builds(
    "6.12.{}{}-{}{}".format,
    st.integers(0, 120),
    st.sampled_from(["", "~rc1", "+1"]),
    st.integers(1, 3),
    st.sampled_from(["", "~bpo12+1", "~deb12u1", "+b1", "+deb13u2"]),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(VERSIONS, min_size=2, max_size=4, unique=True))
def test_the_order_is_that_of_dpkg(versions: list[str]) -> None:
    candidates = assemble([package(f"linux-image-6.12.{i}-cloud-amd64", v) for i, v in enumerate(versions)], DEBIAN)
    assert len(candidates) == len(versions)
    for newer, older in pairwise(candidates):
        compared = subprocess.run(["dpkg", "--compare-versions", newer.version, "ge", older.version], check=False)
        assert compared.returncode == 0, f"{newer.version} was put before {older.version}"


def test_signed_comes_before_unsigned_of_the_same_version() -> None:
    names = ["linux-image-6.1.0-9-rt-amd64-unsigned", "linux-image-6.1.0-9-rt-amd64"]
    candidates = assemble([package(name, "6.1.27-1") for name in names], DEBIAN)
    assert [c.packages[0].name for c in candidates] == names[::-1]
    assert {(c.release, c.flavour, c.upstream) for c in candidates} == {("6.1.0-9-rt-amd64", "rt", "6.1.27")}


def test_a_kernel_without_one_of_its_packages_is_none() -> None:
    release = "7.0.13+deb13-cloud-amd64"
    parts = [f"linux-binary-{release}", f"linux-modules-{release}", f"linux-base-{release}"]
    whole = assemble([package(name, "7.0.13-1") for name in parts], DEBIAN)
    assert [[p.name for p in c.packages] for c in whole] == [parts]
    for missing in parts:
        assert assemble([package(name, "7.0.13-1") for name in parts if name != missing], DEBIAN) == []
    # The package that only depends on the others has no image.
    assert assemble([package(f"linux-image-{release}", "7.0.13-1")], DEBIAN) == []


def test_packages_of_different_versions_are_no_kernel() -> None:
    release = "7.0.13+deb13-cloud-amd64"
    versions = {"linux-binary": "7.0.13-1", "linux-modules": "7.0.13-2", "linux-base": "7.0.13-1"}
    assert assemble([package(f"{name}-{release}", version) for name, version in versions.items()], DEBIAN) == []


def test_other_packages_are_left_out() -> None:
    names = [
        "linux-image-amd64",
        "linux-image-6.1-cloud-amd64",
        "linux-image-cloud-amd64",
        "linux-image-6.1.0-9-cloud-amd64-dbg",
        "linux-image-6.1-amd64-signed-template",
        "linux-image-6.1.0-9-686-pae",
        "linux-image-6.1.0-9-cloud-arm64",
        "linux-headers-6.1.0-9-amd64",
    ]
    assert assemble([package(name, "6.1.27-1") for name in names], DEBIAN) == []


def test_the_series_goes_by_the_version_and_not_by_the_name() -> None:
    assert upstream_version("6.1.180-1~deb11u1") == "6.1.180"
    (candidate,) = assemble([package("linux-image-6.1.0-0.deb11.52-cloud-amd64", "6.1.180-1~deb11u1")], DEBIAN)
    assert candidate.series.name == "6.1"
