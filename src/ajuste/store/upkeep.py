"""Looking after a store: a copy of it, how large it is, what runs can go, and forgetting them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

import sqlalchemy as sa

from ajuste.machine.files import remove_file
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.store import runs as rows
from ajuste.store.checks import DamageError
from ajuste.store.engine import FAILURES, open_database, unusable
from ajuste.store.head import Head, RunNotes
from ajuste.store.location import (
    exclusive,
    lock_name,
    new_store,
    redact_password,
    require_there,
    store_file,
)
from ajuste.store.salvage import Findings, inspect_store
from ajuste.store.schema import DOCUMENTS, RECORDED, RESULTS, STUDY, TRIALS
from ajuste.store.store import Store

# What kinds of documents are called.
_KINDS: Final = MappingProxyType({RECORDED: "recordings", RESULTS: "results", STUDY: "study and machine"})


def back_up(url: str, file: Path) -> Findings:
    """Copy the store at ``url``, as it is at one moment, to the new ``file``, and verify all that is in the copy.

    Raises RequestError if ``file`` is there already and for a server, RunError where the copy cannot be written or is
    not sound: then there is none.
    """
    original = store_file(url)
    if original is None:
        place = redact_password(url)
        raise RequestError(
            f"the store {place} is on a server; expected a file",
            hint=f"run pg_dump --format=custom --file={file} --dbname={place}",
        )
    require_there(original)
    try:
        with new_store(file) as made:
            with closing(sqlite3.connect(original)) as source, closing(sqlite3.connect(made)) as copy:
                source.backup(copy)
            findings = inspect_store(f"sqlite:///{made}")
            if findings.damaged:
                raise unusable(url, DamageError(findings.damaged[0]), "copied")
            with closing(sqlite3.connect(made)) as copy:
                copy.execute("PRAGMA journal_mode=DELETE")  # One file.
    except (sqlite3.Error, OSError) as error:
        raise RunError(f"cannot copy the store to {file}: {error}", hint="check disk space and permissions") from error
    return findings


def forget(runs: Sequence[Head], store: Store, home: Home) -> None:
    """Delete ``runs`` with their notes and reports. Raises RequestError for one that another process measures."""
    with ExitStack() as stack:
        for run in runs:
            stack.enter_context(_held(run, store, home))
        store.delete(runs)
    notes = RunNotes(home)
    for run in runs:
        notes.forget(run.id)
        remove_file(home.reports / f"{run.id}.html")


def is_measured(run: Head, store: Store, home: Home) -> bool:
    """Return whether another process measures it now."""
    try:
        with _held(run, store, home):
            return False
    except RequestError:
        return True


@contextmanager
def _held(run: Head, store: Store, home: Home) -> Iterator[None]:
    # Keep others from measuring a run that can go on. Raises RequestError where one does.
    if run.stopped:
        yield
        return
    what = f"the study {run.study}"
    with (
        exclusive(home.state / lock_name(run.fingerprint, run.seed), what),
        store.reserved(run.fingerprint, run.seed, what),
    ):
        yield


@dataclass(frozen=True)
class Sizes:
    """Bytes of a store: by run (its id, the newest first) and kind, and of its ``file`` in all (0 on a server)."""

    runs: dict[str, dict[str, int]]
    file: int


def sizes(url: str) -> Sizes:
    """Return the sizes of what the store holds."""
    c = DOCUMENTS.c
    documents = sa.select(c.run_id, c.kind, sa.func.sum(sa.func.length(c.document))).group_by(c.run_id, c.kind)
    lengths = (sa.func.sum(sa.func.length(column)) for column in (TRIALS.c.outputs, TRIALS.c.figures))
    trials = sa.select(TRIALS.c.run_id, *lengths).group_by(TRIALS.c.run_id)
    with closing(open_database(url)) as database, database.reading() as connection:
        by_run: dict[str, dict[str, int]] = {head.id: {} for head in rows.heads(connection)}
        for run_id, outputs, figures in connection.execute(trials):
            by_run.setdefault(run_id, {}).update(outputs=int(outputs), figures=int(figures))
        for run_id, kind, size in connection.execute(documents):
            if kind in _KINDS:
                by_run.setdefault(run_id, {})[_KINDS[kind]] = int(size)
    parts = (Path(f"{database.file}{end}") for end in ("", "-wal"))
    return Sizes(by_run, sum(part.stat().st_size for part in parts if part.is_file()) if database.file else 0)


@dataclass(frozen=True)
class Unwanted:
    """The criteria of runs to be removed: those that meet all of them."""

    failed: bool = False
    before: datetime | None = None
    untagged: bool = False

    def among(self, runs: Sequence[Head]) -> Iterator[Head]:
        for run in runs:
            old = self.before is None or datetime.fromisoformat(run.created) < self.before
            if old and (run.stopped == "failed" or not self.failed) and not (run.tags and self.untagged):
                yield run


def shrink(url: str) -> None:
    """Give the room of what was removed back to the disk. What cannot be now is used again by later runs."""
    if store_file(url) is None:
        return
    with (
        closing(open_database(url)) as database,
        suppress(*FAILURES),
        closing(database.engine.raw_connection()) as connection,
    ):
        for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
            connection.cursor().execute(statement)
