"""The figures of a run, column by column: what a million trials measured fits in memory, what they printed does not.

Texts of JSON that are often the same are read once; metrics are read many trials at a time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic_core import from_json
from sqlalchemy import Integer, Text, cast, select, type_coerce
from sqlalchemy.orm import Session

from ajuste.model.event import Written
from ajuste.model.measurements import Gathering, Measurements
from ajuste.store.schema import TrialRow

AT_ONCE: Final = 10_000
"""Rows that are read at a time."""

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
    query = (
        select(*_COLUMNS)
        .where(TrialRow.run_id == run_id)
        .order_by(TrialRow.block, TrialRow.position, TrialRow.attempt)
        .execution_options(yield_per=AT_ONCE)
    )
    for rows in session.execute(query).partitions():
        _gather(gathering, rows)
    return gathering.measurements()


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
