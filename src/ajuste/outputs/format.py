"""Formats of files: documents of other programs, read without believing anything, and the tables of their values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable, Sample, Summarised, Values
from ajuste.model.metric import Metric
from ajuste.outputs.base import excerpt

Parser = Callable[[str], dict[str, float]]
"""A function from the standard output of a program to its metrics. Raises ParseError."""

_WHOLE: Final = "give one complete JSON document"

LARGEST: Final = 1e100
"""Larger values, and smaller ones than its reciprocal, have squares that no float can hold."""

MOST_METRICS: Final = 500
MOST_CONFIGURATIONS: Final = 500

MOST_SAMPLES: Final = 20_000
"""Maximum number of samples that are compared and drawn: configurations by metrics."""

LONGEST_NAME: Final = 200

LOOKED_AT: Final = 1 << 20
"""Number of characters from its beginning by which a text is recognised."""

# Units of what takes, is counted or is stored. A difference has such a unit too, but is no measurement.
_NEVER_NEGATIVE: Final = frozenset(
    {"s", "sec", "secs", "second", "seconds", "ms", "msec", "milliseconds", "us", "µs", "μs", "usec", "microseconds"}
    | {"ns", "nsec", "nanoseconds", "min", "minutes", "h", "hours", "hz", "khz", "mhz", "ghz", "1/s", "ops/s", "iops"}
    | {"b", "byte", "bytes", "kb", "mb", "gb", "kib", "mib", "gib", "bytes/s", "kb/s", "mb/s", "mib/s", "kflop/s"}
    | {"j", "joules", "w", "count", "faults", "switches", "requests", "cycles", "instructions", "events"}
)

# What columns of times are called, where they say no unit.
_TIMES: Final = frozenset({"time", "times", "elapsed", "duration", "latency", "runtime", "wall", "real", "user", "sys"})

_FIGURE: Final = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,4})?", re.ASCII)


class DocumentNode:
    """A value in a document, with its path, so that each error names its place."""

    def __init__(self, value: Any, file: Path, path: str = "") -> None:
        self.value = value
        self._file = file
        self._path = path

    @property
    def place(self) -> Place:
        return Place(self._file, field=self._path or None)

    def wrong(self, expected: str) -> RequestError:
        """Return the error for an unexpected value."""
        text = json.dumps(self.value, ensure_ascii=True, default=str)
        return RequestError(f"expected {expected}, found {text[:60]}{'…' if len(text) > 60 else ''}", place=self.place)

    def get(self, name: str) -> DocumentNode | None:
        """Return a member of an object, ``None`` if it is missing or null."""
        members = self._object()
        path = f"{self._path}.{name}" if self._path else name
        return DocumentNode(members[name], self._file, path) if members.get(name) is not None else None

    def need(self, name: str) -> DocumentNode:
        """Return a required member."""
        member = self.get(name)
        if member is None:
            raise RequestError(f"{name} is required", place=self.place)
        return member

    def items(self) -> list[DocumentNode]:
        """Return the elements of an array."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return [DocumentNode(value, self._file, f"{self._path}[{index}]") for index, value in enumerate(self.value)]

    def members(self) -> list[tuple[str, DocumentNode]]:
        """Return the members of an object, in order."""
        path = f"{self._path}." if self._path else ""
        return [(name, DocumentNode(value, self._file, path + name)) for name, value in self._object().items()]

    def number(self) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.wrong("a number")
        try:
            return float(self.value)
        except OverflowError:
            raise self.wrong("a smaller number") from None

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong("a text")
        return utf8(self.value)

    def _object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return self.value


def parse_document(text: str, file: Path) -> DocumentNode:
    """Parse the one JSON document in ``text``. Raises RequestError with the line of the mistake."""
    try:
        return DocumentNode(json.loads(text), file)
    except json.JSONDecodeError as error:
        raise RequestError(
            f"not valid JSON: {error.msg} (column {error.colno})", place=Place(file, error.lineno), hint=_WHOLE
        ) from None
    except (RecursionError, ValueError) as error:
        raise RequestError(f"not valid JSON: {str(error)[:80]}", place=Place(file), hint=_WHOLE) from None


@dataclass(frozen=True)
class ResultSource:
    """A file: its content, the name of its configuration if it names none itself, and the number of runs behind each
    of its means where the person gave it.
    """

    text: str
    name: str
    file: Path
    runs: int | None = None


@dataclass(frozen=True)
class TextFormat:
    """``recognise`` tells from the text whether a file is of this format, ``read`` raises RequestError. A format that
    is ``around`` others' output is asked before them. ``reads`` says in Markdown what is read, once for each name.
    """

    name: str
    title: str
    recognise: Callable[[str], bool]
    read: Callable[[ResultSource], MeasuredTable]
    around: bool = False
    reads: str = ""


@dataclass(frozen=True)
class DocumentFormat:
    """A format like ``TextFormat``, for one JSON document."""

    name: str
    title: str
    recognise: Callable[[DocumentNode], bool]
    read: Callable[[DocumentNode, str, Path], MeasuredTable]
    reads: str = ""


def in_beginning(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    """Return what recognises a text by a pattern in its beginning."""
    return lambda text: pattern.search(text[:LOOKED_AT]) is not None


# Gathering values as a parser finds them, and joining what several files have.


@dataclass
class Collector:
    """Gathers values as a parser finds them; ``table`` is what they come to.

    A value that is no finite number is refused with its place: nothing is dropped without a word. ``level`` is the kind
    of the outermost unit of replication, if values are not independent: ``fork``, ``process``.
    """

    format: str
    file: Path
    level: str = ""
    _values: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    _blocks: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _units: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _summaries: dict[tuple[str, str], Summarised] = field(default_factory=dict)
    _configurations: dict[str, None] = field(default_factory=dict)
    _metrics: dict[str, Metric] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    main: set[str] = field(default_factory=set)

    def add(
        self,
        configuration: str,
        metric: Metric,
        value: float,
        *,
        block: str | None = None,
        unit: str = "1",
        line: int | None = None,
    ) -> None:
        """Add one value; ``unit`` is the fork, process … that it comes from, where the format has a ``level``."""
        place = Place(self.file, line=line)
        require_computable(value, metric.name, place)
        require_possible([value], metric, [place])
        self.add_all(configuration, metric, [value], None if block is None else [block])
        if self.level:
            self._units.setdefault((configuration, metric.name), []).append(unit)

    def add_all(self, configuration: str, metric: Metric, values: list[float], blocks: list[str] | None) -> None:
        """Add values that are known to be computable, each with its block or none."""
        self._know(configuration, metric)
        self._values.setdefault((configuration, metric.name), []).extend(values)
        if blocks is not None:
            self._blocks.setdefault((configuration, metric.name), []).extend(blocks)

    def add_summary(self, configuration: str, metric: Metric, summary: Summarised, line: int | None = None) -> None:
        place = Place(self.file, line=line)
        if (configuration, metric.name) in self._summaries:
            raise RequestError(f"{metric.name} of {configuration} is given twice; expected one value", place=place)
        for value in (summary.mean, summary.sem):
            require_computable(value, metric.name, place)
        require_possible([summary.mean], metric, [place])
        self._know(configuration, metric)
        self._summaries[configuration, metric.name] = summary

    @property
    def empty(self) -> bool:
        return not self._configurations

    def _know(self, configuration: str, metric: Metric) -> None:
        for what, name in (("configuration", configuration), ("metric", metric.name)):
            if len(name) > LONGEST_NAME:
                raise RequestError(
                    f"the name of a {what} has {len(name)} characters; expected at most {LONGEST_NAME}",
                    place=Place(self.file),
                )
        self._configurations.setdefault(configuration)
        self._metrics.setdefault(metric.name, metric)
        require_so_many(len(self._configurations), len(self._metrics), Place(self.file))

    def table(self) -> MeasuredTable:
        """Return all values. Raises RequestError if there are none."""
        if self.empty:
            raise RequestError(f"found no results ({self.format}); expected at least one", place=Place(self.file))
        for configuration, metric in self._values.keys() & self._summaries.keys():
            raise RequestError(
                f"{metric} of {configuration} has single values and a summary; expected only one of them",
                place=Place(self.file),
            )
        samples: dict[tuple[str, str], Sample] = {
            cell: Values(tuple(values), tuple(self._blocks.get(cell, ())), tuple(self._units.get(cell, ())), self.level)
            for cell, values in self._values.items()
        }
        return MeasuredTable(
            self.format,
            tuple(self._configurations),
            tuple(self._metrics.values()),
            samples | self._summaries,
            tuple(self.notes),
            frozenset(self.main & self._metrics.keys()),
        )


def require_possible(values: Sequence[float], metric: Metric, places: Sequence[Place]) -> None:
    """Raise RequestError, at the place in ``places``, for a negative value whose unit forbids it."""
    unit = metric.unit.strip().lower()
    known = unit in _NEVER_NEGATIVE or (not unit and metric.name.strip().lower() in _TIMES)
    if min(values, default=0.0) >= 0 or not known:
        return
    place = next(index for index, value in enumerate(values) if value < 0)
    raise RequestError(
        f"{metric.name} is {values[place]:g}{unit and f' {metric.unit}'}; expected at least 0",
        place=places[place],
        hint="remove the row; for differences, name the column change, without a unit of time or count",
    )


def require_so_many(configurations: int, metrics: int, place: Place) -> None:
    """Raise RequestError for more than can be compared and drawn."""
    for what, count, most in (
        ("configurations", configurations, MOST_CONFIGURATIONS),
        ("metrics", metrics, MOST_METRICS),
        ("configurations by metrics", configurations * metrics, MOST_SAMPLES),
    ):
        if count > most:
            raise RequestError(
                f"more than {most} {what}; expected at most {most}",
                place=place,
                hint="split the file, or remove what you do not compare",
            )


def utf8(name: str) -> str:
    """Return ``name`` with what UTF-8 cannot hold written out: half a surrogate pair in JSON, odd bytes in a file's
    name.
    """
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def require_computable(value: float, name: str, place: Place) -> None:
    """Raise RequestError unless a number and its square are finite."""
    if not math.isfinite(value):
        raise RequestError(
            f"{name} is {value}; expected a finite number",
            place=place,
            hint="remove the row, or write the measured value",
        )
    if value and not 1 / LARGEST < abs(value) < LARGEST:
        raise RequestError(f"{name} is {value:g}; expected a number between 1e-100 and 1e100", place=place)


def number_at(text: str, what: str, place: Place) -> float:
    """Return the number that ``text`` is. Raises RequestError that names ``what`` it should be."""
    if not _FIGURE.fullmatch(text.strip()):
        raise RequestError(f"{excerpt(text)} is not a number for {what}; expected one, such as 12.5", place=place)
    return float(text)
