"""Fetching QEMU, from a small archive on disk and (marked ``network``) from the machine's mirror."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.model.wording import Say
from ajuste_guest.kernel.qemu import cached_qemu, fetch_qemu

if TYPE_CHECKING:
    from tests.debian_archive import Archive


@pytest.fixture(autouse=True)
def debian_12(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever machine the tests run on."""
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"VERSION_CODENAME": "bookworm"})


@pytest.fixture
def bookworm(archive: Archive) -> Archive:
    """An archive with the QEMUs of several releases."""
    for suite, version, upstream in (
        ("bookworm", "1:7.2+dfsg-7", "7.2.0"),
        ("bookworm-backports", "1:10.0.2+ds-2~bpo12+1", "10.0.2"),
        ("trixie-backports", "1:11.1.3+ds-1~bpo13+1", "11.1.3"),
    ):
        program = f"#!/bin/sh\necho 'QEMU emulator version {upstream} (Debian {version})'\n".encode()
        archive.add(suite, "qemu-system-x86", version, {"usr/bin/qemu-system-x86_64": program})
        archive.add(suite, "qemu-system-data", version, {"usr/share/qemu/linuxboot_dma.bin": upstream.encode()})
    archive.add("bookworm", "seabios", "1.16.2-1", {"usr/share/seabios/bios-256k.bin": b"bios"})
    archive.publish()
    return archive


def test_the_newest_that_fits_this_machine(bookworm: Archive, place: Home) -> None:
    image = fetch_qemu(place)
    assert (image.version, image.package) == ("10.0.2", "qemu-system-x86 1:10.0.2+ds-2~bpo12+1")
    assert subprocess.run([image.binary, "--version"], check=True, capture_output=True).stdout.startswith(b"QEMU")
    assert (image.firmware / "linuxboot_dma.bin").read_bytes() == b"10.0.2"
    assert (image.firmware / "bios-256k.bin").read_bytes() == b"bios"
    assert image.libraries is None


def test_it_is_cached_and_then_needs_no_mirror(bookworm: Archive, place: Home) -> None:
    assert cached_qemu(place) is None
    image = fetch_qemu(place)
    bookworm.remove()
    assert fetch_qemu(place) == cached_qemu(place) == image


def test_a_damaged_one_is_fetched_again(bookworm: Archive, place: Home, messages: list[str], say: Say) -> None:
    image = fetch_qemu(place)
    (image.firmware / "bios-256k.bin").unlink()
    assert fetch_qemu(place, say) == image
    assert (image.firmware / "bios-256k.bin").read_bytes() == b"bios"
    assert any("bios-256k.bin is missing" in text for text in messages)


def test_none_for_this_machine_says_which_suites_were_looked_at(
    bookworm: Archive, place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"VERSION_CODENAME": "trixie"})
    with pytest.raises(RequestError, match="found no QEMU of at least 10 in trixie, trixie-security"):
        fetch_qemu(place)


@pytest.mark.parametrize(
    ("library", "here"), [("glibc 2.31", "this machine has glibc 2.31"), (None, "this machine has another C library")]
)
def test_a_machine_whose_c_library_is_too_old_is_told_what_to_install(
    bookworm: Archive, place: Home, monkeypatch: pytest.MonkeyPatch, library: str | None, here: str
) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "alpine"})
    monkeypatch.setattr(os, "confstr", lambda _: library)
    with pytest.raises(RequestError, match=f"requires glibc 2.36 or later; {here}") as caught:
        fetch_qemu(place)
    assert caught.value.hint == "install QEMU: apk add qemu-system-x86_64; or set AJUSTE_QEMU to a qemu-system-x86_64"
    assert bookworm.server.requests == []


def test_another_distribution_with_a_new_c_library_has_the_one_that_runs_on_most(
    bookworm: Archive, place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "fedora", "VERSION_CODENAME": ""})
    monkeypatch.setattr(os, "confstr", lambda _: "glibc 2.41")
    assert fetch_qemu(place).package == "qemu-system-x86 1:10.0.2+ds-2~bpo12+1"


def test_one_that_does_not_start_is_told(archive: Archive, place: Home) -> None:
    program = b"#!/bin/sh\necho 'version GLIBC_2.99 not found' >&2; exit 1\n"
    archive.add("bookworm", "qemu-system-x86", "1:10.0.2-1", {"usr/bin/qemu-system-x86_64": program})
    archive.add("bookworm", "qemu-system-data", "1:10.0.2-1", {"usr/share/qemu/pvh.bin": b"pvh"})
    archive.add("bookworm", "seabios", "1.16.2-1", {"usr/share/seabios/bios.bin": b"bios"})
    archive.publish()
    with pytest.raises(RunError, match=r"does not start on this machine: version GLIBC_2.99 not found") as caught:
        fetch_qemu(place)
    assert "AJUSTE_QEMU" in (caught.value.hint or "")
    assert cached_qemu(place) is None


def compile_c(source: str, output: Path, *options: str) -> bytes:
    file = output.with_suffix(".c")
    file.write_text(source)
    subprocess.run(["cc", "-o", output, file, *options], check=True, cwd=output.parent)
    return output.read_bytes()


def test_libraries_that_this_machine_lacks_come_with_it(archive: Archive, place: Home, tmp_path: Path) -> None:
    """A program needs a library, which needs another one; the machine has neither."""
    build = tmp_path / "build"
    build.mkdir()
    inner = compile_c("int ten(void) { return 10; }", build / "libajusteinner.so", "-shared", "-fPIC")
    outer = compile_c(
        "int ten(void); int major(void) { return ten(); }",
        build / "libajusteouter.so",
        *("-shared", "-fPIC", "-L.", "-lajusteinner"),
    )
    program = compile_c(
        '#include <stdio.h>\nint major(void);\nint main(void) { printf("QEMU emulator version %d.5.0\\n", major()); }',
        build / "qemu",
        *("-L.", "-lajusteouter", "-Wl,--allow-shlib-undefined"),
    )
    library = "usr/lib/x86_64-linux-gnu"
    suite, version = "bookworm-backports", "1:10.5.0-1"
    archive.add(suite, "qemu-system-x86", version, {"usr/bin/qemu-system-x86_64": program}, "libc6, libouter1 (>= 1)")
    archive.add(suite, "qemu-system-data", version, {"usr/share/qemu/pvh.bin": b"pvh"})
    archive.add(suite, "seabios", "1.16.2-1", {"usr/share/seabios/bios.bin": b"bios"})
    archive.add(suite, "libouter1", "1.0", {f"{library}/libajusteouter.so": outer}, "libinner1 | libother1, adduser")
    archive.add(suite, "libinner1", "1.0", {f"{library}/libajusteinner.so": inner})
    archive.publish()
    image = fetch_qemu(place)
    assert image.version == "10.5.0", "it was started, with its libraries"
    assert image.libraries is not None
    assert sorted(p.name for p in image.libraries.iterdir()) == ["libajusteinner.so", "libajusteouter.so"]


@pytest.mark.network
@pytest.mark.timeout(600)
@pytest.mark.slow
def test_the_real_one_starts(tmp_path: Path) -> None:
    image = fetch_qemu(Home(tmp_path, tmp_path / "cache", tmp_path))
    assert int(image.version.split(".")[0]) >= 10
    machines = subprocess.run([image.binary, "-machine", "help"], check=True, capture_output=True, text=True).stdout
    assert "microvm" in machines
