"""Processes that the build of a revision leaves running."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from ajuste.executor.host.caller import all_ended


def runs(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("how", ["setsid", "setsid setsid"])
def test_a_daemon_that_left_its_session_ends_with_the_build(how: str, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with all_ended():
        script = f"{how} sh -c 'echo $$ > {note}.new; mv {note}.new {note}; exec sleep 60' & "
        subprocess.run(["sh", "-c", f"({script}) & wait"], check=True, start_new_session=True)
        until = time.monotonic() + 10
        while not note.exists() and time.monotonic() < until:
            time.sleep(0.005)
        pid = int(note.read_text())
        assert runs(pid)
    assert not runs(pid)


def test_what_was_started_before_goes_on() -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as before:
        with all_ended():
            pass
        assert before.poll() is None
        before.kill()
