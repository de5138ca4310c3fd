"""A new store of all that is intact in a damaged one."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pydantic_core import from_json
from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.store.checks import DamageError
from ajuste.store.engine import WRITING, connect, open_engine, shown
from ajuste.store.remains import Remains
from ajuste.store.rows import KINDS, RUNS, STORE, TRIALS, TrialTally, columns_of, keep_tally, keep_trials, sealed, tally
from ajuste.store.schema import SQLITE, STORE_VERSION, MachineRow, RecordedRow, RunRow, TallyRow

_AT_ONCE: Final = 1_000
_COUNTED: Final[tuple[type[MachineRow] | type[RecordedRow], ...]] = (MachineRow, RecordedRow)
_SIDE_FILES: Final = ("-wal", "-journal")


@dataclass
class Salvaged:
    """How much is in the new store, and in words what is ``lost``."""

    runs: int = 0
    trials: int = 0
    lost: list[str] = field(default_factory=list)


def salvage(url: str, file: Path) -> Salvaged:
    """Make a store of all that is intact in the one at ``url``, which is only read. Runs that have lost trials can go
    on. Raises RequestError if ``file`` is there already, or there is nothing at ``url``; RunError where nothing can be
    read.
    """
    if file.exists():
        raise RequestError(f"{file} exists; expected a new file", hint="choose another name, or remove the file")
    done = Salvaged()
    target = open_engine(f"sqlite:///{file}")
    try:
        writing = target.execution_options(**{WRITING: True})
        with _readable(url, done) as source, Session(writing) as session, session.begin():
            _copy(Remains(source, done.lost), session, done)
    except BaseException:
        target.dispose()
        for name in (file, *(Path(f"{file}{end}") for end in (*_SIDE_FILES, "-shm"))):
            name.unlink(missing_ok=True)
        raise
    target.dispose()
    done.lost = list(dict.fromkeys(done.lost))
    return done


def _copy(remains: Remains, session: Session, done: Salvaged) -> None:
    kept: dict[tuple[str, str], TrialTally] = {}
    with suppress(DatabaseError):
        kept = {(one.run_id, one.kind): TrialTally(one.rows, one.total) for one in remains.small(TallyRow)}
    runs: dict[str, RunRow] = {}
    for run in remains.small(RunRow):
        runs[run.id] = RunRow(**columns_of(run))
        keep_tally(session, run.id, TRIALS, TrialTally())
    for run in runs.values():
        session.add(run)
    session.flush()
    strays: defaultdict[str, int] = defaultdict(int)
    batch: list[dict[str, Any]] = []
    seen: set[tuple[Any, ...]] = set()  # Pages that refer to the wrong ones may show a row twice.
    for run_id, row in remains.trials():
        if (place := (run_id, *row[:3])) in seen:
            continue
        seen.add(place)
        if run_id not in runs:
            strays[run_id] += 1
            continue
        if batch and (batch[0]["run_id"] != run_id or len(batch) >= _AT_ONCE):
            keep_trials(session, batch[0]["run_id"], batch)
            batch = []
        batch.append(_trial(run_id, row))
        done.trials += 1
    if batch:
        keep_trials(session, batch[0]["run_id"], batch)
    done.lost += [f"{count} trials of run {run_id}, which itself is lost" for run_id, count in strays.items()]
    for table in _COUNTED:
        tallies: defaultdict[str, TrialTally] = defaultdict(TrialTally)
        for one in remains.small(table):
            if one.run_id in runs:
                session.add(table(**columns_of(one)))
                tallies[one.run_id] = tallies[one.run_id].plus([one.check])
        for run_id, counted in tallies.items():
            keep_tally(session, run_id, KINDS[table], counted)
    done.runs = len(runs)
    for run in runs.values():
        there, before = tally(session, run.id, TRIALS), kept.get((run.id, TRIALS))
        if there != before:
            missing = f"{before.rows - there.rows} of {before.rows}" if before else "an unknown number of"
            done.lost.append(f"run {run.id}: {missing} trials; it can go on")
            run.stopped = run.stopped_because = ""
            sealed(run)
    if (before := kept.get((STORE, RUNS))) is not None and before.rows != len(runs):
        done.lost.append(f"{before.rows - len(runs)} of {before.rows} runs")
    keep_tally(session, STORE, RUNS, TrialTally().plus(run.check for run in runs.values()))


def _trial(run_id: str, row: Sequence[Any]) -> dict[str, Any]:
    names = ("block", "position", "attempt", "warm_up", "seed", "status", "metrics", "not_supported", "written")
    found = dict(zip((*names, "configuration", "reason"), row, strict=False))
    found |= dict(zip(("started", "host_seconds", "events", "console"), row[12:], strict=False))
    documents = {name: from_json(found[name]) for name in ("metrics", "not_supported", "written")}
    return {**found, **documents, "run_id": run_id, "warm_up": bool(found["warm_up"])}


@contextmanager
def _readable(url: str, done: Salvaged) -> Iterator[Connection]:
    """The store, or of a file a copy, so that not even SQLite's own recovery changes the original."""
    parsed = make_url(url)
    if parsed.get_backend_name() != SQLITE:
        engine = connect(url)
        with engine.connect() as connection:
            yield connection
        engine.dispose()
        return
    original = Path(parsed.database or "")
    if not original.is_file():
        raise RequestError(f"store {original} not found", hint="set AJUSTE_STORE or AJUSTE_HOME to its place")
    with TemporaryDirectory(prefix="ajuste-salvage-") as directory:
        copy = Path(directory) / "store.sqlite"
        for end in ("", *_SIDE_FILES):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{original}{end}", f"{copy}{end}")
        engine = _opened(copy, done)
        try:
            with engine.connect() as connection:
                yield connection
        finally:
            engine.dispose()


def _opened(copy: Path, done: Salvaged) -> Engine:
    """An engine for the copy, brought to this layout, without the runs that stand in the way of that."""
    url = f"sqlite:///{copy}"
    engine = connect(url)
    try:
        with engine.connect() as connection:
            layout = connection.execute(text("SELECT version FROM store_version")).scalar() or 1
    except DatabaseError:
        layout = STORE_VERSION  # Its tables say what can be read.
    while 1 <= layout < STORE_VERSION:
        engine.dispose()
        try:
            return open_engine(url)
        except AjusteError as error:
            damage = error.__cause__
            if not isinstance(damage, DamageError) or not damage.run_id:
                raise RunError(f"{shown(url)}: cannot salvage a damaged store of layout {layout}") from error
            done.lost.append(f"run {damage.run_id}: {damage}")
            engine = connect(url)
            _remove(engine, damage.run_id)
    return engine


def _remove(engine: Engine, run_id: str) -> None:
    with engine.execution_options(**{WRITING: True}).begin() as connection:
        there = set(inspect(connection).get_table_names())
        for table in ("columns", "digests", "machines", "recorded", "taken_up", "trials"):
            if table in there:
                connection.execute(text(f'DELETE FROM "{table}" WHERE run_id = :run'), {"run": run_id})
        connection.execute(text("DELETE FROM runs WHERE id = :run"), {"run": run_id})
