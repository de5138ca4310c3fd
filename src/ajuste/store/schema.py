"""The tables. Every trial is kept for ever; what is shown can be computed again from here."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, Integer, LargeBinary, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from ajuste.store.text import ExactText

STORE_VERSION = 1
_BIG = BigInteger().with_variant(Integer, "sqlite")  # SQLite's integers have 64 bits, PostgreSQL's only 32


class Base(DeclarativeBase):
    type_annotation_map = {dict[str, Any]: JSON, list[Any]: JSON, str: ExactText}  # noqa: RUF012 - SQLAlchemy's own way


class VersionRow(Base):
    """One row: which layout this store has."""

    __tablename__ = "store_version"
    version: Mapped[int] = mapped_column(primary_key=True)


class RunRow(Base):
    """One run of a study, which the person ``named`` so (a built-in name or a file). ``fingerprint`` is of all
    that decides what is measured; ``stopped`` is empty while it
    can go on.
    """

    __tablename__ = "runs"
    id: Mapped[str] = mapped_column(primary_key=True)
    study: Mapped[str] = mapped_column(index=True)
    fingerprint: Mapped[str] = mapped_column(index=True)
    seed: Mapped[int] = mapped_column(_BIG)
    created: Mapped[str]
    ajuste: Mapped[str]
    named: Mapped[str]
    resolved: Mapped[str]
    environment: Mapped[dict[str, Any]]
    stopped: Mapped[str] = mapped_column(default="")
    stopped_because: Mapped[str] = mapped_column(default="")
    trials: Mapped[list[TrialRow]] = relationship(back_populates="run", cascade="all, delete-orphan")


class TakenUpRow(Base):
    """When a run was last gone on with, or shown instead of being measured again."""

    __tablename__ = "taken_up"
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    at: Mapped[str]


class TrialRow(Base):
    """One trial as asked, as read back, and as printed. ``events`` are the agent's lines."""

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
    run: Mapped[RunRow] = relationship(back_populates="trials")


class MachineRow(Base):
    """Which of several machines has measured a block: all of it."""

    __tablename__ = "machines"
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    block: Mapped[int] = mapped_column(primary_key=True)
    machine: Mapped[str]


class DigestRow(Base):
    """The digest of a run that ended, which holds as long as the run has so many trials: none is ever changed."""

    __tablename__ = "digests"
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    trials: Mapped[int]
    digest: Mapped[str]


class ColumnRow(Base):
    """A column of the figures of a run that ended (see ``packing``), which holds as long as its digest."""

    __tablename__ = "columns"
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True)
    trials: Mapped[int]
    name: Mapped[str]
    words: Mapped[str]
    numbers: Mapped[bytes] = mapped_column(LargeBinary)


class RecordedRow(Base):
    """A trial of a configuration that was carried out to be recorded (see ``model.scheduling.Recorded``)."""

    __tablename__ = "recorded"
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    configuration: Mapped[str] = mapped_column(primary_key=True)
    document: Mapped[str]


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
).ddl_if(dialect="sqlite")
