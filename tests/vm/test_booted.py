"""What is kept of machines that have booted: found again by all that a boot depends on, and never too much of it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ajuste.home import Home
from ajuste.model.event import Gate, Hello
from ajuste.vm import booted
from ajuste.vm.booted import Booted, find, keep, name_of
from ajuste.vm.command_line import Machine
from ajuste.vm.emulator import Emulator

HELLO = Hello(
    at_ns=5, version=1, agent="0.1.0", kernel="6.1.0", build="#1", machine="x86_64", cpus=1, memory_bytes=1, guest=True
)


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")


@pytest.fixture
def qemu(tmp_path: Path) -> Path:
    binary = tmp_path / "qemu"
    binary.write_text("of one build")
    return binary


def saved(tmp_path: Path, content: bytes) -> tuple[Booted, Path]:
    """A machine that has booted just now, and its snapshot."""
    snapshot = tmp_path / "saved"
    snapshot.write_bytes(content)
    return Booted(hello=HELLO, gate=Gate(at_ns=7), command_line="qemu -M pc", size_bytes=len(content)), snapshot


def machine(qemu: Path, **changes: object) -> Machine:
    values = {
        "emulator": Emulator(binary=qemu, version="7.2.22"),
        "kernel": Path("/k/vmlinuz"),
        "initramfs": Path("/s/initramfs"),
        "clock": "virtual",
        **changes,
    }
    return Machine.model_validate(values)


def test_what_was_kept_is_found_and_outlives_its_removal(place: Home, tmp_path: Path) -> None:
    at_gate, snapshot = saved(tmp_path, b"memory")
    keep(place, "a", at_gate, snapshot)
    snapshot.unlink()
    here = tmp_path / "here"
    assert find(place, "a", here) == at_gate
    for path in place.booted.iterdir():
        path.unlink()
    assert here.read_bytes() == b"memory"


def test_what_was_never_kept_is_not_found(place: Home, tmp_path: Path) -> None:
    assert find(place, "a", tmp_path / "here") is None
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize("spoil", ["record", "snapshot", "lost"])
def test_what_is_not_whole_is_not_used(place: Home, tmp_path: Path, spoil: str) -> None:
    at_gate, snapshot = saved(tmp_path, b"memory")
    keep(place, "a", at_gate, snapshot)
    if spoil == "record":
        (place.booted / "a.json").write_text('{"hello": ')
    elif spoil == "snapshot":
        os.truncate(place.booted / "a.snapshot", 3)
    else:
        (place.booted / "a.snapshot").unlink()
    assert find(place, "a", tmp_path / "here") is None
    assert not (tmp_path / "here").exists()


def test_a_copy_that_breaks_off_leaves_nothing(place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(place, "a", *saved(tmp_path, b"memory"))

    def refuse(source: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, "another file system")

    def break_off(source: Path, target: Path) -> None:
        target.write_bytes(b"mem")
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("os.link", refuse)
    monkeypatch.setattr("shutil.copyfile", break_off)
    assert find(place, "a", tmp_path / "here") is None
    assert not (tmp_path / "here").exists(), "the boot that follows saves its snapshot there"


def test_a_cache_that_cannot_be_written_is_no_trouble(place: Home, tmp_path: Path) -> None:
    place.cache.write_text("a file")
    keep(place, "a", *saved(tmp_path, b"memory"))
    assert find(place, "a", tmp_path / "here") is None


def test_what_was_not_used_for_longest_makes_room(place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(booted, "MOST_BYTES", 2 * 65536)
    for number, name in enumerate("ab"):
        keep(place, name, *saved(tmp_path, os.urandom(65536)))
        (tmp_path / "saved").unlink()
        os.utime(place.booted / f"{name}.snapshot", (number, number))
    assert find(place, "a", tmp_path / "used")
    keep(place, "c", *saved(tmp_path, os.urandom(65536)))
    assert {path.name for path in place.booted.iterdir()} == {
        f"{name}.{end}" for name in "ac" for end in ("json", "snapshot")
    }


CHANGES: list[dict[str, object]] = [
    {"cpus": 2},
    {"memory_mib": 512},
    {"seed": 2},
    {"instruction_ns": 4},
    {"kernel_arguments": ("isolcpus=1",)},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_another_machine_has_another_name(qemu: Path, change: dict[str, object]) -> None:
    assert name_of(machine(qemu), "k", "i") != name_of(machine(qemu, **change), "k", "i")


def test_the_name_is_of_what_files_hold_and_not_of_where_they_are(qemu: Path) -> None:
    name = name_of(machine(qemu), "k", "i")
    elsewhere = machine(qemu, kernel=Path("/other/vmlinuz"), initramfs=Path("/other/initramfs"))
    assert name_of(elsewhere, "k", "i") == name
    assert len({name, name_of(machine(qemu), "other", "i"), name_of(machine(qemu), "k", "other")}) == 3
    qemu.write_text("of another build")
    assert name_of(machine(qemu), "k", "i") != name


def test_a_build_that_starts_qemu_in_another_way_has_other_machines(
    qemu: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = name_of(machine(qemu), "k", "i")
    monkeypatch.setattr("ajuste.vm.command_line.EVENT_PORT", 0x403)
    assert name_of(machine(qemu), "k", "i") != name
