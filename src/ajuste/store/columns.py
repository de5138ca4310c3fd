"""The figures of a run, column by column: what a million trials measured fits in memory, what they printed does not.

Texts of JSON that are often the same are read once; metrics are read many trials at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from typing import Any, Final

from pydantic_core import from_json
from sqlalchemy import Integer, Text, bindparam, cast, func, select, type_coerce
from sqlalchemy.orm import Session
from sqlalchemy.sql.functions import aggregate_strings

from ajuste.model.event import Written
from ajuste.model.measurements import Gathering, Measured, Measurements
from ajuste.store.engine import SQLITE
from ajuste.store.schema import TrialRow
from ajuste.store.text import unescaped

_AT_ONCE: Final = 2_000
"""Rows that are read at a time: few enough to stay in the processor's caches."""

# The time of a write is no part of what was written, and makes every text another. Inside of a string the quotes
# would be escaped.
_TIME: Final = re.compile(r'"at_ns": \d+, ')
_NEXT: Final = "\n"
"""Between documents of JSON, which the store writes without line breaks."""
_WARM_UP: Final = type_coerce(TrialRow.warm_up, Integer)
_NUMBERS: Final = (TrialRow.block, TrialRow.position, TrialRow.attempt, _WARM_UP, TrialRow.seed)
_TEXTS: Final = (TrialRow.configuration, TrialRow.status, TrialRow.reason)
_DOCUMENTS: Final = (TrialRow.metrics, TrialRow.not_supported, TrialRow.written)
_DOCUMENTS_AS_TEXTS: Final = tuple(cast(column, Text) for column in _DOCUMENTS)
_MEASURED: Final = (
    *(TrialRow.block, TrialRow.position, TrialRow.attempt, TrialRow.configuration, TrialRow.seed, _WARM_UP),
    TrialRow.status,
    *_DOCUMENTS_AS_TEXTS,
    TrialRow.events,
)


def read_measurements(session: Session, run_id: str) -> Measurements:
    """All figures of a run."""
    gathering = Gathering(read_written=_written, read_not_supported=_reasons)
    if session.connection().dialect.name == SQLITE:
        for row in _read_together(session, run_id):
            _gather(gathering, *row)
    else:
        for rows in _read(session, run_id, (*_NUMBERS, *_TEXTS, *_DOCUMENTS_AS_TEXTS)):
            _gather_rows(gathering, rows)
    return gathering.measurements()


def each_measured(session: Session, run_id: str) -> Iterator[Measured]:
    """All that the digest covers (see ``analysis.digest``), trial by trial in the order of the design."""
    plain = cache(lambda text: [write.model_dump(exclude={"at_ns"}) for write in _written(text)])
    exact = _exact(session)
    for rows in _read(session, run_id, _MEASURED):
        for (
            block,
            position,
            attempt,
            configuration,
            seed,
            warm_up,
            status,
            metrics,
            not_supported,
            written,
            events,
        ) in rows:
            yield {
                "slot": {
                    "block": block,
                    "position": position,
                    "configuration": exact(configuration),
                    "seed": int(seed),
                    "warm_up": bool(warm_up),
                },
                "attempt": attempt,
                "status": status,
                "written": plain(_TIME.sub("", written)),
                "events": exact(events),
                "metrics": from_json(metrics),
                "not_supported": from_json(not_supported),
            }


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


def _read_together(session: Session, run_id: str) -> Iterator[Sequence[Any]]:
    """Each row is what some blocks have, column by column as one text: the database joins a million values quicker
    than anybody takes them one by one.
    """
    count, last = session.execute(select(func.count(), func.max(TrialRow.block)).where(TrialRow.run_id == run_id)).one()
    if not count:
        return
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
        yield from session.execute(query, {"first": first, "more": step - 1})


def _gather(
    gathering: Gathering,
    block: str,
    position: str,
    attempt: str,
    warm_up: str,
    seed: str,
    configuration: str,
    status: str,
    reason: str,
    metrics: str,
    not_supported: str,
    written: str,
) -> None:
    gathering.extend(
        block=_numbers(block),
        position=_numbers(position),
        attempt=_numbers(attempt),
        seed=_numbers(seed),
        warm_up=_numbers(warm_up),
        metrics=_numbers(metrics.replace(_NEXT, ",")),
        configuration=from_json(configuration),
        status=from_json(status),
        reason=from_json(reason),
        written=_TIME.sub("", written).split(_NEXT),
        not_supported=not_supported.split(_NEXT),
    )


def _gather_rows(gathering: Gathering, rows: Sequence[Any]) -> None:
    """As ``_gather``, for a database that would have to sort before it could join."""
    block, position, attempt, warm_up, seed, configuration, status, reason, metrics, not_supported, written = zip(
        *rows, strict=True
    )
    gathering.extend(
        block=block,
        position=position,
        attempt=attempt,
        seed=list(map(int, seed)),
        warm_up=warm_up,
        metrics=list(map(from_json, metrics)),
        configuration=list(map(unescaped, configuration)),
        status=status,
        reason=list(map(unescaped, reason)),
        written=[_TIME.sub("", text) for text in written],
        not_supported=not_supported,
    )


def _exact(session: Session) -> Callable[[str], str]:
    """What makes a text that came by the driver's own cursor what it was; see ``store.text``."""
    return str if session.connection().dialect.name == SQLITE else unescaped


def _numbers(text: str) -> Any:
    return from_json(f"[{text}]")


def _reasons(text: str) -> Mapping[str, str]:
    found: dict[str, str] = from_json(text)
    return found


def _written(text: str) -> tuple[Written, ...]:
    return tuple(Written.model_validate({"at_ns": 0, **write}) for write in from_json(text))
