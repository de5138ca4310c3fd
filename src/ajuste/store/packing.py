"""The figures of a run as a few packed columns: what was read once from a million rows is read again at once.

Numbers are NumPy's own files (``numpy.lib.format``), in the smallest type that holds them; what they are codes of is
JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ajuste.model.event import Written
from ajuste.model.measurements import Categorical, Measurements
from ajuste.store.checks import DamageError
from ajuste.store.database import Transaction
from ajuste.store.schema import ColumnRow, found_rows, put
from ajuste.store.tallies import all_trials, sealed, verified

T = TypeVar("T")

_METRIC: Final = "metric:"
"""Before the name of a metric, which may be that of another column."""


@dataclass(frozen=True)
class PackedColumn:
    """One column: the ``words`` that its numbers are codes of, as JSON ("" if they are the figures themselves)."""

    name: str
    words: str
    numbers: bytes


def packed(measurements: Measurements) -> Iterator[PackedColumn]:
    """Every column."""
    own = measurements
    for name in ("block", "position", "attempt", "seed", "warm_up"):
        yield PackedColumn(name, "", _bytes(_narrowed(getattr(own, name))))
    for name in ("configuration", "status", "reason", "not_supported"):
        column = getattr(own, name)
        yield PackedColumn(name, json.dumps(column.values), _bytes(_narrowed(column.codes)))
    written = [[write.model_dump() for write in writes] for writes in own.written.values]
    yield PackedColumn("written", json.dumps(written), _bytes(_narrowed(own.written.codes)))
    for name, figures in own.metrics.items():
        yield PackedColumn(_METRIC + name, "", _bytes(figures))


def unpacked(columns: Iterable[PackedColumn]) -> Measurements:
    """What was packed. Raises ValueError or KeyError for what was packed in another way."""
    found = {column.name: column for column in columns}

    def numbers(name: str, kind: Any) -> NDArray[Any]:
        return np.asarray(np.load(BytesIO(found[name].numbers), allow_pickle=False), kind)

    def coded(name: str, read: Callable[[Any], T]) -> Categorical[T]:
        return Categorical(tuple(map(read, json.loads(found[name].words))), numbers(name, np.int32))

    return Measurements(
        block=numbers("block", np.int64),
        position=numbers("position", np.int64),
        attempt=numbers("attempt", np.int64),
        seed=numbers("seed", np.uint64),
        warm_up=numbers("warm_up", np.bool_),
        configuration=coded("configuration", str),
        status=coded("status", str),
        reason=coded("reason", str),
        not_supported=coded("not_supported", _reasons),
        written=coded("written", _writes),
        metrics={name.removeprefix(_METRIC): numbers(name, np.float64) for name in found if name.startswith(_METRIC)},
    )


def _reasons(value: Mapping[str, str]) -> Mapping[str, str]:
    return value


def _writes(value: Iterable[Any]) -> tuple[Written, ...]:
    return tuple(map(Written.model_validate, value))


def _narrowed(numbers: NDArray[Any]) -> NDArray[Any]:
    """None of them is negative."""
    if numbers.dtype == np.bool_ or not len(numbers):
        return numbers
    return numbers.astype(np.min_scalar_type(int(numbers.max())))


def _bytes(numbers: NDArray[Any]) -> bytes:
    file = BytesIO()
    np.save(file, numbers, allow_pickle=False)
    return file.getvalue()


def kept_measurements(transaction: Transaction, run_id: str) -> Measurements | None:
    """The figures of a run as they were kept, if they are of all the trials that it has. Raises DamageError."""
    counted = all_trials(transaction, run_id)
    rows = [verified(row) for row in found_rows(transaction, ColumnRow, "run_id = ? ORDER BY place", run_id)]
    if not rows or (rows[0].trials, rows[0].total) != (counted.rows, counted.total):
        return None
    if len(rows) != rows[0].columns:
        raise DamageError(f"run {run_id} has {len(rows)} of {rows[0].columns} packed columns")
    try:
        return unpacked(PackedColumn(row.name, row.words, row.numbers) for row in rows)
    except (ValueError, KeyError):  # Another Ajuste may keep them otherwise.
        return None


def keep_measurements(transaction: Transaction, run_id: str, found: Measurements) -> None:
    """Keep the figures of all trials that a run has now, unless it has gone on meanwhile."""
    counted, columns = all_trials(transaction, run_id), list(packed(found))
    if counted.rows != len(found):
        return
    transaction.run(f"DELETE FROM {ColumnRow.table} WHERE run_id = ?", run_id)
    own: dict[str, Any] = {"run_id": run_id, "trials": counted.rows, "total": counted.total, "columns": len(columns)}
    for place, column in enumerate(columns):
        put(transaction, sealed(ColumnRow(place=place, **own, **vars(column))))
