"""pytest-benchmark's JSON (``--benchmark-json``): the time of each round of each test, or their mean where a saved
file has no rounds. All rounds of a file come from one process: files are compared.

Source: pytest-benchmark 5, docs/usage, "--benchmark-json": benchmarks[].name, fullname, stats.data. Saved results
without data have the mean of their rounds.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.collector import Collector
from ajuste.outputs.format import DocumentFormat, DocumentNode

FORMAT: Final = "pytest-benchmark JSON"


def recognise(document: DocumentNode) -> bool:
    """Whether a document is of this kind."""
    benchmarks = document.value.get("benchmarks") if isinstance(document.value, dict) else None
    return (
        isinstance(benchmarks, list)
        and bool(benchmarks)
        and all(isinstance(one, dict) and "stats" in one and "fullname" in one for one in benchmarks)
    )


def read(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Each test is a metric of the configuration ``name``; with its file where two have the same name."""
    found = Collector(FORMAT, file, level="process")
    benchmarks = document.need("benchmarks").items()
    counted = Counter(one.need("name").text() for one in benchmarks)
    for one in benchmarks:
        short = one.need("name").text()
        title = short if counted[short] == 1 else one.need("fullname").text()
        metric = Metric(name=title, title=title, unit="s", direction="lower", what="Time of each round.")
        stats = one.need("stats")
        data = stats.get("data")
        if data is not None:
            for value in data.items():
                found.add(name, metric, value.number())
            continue
        found.add(name, metric, stats.need("mean").number())
    return found.table()


DOCUMENTS: Final = (DocumentFormat("pytest-benchmark", FORMAT, recognise, read),)
