"""Documents of Google Benchmark.

Source: google/benchmark, docs/user_guide.md, "Output formats": benchmarks[].run_type, run_name, real_time,
cpu_time, time_unit.
"""

from __future__ import annotations

from pathlib import Path

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.format import (
    Collector,
    DocumentNode,
)

GOOGLE_BENCHMARK_FORMAT = "Google Benchmark JSON"
_GOOGLE_BENCHMARK_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def read_google_benchmark(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Read each benchmark as two metrics of the configuration ``name``, in seconds: real time and CPU time."""
    collector = Collector(GOOGLE_BENCHMARK_FORMAT, file, level="process")
    aggregates = False
    for benchmark in document.need("benchmarks").items():
        kind = benchmark.get("run_type")
        if kind is not None and kind.text() == "aggregate":
            aggregates = True
            continue
        if (failed := benchmark.get("error_occurred")) and failed.value:
            raise RequestError(
                "this benchmark failed; expected results without failures",
                place=benchmark.place,
                hint="fix the failure and measure again",
            )
        title = (benchmark.get("run_name") or benchmark.need("name")).text()
        unit = (benchmark.get("time_unit") or benchmark.need("time_unit")).text()
        if unit not in _GOOGLE_BENCHMARK_SECONDS:
            raise benchmark.need("time_unit").wrong(f"one of {', '.join(_GOOGLE_BENCHMARK_SECONDS)}")
        for field, suffix in (("real_time", ""), ("cpu_time", " (CPU)")):
            if (time := benchmark.get(field)) is not None:
                metric = Metric(name=title + suffix, title=title + suffix, unit="s", direction="lower")
                collector.add(name, metric, time.number() * _GOOGLE_BENCHMARK_SECONDS[unit])
    if aggregates and collector.empty:
        raise RequestError(
            "found only aggregates; expected every repetition",
            place=Place(file),
            hint="measure without --benchmark_report_aggregates_only",
        )
    return collector.table()
