"""The figures of a run, column by column: what a million trials measured fits in memory, what they printed does not.

Texts of JSON that are often the same are read once; metrics are read many trials at a time. Every trial is verified
(see ``store.checks``), and that none is missing. What was read once from a million rows is kept as a few packed columns
and read again at once: numbers are NumPy's own files (``numpy.lib.format``), in the smallest type that holds them; what
they are codes of is JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from heapq import merge
from io import BytesIO
from operator import itemgetter
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from ajuste.model.event import Written
from ajuste.model.measurements import Categorical, Gathering, Measured, Measurements
from ajuste.model.trial import Trial
from ajuste.store.checks import UNREADABLE, DamageError, figures_checks
from ajuste.store.database import Transaction
from ajuste.store.rows import (
    CHECKED,
    DOCUMENTS,
    FIGURES,
    PLACE,
    WHOLE,
    verify_figures,
    verify_trials,
    whole_trial,
)
from ajuste.store.schema import ColumnRow, found_rows, put
from ajuste.store.tallies import TRIALS, TrialTally, all_trials, expect_tally, owners, sealed, verified

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
        not_supported=coded("not_supported", _known_reasons),
        written=coded("written", _writes),
        metrics={name.removeprefix(_METRIC): numbers(name, np.float64) for name in found if name.startswith(_METRIC)},
    )


def _known_reasons(value: Mapping[str, str]) -> Mapping[str, str]:
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


_AT_ONCE: Final = 2_000
"""Rows that are read at a time: few enough to stay in the processor's caches."""

# The time of a write is no part of what was written, and makes every text another. Inside of a string the quotes
# would be escaped.
_TIME: Final = re.compile(r'"at_ns": \d+, ')
_NEXT: Final = "\n"
"""Between documents of JSON, which the store writes without line breaks."""
_TOGETHER: Final = ", ".join(
    [f"group_concat(CAST({name} AS TEXT), ',')" for name in (*FIGURES[:4], '"check"')]
    + [f"json_group_array({name})" for name in ("seed", "status", "configuration", "reason")]
    + [f"group_concat(CAST({name} AS TEXT), '{_NEXT}')" for name in DOCUMENTS]
)


def read_measurements(transaction: Transaction, run_id: str) -> Measurements:
    """All figures of a run. Raises DamageError."""
    gathering = Gathering(read_written=_written, read_not_supported=_reasons)
    read = _read_together if transaction.database.joins else _read_in_rows
    for owner in owners(transaction, run_id):
        counted = TrialTally()
        with naming(transaction, owner):
            for columns in read(transaction, owner):
                counted = counted.plus(_gather(gathering, owner, columns))
        expect_tally(transaction, owner, TRIALS, counted)
    return gathering.measurements()


def each_measured(transaction: Transaction, run_id: str) -> Iterator[tuple[tuple[int, int, int], Measured]]:
    """All that the digest covers (see ``analysis.record``), trial by trial in the order of the design, with their
    block, position and attempt. Raises DamageError, at the end where a trial is missing.
    """
    yield from merge(*(_each_of(transaction, owner) for owner in owners(transaction, run_id)), key=itemgetter(0))


def _each_of(transaction: Transaction, run_id: str) -> Iterator[tuple[tuple[int, int, int], Measured]]:
    """As ``each_measured``, of what a run has measured itself."""
    plain = cache(lambda text: [write.model_dump(exclude={"at_ns"}) for write in _written(text)])
    counted = TrialTally()
    with naming(transaction, run_id):
        for rows in _read(transaction, run_id, WHOLE):
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
    expect_tally(transaction, run_id, TRIALS, counted)


def each_trial(transaction: Transaction, run_id: str) -> Iterator[Trial]:
    """All trials of a run in the order of the design, whole. Raises DamageError, at the end where one is missing."""
    own = (_trials_of(transaction, owner) for owner in owners(transaction, run_id))
    yield from merge(*own, key=lambda one: (one.slot.block, one.slot.position, one.attempt))


def _trials_of(transaction: Transaction, run_id: str) -> Iterator[Trial]:
    """The trials that a run has measured itself, in design order."""
    counted = TrialTally()
    with naming(transaction, run_id):
        for rows in _read(transaction, run_id, WHOLE):
            for row in rows:
                yield whole_trial(run_id, row)
            counted = counted.plus(row[11] for row in rows)
    expect_tally(transaction, run_id, TRIALS, counted)


@contextmanager
def naming(transaction: Transaction, run_id: str) -> Iterator[None]:
    """While trials of a run are read: where that fails, say of which one (DamageError)."""
    try:
        yield
    except (DamageError, transaction.database.errors, *UNREADABLE) as error:
        if isinstance(error, UNREADABLE) and not isinstance(error, UnicodeError):
            error = DamageError(f"cannot read the trials of run {run_id}: {error}")
        raise _named(transaction, run_id) or error from None


def _named(transaction: Transaction, run_id: str) -> DamageError | None:
    """Which trial of a run it is that is not as it was written: in the index of figures, or in the table."""
    try:
        with transaction.any_text():
            for columns, verify in ((CHECKED, verify_figures), (WHOLE, verify_trials)):
                with suppress(transaction.database.errors):
                    for rows in _read(transaction, run_id, columns):
                        verify(run_id, rows)
    except DamageError as error:
        return error
    return None


def _read(transaction: Transaction, run_id: str, columns: str) -> Iterator[Sequence[Any]]:
    """Rows, some at a time, in the order of the design."""
    query = f"SELECT {columns} FROM trials WHERE run_id = ? ORDER BY {PLACE}"
    return transaction.parts(query, run_id, size=_AT_ONCE)


def _read_in_rows(transaction: Transaction, run_id: str) -> Iterator[Sequence[Any]]:
    """As ``_read_together``, for a database that would have to sort before it could join."""
    for rows in _read(transaction, run_id, CHECKED):
        yield tuple(zip(*rows, strict=True))


def _read_together(transaction: Transaction, run_id: str) -> Iterator[Sequence[Any]]:
    """Each is what some blocks have, column by column: the values of ``FIGURES`` and the checksums. The database
    joins a million values quicker than anybody takes them one by one.
    """
    ((count, last),) = transaction.rows("SELECT COUNT(*), MAX(block) FROM trials WHERE run_id = ?", run_id)
    if not count:
        return
    if not isinstance(last, int):
        raise DamageError(f"cannot read the blocks of run {run_id}")
    step = max(1, _AT_ONCE * (last + 1) // count)
    # Some blocks at a time, and not by GROUP BY: that would sort all rows first.
    query = f"SELECT {_TOGETHER} FROM trials WHERE run_id = ? AND block BETWEEN ? AND ?"
    for first in range(0, last + 1, step):
        for row in transaction.rows(query, run_id, first, first + step - 1):
            if row[0] is None:  # There are no such blocks.
                continue
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
