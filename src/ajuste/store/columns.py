"""The figures of a run, column by column: what a million trials measured fits in memory, what they printed does not.

Texts of JSON that are often the same are read once; metrics are read many trials at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from typing import Any, Final

from pydantic_core import from_json
from sqlalchemy import Integer, Text, cast, select, type_coerce
from sqlalchemy.orm import Session

from ajuste.model.event import Written
from ajuste.model.measurements import Gathering, Measured, Measurements
from ajuste.store.schema import TrialRow

_AT_ONCE: Final = 2_000
"""Rows that are read at a time: few enough to stay in the processor's caches."""

# The time of a write is no part of what was written, and makes every text another. Inside of a string the quotes
# would be escaped.
_TIME: Final = re.compile(r'"at_ns": \d+, ')
_COLUMNS: Final = (
    TrialRow.block,
    TrialRow.position,
    TrialRow.attempt,
    TrialRow.configuration,
    TrialRow.seed,
    type_coerce(TrialRow.warm_up, Integer),
    TrialRow.status,
    TrialRow.reason,
    cast(TrialRow.metrics, Text),
    cast(TrialRow.not_supported, Text),
    cast(TrialRow.written, Text),
)


def read_measurements(session: Session, run_id: str) -> Measurements:
    """All figures of a run."""
    gathering = Gathering(read_written=_written, read_not_supported=_reasons)
    for rows in _read(session, run_id, _COLUMNS):
        _gather(gathering, rows)
    return gathering.measurements()


def each_measured(session: Session, run_id: str) -> Iterator[Measured]:
    """All that the digest covers (see ``analysis.digest``), trial by trial in the order of the design."""
    plain = cache(lambda text: [write.model_dump(exclude={"at_ns"}) for write in _written(text)])
    for rows in _read(session, run_id, (*_COLUMNS, TrialRow.events)):
        for (
            block,
            position,
            attempt,
            configuration,
            seed,
            warm_up,
            status,
            _,
            metrics,
            not_supported,
            written,
            events,
        ) in rows:
            yield {
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
                "events": events,
                "metrics": from_json(metrics),
                "not_supported": from_json(not_supported),
            }


def _read(session: Session, run_id: str, columns: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Rows by the driver's own cursor: of a million of them SQLAlchemy's rows would take most of the time."""
    query = (
        select(*columns).where(TrialRow.run_id == run_id).order_by(TrialRow.block, TrialRow.position, TrialRow.attempt)
    )
    connection = session.connection()
    text = str(query.compile(connection.engine, compile_kwargs={"literal_binds": True}))
    with closing(connection.connection.cursor()) as cursor:
        cursor.execute(text)
        while rows := cursor.fetchmany(_AT_ONCE):
            yield rows


def _gather(gathering: Gathering, rows: Sequence[Any]) -> None:
    (block, position, attempt, configuration, seed, warm_up, status, reason, metrics, not_supported, written) = zip(
        *rows, strict=True
    )
    gathering.extend(
        block=block,
        position=position,
        attempt=attempt,
        seed=[int(text) for text in seed],
        warm_up=warm_up,
        metrics=from_json("[" + ",".join(metrics) + "]"),
        configuration=configuration,
        status=status,
        reason=reason,
        written=[_TIME.sub("", text) for text in written],
        not_supported=not_supported,
    )


def _reasons(text: str) -> Mapping[str, str]:
    found: dict[str, str] = from_json(text)
    return found


def _written(text: str) -> tuple[Written, ...]:
    return tuple(Written.model_validate({"at_ns": 0, **write}) for write in from_json(text))
