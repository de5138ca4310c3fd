"""CSV files: a column ``configuration``, if wished one ``block``, and a column for each metric.

Commas, semicolons (then a comma may be the decimal sign) or tabs separate. A file without the column ``configuration``
is one configuration, named after the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ajuste.foreign.collector import LARGEST, Collector, require_computable
from ajuste.foreign.rows import rows_of
from ajuste.model.error import Place, RequestError
from ajuste.model.metric import Metric
from ajuste.model.table import Table

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
    rows, lines = rows_of(text, separator, file)
    head = [_column_name(field.strip()) for field in rows[0]] if rows else []
    _check_head(head, Place(file, lines[0] if lines else 1))
    metrics = {index: metric_of(field) for index, field in enumerate(head) if field not in (CONFIGURATION, BLOCK)}
    if not metrics:
        raise RequestError("there is no column of a metric", place=Place(file, 1))
    _check_names(list(metrics.values()), Place(file, lines[0]))
    rows, lines = rows[1:], lines[1:]
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(head):
            raise RequestError(f"{len(row)} fields, but the first line names {len(head)}", place=Place(file, line))
    columns = list(zip(*rows, strict=True))
    groups = _groups(_column(columns, head, CONFIGURATION), name, lines, file)
    blocks = _column(columns, head, BLOCK)
    if blocks is not None and "" in blocks:
        raise RequestError("the block has no name", place=Place(file, lines[blocks.index("")], BLOCK))
    found = Collector(FORMAT, file)
    for index, metric in metrics.items():
        values = _numbers(columns[index], metric.name, separator, lines, file) if columns else []
        for configuration, places in groups.items():
            named = None if blocks is None else [blocks[place] for place in places]
            found.add_all(configuration, metric, [values[place] for place in places], named)
    return found.table()


def _column_name(field: str) -> str:
    return field.lower() if field.lower() in (CONFIGURATION, BLOCK) else field


def metric_of(field: str) -> Metric:
    """The metric of a column: ``time [ms]`` is in milliseconds."""
    named = _HEAD.match(field)
    name, unit = (named["name"], named["unit"]) if named and named["name"] else (field, "")
    return Metric(name=name, title=name, unit=unit, direction="none")


def number(field: str, name: str, separator: str, place: Place) -> float:
    """The number in a field. Raises RequestError, also for what cannot be computed with."""
    text = field.strip()
    if separator != "," and text.count(",") == 1 and "." not in text:
        text = text.replace(",", ".")
    if not text:
        raise RequestError(f"{name} is empty", place=place, hint="take the row out if it was not measured")
    if len(text) > _LONGEST_FIELD or not _is_number(text):
        raise RequestError(f"{name} is {field.strip()[:40]!r}; expected a number", place=place)
    require_computable(float(text), name, place)
    return float(text)


def _numbers(column: Sequence[str], name: str, separator: str, lines: Sequence[int], file: Path) -> list[float]:
    """The numbers of a column: at once if it has nothing but plain ones, else one by one."""
    try:
        values = list(map(float, column))
    except ValueError:
        values = []
    sound = bool(values) and math.isfinite(sum(values)) and not any(map(_is_odd, column, values))
    if sound:
        return values
    return [number(field, name, separator, Place(file, line)) for field, line in zip(column, lines, strict=True)]


def _is_odd(field: str, value: float) -> bool:
    """What Python takes for a number and is not quite one, or cannot be computed with."""
    return "_" in field or len(field) > 40 or (value != 0 and not 1 / LARGEST < abs(value) < LARGEST)


def _column(columns: Sequence[tuple[str, ...]], head: Sequence[str], name: str) -> list[str] | None:
    if name not in head:
        return None
    return [field.strip() for field in columns[head.index(name)]] if columns else []


def _groups(names: list[str] | None, name: str, lines: Sequence[int], file: Path) -> dict[str, Sequence[int]]:
    """The places of each configuration's rows."""
    if names is None:
        return {name: range(len(lines))} if lines else {}
    groups: dict[str, list[int]] = {}
    for place, configuration in enumerate(names):
        groups.setdefault(configuration, []).append(place)
    if "" in groups:
        raise RequestError("the configuration has no name", place=Place(file, lines[groups[""][0]], CONFIGURATION))
    return dict(groups)


def _separator(text: str) -> str:
    first = text.lstrip("\ufeff\r\n").split("\n", 1)[0]
    return max(",;\t", key=first.count)


def _check_head(head: list[str], place: Place) -> None:
    twice = [field for index, field in enumerate(head) if field in head[:index]]
    if twice:
        raise RequestError(f"the column {twice[0]!r} is there twice", place=place)
    if "" in head:
        raise RequestError(f"column {head.index('') + 1} has no name", place=place)
    if head and all(_is_number(field) for field in head):
        raise RequestError(
            "the first line has numbers; expected the names of the columns, such as configuration,time", place=place
        )


def _check_names(metrics: list[Metric], place: Place) -> None:
    names = [metric.name for metric in metrics]
    twice = [name for index, name in enumerate(names) if name in names[:index]]
    if twice:
        raise RequestError(f"two columns are of the metric {twice[0]!r}", place=place)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
