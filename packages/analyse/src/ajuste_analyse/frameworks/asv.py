"""Results of airspeed velocity.

Source: asv 0.6, asv/results.py: result_columns, results (version 2); ``asv run --record-samples`` keeps the
samples. The units of what is tracked are in another file, benchmarks.json.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from typing import Final

from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.format import (
    MOST_METRICS,
    Collector,
    DocumentNode,
    utf8,
)

ASV_FORMAT: Final = "asv results"
_ASV_UNITS: Final = {"time": "s", "timeraw": "s", "mem": "bytes", "peakmem": "bytes"}


def recognise_asv(document: DocumentNode) -> bool:
    """Return whether a document is of this kind."""
    whole = document.value
    return isinstance(whole, dict) and isinstance(whole.get("results"), dict) and "result_columns" in whole


def read_asv(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Read each benchmark as a metric for each of its parameters' values."""
    collector = Collector(ASV_FORMAT, file)
    columns = [column.text() for column in document.need("result_columns").items()]
    failed = 0
    for benchmark, entry in document.need("results").members():
        values = dict(zip(columns, entry.items(), strict=False))
        if "result" not in values or values["result"].value is None:
            failed += 1
            continue
        results = values["result"].items()
        samples = _listed(values.get("samples"))
        # asv takes less as better in all benchmarks.
        unit = _ASV_UNITS.get(benchmark.rsplit(".", 1)[-1].split("_", 1)[0], "")
        titles = list(islice(_titles(utf8(benchmark), values.get("params")), MOST_METRICS + 1))
        if len(titles) != len(results):
            raise values["result"].wrong(f"{len(titles)} results, one for each of the parameters' values")
        for number, (title, result) in enumerate(zip(titles, results, strict=True)):
            if result.value is None or (isinstance(result.value, float) and math.isnan(result.value)):
                failed += 1
                continue
            sample = samples[number].value if number < len(samples) else None
            measured = samples[number].items() if sample else [result]
            metric = Metric(name=title, title=title, unit=unit, direction="lower")
            for value in measured:
                collector.add(name, metric, value.number())
    if failed:
        collector.notes.append(f"{utf8(file.name)}: left out {failed} results that failed or were skipped.")
    return collector.table()


def _listed(samples: DocumentNode | None) -> list[DocumentNode]:
    return samples.items() if samples is not None and samples.value is not None else []


def _titles(benchmark: str, params: DocumentNode | None) -> Iterator[str]:
    values = [[node.text() for node in values.items()] for values in _listed(params)]
    for chosen in product(*values):
        yield f"{benchmark}({', '.join(chosen)})" if chosen else benchmark
