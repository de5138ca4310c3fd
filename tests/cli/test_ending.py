"""The end of a command: quick, and with everything said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
