"""Bringing stores of older layouts to this one, step by step, in one transaction.

Layout 2 has checksums and tallies, and counts runs instead of trusting a clock. Layout 3 has runs that share trials,
and what is listed of a run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, Final

from sqlalchemy import inspect, select, text
from sqlalchemy.orm import Session
from sqlalchemy.schema import CreateTable

from ajuste.analysis.record import digest_in_order
from ajuste.store.checks import DamageError, check_of
from ajuste.store.columns import each_measured
from ajuste.store.rows import (
    MACHINES,
    RECORDED,
    RUNS,
    STORE,
    TRIALS,
    TrialTally,
    as_written,
    expect_tally,
    keep_tally,
    keep_trials,
    new_layout,
    place_words,
    sealed,
    size_of_trials,
    tally,
)
from ajuste.store.schema import Base, DigestRow, MachineRow, RecordedRow, ResultsRow, RunRow
from ajuste.study.resolved import ResolvedStudy

_AT_ONCE: Final = 1_000
_OLD: Final = "layout_1_"
_TABLES: Final = ("columns", "digests", "machines", "recorded", "taken_up", "trials", "runs")
"""Of layout 1, those that refer to others first."""
_RUN: Final = (
    *("id", "study", "fingerprint", "seed", "created", "ajuste"),
    *("named", "resolved", "stopped", "stopped_because"),
)
_HEAD_2: Final = ("id", "study", "fingerprint", "seed", "created", "ajuste", "begun", "taken_up", "unverified_before")
_BODY_2: Final = ("named", "resolved", "environment", "stopped", "stopped_because")
"""What the checksums of a run in layout 2 are of."""
_NEW: Final = ("base", "deleted", "kernel", "workload", "answer", "tags", "size_bytes")
_PLACE: Final = ("block", "position", "attempt")
_TEXTS: Final = ("configuration", "seed", "status", "reason", "events", "console", "started", "host_seconds")
_DOCUMENTS: Final = ("metrics", "not_supported", "written")


def migrate(session: Session, version: int) -> None:
    """Bring a store of an older layout to this one. Raises DamageError for one whose rows cannot be what was kept."""
    _STEPS[version](session)
    new_layout(session)


def _from_layout_2(session: Session) -> None:
    """Trials stay as they are; runs have more columns. What they answered is kept when they are shown next."""
    connection = session.connection()
    table = Base.metadata.tables[RunRow.__tablename__]
    compiler: Any = connection.dialect.ddl_compiler(connection.dialect, CreateTable(table))
    for name in _NEW:
        column = compiler.get_column_specification(table.columns[name])
        session.execute(text(f"ALTER TABLE runs ADD COLUMN {column}"))
    Base.metadata.tables[ResultsRow.__tablename__].create(connection)
    for index in table.indexes:
        index.create(connection, checkfirst=True)
    checks = []
    for run_id in list(session.scalars(select(RunRow.id))):
        row = session.get_one(RunRow, run_id)
        _verify_layout_2(row)
        row.kernel, row.workload = listed(row.resolved)
        row.size_bytes = size_of_trials(session, run_id) if row.stopped else 0
        checks.append((row.check, sealed(row).check))
        session.flush()
        session.expunge(row)
    before = TrialTally().plus(old for old, _ in checks)
    expect_tally(session, STORE, RUNS, before)
    keep_tally(session, STORE, RUNS, TrialTally().plus(new for _, new in checks))


def _verify_layout_2(row: RunRow) -> None:
    head = check_of(*(getattr(row, name) for name in _HEAD_2))
    if (head, check_of(row.id, *(getattr(row, name) for name in _BODY_2))) != (row.check, row.body_check):
        raise DamageError(f"the entry of run {row.id} is damaged: its checksum differs", row.id)


def listed(resolved: str) -> tuple[str, str]:
    """The kernels and the workload of a run, as lists show them."""
    try:
        found = ResolvedStudy.model_validate_json(resolved)
    except ValueError:  # Of an Ajuste that wrote it otherwise.
        return "", ""
    return found.kernels_named, found.workload_named


def _from_layout_1(session: Session) -> None:
    """All rows are copied into tables with checksums. That what was there before is sound is known only of runs whose
    digest was kept.
    """
    connection = session.connection()
    there = set(inspect(connection).get_table_names())
    old = [name for name in _TABLES if name in there]
    for name in old:
        for index in inspect(connection).get_indexes(name):
            if not index.get("duplicates_constraint"):
                session.execute(text(f'DROP INDEX IF EXISTS "{index["name"]}"'))
        session.execute(text(f'ALTER TABLE "{name}" RENAME TO "{_OLD}{name}"'))
    Base.metadata.create_all(connection)
    runs = _copied_runs(session, "taken_up" in old)
    _copy_trials(session, runs)
    if "machines" in old:
        for run_id, rows in _by_run(session, "machines", "run_id", "block", "machine"):
            made = [sealed(MachineRow(run_id=run_id, block=block, machine=machine)) for _, block, machine in rows]
            session.add_all(made)
            keep_tally(session, run_id, MACHINES, TrialTally().plus(row.check for row in made))
    if "recorded" in old:
        for run_id, rows in _by_run(session, "recorded", "run_id", "configuration", "document"):
            kept = [sealed(RecordedRow(run_id=run_id, configuration=name, document=one)) for _, name, one in rows]
            session.add_all(kept)
            keep_tally(session, run_id, RECORDED, TrialTally().plus(row.check for row in kept))
    session.flush()
    if "digests" in old:
        _copy_digests(session)
    for name in old:
        session.execute(text(f'DROP TABLE "{_OLD}{name}"'))


def _copied_runs(session: Session, taken_up: bool) -> list[str]:
    """Their order is that of the clock, the only one that there was."""
    at = "COALESCE(t.at, r.created)" if taken_up else "r.created"
    join = f'LEFT JOIN "{_OLD}taken_up" t ON t.run_id = r.id' if taken_up else ""
    values = ", ".join(f"r.{name}" for name in _RUN)
    found = session.execute(
        text(f'SELECT {at}, CAST(r.environment AS TEXT), {values} FROM "{_OLD}runs" r {join} ORDER BY r.created, r.id')
    ).all()
    shown = {row[2]: place for place, row in enumerate(sorted(found, key=lambda row: (row[0], row[2])), len(found) + 1)}
    for begun, (_, environment, *rest) in enumerate(found, 1):
        fields = dict(zip(_RUN, as_written(rest), strict=True))
        try:
            fields["environment"] = json.loads(environment)
        except ValueError as error:
            raise DamageError(f"the environment of run {fields['id']} is not JSON: {error}", fields["id"]) from error
        fields["kernel"], fields["workload"] = listed(fields["resolved"])
        order = {"begun": begun, "taken_up": shown[fields["id"]], "unverified_before": True}
        fields |= {"base": "", "deleted": False, "answer": "", "tags": "", "size_bytes": 0}
        session.add(sealed(RunRow(**fields, **order)))
        keep_tally(session, fields["id"], TRIALS, TrialTally())
    session.flush()
    checks = [row.check for row in session.query(RunRow)]
    keep_tally(session, STORE, RUNS, TrialTally().plus(checks))
    return [row[2] for row in found]


def _copy_trials(session: Session, runs: list[str]) -> None:
    documents = ", ".join(f"CAST({name} AS TEXT)" for name in _DOCUMENTS)
    query = text(
        f"SELECT number, run_id, {', '.join(_PLACE)}, {', '.join(_TEXTS)}, warm_up, {documents}"
        f' FROM "{_OLD}trials" WHERE number > :last ORDER BY number LIMIT {_AT_ONCE}'
    )
    last = -1
    while rows := session.execute(query, {"last": last}).all():
        last = rows[-1][0]
        for run_id, own in groupby(rows, key=lambda row: row[1]):
            if run_id not in runs:
                raise DamageError(f"run {run_id!r} is missing; it has trials", run_id)
            keep_trials(session, run_id, [_trial(run_id, as_written(row[2:])) for row in own])


def _trial(run_id: str, values: Any) -> dict[str, Any]:
    try:
        *plain, warm_up, metrics, not_supported, written = values
        return {
            "run_id": run_id,
            **dict(zip((*_PLACE, *_TEXTS), plain, strict=True)),
            "warm_up": bool(warm_up),
            "metrics": json.loads(metrics),
            "not_supported": json.loads(not_supported),
            "written": json.loads(written),
        }
    except (TypeError, ValueError) as error:
        raise DamageError(f"cannot read {place_words(run_id, *values[:3])}: {error}", run_id) from error


def _copy_digests(session: Session) -> None:
    """Those that still are of the trials. Raises DamageError for one that is not: the trials have changed since."""
    for run_id, rows in _by_run(session, "digests", "run_id", "trials", "digest"):
        (_, trials, kept), counted = rows[0], tally(session, run_id, TRIALS)
        if trials != counted.rows:
            continue
        if digest_in_order(measured for _, measured in each_measured(session, run_id)) != kept:
            raise DamageError(f"the trials of run {run_id} do not match its digest", run_id)
        session.add(sealed(DigestRow(run_id=run_id, trials=trials, total=counted.total, digest=kept)))


def _by_run(session: Session, table: str, *columns: str) -> Iterator[tuple[str, list[Any]]]:
    query = text(f'SELECT {", ".join(columns)} FROM "{_OLD}{table}" ORDER BY run_id')
    rows = [as_written(row) for row in session.execute(query)]
    for run_id, own in groupby(rows, key=lambda row: row[0]):
        yield run_id, list(own)


_STEPS: Final[dict[int, Callable[[Session], None]]] = {1: _from_layout_1, 2: _from_layout_2}
