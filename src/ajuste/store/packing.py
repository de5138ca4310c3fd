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
from ajuste.model.measurements import Coded, Measurements

T = TypeVar("T")

_METRIC: Final = "metric:"
"""Before the name of a metric, which may be that of another column."""


@dataclass(frozen=True)
class Packed:
    """One column: the ``words`` that its numbers are codes of, as JSON ("" if they are the figures themselves)."""

    name: str
    words: str
    numbers: bytes


def packed(measurements: Measurements) -> Iterator[Packed]:
    """Every column."""
    own = measurements
    for name in ("block", "position", "attempt", "seed", "warm_up"):
        yield Packed(name, "", _bytes(_narrowed(getattr(own, name))))
    for name in ("configuration", "status", "reason", "not_supported"):
        column = getattr(own, name)
        yield Packed(name, json.dumps(column.values), _bytes(_narrowed(column.codes)))
    written = [[write.model_dump() for write in writes] for writes in own.written.values]
    yield Packed("written", json.dumps(written), _bytes(_narrowed(own.written.codes)))
    for name, figures in own.metrics.items():
        yield Packed(_METRIC + name, "", _bytes(figures))


def unpacked(columns: Iterable[Packed]) -> Measurements:
    """What was packed. Raises ValueError or KeyError for what was packed in another way."""
    found = {column.name: column for column in columns}

    def numbers(name: str, kind: Any) -> NDArray[Any]:
        return np.asarray(np.load(BytesIO(found[name].numbers), allow_pickle=False), kind)

    def coded(name: str, read: Callable[[Any], T]) -> Coded[T]:
        return Coded(tuple(map(read, json.loads(found[name].words))), numbers(name, np.int32))

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
