"""The tables of a store, and what its rows are called. Every trial is kept for ever; all else is computed from them.

Each row ends with its checksum, of all values before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Final, get_type_hints

import sqlalchemy as sa

from ajuste.store.checks import UNREADABLE, DamageError, row_checksum
from ajuste.store.head import Head

LAYOUT: Final = 1
METADATA: Final = sa.MetaData()
_TYPES: Final[Mapping[type, type[sa.types.TypeEngine[Any]]]] = MappingProxyType(
    {str: sa.String, int: sa.BigInteger, bool: sa.Boolean}
)


def _table(name: str, /, *parts: sa.schema.SchemaItem, key: tuple[str, ...], **columns: Any) -> sa.Table:
    made = (sa.Column(column, kind, nullable=False) for column, kind in columns.items())
    return sa.Table(name, METADATA, *made, sa.PrimaryKeyConstraint(*key), *parts)


STORE: Final = _table("store", key=("layout",), layout=sa.Integer, runs=sa.Integer, check=sa.BigInteger)
"""The table of one row: which layout this is, and how many ``runs`` there are, so that none is missed."""

ALEMBIC: Final = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own table, of one row: which of its versions (``layouts``) this is."""

RUNS: Final = _table("runs", key=("id",), **{name: _TYPES[kind] for name, kind in get_type_hints(Head).items()})
"""The table by which runs are found and listed (see ``Head``): short rows, all read for each list."""

TRIALS: Final = _table(
    "trials",
    sa.UniqueConstraint("run_id", "block", "position", "attempt"),
    key=("number",),
    number=sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
    run_id=sa.String,
    block=sa.Integer,
    position=sa.Integer,
    attempt=sa.Integer,
    machine=sa.String,
    figures=sa.LargeBinary,
    outputs=sa.LargeBinary,
    check=sa.BigInteger,
)
"""A trial as canonical JSON: ``outputs`` are the agent's lines and the console, ``figures`` all else. ``machine`` is
the one of several that measured it.
"""
# The same words for both databases. As options of a `sa.Index` they would load the dialects of both.
_INDEX: Final = "CREATE INDEX trials_of_machines ON trials (run_id, block, machine) WHERE machine <> ''"
sa.event.listen(TRIALS, "after_create", sa.DDL(_INDEX))  # type: ignore[no-untyped-call]

DOCUMENTS: Final = _table(
    "documents",
    key=("run_id", "kind", "name"),
    run_id=sa.String,
    kind=sa.String,
    name=sa.String,
    document=sa.LargeBinary,
    check=sa.BigInteger,
)
"""The table of what is stored of runs beside their trials, by kind:

- ``study``: what was asked, where it was measured and why it ended, as JSON
- ``recorded``: a trial of the configuration ``name`` that was carried out to be recorded (``model.explanation``)
- ``digest``, ``results``: what is computed of a run that ended; ``name`` says of which trials and recordings
- ``suite``: the record of a suite, which stands in the place of a run (``model.suite``)
"""

STUDY, RECORDED, DIGEST, RESULTS, SUITE = "study", "recorded", "digest", "results", "suite"
_CALLED: Final = MappingProxyType(
    {
        STUDY: "the record of run",
        RECORDED: "a recording of run",
        DIGEST: "the kept digest of run",
        RESULTS: "the kept report of run",
        SUITE: "the record of suite",
    }
)
OF_TRIAL: Final = [column for column in TRIALS.c if column.name != "number"]
"""The columns of a trial but the number that the database counts."""


def sealed(*values: Any) -> tuple[Any, ...]:
    """Return the values of a row with their checksum."""
    return (*values, row_checksum(values))


def keep(connection: sa.Connection, table: sa.Table, rows: Sequence[Sequence[Any]], instead: str = "") -> None:
    """Insert rows, each with its checksum; ``instead`` is what SQLite does where one is there already."""
    names = [column.name for column in (OF_TRIAL if table is TRIALS else table.c)]
    insert = table.insert().prefix_with(instead) if instead else table.insert()
    connection.execute(insert, [dict(zip(names, row, strict=True)) for row in rows])


def replace(connection: sa.Connection, table: sa.Table, row: Sequence[Any]) -> None:
    """Put a row with its checksum in the place of that with the same key, which others may wait for."""
    values = dict(zip(table.c.keys(), row, strict=True))
    same = {f"same_{column.name}": values[column.name] for column in table.primary_key}
    connection.execute(_replacing(table), values | same)


@cache
def _replacing(table: sa.Table) -> sa.Update:
    return table.update().where(*(column == sa.bindparam(f"same_{column.name}") for column in table.primary_key))


def verified(table: sa.Table, row: Any) -> Any:
    """Return ``row``. Raises DamageError for one that does not have its checksum, and for None: one that is missing."""
    if row is None:
        raise DamageError("a run that was counted is missing")
    try:
        if row_checksum(row[:-1]) == row[-1]:
            return row
    except UNREADABLE:
        pass
    raise DamageError(f"{called(table, row)} is damaged: its checksum differs")


def called(table: sa.Table, row: Sequence[Any]) -> str:
    """Return what people call a row."""
    if table is TRIALS:
        run_id, block, position, attempt, *_ = row
        return f"run {run_id}, block {block}, trial {position} (attempt {attempt})"
    if table is DOCUMENTS:
        return f"{_CALLED.get(row[1], 'a document of')} {row[0]}"
    return "the count of runs" if table is STORE else f"the entry of run {row[0]}"
