"""The figures of a run, column by column: what a million trials measured fits in memory, what they printed does not.

Texts of JSON that are often the same are read once; metrics are read many trials at a time. Every trial is verified
(see ``store.checks``), and that none is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from heapq import merge
from operator import itemgetter
from typing import Any, Final

from pydantic_core import from_json

from ajuste.model.event import Written
from ajuste.model.measurements import Gathering, Measured, Measurements
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
from ajuste.store.tallies import TRIALS, TrialTally, expect_tally, owners

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
