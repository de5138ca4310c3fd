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
