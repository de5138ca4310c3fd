"""A process whose store is on the disk of ``disk.c``: keeps a study's trials, and says how each attempt to do so ended.

Run by test_disk.py with that library preloaded. Everything is loaded once; each attempt is a fork.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ajuste.cli.edge import exit_code
from ajuste.model.trial import Slot, Trial
from ajuste.store.record import KeptRecord
from ajuste.store.store import Store

BLOCKS = 6
DISK = ctypes.CDLL(None)  # With the library preloaded.


def trial(block: int) -> Trial:
    """Return a trial that is larger than a page."""
    slot = Slot(block=block, position=0, configuration="nice=0", seed=block)
    return Trial(slot=slot, status="ok", metrics={"elapsed": 0.5 + block}, events=f"event {block}\n" * 700)


def measure(store_file: Path, on_stored: Callable[[int], None]) -> str:
    """Do what a command does with its store: begin a run or go on with it, keep every trial, end it, show it."""
    with Store(f"sqlite:///{store_file}") as store:
        store.require_sound()
        run = store.latest_run("f", 1) or store.new_run(
            study="s", fingerprint="f", seed=1, ajuste="0", named="s", resolved="", environment={}
        )
        there = {trial.slot.block for trial in store.trials(run)}
        for block in range(BLOCKS):
            if block not in there:
                store.add_trials(run, (trial(block),))
                on_stored(block)
        if not run.stopped:
            store.stop_run(run, "budget", "spent")
        return KeptRecord(store.find_run(run.id), store).digest


def attempt(store_file: Path, at: int, error: int, on: int) -> dict[str, Any]:
    """Measure in a fork, with a disk that fails at operation ``at`` (-1: never)."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        DISK.disk_fail(ctypes.c_long(at), error, on)
        code = 99  # A traceback.
        try:
            code = exit_code(lambda: print(measure(store_file, lambda block: DISK.disk_mark(ctypes.c_int64(block)))))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os.write(writing, f"\n{DISK.disk_count()}".encode())
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as output:
        printed, _, count = output.read().rpartition("\n")
    _, status = os.waitpid(child, 0)
    return {"code": os.waitstatus_to_exitcode(status), "said": printed.strip(), "count": int(count)}


def main() -> None:
    store_file = Path(os.environ["AJUSTE_DISK"])
    for line in sys.stdin:
        request = json.loads(line)
        shutil.rmtree(store_file.parent, ignore_errors=True)
        store_file.parent.mkdir(parents=True)
        if request.get("record"):
            DISK.disk_record(os.open(request["record"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        ended = [attempt(store_file, request["at"], request["error"], request["on"])]
        if request["at"] >= 0:
            ended.append(attempt(store_file, -1, 0, 0))
        DISK.disk_record(-1)
        print(json.dumps(ended), flush=True)


if __name__ == "__main__":
    main()
