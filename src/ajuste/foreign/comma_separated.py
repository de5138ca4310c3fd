"""CSV files: a column ``configuration``, if wished one ``block``, and a column for each metric.

Commas, semicolons (then a comma may be the decimal sign) or tabs separate. A file without the column ``configuration``
is one configuration, named after the file.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Final

from ajuste.foreign.table import Collector, Table
from ajuste.model.error import Place, RequestError
from ajuste.model.metric import Metric

FORMAT: Final = "CSV"
CONFIGURATION: Final = "configuration"
BLOCK: Final = "block"
_HEAD: Final = re.compile(r"^(?P<name>.*?)\s*[\[(](?P<unit>[^\[\]()]{0,20})[\])]$")
_LONGEST_FIELD: Final = 4096


def read(text: str, name: str, file: Path) -> Table:
    """A column is called ``time`` or, with its unit, ``time [ms]``.

    An empty field is a value that was not measured: an error, since nothing is dropped silently.
    """
    separator = _separator(text)
    rows = _rows(text, separator, file)
    head = [field.strip() for field in rows[0][1]] if rows else []
    _check_head(head, file)
    metrics = {index: _metric(field) for index, field in enumerate(head) if field not in (CONFIGURATION, BLOCK)}
    if not metrics:
        raise RequestError("there is no column of a metric", place=Place(file, 1))
    found = Collector(FORMAT, file)
    for number, row in rows[1:]:
        if len(row) != len(head):
            raise RequestError(f"{len(row)} fields, but the first line names {len(head)}", place=Place(file, number))
        configuration = row[head.index(CONFIGURATION)].strip() if CONFIGURATION in head else name
        if not configuration:
            raise RequestError("the configuration has no name", place=Place(file, number, CONFIGURATION))
        block = row[head.index(BLOCK)].strip() if BLOCK in head else None
        for index, metric in metrics.items():
            value = _number(row[index], metric.name, separator, Place(file, number, metric.name))
            found.add(configuration, metric, value, block=block, line=number)
    return found.table()


def _rows(text: str, separator: str, file: Path) -> list[tuple[int, list[str]]]:
    """The rows that are not empty, with their lines."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows = []
    try:
        for row in reader:
            if any(field.strip() for field in row):
                rows.append((reader.line_num, row))
    except csv.Error as error:
        raise RequestError(f"no valid CSV: {error}", place=Place(file, reader.line_num)) from None
    return rows


def _separator(text: str) -> str:
    first = text.lstrip("\ufeff\r\n").split("\n", 1)[0]
    return max(",;\t", key=first.count)


def _check_head(head: list[str], file: Path) -> None:
    twice = [field for index, field in enumerate(head) if field in head[:index]]
    if twice:
        raise RequestError(f"the column {twice[0]!r} is there twice", place=Place(file, 1))
    if "" in head:
        raise RequestError(f"column {head.index('') + 1} has no name", place=Place(file, 1))
    if head and all(_is_number(field) for field in head):
        raise RequestError(
            "the first line has numbers; expected the names of the columns, such as configuration,time",
            place=Place(file, 1),
        )


def _metric(field: str) -> Metric:
    named = _HEAD.match(field)
    name, unit = (named["name"], named["unit"]) if named and named["name"] else (field, "")
    return Metric(name=name, title=name, unit=unit, direction="none")


def _number(field: str, name: str, separator: str, place: Place) -> float:
    text = field.strip()
    if separator != "," and text.count(",") == 1 and "." not in text:
        text = text.replace(",", ".")
    if not text:
        raise RequestError(f"{name} is empty", place=place, hint="take the row out if it was not measured")
    if len(text) > _LONGEST_FIELD or not _is_number(text):
        raise RequestError(f"{name} is {field.strip()[:40]!r}; expected a number", place=place)
    return float(text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
