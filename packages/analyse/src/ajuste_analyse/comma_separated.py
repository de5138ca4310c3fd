"""CSV files: a column ``configuration``, if wished one ``block``, and a column for each metric.

Commas, semicolons (then a comma may be the decimal sign) or tabs separate. A file without the column ``configuration``
is one configuration, named after the file.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.format import LARGEST, MOST_METRICS, Collector, ResultSource, require_computable, require_possible

FORMAT: Final = "CSV"
CONFIGURATION: Final = "configuration"
BLOCK: Final = "block"
MOST_COLUMNS: Final = MOST_METRICS + 2
_HEAD: Final = re.compile(r"^(?P<name>(?:.*\S)?)\s*[\[(](?P<unit>[^\[\]()]{0,20})[\])]$")
_NAMES: Final = "if these are configuration names, name the column configuration"
_SUMMARIES: Final = ("command", "mean", "stddev", "median")
_LONGEST_FIELD: Final = 4096
_WITH_UNIT: Final = re.compile(r"[+-]?[0-9][0-9.,]{0,40} ?[A-Za-zµμ%/]{1,10}")
_FEWER: Final = "split the file, or leave out what is not compared"


def read(source: ResultSource) -> MeasuredTable:
    """Read a CSV file, in which a column is called ``time`` or, with its unit, ``time [ms]``. An empty field is an
    error, since nothing is dropped silently.
    """
    file = source.file
    separator = max(",;\t", key=source.text.lstrip("\ufeff\r\n").split("\n", 1)[0].count)
    rows = csv_rows(source.text, separator, file)
    line, first = next(rows, (1, []))
    head = [name.lower() if name.lower() in (CONFIGURATION, BLOCK) else name for name in map(str.strip, first)]
    _check_head(head, Place(file, line))
    if set(_SUMMARIES) <= set(head):
        raise RequestError(
            "mean and stddev of hyperfine lack the number of runs",
            place=Place(file, line),
            hint="use hyperfine --export-json, which has every run",
        )
    metrics = {index: column_metric(field) for index, field in enumerate(head) if field not in (CONFIGURATION, BLOCK)}
    if not metrics:
        raise RequestError("the metric column is missing; expected at least one", place=Place(file, line))
    if twice := _twice([metric.name for metric in metrics.values()]):
        raise RequestError(f"two columns have the metric {twice!r}; expected one", place=Place(file, line))
    columns, lines = _columns(rows, len(head), file)
    groups = _groups(_column(columns, head, CONFIGURATION), source.name, lines, file)
    blocks = _column(columns, head, BLOCK)
    if blocks is not None and "" in blocks:
        raise RequestError(
            "found a block without a name; expected a name in every row",
            place=Place(file, lines[blocks.index("")], BLOCK),
        )
    collector = Collector(FORMAT, file)
    for index, metric in metrics.items():
        hint = None if CONFIGURATION in head else _NAMES
        values = _numbers(columns[index], metric.name, separator, lines, file, hint)
        if min(values, default=0.0) < 0:
            require_possible(values, metric, [Place(file, line, metric.name) for line in lines])
        for configuration, places in groups.items():
            named = None if blocks is None else [blocks[place] for place in places]
            collector.add_all(configuration, metric, [values[place] for place in places], named)
    return collector.table()


def _columns(rows: Iterator[tuple[int, list[str]]], count: int, file: Path) -> tuple[list[list[str]], list[int]]:
    columns: list[list[str]] = [[] for _ in range(count)]
    lines = []
    for line, row in rows:
        if len(row) != count:
            raise RequestError(
                f"found {len(row)} fields; expected {count}, as in the first line", place=Place(file, line)
            )
        lines.append(line)
        for column, field in zip(columns, row, strict=True):
            column.append(field)
    return columns, lines


def column_metric(field: str) -> Metric:
    """Return the metric of a column: ``time [ms]`` is in milliseconds."""
    named = _HEAD.match(field)
    name, unit = (named["name"], named["unit"]) if named and named["name"] else (field, "")
    return Metric(name=name, title=name, unit=unit, direction="none")


def number(field: str, name: str, separator: str, place: Place, hint: str | None = None) -> float:
    """Return the number in a field. Raises RequestError, also for what cannot be computed with."""
    text = field.strip()
    if separator != "," and text.count(",") == 1 and "." not in text:
        text = text.replace(",", ".")
    if not text:
        raise RequestError(f"{name} is empty", place=place, hint="remove the row if it was not measured")
    if len(text) > _LONGEST_FIELD or not _is_number(text):
        if _WITH_UNIT.fullmatch(text):
            hint = "write all values in the same unit, without it"
        raise RequestError(f"{name} is {field.strip()[:40]!r}; expected a number", place=place, hint=hint)
    require_computable(float(text), name, place)
    return float(text)


def _numbers(
    column: Sequence[str], name: str, separator: str, lines: Sequence[int], file: Path, hint: str | None
) -> list[float]:
    # The numbers of a column: at once if it has nothing but plain ones, else one by one, which finds the wrong one.
    try:
        values = list(map(float, column))
    except ValueError:
        values = []
    if values:
        sizes = np.abs(np.array(values))
        # Whether nothing is among them that only Python takes for a number, or that cannot be computed with.
        sound = bool(np.all((sizes < LARGEST) & ((sizes > 1 / LARGEST) | (sizes == 0))))
        if sound and max(map(len, column)) <= _LONGEST_FIELD and "_" not in "".join(column):
            return values
    return [number(field, name, separator, Place(file, line), hint) for field, line in zip(column, lines, strict=True)]


def _column(columns: Sequence[list[str]], head: Sequence[str], name: str) -> list[str] | None:
    return [field.strip() for field in columns[head.index(name)]] if name in head else None


def _groups(names: list[str] | None, name: str, lines: Sequence[int], file: Path) -> dict[str, Sequence[int]]:
    if names is None:
        return {name: range(len(lines))} if lines else {}
    groups: dict[str, list[int]] = {}
    for place, configuration in enumerate(names):
        groups.setdefault(configuration, []).append(place)
    if "" in groups:
        raise RequestError(
            "found a configuration without a name; expected a name in every row",
            place=Place(file, lines[groups[""][0]], CONFIGURATION),
        )
    return dict(groups)


def _check_head(head: list[str], place: Place) -> None:
    if len(head) > MOST_COLUMNS:
        raise RequestError(f"{len(head)} columns; expected at most {MOST_COLUMNS}", place=place, hint=_FEWER)
    if twice := _twice(head):
        raise RequestError(f"the column {twice!r} is given twice; expected different names", place=place)
    if "" in head:
        raise RequestError(f"column {head.index('') + 1} has no name; expected a name", place=place)
    if head and all(_is_number(field) for field in head):
        raise RequestError("the first line has numbers; expected column names, such as configuration,time", place=place)


def _twice(names: Sequence[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


# The rows of a CSV file, with the lines that they end on.


def csv_rows(text: str, separator: str, file: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, each with the line on which it ends. Raises RequestError for
    broken quoting.
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for row in reader:
            if row and (row[0].strip() or any(map(str.strip, row))):
                yield reader.line_num, row
    except csv.Error as error:
        raise RequestError(
            f"not valid CSV: {error}", place=Place(file, reader.line_num), hint="check the quotes and separators"
        ) from None
