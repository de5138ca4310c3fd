"""Installation of missing programs, in the words of the machine's own distribution."""

from __future__ import annotations

import platform
from collections.abc import Callable

import pytest

from ajuste.catalogue.programs import install_hint, search_hint

On = Callable[..., None]


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> On:
    """Return a function that has this machine's /etc/os-release say so."""

    def on(**fields: str) -> None:
        monkeypatch.setattr(platform, "freedesktop_os_release", lambda: fields)

    return on


@pytest.mark.parametrize(
    ("system", "command"),
    [
        ({"ID": "debian"}, "apt install gcc xz-utils libelf-dev util-linux"),
        ({"ID": "ubuntu", "ID_LIKE": "debian"}, "apt install gcc xz-utils libelf-dev util-linux"),
        ({"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}, "apt install gcc xz-utils libelf-dev util-linux"),
        ({"ID": "fedora"}, "dnf install gcc xz elfutils-libelf-devel util-linux"),
        ({"ID": "almalinux", "ID_LIKE": "rhel centos fedora"}, "dnf install gcc xz elfutils-libelf-devel util-linux"),
        ({"ID": "opensuse-leap", "ID_LIKE": "suse opensuse"}, "zypper install gcc xz libelf-devel util-linux"),
        ({"ID": "arch"}, "pacman -S gcc xz libelf util-linux"),
        ({"ID": "alpine"}, "apk add gcc xz elfutils-dev setpriv"),
        ({"ID": "nixos"}, "what Debian has as gcc xz-utils libelf-dev util-linux"),
    ],
)
def test_packages_are_named_as_the_distribution_names_them(on: On, system: dict[str, str], command: str) -> None:
    on(**system)
    assert install_hint("gcc", "xz-utils", "libelf-dev", "util-linux") == f"install them: {command}"


def test_one_package_is_it(on: On) -> None:
    on(ID="fedora")
    assert install_hint("rt-tests") == "install it: dnf install realtime-tests"


@pytest.mark.parametrize(
    ("system", "hint"),
    [
        ("debian", "install it; find its package with `apt-file search bin/foo`"),
        ("fedora", "install it; find its package with `dnf provides '*bin/foo'`"),
        ("alpine", "install it; find its package with `apk search cmd:foo`"),
        ("nixos", "install it, or change the command"),
    ],
)
def test_a_program_that_nobody_knows_is_searched_for(on: On, system: str, hint: str) -> None:
    on(ID=system)
    assert search_hint("foo") == hint


def test_a_path_is_no_name_to_search_for() -> None:
    assert search_hint("/opt/bin/foo") == "correct its path, or install it"


def test_a_machine_that_does_not_say_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> dict[str, str]:
        raise OSError("Unable to read files")

    monkeypatch.setattr(platform, "freedesktop_os_release", unknown)
    assert install_hint("fio") == "install it: what Debian has as fio"


@pytest.mark.parametrize(("typed", "meant"), [("sleeep", "sleep"), ("hackbensh", "hackbench"), ("xyzzyplugh", None)])
def test_a_mistyped_program_is_suggested(typed: str, meant: str | None, on: On) -> None:
    on(ID="debian")
    hint = search_hint(typed, ("hackbench",))
    assert (f"did you mean {meant}" in hint) if meant else "apt-file" in hint
