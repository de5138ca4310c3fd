"""Samples and messages of Criterion.rs.

Source: criterion.rs 0.5, src/analysis and src/benchmark.rs; its book, "External Tools". Each sample is the time of
some iterations, and so a value of the time of one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.format import (
    Collector,
    DocumentNode,
    ResultSource,
    parse_document,
    utf8,
)

CRITERION_FORMAT: Final = "Criterion.rs"
_CRITERION_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
MESSAGE: Final = re.compile(r'^\{"reason":\s?"benchmark-complete"', re.MULTILINE)
_MOST_BYTES: Final = 1 << 16


def recognise_criterion(document: DocumentNode) -> bool:
    """Return whether a document has the samples of a benchmark."""
    return isinstance(document.value, dict) and {"iters", "times"} <= document.value.keys()


def read_criterion(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Read samples of one metric, called as ``benchmark.json`` beside the file says, or after its folder."""
    collector = Collector(CRITERION_FORMAT, file, level="process")
    _criterion_add(
        collector,
        name,
        _criterion_benchmark(file),
        document.need("iters"),
        document.need("times"),
        _CRITERION_UNITS["ns"],
    )
    return collector.table()


def recognise_estimates(document: DocumentNode) -> bool:
    """Return whether a document has only the estimates of a benchmark."""
    whole = document.value
    return isinstance(whole, dict) and isinstance(whole.get("mean"), dict) and "point_estimate" in whole["mean"]


def refuse_estimates(_document: DocumentNode, _name: str, file: Path) -> MeasuredTable:
    """Raise RequestError: they do not say how many samples they are of."""
    raise RequestError(
        "found estimates only; expected the samples that they are of",
        place=Place(file),
        hint="give the file sample.json beside it",
    )


def _criterion_benchmark(file: Path) -> str:
    described = file.with_name("benchmark.json")
    try:
        if described.is_file() and described.stat().st_size <= _MOST_BYTES:
            full_id = json.loads(described.read_text(encoding="utf-8")).get("full_id")
            if isinstance(full_id, str) and full_id.strip():
                return utf8(full_id)
    except (OSError, ValueError, AttributeError, RecursionError):
        pass  # it is not of Criterion.rs
    return utf8(file.absolute().parent.parent.name) or "time"


def read_messages(source: ResultSource) -> MeasuredTable:
    """Read each benchmark as a metric; other lines are of tests that ran too."""
    collector = Collector(CRITERION_FORMAT, source.file, level="process")
    runs: Counter[str] = Counter()
    for number, line in enumerate(source.text.split("\n"), 1):
        if not line.startswith("{"):
            continue
        try:
            message = parse_document(line, source.file)
        except RequestError as error:
            place = Place(source.file, number)
            raise RequestError(f"{error.message}; expected a whole message", place=place) from None
        reason = message.get("reason")
        if reason is None or reason.value != "benchmark-complete":
            continue
        unit = message.need("unit")
        factor = _CRITERION_UNITS.get(unit.text())
        if factor is None:
            raise unit.wrong(f"one of {', '.join(_CRITERION_UNITS)}")
        title = message.need("id").text()
        runs[title] += 1
        counts, times = message.need("iteration_count"), message.need("measured_values")
        _criterion_add(collector, source.name, title, counts, times, factor, process=runs[title])
    return collector.table()


def _criterion_add(
    collector: Collector,
    name: str,
    title: str,
    counts: DocumentNode,
    times: DocumentNode,
    factor: float,
    *,
    process: int = 1,
) -> None:
    metric = Metric(name=title, title=title, unit="s", direction="lower", what="Time of one iteration in each sample.")
    iterations, measured = counts.items(), times.items()
    if len(iterations) != len(measured):
        raise times.wrong(f"{len(iterations)} times, as there are counts of iterations")
    for count, time in zip(iterations, measured, strict=True):
        if count.number() <= 0:
            raise count.wrong("at least one iteration")
        collector.add(name, metric, time.number() * factor / count.number(), unit=str(process))
