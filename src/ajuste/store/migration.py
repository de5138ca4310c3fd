"""Bringing stores of older layouts to this one, step by step, in one transaction.

Layout 2 has checksums and tallies, and counts runs instead of trusting a clock. Layout 3 has runs that share trials,
and what is listed of a run. Layout 4 has suites.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from ajuste.analysis.record import digest_in_order
from ajuste.store.checks import DamageError, check_of, serialised
from ajuste.store.columns import each_measured
from ajuste.store.database import Transaction
from ajuste.store.rows import DOCUMENTS, keep_trials, place_words
from ajuste.store.schema import (
    TABLES,
    DigestRow,
    MachineRow,
    RecordedRow,
    ResultsRow,
    RunRow,
    SuiteRow,
    column,
    create,
    create_indexes,
    found_rows,
    put,
)
from ajuste.store.tallies import (
    MACHINES,
    RECORDED,
    RUNS,
    STORE,
    TRIALS,
    TrialTally,
    expect_tally,
    keep_tally,
    new_layout,
    sealed,
    size_of_trials,
    tally,
)
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
_PLACE: Final = ("block", "position", "attempt")
_TEXTS: Final = ("configuration", "seed", "status", "reason", "events", "console", "started", "host_seconds")


def migrate(transaction: Transaction, version: int) -> None:
    """Bring a store of an older layout to this one. Raises DamageError for one whose rows cannot be what was kept."""
    _STEPS[version](transaction)
    new_layout(transaction)


def _from_layout_3(transaction: Transaction) -> None:
    create(transaction, SuiteRow)


def _from_layout_2(transaction: Transaction) -> None:
    """Trials stay as they are; runs have more columns. What they answered is kept when they are shown next."""
    for name in RunRow.added:
        transaction.run(f"ALTER TABLE runs ADD COLUMN {column(transaction.database, RunRow, name)}")
    create(transaction, ResultsRow)
    create(transaction, SuiteRow)
    create_indexes(transaction, RunRow)
    checks = []
    for row in found_rows(transaction, RunRow, "1 = 1"):
        _verify_layout_2(row)
        before = row.check
        row.kernel, row.workload = listed(row.resolved)
        row.size_bytes = size_of_trials(transaction, row.id) if row.stopped else 0
        put(transaction, sealed(row))
        checks.append((before, row.check))
    expect_tally(transaction, STORE, RUNS, TrialTally().plus(old for old, _ in checks))
    keep_tally(transaction, STORE, RUNS, TrialTally().plus(new for _, new in checks))


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


def _from_layout_1(transaction: Transaction) -> None:
    """All rows are copied into tables with checksums. That what was there before is sound is known only of runs whose
    digest was kept.
    """
    there = {name for (name,) in transaction.rows(transaction.database.tables)}
    old = [name for name in _TABLES if name in there]
    for name in old:
        for (index,) in transaction.rows(transaction.database.indexes, name):
            transaction.run(f'DROP INDEX IF EXISTS "{index}"')
        transaction.run(f'ALTER TABLE "{name}" RENAME TO "{_OLD}{name}"')
    for table in TABLES:
        if table.table not in there - set(old):
            create(transaction, table)
    runs = _copied_runs(transaction, "taken_up" in old)
    _copy_trials(transaction, runs)
    if "machines" in old:
        for run_id, rows in _by_run(transaction, "machines", "run_id", "block", "machine"):
            made = [sealed(MachineRow(run_id=run_id, block=block, machine=machine)) for _, block, machine in rows]
            _keep_small(transaction, run_id, MACHINES, made)
    if "recorded" in old:
        for run_id, rows in _by_run(transaction, "recorded", "run_id", "configuration", "document"):
            kept = [sealed(RecordedRow(run_id=run_id, configuration=name, document=one)) for _, name, one in rows]
            _keep_small(transaction, run_id, RECORDED, kept)
    if "digests" in old:
        _copy_digests(transaction)
    for name in old:
        transaction.run(f'DROP TABLE "{_OLD}{name}"')


def _keep_small(transaction: Transaction, run_id: str, kind: str, rows: Sequence[MachineRow | RecordedRow]) -> None:
    for row in rows:
        put(transaction, row)
    keep_tally(transaction, run_id, kind, TrialTally().plus(row.check for row in rows))


def _copied_runs(transaction: Transaction, taken_up: bool) -> list[str]:
    """Their order is that of the clock, the only one that there was."""
    at = "COALESCE(t.at, r.created)" if taken_up else "r.created"
    join = f'LEFT JOIN "{_OLD}taken_up" t ON t.run_id = r.id' if taken_up else ""
    values = ", ".join(f"r.{name}" for name in _RUN)
    found = transaction.rows(
        f'SELECT {at}, CAST(r.environment AS TEXT), {values} FROM "{_OLD}runs" r {join} ORDER BY r.created, r.id'
    )
    shown = {row[2]: place for place, row in enumerate(sorted(found, key=lambda row: (row[0], row[2])), len(found) + 1)}
    checks = []
    for begun, (_, environment, *rest) in enumerate(found, 1):
        fields = dict(zip(_RUN, rest, strict=True))
        try:
            fields["environment"] = json.loads(environment)
        except ValueError as error:
            raise DamageError(f"the environment of run {fields['id']} is not JSON: {error}", fields["id"]) from error
        fields["kernel"], fields["workload"] = listed(fields["resolved"])
        row = sealed(RunRow(**fields, begun=begun, taken_up=shown[fields["id"]], unverified_before=True))
        put(transaction, row)
        checks.append(row.check)
        keep_tally(transaction, row.id, TRIALS, TrialTally())
    keep_tally(transaction, STORE, RUNS, TrialTally().plus(checks))
    return [row[2] for row in found]


def _copy_trials(transaction: Transaction, runs: list[str]) -> None:
    documents = ", ".join(f"CAST({name} AS TEXT)" for name in DOCUMENTS)
    query = (
        f"SELECT number, run_id, {', '.join(_PLACE)}, {', '.join(_TEXTS)}, warm_up, {documents}"
        f' FROM "{_OLD}trials" WHERE number > ? ORDER BY number LIMIT {_AT_ONCE}'
    )
    last = -1
    while rows := transaction.rows(query, last):
        last = rows[-1][0]
        for run_id, own in groupby(rows, key=lambda row: row[1]):
            if run_id not in runs:
                raise DamageError(f"run {run_id!r} is missing; it has trials", run_id)
            keep_trials(transaction, run_id, [_trial(run_id, row[2:]) for row in own])


def _trial(run_id: str, values: Any) -> dict[str, Any]:
    try:
        *plain, warm_up, metrics, not_supported, written = values
        return {
            "run_id": run_id,
            **dict(zip((*_PLACE, *_TEXTS), plain, strict=True)),
            "warm_up": bool(warm_up),
            "metrics": serialised(json.loads(metrics)),
            "not_supported": serialised(json.loads(not_supported)),
            "written": serialised(json.loads(written)),
        }
    except (TypeError, ValueError) as error:
        raise DamageError(f"cannot read {place_words(run_id, *values[:3])}: {error}", run_id) from error


def _copy_digests(transaction: Transaction) -> None:
    """Those that still are of the trials. Raises DamageError for one that is not: the trials have changed since."""
    for run_id, rows in _by_run(transaction, "digests", "run_id", "trials", "digest"):
        (_, trials, kept), counted = rows[0], tally(transaction, run_id, TRIALS)
        if trials != counted.rows:
            continue
        if digest_in_order(measured for _, measured in each_measured(transaction, run_id)) != kept:
            raise DamageError(f"the trials of run {run_id} do not match its digest", run_id)
        put(transaction, sealed(DigestRow(run_id=run_id, trials=trials, total=counted.total, digest=kept)))


def _by_run(transaction: Transaction, table: str, *columns: str) -> Iterator[tuple[str, list[Any]]]:
    rows = transaction.rows(f'SELECT {", ".join(columns)} FROM "{_OLD}{table}" ORDER BY run_id')
    for run_id, own in groupby(rows, key=lambda row: row[0]):
        yield run_id, list(own)


_STEPS: Final[dict[int, Callable[[Transaction], None]]] = {
    1: _from_layout_1,
    2: _from_layout_2,
    3: _from_layout_3,
}
