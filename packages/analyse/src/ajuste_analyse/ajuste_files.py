"""Ajuste's JSON (``ajuste report RUN --json``, also ``--trials``), and the CSV of every trial of its reports: each
clean trial, in its block and configuration; others are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.format import Collector, DocumentFormat, DocumentNode, ResultSource, TextFormat, utf8
from ajuste_analyse.comma_separated import CONFIGURATION, MOST_COLUMNS, column_metric, csv_rows, number

_RESULTS: Final = frozenset({"schema_version", "run", "digest", "metrics", "trials"})
_TRIAL: Final = frozenset({"slot", "attempt", "status", "metrics"})
_EXPORT: Final = frozenset({"format", "configuration", "evidence", "settings"})


def _is_document(document: DocumentNode) -> bool:
    value = document.value
    if isinstance(value, list):
        return bool(value) and all(isinstance(trial, dict) and trial.keys() >= _TRIAL for trial in value)
    return isinstance(value, dict) and (value.keys() >= _RESULTS or value.keys() >= _EXPORT)


def _document(document: DocumentNode, _name: str, file: Path) -> MeasuredTable:
    # The clean trials in their blocks; others are left out and counted in a note. Raises RequestError.
    collector = Collector(DOCUMENTS[0].title, file)
    left_out: Counter[str] = Counter()
    if isinstance(document.value, list):
        for trial in document.items():
            _add(collector, left_out, trial, trial.need("slot"), {})
    elif document.get("evidence") is not None:
        raise RequestError(
            "this is a configuration that Ajuste exported; it has no measured values",
            place=document.place,
            hint="use ajuste report RUN --json",
        )
    else:
        metrics = {metric.name: metric for metric in map(_metric, document.need("metrics").items())}
        collector.main |= {
            verdict.need("metric").text()
            for verdict in _items(document, "verdicts")
            if (deciding := verdict.get("deciding")) is None or deciding.value
        }
        trials = document.need("trials").items()
        place = _places(document)
        # The first configuration is the baseline, which a random order may have put anywhere.
        for trial in sorted(trials, key=lambda trial: place.get(trial.need("configuration").text(), len(place))):
            _add(collector, left_out, trial, trial, metrics, in_blocks=bool(document.need("run").text()))
        all_of_them = document.get("tally")
        missing = int(all_of_them.need("trials").number()) - len(trials) if all_of_them is not None else 0
        if missing > 0:
            collector.notes.append(f"{utf8(file.name)} has some trials of very many only: {missing:,} are not in it.")
    return _without(collector, left_out, file)


def _items(document: DocumentNode, name: str) -> list[DocumentNode]:
    values = document.get(name)
    return [] if values is None else values.items()


def _places(document: DocumentNode) -> dict[str, int]:
    # The places of the configurations as Ajuste lists them, with the baseline before all others.
    def is_other(configuration: DocumentNode) -> bool:
        baseline = configuration.get("baseline")
        return baseline is None or baseline.value is not True

    listed = sorted(_items(document, "configurations"), key=is_other)
    return {configuration.need("name").text(): place for place, configuration in enumerate(listed)}


def _add(
    collector: Collector,
    left_out: Counter[str],
    trial: DocumentNode,
    slot: DocumentNode,
    metrics: dict[str, Metric],
    *,
    in_blocks: bool = True,
) -> None:
    status, warm_up = trial.need("status").text(), slot.get("warm_up")
    if status != "ok" or (warm_up is not None and warm_up.value):
        left_out["warm-up trials" if status == "ok" else f"{status[:40]} trials"] += 1
        return
    block = f"{slot.need('block').number():.0f}" if in_blocks else None
    configuration = slot.need("configuration").text()
    for name, value in trial.need("metrics").members():
        metric = metrics.get(name) or catalogue().metrics.get(name)
        unknown = Metric(name=utf8(name), title=utf8(name), unit="", direction="none")
        collector.add(configuration, metric or unknown, value.number(), block=block)


def _metric(document: DocumentNode) -> Metric:
    try:
        return Metric.model_validate(document.value)
    except ValidationError:
        raise document.wrong("a metric of Ajuste") from None


# The columns between a configuration's levels and its metrics.
_DESIGN: Final = ("block", "position", "seed", "attempt", "warm_up", "status", "reason")


def _is_trials(text: str) -> bool:
    first = text.lstrip("\ufeff")[:65536].split("\n", 1)[0]
    return first.startswith(f"{CONFIGURATION},") and f",{','.join(_DESIGN)}" in first


def _trials(source: ResultSource) -> MeasuredTable:
    # Warm-up trials and those that were not clean are left out and counted in a note, and so are figures that a trial
    # does not have. Metrics of the catalogue bring their direction.
    file = source.file
    rows = csv_rows(source.text, ",", file)
    _, head = next(rows, (1, []))
    if len(head) > MOST_COLUMNS:
        raise RequestError(f"{len(head)} columns; expected at most {MOST_COLUMNS}", place=Place(file, 1))
    start = _design_column(head, file)
    places = {column: start + index for index, column in enumerate(_DESIGN)}
    metrics: dict[int, Metric] = {}
    for index in range(start + len(_DESIGN), len(head)):
        metric = column_metric(head[index])
        known = catalogue().metrics.get(metric.name)
        metrics[index] = known if known is not None and known.unit == metric.unit else metric
    if len({metric.name for metric in metrics.values()}) < len(metrics):
        raise RequestError("two columns have the same metric; expected one", place=Place(file, 1))
    collector = Collector("Ajuste's trials", file)
    left_out: Counter[str] = Counter()
    runs = _Runs()
    for line, row in rows:
        if len(row) != len(head):
            raise RequestError(
                f"found {len(row)} fields; expected {len(head)}, as in the first line", place=Place(file, line)
            )
        status = row[places["status"]]
        block = runs.name_block(row[places["block"]], row[places["position"]], row[places["attempt"]])
        if status != "ok" or row[places["warm_up"]] == "yes":
            left_out["warm-up trials" if row[places["warm_up"]] == "yes" else f"{status[:40]} trials"] += 1
            continue
        name = row[0]
        if name[:1] == "'" and name[1:2] in ("=", "+", "-", "@", "\t", "\r"):
            name = name[1:]  # without the apostrophe that keeps a spreadsheet from taking it for a formula
        for index, metric in metrics.items():
            if not row[index]:
                left_out[f"missing figures of {metric.name}"] += 1
                continue
            value = number(row[index], metric.name, ",", Place(file, line, metric.name))
            collector.add(name, metric, value, block=block, line=line)
    return _without(collector, left_out, file)


@dataclass
class _Runs:
    # Tells the rows of several runs apart that somebody put into one file: their blocks have nothing in common, though
    # they have the same numbers.
    _number: int = 1
    _seen: set[tuple[str, str, str]] = field(default_factory=set)

    def name_block(self, block: str, position: str, attempt: str) -> str:
        # How the block of the next row is called: a place that comes again is of another run.
        place = (block, position, attempt)
        if place in self._seen:
            self._number += 1
            self._seen.clear()
        self._seen.add(place)
        return block if self._number == 1 else f"{block} of run {self._number}"


def _design_column(head: Sequence[str], file: Path) -> int:
    for start in range(1, len(head) - len(_DESIGN) + 1):
        if tuple(head[start : start + len(_DESIGN)]) == _DESIGN:
            return start
    raise RequestError(
        f"found only some of the columns {', '.join(_DESIGN)}; expected all of them", place=Place(file, 1)
    )


def _without(collector: Collector, left_out: Counter[str], file: Path) -> MeasuredTable:
    if left_out:
        reasons = ", ".join(f"{what} ({count})" for what, count in left_out.items())
        collector.notes.append(f"{utf8(file.name)}: left out, because Ajuste marked them: {reasons}.")
    return collector.table()


TEXTS: Final = (
    TextFormat(
        "ajuste",
        "Ajuste's own CSV",
        _is_trials,
        _trials,
        reads=(
            "Ajuste's JSON (`ajuste report RUN --json`, also `--trials`), and the CSV of every trial of its reports: "
            "each clean trial, in its block and configuration; others are counted."
        ),
    ),
)
DOCUMENTS: Final = (DocumentFormat("ajuste", "Ajuste's JSON", _is_document, _document),)
