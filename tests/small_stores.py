"""Small stores with all that a store can have, and commands that read one, each in this process."""

from __future__ import annotations

import io
import json
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.cli.edge import exit_code
from ajuste.cli.main import application
from ajuste.kernel.spec import parse_spec
from ajuste.model.event import Written
from ajuste.model.kernel import KernelVersion
from ajuste.model.trial import Slot, Trial
from ajuste.store.record import KeptRecord
from ajuste.store.store import Run, Store
from ajuste.study.read import read_study
from ajuste.study.resolve import resolve
from ajuste.study.resolved import ResolvedStudy
from shell import small

DECIDED, GOING_ON = "20261122-163035-00b9d1", "20261122-163035-227787"
DIGEST = "50a1a45395f5b39d691de2538d799a7fa1f0c90e4377f9b8543a6f0af44c095a"
"""Digest of both runs, by the Ajuste that measured them first."""
SEEDS = (4610079356560476, 2989240760703465, 4038964544837015)
SWITCHES = ((11, 100), (10, 100), (11, 102))
"""Involuntary switches by block, of the larger granularity and of the smaller."""


def small_store(file: Path) -> Path:
    """A run that was decided, with its digest, and one that can go on, with a trial more, of a machine."""
    with TemporaryDirectory() as directory, Store(f"sqlite:///{file}") as store:
        study = Path(directory, "small.toml")
        study.write_text(small(3, 3))
        for number, run_id in enumerate((DECIDED, GOING_ON), 1):
            run = Run(
                id=run_id,
                study="small",
                fingerprint="f" * 64,
                seed=number,
                created="2026-11-22T16:30:35+00:00",
                ajuste="0.1.0",
                named="small",
                resolved=resolved_study(study),
                environment={"debian:5.10": {"kernel": "5.10.0-0", "clock": "virtual"}},
            )
            store.adopt(run, kernel="debian:5.10", workload="matrix")
            store.add_trials(run, [trial for block in range(3) for trial in small_trials(block)])
        decided = store.find_run(DECIDED)
        store.stop_run(decided, "decided", "the verdict is in after 3 blocks")
        assert KeptRecord(store.find_run(DECIDED), store).digest == DIGEST
        store.add_trials(store.find_run(GOING_ON), [spare_trial()], machine="lab1")
    return file


def small_trials(block: int) -> list[Trial]:
    """Return both trials of a block; in block 1 the first one failed before."""
    made = [small_trial(block, position, attempt=int((block, position) == (1, 0))) for position in (0, 1)]
    if block == 1:
        failed = {"attempt": 0, "status": "failed", "reason": "the guest hung", "host_seconds": 0.0}
        made.insert(0, made[0].model_copy(update={**failed, "metrics": {}, "written": (), "events": ""}))
    return made


def small_trial(block: int, position: int, attempt: int) -> Trial:
    value = ("75000000", "750000")[position]
    slot = Slot(block=block, position=position, configuration=f"sched_min_granularity_ns={value}", seed=SEEDS[block])
    write = Written(at_ns=2, tunable="sched_min_granularity_ns", asked=value, before="750000", after=value)
    ended = {"wall_ns": 1_000_000_000, "user_ns": 1, "system_ns": 1, "voluntary_switches": 1}
    after = {"minor_faults": 1, "major_faults": 0, "peak_rss_bytes": 1}
    switches, name = SWITCHES[block][position], f"b{block}p{position}a{attempt}"
    events: list[dict[str, Any]] = [
        {"at_ns": 1, "event": "accepted", "id": name},
        write.model_dump(),
        {"at_ns": 3, "event": "started", "role": "background", "index": 0, "pid": 2},
        {"at_ns": 3, "event": "started", "role": "workload", "index": 0, "pid": 3},
    ]
    for role, code, signal, taken in (("workload", 0, None, switches), ("background", None, 9, 0)):
        how = {"exit_code": code, "signal": signal, "timed_out": False}
        events.append(
            {"at_ns": 4, "event": "exited", "role": role, "index": 0, **how, **ended, "involuntary_switches": taken}
            | after
        )
    text = "matrix size=100 repetitions=2 checksum=1\n"
    events += [
        {"at_ns": 4, "event": "output", "role": "workload", "index": 0, "stream": "stdout", "text": text}
        | {"dropped_bytes": 0},
        {"at_ns": 5, "event": "end", "id": name, "ok": True, "events": 7},
    ]
    return Trial(
        slot=slot,
        attempt=attempt,
        status="ok",
        metrics={
            "elapsed": 1.0,
            "user-time": 1e-9,
            "system-time": 1e-9,
            "voluntary-switches": 1.0,
            "involuntary-switches": float(switches),
            "minor-faults": 1.0,
            "major-faults": 0.0,
            "peak-rss": 1.0,
        },
        written=(write,),
        events="\n".join(json.dumps(event, separators=(",", ":")) for event in events),
        started="2026-11-22T16:30:35.130+00:00",
        host_seconds=1.5,
    )


def resolved_study(file: Path) -> str:
    """The document of the study in ``file``, for Linux 5.10."""
    study = read_study(file, catalogue(), parse_kernel=parse_spec)
    kernels = dict.fromkeys(("debian:5.10", ""), KernelVersion(major=5, minor=10))
    return resolve(study, catalogue(), kernels, lambda name: f"/bin/{name}").model_dump_json()


def run_of(text: str, store: Store, directory: Path) -> Run:
    """A run of the study ``small``, whose file is ``text``, without any trial."""
    (directory / "small.toml").write_text(text)
    resolved = resolved_study(directory / "small.toml")
    kernel = ResolvedStudy.model_validate_json(resolved).kernels_named
    about: dict[str, Any] = {"fingerprint": "f", "seed": 1, "ajuste": "0", "named": "small", "environment": {}}
    return store.new_run(study="small", resolved=resolved, kernel=kernel, **about)


def spare_trial() -> Trial:
    slot = Slot(block=3, position=0, configuration="sched_min_granularity_ns=750000", seed=7)
    return Trial(slot=slot, status="failed", reason="the guest hung", console="no\nmore")


class Commands:
    """Commands of Ajuste on one store, in this process: what a command says and how it ends."""

    def __init__(self, home: Path, patch: pytest.MonkeyPatch) -> None:
        self.home = home
        patch.setenv("AJUSTE_HOME", str(home))
        patch.delenv("AJUSTE_STORE", raising=False)

    @property
    def store(self) -> Path:
        return self.home / "data" / "store.sqlite"

    def put(self, file: Path, content: bytes | None = None) -> None:
        shutil.rmtree(self.store.parent, ignore_errors=True)
        self.store.parent.mkdir(parents=True)
        self.store.write_bytes(file.read_bytes() if content is None else content)

    def run(self, *words: str) -> tuple[int, str, str]:
        output, complained = io.StringIO(), io.StringIO()
        typed = mock.patch.object(sys, "argv", ["ajuste", *words])
        with typed, redirect_stdout(output), redirect_stderr(complained):
            code = exit_code(lambda: application(words)(list(words), standalone_mode=False))
        return code, output.getvalue(), complained.getvalue()

    def json(self, *words: str) -> Any:
        code, output, complained = self.run(*words, "--json")
        assert code == 0, complained
        return json.loads(output)


def flipped(content: bytes, place: int, bit: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]
