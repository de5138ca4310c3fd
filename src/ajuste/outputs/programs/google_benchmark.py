"""Google Benchmark's JSON: each repetition (a file is one process), a metric for each benchmark; its own aggregates are
left to Ajuste.

Source: google/benchmark, docs/user_guide.md, "Output formats": benchmarks[].run_type, run_name, real_time, cpu_time,
time_unit.
"""

from __future__ import annotations

from pathlib import Path

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.collector import Collector
from ajuste.outputs.format import DocumentFormat, DocumentNode, lists

FORMAT = "Google Benchmark JSON"
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def read(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Each benchmark is two metrics of the configuration ``name``, in seconds: its real time and its CPU time."""
    found = Collector(FORMAT, file, level="process")
    aggregates = False
    for one in document.need("benchmarks").items():
        kind = one.get("run_type")
        if kind is not None and kind.text() == "aggregate":
            aggregates = True
            continue
        if (failed := one.get("error_occurred")) and failed.value:
            raise RequestError(
                "this benchmark failed; expected results without failures",
                place=one.place,
                hint="fix the failure and measure again",
            )
        title = (one.get("run_name") or one.need("name")).text()
        unit = (one.get("time_unit") or one.need("time_unit")).text()
        if unit not in _SECONDS:
            raise one.need("time_unit").wrong(f"one of {', '.join(_SECONDS)}")
        for field, suffix in (("real_time", ""), ("cpu_time", " (CPU)")):
            if (time := one.get(field)) is not None:
                metric = Metric(name=title + suffix, title=title + suffix, unit="s", direction="lower")
                found.add(name, metric, time.number() * _SECONDS[unit])
    if aggregates and found.empty:
        raise RequestError(
            "found only aggregates; expected every repetition",
            place=Place(file),
            hint="measure without --benchmark_report_aggregates_only",
        )
    return found.table()


DOCUMENTS = (DocumentFormat("google-benchmark", "Google Benchmark's JSON", lists("benchmarks", "real_time"), read),)
