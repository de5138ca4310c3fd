"""The tables. Every trial is kept for ever; what is shown can be computed again from here."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, Integer, LargeBinary, UniqueConstraint, false
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from ajuste.store.packing import ExactText

SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql"
_BIG = BigInteger().with_variant(Integer, "sqlite")  # SQLite's integers have 64 bits, PostgreSQL's only 32


class Base(DeclarativeBase):
    """The base of all tables."""

    type_annotation_map = {dict[str, Any]: JSON, list[Any]: JSON, str: ExactText}  # noqa: RUF012 - SQLAlchemy's own way


class VersionRow(Base):
    """One row: which layout this store has. The tally ``LAYOUT`` says it once more, with a checksum."""

    __tablename__ = "store_version"
    version: Mapped[int] = mapped_column(primary_key=True)


class TallyRow(Base):
    """How many rows of a ``kind`` a run has (or the store, where ``run_id`` is empty), and the sum of their checksums:
    what tells that none is missing.
    """

    __tablename__ = "tallies"
    run_id: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(primary_key=True)
    rows: Mapped[int]
    total: Mapped[int] = mapped_column(_BIG)
    check: Mapped[int] = mapped_column(_BIG)


class RunRow(Base):
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

    __tablename__ = "runs"
    id: Mapped[str] = mapped_column(primary_key=True)
    study: Mapped[str] = mapped_column(index=True)
    fingerprint: Mapped[str] = mapped_column(index=True)
    seed: Mapped[int] = mapped_column(_BIG)
    created: Mapped[str]
    ajuste: Mapped[str]
    begun: Mapped[int]
    taken_up: Mapped[int]
    unverified_before: Mapped[bool] = mapped_column(default=False)
    base: Mapped[str] = mapped_column(default="", server_default="")
    deleted: Mapped[bool] = mapped_column(default=False, server_default=false())
    stopped: Mapped[str] = mapped_column(default="")
    kernel: Mapped[str] = mapped_column(default="", server_default="")
    workload: Mapped[str] = mapped_column(default="", server_default="")
    answer: Mapped[str] = mapped_column(default="", server_default="")
    tags: Mapped[str] = mapped_column(default="", server_default="")
    size_bytes: Mapped[int] = mapped_column(_BIG, default=0, server_default="0")
    check: Mapped[int] = mapped_column(_BIG)
    named: Mapped[str]
    resolved: Mapped[str]
    environment: Mapped[dict[str, Any]]
    stopped_because: Mapped[str] = mapped_column(default="")
    body_check: Mapped[int] = mapped_column(_BIG)


class TrialRow(Base):
    """One trial as asked, as read back, and as printed. ``events`` are the agent's lines. ``check`` is of what the
    analysis reads, ``outputs_check`` of the rest.
    """

    __tablename__ = "trials"
    __table_args__ = (UniqueConstraint("run_id", "block", "position", "attempt"),)
    number: Mapped[int] = mapped_column(_BIG, primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"), index=True)
    block: Mapped[int]
    position: Mapped[int]
    attempt: Mapped[int]
    configuration: Mapped[str]
    seed: Mapped[str]  # 64 bits do not fit SQLite's signed integers
    warm_up: Mapped[bool]
    status: Mapped[str]
    reason: Mapped[str]
    metrics: Mapped[dict[str, Any]]
    not_supported: Mapped[dict[str, Any]]
    written: Mapped[list[Any]]
    events: Mapped[str]
    console: Mapped[str]
    started: Mapped[str]
    host_seconds: Mapped[float]
    check: Mapped[int] = mapped_column(_BIG)
    outputs_check: Mapped[int] = mapped_column(_BIG)


class MachineRow(Base):
    """Which of several machines has measured a block: all of it."""

    __tablename__ = "machines"
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    block: Mapped[int] = mapped_column(primary_key=True)
    machine: Mapped[str]
    check: Mapped[int] = mapped_column(_BIG)


class DigestRow(Base):
    """The digest of a run that ended, which holds as long as its tally is of so many ``trials`` and this ``total``."""

    __tablename__ = "digests"
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    trials: Mapped[int]
    total: Mapped[int] = mapped_column(_BIG)
    digest: Mapped[str]
    check: Mapped[int] = mapped_column(_BIG)


class ResultsRow(Base):
    """What was said of a run that ended: the document, compressed by zlib. It holds as long as its tally is of so many
    ``trials`` and this ``total``, and so many ``recorded``.
    """

    __tablename__ = "results"
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    trials: Mapped[int]
    total: Mapped[int] = mapped_column(_BIG)
    recorded: Mapped[int] = mapped_column(_BIG)
    document: Mapped[bytes] = mapped_column(LargeBinary)
    check: Mapped[int] = mapped_column(_BIG)


class ColumnRow(Base):
    """One of the ``columns`` of the figures of a run that ended (see ``packing``), which hold as long as its digest."""

    __tablename__ = "columns"
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True)
    trials: Mapped[int]
    total: Mapped[int] = mapped_column(_BIG)
    columns: Mapped[int]
    name: Mapped[str]
    words: Mapped[str]
    numbers: Mapped[bytes] = mapped_column(LargeBinary)
    check: Mapped[int] = mapped_column(_BIG)


class RecordedRow(Base):
    """A trial of a configuration that was carried out to be recorded (see ``model.scheduling.Recorded``)."""

    __tablename__ = "recorded"
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    configuration: Mapped[str] = mapped_column(primary_key=True)
    document: Mapped[str]
    check: Mapped[int] = mapped_column(_BIG)


# What lists show of runs, without the studies and inventories, which are most of a row. As below.
LISTED = Index(
    "runs_listed",
    RunRow.id,
    RunRow.study,
    RunRow.fingerprint,
    RunRow.seed,
    RunRow.created,
    RunRow.ajuste,
    RunRow.begun,
    RunRow.taken_up,
    RunRow.unverified_before,
    RunRow.base,
    RunRow.deleted,
    RunRow.stopped,
    RunRow.kernel,
    RunRow.workload,
    RunRow.answer,
    RunRow.tags,
    RunRow.size_bytes,
    RunRow.check,
).ddl_if(dialect="sqlite")

# What the analysis reads of a trial, without the outputs, which are most of a row: SQLite reads the index alone.
# PostgreSQL keeps long texts apart by itself, and its indexes have no room for them.
MEASURED = Index(
    "trials_measured",
    TrialRow.run_id,
    TrialRow.block,
    TrialRow.position,
    TrialRow.attempt,
    TrialRow.configuration,
    TrialRow.seed,
    TrialRow.warm_up,
    TrialRow.status,
    TrialRow.reason,
    TrialRow.metrics,
    TrialRow.not_supported,
    TrialRow.written,
    TrialRow.check,
).ddl_if(dialect="sqlite")
