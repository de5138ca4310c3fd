"""The CSV of every trial that Ajuste's own reports hold (see ``report.trials``): its clean trials, in their blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.collector import Collector, utf8
from ajuste.outputs.comma_separated import CONFIGURATION, MOST_COLUMNS, metric_of, number, rows_of

FORMAT: Final = "Ajuste's trials"
DESIGN: Final = ("block", "position", "seed", "attempt", "warm_up", "status", "reason")
"""The columns between a configuration's levels and its metrics."""


def recognise(text: str) -> bool:
    """Whether a text is of this kind."""
    first = text.lstrip("\ufeff")[:65536].split("\n", 1)[0]
    return first.startswith(f"{CONFIGURATION},") and f",{','.join(DESIGN)}" in first


def read(text: str, _name: str, file: Path) -> MeasuredTable:
    """Warm-up trials and those that were not clean are left out and counted in a note, and so are figures that a trial
    does not have. Metrics of the catalogue bring their direction.
    """
    rows = rows_of(text, ",", file)
    _, head = next(rows, (1, []))
    if len(head) > MOST_COLUMNS:
        raise RequestError(f"{len(head)} columns; expected at most {MOST_COLUMNS}", place=Place(file, 1))
    start = _design(head, file)
    places = {column: start + index for index, column in enumerate(DESIGN)}
    metrics = {index: _known(metric_of(head[index])) for index in range(start + len(DESIGN), len(head))}
    if len({metric.name for metric in metrics.values()}) < len(metrics):
        raise RequestError("two columns have the same metric; expected one", place=Place(file, 1))
    found = Collector(FORMAT, file)
    left_out: Counter[str] = Counter()
    runs = _Runs()
    for line, row in rows:
        if len(row) != len(head):
            raise RequestError(
                f"found {len(row)} fields; expected {len(head)}, as in the first line", place=Place(file, line)
            )
        status = row[places["status"]]
        block = runs.block_of(row[places["block"]], row[places["position"]], row[places["attempt"]])
        if status != "ok" or row[places["warm_up"]] == "yes":
            left_out["warm-up trials" if row[places["warm_up"]] == "yes" else f"{status[:40]} trials"] += 1
            continue
        for index, metric in metrics.items():
            if not row[index]:
                left_out[f"missing figures of {metric.name}"] += 1
                continue
            value = number(row[index], metric.name, ",", Place(file, line, metric.name))
            found.add(_plain(row[0]), metric, value, block=block, line=line)
    if left_out:
        said = ", ".join(f"{what} ({count})" for what, count in left_out.items())
        found.notes.append(f"{utf8(file.name)}: left out, because Ajuste marked them: {said}.")
    return found.table()


@dataclass
class _Runs:
    """Tells the rows of several runs apart that somebody put into one file: their blocks have nothing in common, though
    they have the same numbers.
    """

    _number: int = 1
    _seen: set[tuple[str, str, str]] = field(default_factory=set)

    def block_of(self, block: str, position: str, attempt: str) -> str:
        """How the block of the next row is called: a place that comes again is of another run."""
        place = (block, position, attempt)
        if place in self._seen:
            self._number += 1
            self._seen.clear()
        self._seen.add(place)
        return block if self._number == 1 else f"{block} of run {self._number}"


def _design(head: Sequence[str], file: Path) -> int:
    """Where the columns of the design begin."""
    for start in range(1, len(head) - len(DESIGN) + 1):
        if tuple(head[start : start + len(DESIGN)]) == DESIGN:
            return start
    raise RequestError(
        f"found only some of the columns {', '.join(DESIGN)}; expected all of them", place=Place(file, 1)
    )


def _known(metric: Metric) -> Metric:
    known = catalogue().metrics.get(metric.name)
    return known if known is not None and known.unit == metric.unit else metric


def _plain(text: str) -> str:
    """Without the apostrophe that keeps a spreadsheet from taking it for a formula."""
    return text[1:] if text[:1] == "'" and text[1:2] in ("=", "+", "-", "@", "\t", "\r") else text
