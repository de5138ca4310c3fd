"""Documents of pyperf.

Source: pyperf's documentation, "pyperf JSON": benchmarks[].runs[].values, metadata.name and metadata.unit.
"""

from __future__ import annotations

from pathlib import Path

from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.format import (
    Collector,
    DocumentNode,
)

PYPERF_FORMAT = "pyperf JSON"
_PYPERF_UNITS = {"second": "s", "byte": "bytes", "integer": ""}


def read_pyperf(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Read each benchmark of the file as a metric of the configuration ``name``."""
    collector = Collector(PYPERF_FORMAT, file, level="process")
    common = document.get("metadata")
    for number, benchmark in enumerate(document.need("benchmarks").items(), start=1):
        specific = benchmark.get("metadata")
        title = _metadata_text(specific, "name") or _metadata_text(common, "name") or f"benchmark-{number}"
        unit = _metadata_text(specific, "unit") or _metadata_text(common, "unit") or "second"
        metric = Metric(name=title, title=title, unit=_PYPERF_UNITS.get(unit, unit), direction="lower")
        for process, run in enumerate(benchmark.need("runs").items(), 1):
            values = run.get("values")
            for value in values.items() if values else ():
                collector.add(name, metric, value.number(), unit=str(process))
    return collector.table()


def _metadata_text(metadata: DocumentNode | None, name: str) -> str:
    node = metadata.get(name) if metadata else None
    return node.text() if node else ""
