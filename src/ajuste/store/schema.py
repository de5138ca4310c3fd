"""The tables, and their rows. Every trial is kept for ever; what is shown can be computed again from here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self, TypeAlias, TypeVar

from ajuste.store.checks import serialised
from ajuste.store.database import Database, Transaction
from ajuste.store.head import HEAD

Big: TypeAlias = int
"""An integer of 64 bits."""
Serial: TypeAlias = int
"""One that the database counts."""
Document: TypeAlias = dict[str, Any]
"""Kept as JSON."""


_TYPES: Final = MappingProxyType(
    {
        "str": "VARCHAR",
        "int": "INTEGER",
        "bool": "BOOLEAN",
        "Document": "JSON",
        "Big": "{big}",
        "Serial": "{serial}",
        "float": "{real}",
        "bytes": "{bytes}",
    }
)
_READ: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType({"bool": bool, "Document": json.loads})


@dataclass(kw_only=True, eq=False)
class StoredRow:
    """A row of a table: its fields are the columns. ``key``: those that tell rows apart."""

    table: ClassVar[str]
    key: ClassVar[tuple[str, ...]]
    rules: ClassVar[tuple[str, ...]] = ()
    added: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """What columns have in rows that are older than they."""
    indexed: ClassVar[tuple[str, ...]] = ()
    covering: ClassVar[tuple[str, tuple[str, ...]] | None] = None
    """An index with all that is read of many rows, without what is most of a row: SQLite reads it alone. PostgreSQL
    keeps long texts apart by itself, and its indexes have no room for them.
    """
    kinds: ClassVar[Mapping[str, str]]
    """The columns, by name which of the types above they have."""
    selected: ClassVar[str]
    """They, as a query asks for what ``of`` takes."""
    inserted: ClassVar[str]
    """The statement that adds a row with their values, but for a number that the database counts."""
    kept: ClassVar[str]
    """As ``inserted``, instead of a row with the same key."""

    def __init_subclass__(cls) -> None:
        cls.kinds = MappingProxyType(dict(cls.__annotations__))
        cls.selected = ", ".join(
            f"CAST({name} AS TEXT)" if kind == "Document" else spelt(name) for name, kind in cls.kinds.items()
        )
        names = [name for name, kind in cls.kinds.items() if kind != "Serial"]
        cls.inserted = f"INSERT INTO {cls.table} ({listing(names)}) VALUES ({', '.join('?' * len(names))})"
        changed = ", ".join(f"{spelt(name)} = excluded.{spelt(name)}" for name in names if name not in cls.key)
        cls.kept = f"{cls.inserted} ON CONFLICT ({listing(cls.key)}) DO UPDATE SET {changed}"

    @classmethod
    def of(cls, values: Sequence[Any]) -> Self:
        """The row with these values."""
        read = (
            _READ[kind](value) if kind in _READ else value
            for kind, value in zip(cls.kinds.values(), values, strict=True)
        )
        return cls(**dict(zip(cls.kinds, read, strict=True)))

    def values(self) -> list[Any]:
        """All values as they are kept."""
        return [
            serialised(value) if kind == "Document" else value
            for kind, value in zip(self.kinds.values(), vars(self).values(), strict=True)
        ]


def spelt(name: str) -> str:
    """The name of a column, for a statement. SQLite takes a name in quotes that is none for a text."""
    return '"check"' if name == "check" else name


def listing(names: Iterable[str]) -> str:
    """Names of columns, for a statement."""
    return ", ".join(map(spelt, names))


Kept = TypeVar("Kept", bound=StoredRow)
_ADDED: Final = {"deleted": "false", "size_bytes": "0"}
_OF_RUN: Final = ("FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE",)


@dataclass(kw_only=True, eq=False)
class VersionRow(StoredRow):
    """One row: which layout this store has. The tally ``LAYOUT`` says it once more, with a checksum."""

    table = "store_version"
    key = ("version",)
    version: int


@dataclass(kw_only=True, eq=False)
class TallyRow(StoredRow):
    """How many rows of a ``kind`` a run has (or the store, where ``run_id`` is empty), and the sum of their checksums:
    what tells that none is missing.
    """

    table = "tallies"
    key = ("run_id", "kind")
    run_id: str
    kind: str
    rows: int
    total: Big
    check: Big = 0


@dataclass(kw_only=True, eq=False)
class RunRow(StoredRow):
    """One question and its answer, which the person ``named`` so (a built-in name or a file). ``fingerprint`` is of
    all that decides what is measured; ``stopped`` is empty while it can go on. A run that ended never changes: another
    question about what it measured is another run, whose trials are those of its ``base`` (the id of a run that
    ended, or empty) and its own.

    ``begun`` and ``taken_up`` count what happened in this store, so that no clock decides which run is the latest:
    when the run was begun, and when it was begun, gone on with, or shown instead of being measured again.
    ``unverified_before``: it was kept before there were checksums, which were computed from what was there then.
    ``kernel``, ``workload``, ``answer``, ``tags`` (words) and ``size_bytes`` (of its own trials) are for lists.
    ``deleted``: it is kept for the trials that other runs have of it. ``check`` is of the short values, by which runs
    are found, ``body_check`` of the others.
    """

    table = "runs"
    key = ("id",)
    added = MappingProxyType(dict.fromkeys(("base", "kernel", "workload", "answer", "tags"), "''") | _ADDED)
    indexed = ("study", "fingerprint")
    covering = ("runs_listed", (*HEAD, "check"))
    id: str
    study: str
    fingerprint: str
    seed: Big
    created: str
    ajuste: str
    begun: int
    taken_up: int
    unverified_before: bool = False
    base: str = ""
    deleted: bool = False
    stopped: str = ""
    kernel: str = ""
    workload: str = ""
    answer: str = ""
    tags: str = ""
    size_bytes: Big = 0
    check: Big = 0
    named: str
    resolved: str
    environment: Document
    stopped_because: str = ""
    body_check: Big = 0


_MEASURED: Final = (
    *("run_id", "block", "position", "attempt", "configuration", "seed", "warm_up", "status", "reason"),
    *("metrics", "not_supported", "written", "check"),
)


@dataclass(kw_only=True, eq=False)
class TrialRow(StoredRow):
    """One trial as asked, as read back, and as printed. ``events`` are the agent's lines. ``check`` is of what the
    analysis reads, ``outputs_check`` of the rest.
    """

    table = "trials"
    key = ("number",)
    rules = ("UNIQUE (run_id, block, position, attempt)", "FOREIGN KEY(run_id) REFERENCES runs (id)")
    indexed = ("run_id",)
    covering = ("trials_measured", _MEASURED)
    number: Serial
    run_id: str
    block: int
    position: int
    attempt: int
    configuration: str
    seed: str  # 64 bits do not fit SQLite's signed integers
    warm_up: bool
    status: str
    reason: str
    metrics: Document
    not_supported: Document
    written: Document
    events: str
    console: str
    started: str
    host_seconds: float
    check: Big
    outputs_check: Big


@dataclass(kw_only=True, eq=False)
class MachineRow(StoredRow):
    """Which of several machines has measured a block: all of it."""

    table = "machines"
    key = ("run_id", "block")
    rules = _OF_RUN
    run_id: str
    block: int
    machine: str
    check: Big = 0


@dataclass(kw_only=True, eq=False)
class DigestRow(StoredRow):
    """The digest of a run that ended, which holds as long as its tally is of so many ``trials`` and this ``total``."""

    table = "digests"
    key = ("run_id",)
    rules = _OF_RUN
    run_id: str
    trials: int
    total: Big
    digest: str
    check: Big = 0


@dataclass(kw_only=True, eq=False)
class ResultsRow(StoredRow):
    """What was said of a run that ended: the document, compressed by zlib. It holds as long as its tally is of so many
    ``trials`` and this ``total``, and so many ``recorded``.
    """

    table = "results"
    key = ("run_id",)
    rules = _OF_RUN
    run_id: str
    trials: int
    total: Big
    recorded: Big
    document: bytes
    check: Big = 0


@dataclass(kw_only=True, eq=False)
class ColumnRow(StoredRow):
    """One of the ``columns`` of the figures of a run that ended (see ``packing``), which hold as long as its digest."""

    table = "columns"
    key = ("run_id", "place")
    rules = _OF_RUN
    run_id: str
    place: int
    trials: int
    total: Big
    columns: int
    name: str
    words: str
    numbers: bytes
    check: Big = 0


@dataclass(kw_only=True, eq=False)
class RecordedRow(StoredRow):
    """A trial of a configuration that was carried out to be recorded (see ``model.scheduling.Recorded``)."""

    table = "recorded"
    key = ("run_id", "configuration")
    rules = _OF_RUN
    run_id: str
    configuration: str
    document: str
    check: Big = 0


@dataclass(kw_only=True, eq=False)
class SuiteRow(StoredRow):
    """Which runs belong together as a suite (see ``model.suite.SuiteRecord``)."""

    table = "suites"
    key = ("id",)
    id: str
    document: str
    check: Big = 0


TABLES: Final[tuple[type[StoredRow], ...]] = (
    *(VersionRow, TallyRow, RunRow, TrialRow, MachineRow, DigestRow, ResultsRow, ColumnRow, RecordedRow, SuiteRow),
)
"""Those that others refer to first."""


def column(database: Database, table: type[StoredRow], name: str) -> str:
    """What makes a column."""
    kind = _TYPES[table.kinds[name]].format_map(database.types)
    default = f" DEFAULT {table.added[name]}" if name in table.added else ""
    return f"{spelt(name)} {kind}{default} NOT NULL"


def create(transaction: Transaction, table: type[StoredRow]) -> None:
    """Make a table and its indexes."""
    parts = [column(transaction.database, table, name) for name in table.kinds]
    parts += [f"PRIMARY KEY ({listing(table.key)})", *table.rules]
    transaction.run(f"CREATE TABLE {table.table} ({', '.join(parts)})")
    create_indexes(transaction, table)


def create_indexes(transaction: Transaction, table: type[StoredRow]) -> None:
    """Make the indexes that a table does not have."""
    wanted: dict[str, tuple[str, ...]] = {f"ix_{table.table}_{name}": (name,) for name in table.indexed}
    if table.covering and transaction.database.joins:
        wanted |= dict([table.covering])
    for name, columns in wanted.items():
        transaction.run(f"CREATE INDEX IF NOT EXISTS {name} ON {table.table} ({listing(columns)})")


def found_rows(transaction: Transaction, table: type[Kept], where: str, *values: Any) -> list[Kept]:
    """The rows of a table that a condition, and what follows it, chooses."""
    query = f"SELECT {table.selected} FROM {table.table} WHERE {where}"
    return [table.of(row) for row in transaction.rows(query, *values)]


def row_at(transaction: Transaction, table: type[Kept], *key: Any, to_change: bool = False) -> Kept | None:
    """The row with this key; ``to_change`` has others who want to change it wait until the end of the transaction."""
    where = " AND ".join(f"{name} = ?" for name in table.key)
    end = transaction.database.locked if to_change else ""
    return next(iter(found_rows(transaction, table, where + end, *key)), None)


def put(transaction: Transaction, row: StoredRow) -> None:
    """Keep a row, instead of one with the same key."""
    transaction.run(row.kept, *row.values())
