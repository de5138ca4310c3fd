"""Booted machines that are kept (snapshots): found again by all that a boot depends on, and never too much of them."""

from __future__ import annotations

import mmap
import os
from dataclasses import replace
from io import BufferedReader, BytesIO
from pathlib import Path

import pytest

from ajuste.machine import cache
from ajuste.machine.files import sealed
from ajuste.machine.home import Home
from ajuste.model.event import Gate, Hello
from ajuste_guest.executor.qemu import Emulator, GuestMachine
from ajuste_guest.executor.snapshot import Booted, Damaged, Snapshot, find, keep, snapshot_name

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


def saved(content: bytes) -> tuple[Booted, Snapshot]:
    """A machine that has booted just now, and its snapshot."""
    snapshot = Snapshot.of_file(BufferedReader(BytesIO(content)))  # type: ignore[arg-type]
    return Booted(hello=HELLO, gate=Gate(at_ns=7), command_line="qemu", snapshot_sha256=snapshot.sha256), snapshot


def held(snapshot: Snapshot) -> bytes:
    with snapshot.open() as file:
        return file.read()


def machine(qemu: Path, **changes: object) -> GuestMachine:
    values = {
        "emulator": Emulator(binary=qemu, version="7.2.22"),
        "kernel": Path("/k/vmlinuz"),
        "initramfs": Path("/s/initramfs"),
        "clock": "virtual",
        **changes,
    }
    return GuestMachine.model_validate(values)


def test_what_was_kept_is_found_and_outlives_its_removal(place: Home) -> None:
    at_gate, snapshot = saved(b"memory")
    keep(place, "a", at_gate, snapshot)
    match = find(place, "a")
    assert match is not None
    for path in place.booted.iterdir():
        path.write_bytes(b"")
        path.unlink()
    assert match[0] == at_gate
    assert held(match[1]) == held(match[1]) == b"memory"


def test_another_process_of_the_same_pid_that_is_writing_is_no_trouble(place: Home) -> None:
    """Write as if it were in another container that shares the home."""
    (place.booted / f"a.snapshot.{os.getpid()}.new").mkdir(parents=True)
    keep(place, "a", *saved(b"memory"))
    match = find(place, "a")
    assert match is not None
    assert held(match[1]) == b"memory"


def test_nobody_can_change_what_trials_start_from() -> None:
    _, snapshot = saved(b"memory")
    with pytest.raises(PermissionError):
        os.write(snapshot.descriptor, b"other")
    with pytest.raises(PermissionError):
        os.ftruncate(snapshot.descriptor, 0)
    with pytest.raises(PermissionError), mmap.mmap(snapshot.descriptor, 6):
        pass
    assert held(snapshot) == b"memory"


def test_what_was_never_kept_is_not_found(place: Home) -> None:
    assert find(place, "a") is None


def flips(size: int) -> list[int]:
    """Return every byte at the beginning, where it says what it is; then some, and the last ones."""
    return [*range(64), *range(64, size - 8, 97), *range(size - 8, size)]


def test_a_flipped_bit_anywhere_is_noticed_and_what_has_it_dropped(place: Home) -> None:
    at_gate, snapshot = saved(bytes(range(256)) * 16)
    keep(place, "a", at_gate, snapshot)
    (stored,) = place.booted.iterdir()
    whole = stored.read_bytes()
    for position in flips(len(whole)):
        stored.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(Damaged):
            find(place, "a")
        assert list(place.booted.iterdir()) == [], f"byte {position}"
        assert find(place, "a") is None
    keep(place, "a", at_gate, snapshot)
    assert find(place, "a") is not None


@pytest.mark.parametrize("left", [0, 1, 64, 65, 300, -1])
def test_a_shorter_file_is_noticed(place: Home, left: int) -> None:
    keep(place, "a", *saved(b"memory" * 100))
    (stored,) = place.booted.iterdir()
    os.truncate(stored, left if left >= 0 else stored.stat().st_size + left)
    with pytest.raises(Damaged):
        find(place, "a")
    assert find(place, "a") is None


@pytest.mark.parametrize("instead", ["directory", "fifo", "loop", "device", "empty record"])
def test_what_is_no_snapshot_is_dropped_and_nobody_waits_for_it(place: Home, instead: str) -> None:
    keep(place, "a", *saved(b"memory"))
    (stored,) = place.booted.iterdir()
    stored.unlink()
    {
        "directory": lambda: (stored / "inside").mkdir(parents=True),
        "fifo": lambda: os.mkfifo(stored),
        "loop": lambda: stored.symlink_to(stored.name),
        "device": lambda: stored.symlink_to("/dev/zero"),
        "empty record": lambda: stored.write_text(sealed("{}")),
    }[instead]()
    with pytest.raises(Damaged):
        find(place, "a")
    assert find(place, "a") is None
    keep(place, "a", *saved(b"memory"))
    assert find(place, "a") is not None


def test_a_cache_that_cannot_be_written_is_no_trouble(place: Home) -> None:
    place.cache.write_text("a file")
    keep(place, "a", *saved(b"memory"))
    with pytest.raises(Damaged):
        find(place, "a")


def test_what_was_not_used_for_longest_makes_room(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = replace(cache.KINDS[cache.SNAPSHOTS], limit_bytes=3 * 65536)
    monkeypatch.setitem(cache.KINDS, cache.SNAPSHOTS, limited)
    for number, name in enumerate("ab"):
        keep(place, name, *saved(os.urandom(65536)))
        os.utime(place.booted / f"{name}.snapshot", (number, number))
    assert find(place, "a") is not None
    keep(place, "c", *saved(os.urandom(65536)))
    assert {path.name for path in place.booted.iterdir()} == {"a.snapshot", "c.snapshot"}


CHANGES: list[dict[str, object]] = [
    {"cpus": 2},
    {"memory_mib": 512},
    {"seed": 2},
    {"instruction_ns": 4},
    {"kernel_arguments": ("isolcpus=1",)},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_another_machine_has_another_name(qemu: Path, change: dict[str, object]) -> None:
    assert snapshot_name(machine(qemu), "k", "i") != snapshot_name(machine(qemu, **change), "k", "i")


def test_the_name_is_of_what_files_hold_and_not_of_where_they_are(qemu: Path) -> None:
    name = snapshot_name(machine(qemu), "k", "i")
    elsewhere = machine(qemu, kernel=Path("/other/vmlinuz"), initramfs=Path("/other/initramfs"))
    assert snapshot_name(elsewhere, "k", "i") == name
    assert len({name, snapshot_name(machine(qemu), "other", "i"), snapshot_name(machine(qemu), "k", "other")}) == 3
    qemu.write_text("of another build")
    assert snapshot_name(machine(qemu), "k", "i") != name


def test_a_build_that_starts_qemu_in_another_way_has_other_machines(
    qemu: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = snapshot_name(machine(qemu), "k", "i")
    monkeypatch.setattr("ajuste_guest.executor.qemu.EVENT_PORT", 0x403)
    assert snapshot_name(machine(qemu), "k", "i") != name
