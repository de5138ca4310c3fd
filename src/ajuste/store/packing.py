"""The figures of a run as a few packed columns: what was read once from a million rows is read again at once.

Numbers are NumPy's own files (``numpy.lib.format``), in the smallest type that holds them; what they are codes of is
JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Dialect, String
from sqlalchemy.types import TypeDecorator

from ajuste.model.event import Written
from ajuste.model.measurements import Categorical, Measurements

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


# Texts of other programs, kept to the byte whatever the database takes.


_NUL: Final = "\0"
_MARK: Final = "\ue000"
"""Begins an escape; of the private use area, so that hardly any text has it."""


def escaped(text: str) -> str:
    """``text`` without NUL, which PostgreSQL takes in no text (manual, 8.3 Character Types)."""
    if _NUL not in text and _MARK not in text:
        return text
    return text.replace(_MARK, _MARK + "1").replace(_NUL, _MARK + "0")


def unescaped(text: str) -> str:
    """What ``escaped`` was given."""
    return text.replace(_MARK + "0", _NUL).replace(_MARK + "1", _MARK) if _MARK in text else text


class ExactText(TypeDecorator[str]):
    """Any text, which comes back as it was."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return value if value is None or dialect.name == "sqlite" else escaped(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        return value if value is None or dialect.name == "sqlite" else unescaped(value)


# Checksums of all that the store keeps, which tell damage by chance from what was written.
#
# They are CRC-32, which no flipped bit and no torn run of up to 32 bits escapes, and which costs a report of a million
# trials little. They tell no forgery: who can write the store can write checksums.


UNREADABLE: Final = (ValueError, TypeError, AttributeError, OverflowError)
"""What reading raises where damage made another type of a value, or no JSON."""


class DamageError(Exception):
    """What was read is not what was written; the message says which row. For use inside of the store only.

    ``run_id``: the run without which there would be no damage, where that is known.
    """

    def __init__(self, message: str, run_id: str = "") -> None:
        super().__init__(message)
        self.run_id = run_id


def serialised(value: Any) -> str:
    """``value`` as the store keeps it: the database engine writes documents by this very function."""
    return json.dumps(value)


def check_of(*values: Any) -> int:
    """The checksum of a row of a small table."""
    plain = [crc32(value) if isinstance(value, bytes) else value for value in values]
    return crc32(json.dumps(plain, sort_keys=True).encode())


def figures_checks(run_id: str, rows: Iterable[Sequence[Any]]) -> list[int]:
    """The checksum of what the analysis reads of each trial: block, position, attempt, warm-up as 0 or 1, seed, status;
    metrics, what is not supported and what was written, as the JSON that is stored; configuration and reason.
    """
    return [
        crc32(
            f"{run_id} {block} {position} {attempt} {warm_up} {seed} {status}\n{metrics}\n{not_supported}\n{written}\n"
            f"{len(configuration)} {configuration}{reason}".encode()
        )
        for block, position, attempt, warm_up, seed, status, metrics, not_supported, written, configuration, reason in (
            rows
        )
    ]


def outputs_checks(rows: Iterable[Sequence[Any]]) -> list[int]:
    """The checksum of all else that is kept of each trial: the checksum of its figures, so that it is of that trial;
    when it started, the host's seconds, the events, the console.
    """
    return [
        crc32(events.encode(), crc32(f"{figures} {started} {host_seconds!r} {len(events)} {console}".encode()))
        for figures, started, host_seconds, events, console in rows
    ]
