"""Packages of guests, from a small archive on this machine, and in a guest."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.debian_archive import Archive

from ajuste.machine.cache import PACKAGES, clear, survey
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Exited, Output
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Command, Plan
from ajuste.study.site import GUEST_USER
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.executor.root import fetch_root, plan_packages, root_arguments
from ajuste_guest.executor.tree import needed_by
from ajuste_guest.kernel.packages import packages_directory, read_request


def silent(_: str) -> None:
    pass


@pytest.fixture
def empty_home(tmp_path: Path) -> Home:
    """A home whose cache is empty."""
    return Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")


@pytest.fixture(scope="session")
def cfs(kernel: Callable[[str], KernelImage]) -> KernelImage:
    """Fetched before a small archive takes the mirror's place."""
    return kernel("debian:5.10")


@pytest.fixture
def bookworm(archive: Archive) -> Archive:
    """A release with a shell that every system has, and a server that requires a library."""
    shell = Path("/bin/dash")
    files = (shell, *needed_by(shell).files)
    archive.add(
        "bookworm", "dash", "0.5", {str(file)[1:]: file.read_bytes() for file in files}, more="Essential: yes\n"
    )
    for name in ("mawk", "usr-is-merged"):
        archive.add("bookworm", name, "1", {f"usr/bin/{name}": b"#!/bin/dash\necho one of several\n"})
    archive.add("bookworm", "server", "1", {"usr/bin/server": b"#!/bin/dash\nread x </etc/served; echo $x\n"}, "lib")
    archive.add("bookworm", "lib", "1", {"etc/served": b"an old answer\n"})
    archive.add("bookworm-security", "lib", "1+deb12u1", {"etc/served": b"forty-two\n"})
    archive.publish()
    return archive


def test_what_is_asked_for_comes_with_what_it_requires_and_every_system_has(
    bookworm: Archive, empty_home: Home
) -> None:
    root = fetch_root(["server"], empty_home, silent)
    assert [f"{package.name} {package.version}" for package in root.packages] == [
        "server 1",
        "mawk 1",
        "usr-is-merged 1",
        "dash 0.5",
        "lib 1+deb12u1",
    ]
    assert (root.find("server"), root.find("dash")) == ("/usr/bin/server", "/usr/bin/dash")
    assert root.about["lib"] == f"1+deb12u1 sha256:{root.packages[-1].sha256}"


def test_what_is_cached_needs_no_network_and_is_the_same(bookworm: Archive, empty_home: Home) -> None:
    first = fetch_root(["server"], empty_home, silent)
    bookworm.remove()
    assert fetch_root(["server"], empty_home, silent) == first
    assert plan_packages(["server"], empty_home, silent).root == first
    assert first.path.is_file()


def test_planning_fetches_no_package(bookworm: Archive, empty_home: Home) -> None:
    planned = plan_packages(["server"], empty_home, silent)
    assert (planned.release, planned.names, planned.root) == ("bookworm", ("server",), None)
    assert planned.download_bytes == sum(package.size_bytes for package in planned.packages) > 0
    assert not list(packages_directory(empty_home).glob("*"))


def test_files_are_shared_by_requests_and_fetched_once(bookworm: Archive, empty_home: Home) -> None:
    fetch_root(["server"], empty_home, silent)
    messages: list[str] = []
    fetch_root(["server", "dash"], empty_home, messages.append)
    assert messages == ["laying out 5 Debian packages"]


def test_what_is_damaged_is_made_again(bookworm: Archive, empty_home: Home) -> None:
    first = fetch_root(["server"], empty_home, silent)
    first.path.write_bytes(b"damaged")
    for file in packages_directory(empty_home).glob("*.deb"):
        file.write_bytes(b"damaged")
    messages: list[str] = []
    assert fetch_root(["server"], empty_home, messages.append) == first
    assert any("damaged" in line for line in messages)


def test_a_file_that_is_not_as_listed_is_never_used(bookworm: Archive, empty_home: Home) -> None:
    (file,) = (bookworm.root / "debian/pool").glob("server_*")
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(RunError, match="server 1"):
        fetch_root(["server"], empty_home, silent)
    assert not [path for path in packages_directory(empty_home).glob("[!.]*") if path.suffix != ".deb"]


def test_a_package_that_there_is_not_is_said_with_what_was_meant(bookworm: Archive, empty_home: Home) -> None:
    with pytest.raises(RequestError, match="package serve not found in Debian bookworm") as raised:
        fetch_root(["serve"], empty_home, silent)
    assert raised.value.hint == "did you mean server?"


def test_a_lack_of_space_is_said_before_anything_is_fetched(
    bookworm: Archive, empty_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_packages(["server"], empty_home, silent)
    full = os.statvfs_result((4096, 4096, 0, 0, 0, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.raises(RequestError, match="not enough disk space for packages"):
        fetch_root(["server"], empty_home, silent)


@pytest.mark.parametrize(
    ("packages", "message"),
    [
        (["a/sarge"], "release 'sarge' is not supported; expected one of bullseye, bookworm, trixie"),
        (["a/trixie", "b/bookworm"], "packages of trixie and bookworm"),
    ],
)
def test_a_guest_has_packages_of_one_release_that_is_known(packages: list[str], message: str) -> None:
    assert read_request(["a/trixie", "b"]).release == "trixie"
    assert read_request(["b", "b"]).names == ("b",)
    with pytest.raises(RequestError, match=message):
        read_request(packages)


def test_the_cache_shows_and_frees_them(bookworm: Archive, empty_home: Home) -> None:
    fetch_root(["server"], empty_home, silent)
    (packages,) = [area for area in survey(empty_home) if area.kind == PACKAGES]
    assert packages.count == 6
    assert packages.size_bytes > 0
    (cleared,) = clear([PACKAGES], empty_home, dry_run=True)
    assert cleared.count + cleared.in_use == 6


@pytest.mark.vm
def test_programs_of_packages_run_in_a_guest_exactly(cfs: KernelImage, bookworm: Archive, empty_home: Home) -> None:
    root = fetch_root(["server"], empty_home, silent)
    command = Command(argv=("/bin/dash", "-c", "server; echo $0"), user=GUEST_USER, environment={"PATH": "/usr/bin"})
    guest = GuestExecutor(
        cfs, clock="virtual", files=GuestFiles(root=root), home=empty_home, kernel_arguments=root_arguments(root)
    )
    with guest as entered:
        seen = [entered.run(Plan(id="x", workload=command)) for _ in range(2)]
    assert [observation.problem for observation in seen] == ["", ""]
    assert seen[0].lines == seen[1].lines
    (output,) = [event.text for event in seen[0].events if isinstance(event, Output) and event.stream == "stdout"]
    assert output == "forty-two\n/bin/dash\n"
    assert [event.exit_code for event in seen[0].events if isinstance(event, Exited)] == [0]
