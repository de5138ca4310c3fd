"""The end of a command: quick, and with everything said."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from shell import Shell

AJUSTE = Path(sys.executable).parent / "ajuste"


def test_what_cannot_be_printed_is_an_error_and_not_lost() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([AJUSTE, "studies"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr


def test_whoever_stops_reading_hears_no_complaint() -> None:
    done = subprocess.run(
        ["bash", "-c", 'set -o pipefail; "$0" tunables | head -n 1', AJUSTE], capture_output=True, text=True
    )
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_fault(closed: str, tmp_path: Path) -> None:
    def run(word: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", "-c", f'"$0" {word} {closed}', str(AJUSTE)]
        return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"AJUSTE_HOME": str(tmp_path)})

    assert (run("studies").returncode, run("studies").stderr) == (0, "")
    failed = run("report nothing")
    assert failed.returncode == 2
    assert "Traceback" not in failed.stderr


INTERRUPTED = """\
import os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Interrupting:
    def find_spec(self, name, *_):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_ctrl_c_while_modules_load_ends_it_without_a_word() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, AJUSTE, "studies"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.slow
@pytest.mark.usefixtures("machine_lock")
def test_ctrl_c_while_the_store_cannot_be_written_is_an_interruption(ajuste: Shell) -> None:
    process = ajuste.start("compare", "--wait", "1m", "--blocks", "2", "--", "sh", "-c", "touch begun; sleep 60")
    deadline = time.monotonic() + 60
    while not (ajuste.directory / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (ajuste.directory / "begun").exists()
    with closing(sqlite3.connect(ajuste.home / "data" / "store.sqlite")) as other:
        other.execute("BEGIN IMMEDIATE")  # Nobody else writes.
        process.send_signal(signal.SIGINT)
        _, complained = process.communicate(timeout=120)
    assert process.returncode == 130, complained
    assert "interrupted" in complained
    assert "store.sqlite" in complained
    assert not list((ajuste.home / "state" / "sessions").glob("*"))


def test_a_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    script = 'mkdir "$1"; cd "$1"; rmdir "$1"; "$0" compare -- true'
    done = subprocess.run(["bash", "-c", script, AJUSTE, tmp_path / "gone"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "working directory" in done.stderr


ENDING = """\
import atexit, threading, time
from ajuste.cli.edge import QuickEnding
ending = QuickEnding()
atexit.register(print, "done")
threading.Thread(target=lambda: (time.sleep(0.3), print("waited"))).start()
print("said")
ending.leave(3)
"""


def test_what_was_to_be_done_at_the_end_of_the_process_is_done() -> None:
    done = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "said\nwaited\ndone\n")
