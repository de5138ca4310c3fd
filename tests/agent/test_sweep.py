"""The guardian of a session: what it removes, whom it kills, and whom it does not."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

MARKER = ".ajuste-session"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    directory = tmp_path / "session"
    (directory / "0").mkdir(parents=True)
    (directory / MARKER).touch()
    (directory / "0" / "console.log").write_text("text")
    (directory / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").touch()
    return directory


@pytest.fixture
def sweep(agent: str) -> Callable[[Path], subprocess.Popen[str]]:
    def start(directory: Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [agent, "sweep", str(directory)], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    return start


Sweep = Callable[[Path], "subprocess.Popen[str]"]


def test_it_waits_for_the_end_of_its_input_and_then_removes_the_directory(sweep: Sweep, session: Path) -> None:
    with sweep(session) as process:
        assert process.stdin is not None
        process.stdin.write("not yet\n")
        process.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        assert session.exists()
        process.communicate(timeout=30)
    assert process.returncode == 0
    assert not session.exists()
    assert (session.parent / "elsewhere" / "kept").exists(), "a link is removed, not what it leads to"


def test_it_is_not_stopped_by_the_signals_that_stop_its_parent(sweep: Sweep, session: Path) -> None:
    with sweep(session) as process:
        # It has begun when it has made itself deaf to signals.
        while not _ignores_term(process.pid):
            assert process.poll() is None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        process.communicate(timeout=30)
    assert process.returncode == 0
    assert not session.exists()


def _ignores_term(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    return bool(int(status.split("SigIgn:")[1].split()[0], 16) >> (signal.SIGTERM - 1) & 1)


def test_it_kills_the_processes_of_the_session_and_no_others(sweep: Sweep, session: Path) -> None:
    """``sh -c 'sleep …' NAME``: the name is on the command line, as QEMU's files are."""
    ours = subprocess.Popen(["sh", "-c", "read x", str(session / "q.sock")], stdin=subprocess.PIPE)
    similar = subprocess.Popen(["sh", "-c", "read x", f"{session}-2/q.sock"], stdin=subprocess.PIPE)
    foreign = subprocess.Popen(["sh", "-c", "read x", "else"], stdin=subprocess.PIPE)
    try:
        for number, process in enumerate((ours, similar, foreign)):
            while not Path(f"/proc/{process.pid}/cmdline").read_bytes():  # Popen returns a moment before it is there
                time.sleep(0.01)
            (session / f"{number}.pid").write_text(f"{process.pid}\n")
        for number, text in enumerate(("", "1", "-1", "0", "x", "9" * 40)):
            (session / f"odd{number}.pid").write_text(text)
        (session / "directory.pid").mkdir()
        with sweep(session) as guardian:
            guardian.communicate(timeout=30)
        assert ours.wait(30) == -signal.SIGKILL
        assert similar.poll() is None
        assert foreign.poll() is None
        assert not session.exists()
    finally:
        for process in (ours, similar, foreign):
            process.kill()
            process.communicate()


def test_it_touches_no_directory_that_is_no_session(sweep: Sweep, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with sweep(tmp_path) as process:
        _, complaint = process.communicate(timeout=30)
    assert process.returncode == 1
    assert f"has no {MARKER}" in complaint
    assert (tmp_path / "file").exists()


def test_a_session_that_is_gone_already_is_no_error(sweep: Sweep, session: Path) -> None:
    with sweep(session) as process:
        while not _ignores_term(process.pid):
            assert process.poll() is None
        session.rename(session.parent / "gone")
        _, complaint = process.communicate(timeout=30)
    assert (process.returncode, complaint) == (0, "")
    assert (session.parent / "gone" / MARKER).exists()


def test_a_pid_file_that_never_ends_does_not_hold_it_up(sweep: Sweep, session: Path) -> None:
    os.mkfifo(session / "never.pid")
    with sweep(session) as process:
        process.communicate(timeout=30)
    assert not session.exists()
