"""Runs in a store, and the documents that are kept of them beside their trials."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import sqlalchemy as sa

from ajuste.model.error import RunError
from ajuste.store.checks import DamageError, canonical
from ajuste.store.head import Head
from ajuste.store.schema import (
    DOCUMENTS,
    RECORDED,
    RUNS,
    STORE,
    STUDY,
    TRIALS,
    keep,
    replace,
    sealed,
    verified,
)

Place: TypeAlias = tuple[int, int, int]
"""Block, position and attempt of a trial."""

OF_STUDY: Final = ("named", "resolved", "environment", "stopped_because")
# Values of a run that may change after its end: none of its trials or answers.
_ALWAYS: Final = frozenset({"taken_up", "answer", "tags", "deleted", "recorded"})
_HEAD: Final = RUNS.select().where(RUNS.c.id == sa.bindparam("run_id"))
_TO_CHANGE: Final = _HEAD.with_for_update()
_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


def heads(connection: sa.Connection) -> list[Head]:
    """Read what is listed of all runs, the one begun last first. Raises DamageError, also where one is missing."""
    listed = [Head(*verified(RUNS, row)) for row in connection.execute(RUNS.select())]
    counted = verified(STORE, connection.execute(STORE.select()).first()).runs
    if counted != len(listed):
        raise DamageError(f"the store has {len(listed)} of {counted} runs")
    return sorted(listed, key=lambda head: (head.begun, head.id), reverse=True)


def read_head(connection: sa.Connection, run_id: str, *, to_change: bool = False) -> Head:
    """Read one of them; ``to_change`` has others who want to change it wait. Raises DamageError where it is missing."""
    row = connection.execute(_TO_CHANGE if to_change else _HEAD, {"run_id": run_id}).first()
    if row is None:
        raise DamageError(f"run {run_id} is missing")
    return Head(*verified(RUNS, row))


def owners(connection: sa.Connection, run_id: str) -> list[Head]:
    """Read the runs whose trials a run has: those it is based on, the first one first, and itself."""
    chain = [read_head(connection, run_id)]
    while chain[0].base:
        if chain[0].base in {head.id for head in chain}:
            raise DamageError(f"run {chain[0].base} is based on itself")
        chain.insert(0, read_head(connection, chain[0].base))
    return chain


def trials_key(runs: Collection[Head]) -> str:
    """Return what tells all trials that runs have from all others."""
    return f"{sum(head.trials for head in runs)} {sum(head.total for head in runs)}"


def next_turn(connection: sa.Connection) -> int:
    """Return the number of the run that is begun or taken up now: they are counted, because clocks go back."""
    return (connection.scalar(sa.select(sa.func.max(RUNS.c.taken_up))) or 0) + 1


def change_run(connection: sa.Connection, run_id: str, *, add: Mapping[str, int] = _NOTHING, **values: Any) -> None:
    """Change values of a run, and ``add`` to what it counts. Raises RunError for the answers of a run that ended."""
    head = read_head(connection, run_id, to_change=True)
    if head.stopped and not (values.keys() | add.keys()) <= _ALWAYS:
        raise ended(run_id)
    head = head._replace(**values, **{name: getattr(head, name) + more for name, more in add.items()})
    replace(connection, RUNS, sealed(*head[:-1]))


def count_runs(connection: sa.Connection, more: int) -> None:
    """Count runs that are begun, or forgotten."""
    query = STORE.select().with_for_update()  # Of two that begin at once one is the first.
    row = verified(STORE, connection.execute(query).first())
    replace(connection, STORE, sealed(row.layout, row.runs + more))


def ended(run_id: str) -> RunError:
    """Return the error that a run has ended."""
    return RunError(f"run {run_id} has ended and cannot change", hint="run the command again to begin another run")


def document(connection: sa.Connection, run_id: str, kind: str, name: str = "") -> bytes | None:
    """Read a document, if it is there. Raises DamageError."""
    c = DOCUMENTS.c
    query = DOCUMENTS.select().where(c.run_id == run_id, c.kind == kind, c.name == name)
    row = connection.execute(query).first()
    return None if row is None else bytes(verified(DOCUMENTS, row).document)


def documents(connection: sa.Connection, kind: str, run_id: str | None = None) -> list[Any]:
    """Read the documents of a kind, of a run or of all. Raises DamageError."""
    query = DOCUMENTS.select().where(DOCUMENTS.c.kind == kind).order_by(DOCUMENTS.c.run_id, DOCUMENTS.c.name)
    if run_id is not None:
        query = query.where(DOCUMENTS.c.run_id == run_id)
    return [verified(DOCUMENTS, row) for row in connection.execute(query)]


def keep_document(connection: sa.Connection, run_id: str, kind: str, content: bytes, name: str = "") -> int:
    """Keep a document instead of the one before: a run has one of each kind, but recordings of many configurations.

    Returns its checksum.
    """
    row, c = sealed(run_id, kind, name, content), DOCUMENTS.c
    same = (c.name == name,) if kind == RECORDED else ()
    connection.execute(DOCUMENTS.delete().where(c.run_id == run_id, c.kind == kind, *same))
    keep(connection, DOCUMENTS, [row])
    return int(row[-1])


def keep_study(connection: sa.Connection, run_id: str, **values: Any) -> None:
    """Keep what a run was asked and measured on (``OF_STUDY``), or these ``values`` of it."""
    earlier = read_study(connection, run_id) if len(values) < len(OF_STUDY) else {}
    keep_document(connection, run_id, STUDY, canonical(earlier | values))


def read_study(connection: sa.Connection, run_id: str) -> dict[str, Any]:
    """Read it. Raises DamageError."""
    content = document(connection, run_id, STUDY)
    if content is None:
        raise DamageError(f"the record of run {run_id} is missing")
    study: dict[str, Any] = json.loads(content)
    return study


def read_recorded(connection: sa.Connection, run: Head) -> dict[str, bytes]:
    """Read what was recorded in a run itself, by configuration. Raises DamageError, also where one is missing."""
    rows = documents(connection, RECORDED, run.id)
    if sum(row.check for row in rows) != run.recorded:
        raise DamageError(f"the recordings of run {run.id} are damaged")
    return {row.name: row.document for row in rows}


def size_of_trials(connection: sa.Connection, run_id: str) -> int:
    """Return the bytes of the trials that a run has measured itself."""
    size = sa.func.sum(sa.func.length(TRIALS.c.figures) + sa.func.length(TRIALS.c.outputs))
    return int(connection.scalar(sa.select(size).where(TRIALS.c.run_id == run_id)) or 0)


def forget(connection: sa.Connection, run_id: str) -> None:
    """Remove a run and all that is kept of it."""
    for table in (DOCUMENTS, TRIALS):
        connection.execute(table.delete().where(table.c.run_id == run_id))
    connection.execute(RUNS.delete().where(RUNS.c.id == run_id))
    count_runs(connection, -1)


def forget_deleted(connection: sa.Connection) -> None:
    """Remove the runs that were deleted, as far as no other run has their trials."""
    while True:
        listed = heads(connection)
        bases = {head.base for head in listed}
        unused = [head.id for head in listed if head.deleted and head.id not in bases]
        for run_id in unused:
            forget(connection, run_id)
        if not unused:
            return
