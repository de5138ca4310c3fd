"""Documents of pytest-benchmark.

Source: pytest-benchmark 5, docs/usage, "--benchmark-json": benchmarks[].name, fullname, stats.data. Saved results
without data have the mean of their rounds.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.format import (
    Collector,
    DocumentNode,
)

PYTEST_BENCHMARK_FORMAT: Final = "pytest-benchmark JSON"


def recognise_pytest_benchmark(document: DocumentNode) -> bool:
    """Return whether a document is of this kind."""
    benchmarks = document.value.get("benchmarks") if isinstance(document.value, dict) else None
    return (
        isinstance(benchmarks, list)
        and bool(benchmarks)
        and all(
            isinstance(benchmark, dict) and "stats" in benchmark and "fullname" in benchmark for benchmark in benchmarks
        )
    )


def read_pytest_benchmark(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Read each test as a metric of the configuration ``name``, with its file where two have the same name."""
    collector = Collector(PYTEST_BENCHMARK_FORMAT, file, level="process")
    benchmarks = document.need("benchmarks").items()
    counted = Counter(benchmark.need("name").text() for benchmark in benchmarks)
    for benchmark in benchmarks:
        short = benchmark.need("name").text()
        title = short if counted[short] == 1 else benchmark.need("fullname").text()
        metric = Metric(name=title, title=title, unit="s", direction="lower", what="Time of each round.")
        stats = benchmark.need("stats")
        data = stats.get("data")
        if data is not None:
            for value in data.items():
                collector.add(name, metric, value.number())
            continue
        collector.add(name, metric, stats.need("mean").number())
    return collector.table()
