"""Criterion.rs: ``sample.json``, or the messages of ``cargo criterion --message-format=json``; the time per iteration
of each sample, a metric for each benchmark. All samples of a run come from one process: runs are compared.

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
from ajuste.outputs.collector import Collector, utf8
from ajuste.outputs.format import DocumentFormat, DocumentNode, ResultSource, TextFormat, in_beginning, parse_document

FORMAT: Final = "Criterion.rs"
_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_MESSAGE: Final = re.compile(r'^\{"reason":\s?"benchmark-complete"', re.MULTILINE)
_MOST_BYTES: Final = 1 << 16


def recognise(document: DocumentNode) -> bool:
    """Whether a document has the samples of a benchmark."""
    return isinstance(document.value, dict) and {"iters", "times"} <= document.value.keys()


def read(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """The metric is called after the benchmark: as ``benchmark.json`` beside the file says, or after its folder."""
    found = Collector(FORMAT, file, level="process")
    _add(found, name, _benchmark(file), document.need("iters"), document.need("times"), _UNITS["ns"])
    return found.table()


def recognise_estimates(document: DocumentNode) -> bool:
    """Whether a document has only the estimates of a benchmark."""
    whole = document.value
    return isinstance(whole, dict) and isinstance(whole.get("mean"), dict) and "point_estimate" in whole["mean"]


def refuse_estimates(_document: DocumentNode, _name: str, file: Path) -> MeasuredTable:
    """Raise RequestError: they do not say how many samples they are of."""
    raise RequestError(
        "found estimates only; expected the samples that they are of",
        place=Place(file),
        hint="give the file sample.json beside it",
    )


def _benchmark(file: Path) -> str:
    described = file.with_name("benchmark.json")
    try:
        if described.is_file() and described.stat().st_size <= _MOST_BYTES:
            said = json.loads(described.read_text(encoding="utf-8")).get("full_id")
            if isinstance(said, str) and said.strip():
                return utf8(said)
    except (OSError, ValueError, AttributeError, RecursionError):
        pass  # it is not of Criterion.rs
    return utf8(file.absolute().parent.parent.name) or "time"


def read_messages(source: ResultSource) -> MeasuredTable:
    """Each benchmark is a metric; other lines are of the tests that ran too."""
    found = Collector(FORMAT, source.file, level="process")
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
        factor = _UNITS.get(unit.text())
        if factor is None:
            raise unit.wrong(f"one of {', '.join(_UNITS)}")
        title = message.need("id").text()
        runs[title] += 1
        counts, times = message.need("iteration_count"), message.need("measured_values")
        _add(found, source.name, title, counts, times, factor, process=runs[title])
    return found.table()


def _add(
    found: Collector,
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
        found.add(name, metric, time.number() * factor / count.number(), unit=str(process))


TEXTS: Final = (
    TextFormat("criterion", "cargo criterion --message-format=json", in_beginning(_MESSAGE), read_messages),
)
DOCUMENTS: Final = (
    DocumentFormat("criterion", "Criterion.rs sample.json", recognise, read),
    DocumentFormat("criterion", "Criterion.rs estimates.json", recognise_estimates, refuse_estimates),
)
