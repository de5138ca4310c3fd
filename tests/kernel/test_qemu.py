"""Fetching QEMU, from a small archive on disk and (marked ``network``) from the machine's mirror."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ajuste.kernel.qemu import cached_qemu, fetch_qemu
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste.model.wording import Say

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


def test_a_damaged_one_is_fetched_again(bookworm: Archive, place: Home, said: list[str], say: Say) -> None:
    image = fetch_qemu(place)
    (image.firmware / "bios-256k.bin").unlink()
    assert fetch_qemu(place, say) == image
    assert (image.firmware / "bios-256k.bin").read_bytes() == b"bios"
    assert any("bios-256k.bin is missing" in text for text in said)


def test_none_for_this_machine_says_which_suites_were_looked_at(
    bookworm: Archive, place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"VERSION_CODENAME": "trixie"})
    with pytest.raises(RequestError, match="found no QEMU of at least 10 in trixie, trixie-security"):
        fetch_qemu(place)


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
def test_the_real_one_starts(tmp_path: Path) -> None:
    image = fetch_qemu(Home(tmp_path, tmp_path / "cache", tmp_path))
    assert int(image.version.split(".")[0]) >= 10
    machines = subprocess.run([image.binary, "-machine", "help"], check=True, capture_output=True, text=True).stdout
    assert "microvm" in machines
