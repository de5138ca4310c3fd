"""pytest-benchmark's JSON (``--benchmark-json``): the time of each round of each test; a saved file without rounds is a
summary.

Source: pytest-benchmark 5, docs/usage, "--benchmark-json": benchmarks[].name, fullname, stats.data. Saved results
without data have the mean and the standard deviation of their rounds.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Final

from ajuste.model.measurements import MeasuredTable, Summarised
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
    found = Collector(FORMAT, file)
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
        rounds = stats.need("rounds").number()
        if not 2 <= rounds <= 1e9 or rounds != int(rounds):
            raise stats.need("rounds").wrong("the number of rounds, at least 2")
        mean, spread = (stats.need(key).number() for key in ("mean", "stddev"))
        found.add_summary(name, metric, Summarised(int(rounds), mean, spread / math.sqrt(rounds)))
    return found.table()


DOCUMENTS: Final = (DocumentFormat("pytest-benchmark", FORMAT, recognise, read),)
