"""pyperf's JSON: each value of each benchmark (processes are compared; calibration and warm-ups have no value).

Source: pyperf's documentation, "pyperf JSON": benchmarks[].runs[].values, metadata.name and metadata.unit.
"""

from __future__ import annotations

from pathlib import Path

from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.collector import Collector
from ajuste.outputs.format import DocumentFormat, DocumentNode, lists

FORMAT = "pyperf JSON"
_UNITS = {"second": "s", "byte": "bytes", "integer": ""}


def read(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Each benchmark of the file is a metric of the configuration ``name``."""
    found = Collector(FORMAT, file, level="process")
    common = document.get("metadata")
    for number, benchmark in enumerate(document.need("benchmarks").items(), start=1):
        own = benchmark.get("metadata")
        title = _said(own, "name") or _said(common, "name") or f"benchmark-{number}"
        unit = _said(own, "unit") or _said(common, "unit") or "second"
        metric = Metric(name=title, title=title, unit=_UNITS.get(unit, unit), direction="lower")
        for process, run in enumerate(benchmark.need("runs").items(), 1):
            values = run.get("values")
            for value in values.items() if values else ():
                found.add(name, metric, value.number(), unit=str(process))
    return found.table()


def _said(metadata: DocumentNode | None, name: str) -> str:
    found = metadata.get(name) if metadata else None
    return found.text() if found else ""


DOCUMENTS = (DocumentFormat("pyperf", "pyperf's JSON", lists("benchmarks", "runs"), read),)
