"""The figures of a run, column by column: what a million trials measured fits in memory, what they printed does not.

Texts of JSON that are often the same are read once; metrics are read many trials at a time. Every trial is verified
(see ``store.checks``), and that none is missing.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache, partial
from heapq import merge
from operator import itemgetter
from typing import Any, Final

from pydantic_core import from_json
from sqlalchemy import Text, bindparam, cast, func, select
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session
from sqlalchemy.sql.functions import aggregate_strings

from ajuste.model.event import Written
from ajuste.model.measurements import Gathering, Measured, Measurements
from ajuste.model.trial import Trial
from ajuste.store.checks import UNREADABLE, DamageError, figures_checks
from ajuste.store.rows import (
    FIGURES,
    TRIALS,
    WHOLE,
    TrialTally,
    as_written,
    expect_tally,
    owners,
    verify_figures,
    verify_trials,
    whole_trial,
)
from ajuste.store.schema import SQLITE, TrialRow

_AT_ONCE: Final = 2_000
"""Rows that are read at a time: few enough to stay in the processor's caches."""

_WHOLE_AT_ONCE: Final = 1_000

# The time of a write is no part of what was written, and makes every text another. Inside of a string the quotes
# would be escaped.
_TIME: Final = re.compile(r'"at_ns": \d+, ')
_NEXT: Final = "\n"
"""Between documents of JSON, which the store writes without line breaks."""
_NUMBERS: Final = (*FIGURES[:4], TrialRow.check)
_TEXTS: Final = (TrialRow.seed, TrialRow.status, TrialRow.configuration, TrialRow.reason)
_DOCUMENTS: Final = (TrialRow.metrics, TrialRow.not_supported, TrialRow.written)


def read_measurements(session: Session, run_id: str) -> Measurements:
    """All figures of a run. Raises DamageError."""
    gathering = Gathering(read_written=_written, read_not_supported=_reasons)
    together = session.connection().dialect.name == SQLITE
    for owner in owners(session, run_id):
        counted = TrialTally()
        with naming(session, owner):
            for columns in _read_together(session, owner) if together else _read_in_rows(session, owner):
                counted = counted.plus(_gather(gathering, owner, columns))
        expect_tally(session, owner, TRIALS, counted)
    return gathering.measurements()


def each_measured(session: Session, run_id: str) -> Iterator[tuple[tuple[int, int, int], Measured]]:
    """All that the digest covers (see ``analysis.record``), trial by trial in the order of the design, with their
    block, position and attempt. Raises DamageError, at the end where a trial is missing.
    """
    yield from merge(*(_each_of(session, owner) for owner in owners(session, run_id)), key=itemgetter(0))


def _each_of(session: Session, run_id: str) -> Iterator[tuple[tuple[int, int, int], Measured]]:
    """As ``each_measured``, of what a run has measured itself."""
    plain = cache(lambda text: [write.model_dump(exclude={"at_ns"}) for write in _written(text)])
    exact = session.connection().dialect.name == SQLITE
    counted = TrialTally()
    with naming(session, run_id):
        for raw in _read(session, run_id, WHOLE):
            rows = raw if exact else [as_written(row) for row in raw]
            verify_trials(run_id, rows)
            for row in rows:
                block, position, attempt, warm_up, seed, status, metrics, not_supported, written, configuration = row[
                    :10
                ]
                yield (
                    (block, position, attempt),
                    {
                        "slot": {
                            "block": block,
                            "position": position,
                            "configuration": configuration,
                            "seed": int(seed),
                            "warm_up": bool(warm_up),
                        },
                        "attempt": attempt,
                        "status": status,
                        "written": plain(_TIME.sub("", written)),
                        "events": row[14],
                        "metrics": from_json(metrics),
                        "not_supported": from_json(not_supported),
                    },
                )
            counted = counted.plus(row[11] for row in rows)
    expect_tally(session, run_id, TRIALS, counted)


def each_trial(session: Session, run_id: str) -> Iterator[Trial]:
    """All trials of a run in the order of the design, whole. Raises DamageError, at the end where one is missing."""
    own = (_trials_of(session, owner) for owner in owners(session, run_id))
    yield from merge(*own, key=lambda one: (one.slot.block, one.slot.position, one.attempt))


def _trials_of(session: Session, run_id: str) -> Iterator[Trial]:
    """The trials that a run has measured itself, in design order."""
    query = select(*WHOLE).where(TrialRow.run_id == run_id)
    in_order = query.order_by(TrialRow.block, TrialRow.position, TrialRow.attempt)
    counted = TrialTally()
    with naming(session, run_id):
        for rows in session.execute(in_order.execution_options(yield_per=_WHOLE_AT_ONCE)).partitions():
            for row in rows:
                yield whole_trial(run_id, row)
            counted = counted.plus(row.check for row in rows)
    expect_tally(session, run_id, TRIALS, counted)


@contextmanager
def naming(session: Session, run_id: str) -> Iterator[None]:
    """While trials of a run are read: where that fails, say of which one (DamageError)."""
    try:
        yield
    except (DamageError, DatabaseError, sqlite3.DatabaseError, *UNREADABLE) as error:
        if isinstance(error, UNREADABLE) and not isinstance(error, UnicodeError):
            error = DamageError(f"cannot read the trials of run {run_id}: {error}")
        raise _named(session, run_id) or error from None


def _named(session: Session, run_id: str) -> DamageError | None:
    """Which trial of a run it is that is not as it was written: in the index of figures, or in the table."""
    connection = session.connection()
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == SQLITE:  # A text that is none is a value like any other here.
        driver.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    try:
        for columns, verify in (((*FIGURES, TrialRow.check), verify_figures), (WHOLE, verify_trials)):
            with suppress(DatabaseError, sqlite3.DatabaseError):
                for rows in _read(session, run_id, columns):
                    verify(run_id, [as_written(row) for row in rows])
    except DamageError as error:
        return error
    finally:
        if connection.dialect.name == SQLITE:
            driver.text_factory = str
    return None


def _read(session: Session, run_id: str, columns: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Rows, some at a time, in the order of the design, by the driver's own cursor: of a million rows SQLAlchemy's
    would take most of the time.
    """
    query = (
        select(*columns).where(TrialRow.run_id == run_id).order_by(TrialRow.block, TrialRow.position, TrialRow.attempt)
    )
    connection = session.connection()
    text = str(query.compile(connection.engine, compile_kwargs={"literal_binds": True}))
    with closing(connection.connection.cursor()) as cursor:
        cursor.execute(text)
        while rows := cursor.fetchmany(_AT_ONCE):
            yield rows


def _read_in_rows(session: Session, run_id: str) -> Iterator[Sequence[Any]]:
    """As ``_read_together``, for a database that would have to sort before it could join."""
    for rows in _read(session, run_id, (*FIGURES, TrialRow.check)):
        yield tuple(zip(*map(as_written, rows), strict=True))


def _read_together(session: Session, run_id: str) -> Iterator[Sequence[Any]]:
    """Each is what some blocks have, column by column: the values of ``FIGURES`` and the checksums. The database
    joins a million values quicker than anybody takes them one by one.
    """
    count, last = session.execute(select(func.count(), func.max(TrialRow.block)).where(TrialRow.run_id == run_id)).one()
    if not count:
        return
    if not isinstance(last, int):
        raise DamageError(f"cannot read the blocks of run {run_id}")
    step = max(1, _AT_ONCE * (last + 1) // count)
    together = (
        *(aggregate_strings(cast(column, Text), ",") for column in _NUMBERS),
        *(func.json_group_array(column) for column in _TEXTS),
        *(aggregate_strings(cast(column, Text), _NEXT) for column in _DOCUMENTS),
    )
    # Some blocks at a time, and not by GROUP BY: that would sort all rows first.
    of_these = TrialRow.block.between(bindparam("first"), bindparam("first") + bindparam("more"))
    query = select(*together).where(TrialRow.run_id == run_id, of_these).having(func.count() > 0)
    for first in range(0, last + 1, step):
        for row in session.execute(query, {"first": first, "more": step - 1}):
            block, position, attempt, warm_up, check = map(_numbers, row[:5])
            seed, status, configuration, reason = map(from_json, row[5:9])
            metrics, not_supported, written = (text.split(_NEXT) for text in row[9:])
            yield (
                *(block, position, attempt, warm_up, seed, status),
                *(metrics, not_supported, written, configuration, reason, check),
            )


def _gather(gathering: Gathering, run_id: str, columns: Sequence[Any]) -> Sequence[int]:
    """Take rows, once they are verified; returns their checksums."""
    *figures, checks = columns
    if figures_checks(run_id, zip(*figures, strict=True)) != (found := list(checks)):
        raise DamageError(f"the figures of run {run_id} are damaged: a checksum differs")
    block, position, attempt, warm_up, seed, status, metrics, not_supported, written, configuration, reason = figures
    gathering.extend(
        block=block,
        position=position,
        attempt=attempt,
        seed=list(map(int, seed)),
        warm_up=warm_up,
        metrics=_numbers(",".join(metrics)),
        configuration=configuration,
        status=status,
        reason=reason,
        written=_TIME.sub("", _NEXT.join(written)).split(_NEXT),
        not_supported=not_supported,
    )
    return found


def _numbers(text: str) -> Any:
    return from_json(f"[{text}]")


def _reasons(text: str) -> Mapping[str, str]:
    found: dict[str, str] = from_json(text)
    return found


def _written(text: str) -> tuple[Written, ...]:
    return tuple(Written.model_validate({"at_ns": 0, **write}) for write in from_json(text))
