"""Ajuste's own JSON: the results of a run (``ajuste report RUN --json``), or all its trials (with ``--trials``)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.collector import Collector, utf8
from ajuste.outputs.document import DocumentNode

FORMAT: Final = "Ajuste's JSON"
_RESULTS: Final = frozenset({"schema_version", "run", "digest", "metrics", "trials"})
_TRIAL: Final = frozenset({"slot", "attempt", "status", "metrics"})
_EXPORT: Final = frozenset({"format", "configuration", "evidence", "settings"})


def recognise(document: DocumentNode) -> bool:
    """Whether a document is of this kind."""
    value = document.value
    if isinstance(value, list):
        return bool(value) and all(isinstance(one, dict) and one.keys() >= _TRIAL for one in value)
    return isinstance(value, dict) and (value.keys() >= _RESULTS or value.keys() >= _EXPORT)


def read(document: DocumentNode, _name: str, file: Path) -> MeasuredTable:
    """The clean trials in their blocks; others are left out and counted in a note. Raises RequestError."""
    found = Collector(FORMAT, file)
    left_out: Counter[str] = Counter()
    if isinstance(document.value, list):
        for one in document.items():
            _add(found, left_out, one, one.need("slot"), {})
    elif document.get("evidence") is not None:
        raise RequestError(
            "this is a configuration that Ajuste exported; it has no measured values",
            place=document.place,
            hint="use ajuste report RUN --json",
        )
    else:
        metrics = {metric.name: metric for metric in map(_metric, document.need("metrics").items())}
        trials = document.need("trials").items()
        for one in trials:
            _add(found, left_out, one, one, metrics, in_blocks=bool(document.need("run").text()))
        all_of_them = document.get("tally")
        missing = int(all_of_them.need("trials").number()) - len(trials) if all_of_them is not None else 0
        if missing > 0:
            found.notes.append(f"{utf8(file.name)} has some trials of very many only: {missing:,} are not in it.")
    if left_out:
        said = ", ".join(f"{what} ({count})" for what, count in left_out.items())
        found.notes.append(f"{utf8(file.name)}: left out, because Ajuste marked them: {said}.")
    return found.table()


def _add(
    found: Collector,
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
        found.add(configuration, metric or unknown, value.number(), block=block)


def _metric(document: DocumentNode) -> Metric:
    try:
        return Metric.model_validate(document.value)
    except ValidationError:
        raise document.wrong("a metric of Ajuste") from None
