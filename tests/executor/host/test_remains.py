"""Files that commands leave in shared memory are noticed and said."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from ajuste.executor.host.disturbance import remains, remains_note
from ajuste.executor.host.host import HostExecutor
from ajuste.model.plan import Command, Plan


def run(*argv: str) -> list[str]:
    """Return what is said of a run of that command, from its begin to its end."""
    messages: list[str] = []
    with HostExecutor(say=messages.append) as host:
        assert host.run(Plan(id="t", workload=Command(argv=argv))).problem == ""
    return messages


@pytest.fixture
def shared_file() -> Iterator[Path]:
    path = Path("/dev/shm") / f"left-{uuid.uuid4().hex}"
    yield path
    path.unlink(missing_ok=True)


def test_a_file_in_shared_memory_is_said_with_what_removes_it(shared_file: Path) -> None:
    notes = [note for note in run("/usr/bin/touch", str(shared_file)) if str(shared_file) in note]
    (note,) = notes
    assert f"rm {shared_file}" in note


def test_system_v_memory_is_said_with_what_removes_it() -> None:
    code = "import ctypes; print(ctypes.CDLL(None).shmget(0, 4096, 0o1600), flush=True)"
    before = remains()
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    try:
        note = remains_note(before, remains())
        assert f"System V shared memory {made} (key 0)" in note
        assert f"ipcrm -m {made}" in note
    finally:
        subprocess.run(["ipcrm", "-m", made], check=True)


def test_what_was_there_before_is_nobodys_business(tmp_path: Path) -> None:
    (tmp_path / "dev/shm").mkdir(parents=True)
    (tmp_path / "dev/shm/old").touch()
    before = remains(tmp_path)
    assert remains_note(before, remains(tmp_path)) == ""
    for number in range(7):
        (tmp_path / f"dev/shm/new{number}").touch()
    note = remains_note(before, remains(tmp_path))
    assert "/dev/shm/new0" in note
    assert "and 2 more" in note
    assert "old" not in note


def test_a_hostile_name_is_no_command_and_no_sequence_of_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "dev/shm").mkdir(parents=True)
    for name in ("x; reboot", "\x1b[2J"):
        (tmp_path / "dev/shm" / name).touch()
    note = remains_note(frozenset(), remains(tmp_path))
    assert "rm '/dev/shm/x; reboot'" in note
    assert "rm $'/dev/shm/\\033[2J'" in note
    assert note.isprintable()


def test_where_there_is_nothing_to_look_at_nothing_is_said(tmp_path: Path) -> None:
    assert remains_note(remains(tmp_path), remains(tmp_path)) == ""
