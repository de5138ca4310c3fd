from __future__ import annotations

import platform
from pathlib import Path

import pytest

from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.model.topology import Topology
from ajuste_guest.executor import qemu
from ajuste_guest.executor.qemu import PROGRAM, choose_emulator, installed_emulator
from ajuste_guest.kernel.qemu import QemuImage


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return Home(tmp_path, tmp_path, tmp_path)


def pretended(folder: Path, version: str) -> Path:
    program = folder / f"qemu-{version}"
    program.write_text(f'#!/bin/sh\necho "QEMU emulator version {version} (Debian 1:{version}+dfsg)"\n')
    program.chmod(0o755)
    return program


def test_the_version_is_what_the_program_says(tmp_path: Path) -> None:
    assert installed_emulator(pretended(tmp_path, "7.2.22")).version == "7.2.22"
    for wrong in (Path("/bin/true"), tmp_path / "no", tmp_path):
        with pytest.raises(RequestError):
            installed_emulator(wrong)


@pytest.mark.parametrize(
    ("version", "clock", "cpus", "expected"),
    [
        ("7.2.22", "virtual", 1, "7.2.22"),
        ("7.2.22", "wall", 1, "7.2.22"),
        ("7.2.22", "wall", 4, "10.0.2"),
        ("8.2.2", "wall", 4, "8.2.2"),
        ("7.2.22", "virtual", 2, "10.0.2"),
        ("10.1.0", "virtual", 2, "10.1.0"),
        ("6.2.0", "wall", 1, "10.0.2"),
        (None, "virtual", 1, "10.0.2"),
    ],
)
def test_one_is_fetched_only_where_the_installed_one_will_not_do(
    place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, clock: str, cpus: int,
    expected: str,
) -> None:  # fmt: skip
    fetched = QemuImage(binary=Path("/q/qemu"), firmware=Path("/q/f"), version="10.0.2", package="q 1", sha256="0" * 64)
    monkeypatch.setattr(qemu, "fetch_qemu", lambda home, say: fetched)
    installed = str(pretended(tmp_path, version)) if version else None
    monkeypatch.setattr(qemu.shutil, "which", lambda name: installed)  # type: ignore[attr-defined]
    chosen = choose_emulator(clock, cpus, place, print, {})  # type: ignore[arg-type]
    assert chosen.version == expected
    assert (chosen.firmware is not None) == (expected == "10.0.2")


@pytest.mark.parametrize(
    ("version", "reason"), [(None, "QEMU was not found, and "), ("6.2.0", "QEMU is 6.2.0, older than 7.2, and ")]
)
def test_without_one_and_without_a_network_it_is_told_what_to_install(
    place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, reason: str
) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "arch"})
    path = tmp_path / "bin"
    path.mkdir()
    if version:
        pretended(path, version).rename(path / PROGRAM)
    monkeypatch.setenv("PATH", str(path))
    for mirror in ("AJUSTE_MIRROR", "AJUSTE_SECURITY_MIRROR"):
        monkeypatch.setenv(mirror, "http://127.0.0.1:1/debian")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(RunError, match=f"^{reason}could not fetch any package list: .*Connection refused") as caught:
        choose_emulator("virtual", 1, place, print, {})
    assert caught.value.hint is not None
    assert "check the network" in caught.value.hint
    assert "or install QEMU: pacman -S qemu-system-x86; or set AJUSTE_QEMU" in caught.value.hint


def test_the_named_one_is_taken_or_refused(place: Home, tmp_path: Path) -> None:
    named = {"AJUSTE_QEMU": str(pretended(tmp_path, "8.2.0"))}
    assert choose_emulator("virtual", 1, place, print, named).version == "8.2.0"
    with pytest.raises(RequestError, match=r"AJUSTE_QEMU is QEMU 8\.2\.0; 2 CPUs .* require 10\.0"):
        choose_emulator("virtual", 2, place, print, named)
    assert choose_emulator("wall", 2, place, print, named).version == "8.2.0"
    with pytest.raises(RequestError, match=r"AJUSTE_QEMU is QEMU 8\.2\.0; a topology requires 10\.0 or later"):
        choose_emulator("wall", 2, place, print, named, topology=Topology(cores=2))
    with pytest.raises(RequestError, match=r"modelled time requires 10\.0 or later"):
        choose_emulator("virtual", 1, place, print, named, paced=True)
    named = {"AJUSTE_QEMU": str(pretended(tmp_path, "8.0.5"))}
    with pytest.raises(RequestError, match=r"AJUSTE_QEMU is QEMU 8\.0\.5; 2 CPUs under the wall clock require 8\.1"):
        choose_emulator("wall", 2, place, print, named)


def test_a_machine_whose_agent_no_guest_runs_is_told_before_anything_is_fetched(
    place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    named = {"AJUSTE_QEMU": str(pretended(tmp_path, "10.0.2"))}
    with pytest.raises(RequestError, match=r"^guests are supported only on x86_64; this machine is aarch64$") as caught:
        choose_emulator("virtual", 1, place, print, named)
    assert caught.value.hint is not None
    assert "add --target host" in caught.value.hint
