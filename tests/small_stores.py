"""Small stores with all that a store can have, and commands that read one, each in this process."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.cli.edge import exit_code
from ajuste.cli.main import application
from ajuste.kernel.spec import parse_spec
from ajuste.model.kernel import KernelVersion
from ajuste.store.record import KeptRecord
from ajuste.store.store import Run, Store
from ajuste.study.read import read_study
from ajuste.study.resolve import resolve

LAYOUT_1 = Path(__file__).parent / "store" / "layout-1.sql"
"""A store as Ajuste kept it before there were checksums: a run that was decided, and one that can go on."""
LAYOUT_2 = LAYOUT_1.with_name("layout-2.sql")
"""The same runs as Ajuste kept them before runs could share trials, with a trial more."""
DECIDED, GOING_ON = "20261122-163035-00b9d1", "20261122-163035-227787"
DIGEST = "50a1a45395f5b39d691de2538d799a7fa1f0c90e4377f9b8543a6f0af44c095a"
"""Of both runs, by the Ajuste that kept them."""


def layout_1(file: Path, dump: Path = LAYOUT_1) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(dump.read_text())
    return file


def small_store(file: Path) -> Path:
    """The same two runs in today's layout, with packed columns, a kept digest and machines; one file."""
    with Store(f"sqlite:///{layout_1(file)}") as store:
        run = store.find_run(DECIDED)
        store.keep_measurements(run, store.measurements(run))
        assert KeptRecord(run, store).digest == DIGEST
        store.add_trials(store.find_run(GOING_ON), [spare_trial()], machine="lab1")
    return file


def run_of(text: str, store: Store, directory: Path) -> Run:
    """A run of the study ``small``, whose file is ``text``, without any trial."""
    (directory / "small.toml").write_text(text)
    study = read_study(directory / "small.toml", catalogue(), parse_kernel=parse_spec)
    kernels = dict.fromkeys(("debian:5.10", ""), KernelVersion(major=5, minor=10))
    resolved = resolve(study, catalogue(), kernels, lambda name: f"/bin/{name}").model_dump_json()
    return store.new_run(
        study="small", fingerprint="f", seed=1, ajuste="0", named="small", resolved=resolved, environment={}
    )


def spare_trial() -> Any:
    from ajuste.model.trial import Slot, Trial

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
        said, complained = io.StringIO(), io.StringIO()
        with redirect_stdout(said), redirect_stderr(complained):
            code = exit_code(lambda: application(words)(list(words), standalone_mode=False))
        return code, said.getvalue(), complained.getvalue()

    def json(self, *words: str) -> Any:
        code, said, complained = self.run(*words, "--json")
        assert code == 0, complained
        return json.loads(said)


def flipped(content: bytes, place: int, bit: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]
