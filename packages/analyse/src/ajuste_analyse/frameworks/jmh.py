"""Documents of JMH.

Source: JMH 1.37, org.openjdk.jmh.results.format.JSONResultFormat: primaryMetric and secondaryMetrics with scoreUnit
and rawData (forks of iterations); in the mode ``sample`` rawDataHistogram (pairs of a time and how often it was
seen).
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Final

from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.format import (
    Collector,
    DocumentNode,
)
from ajuste_stats.terms import Direction

JMH_FORMAT: Final = "JMH JSON"
_JMH_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "hr": 3600.0, "day": 86400.0}
_BYTES: Final = {"B/op": ("bytes", 1.0), "MB/sec": ("bytes/s", float(1 << 20)), "counts": ("", 1.0)}
_PRINTED: Final = {"50.0": "p50", "90.0": "p90", "95.0": "p95", "99.0": "p99", "99.9": "p99.9", "99.99": "p99.99"}


def recognise_jmh(document: DocumentNode) -> bool:
    """Return whether a document is of this kind."""
    whole = document.value
    return (
        isinstance(whole, list)
        and bool(whole)
        and all(isinstance(result, dict) and "primaryMetric" in result for result in whole)
    )


def read_jmh(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Read each benchmark as a metric, with its parameters, and with its mode where it ran in several."""
    collector = Collector(JMH_FORMAT, file, level="fork")
    results = document.items()
    modes: dict[str, set[str]] = defaultdict(set)
    for result in results:
        modes[_jmh_benchmark(result)].add(result.need("mode").text())
    for result in results:
        title, mode = _jmh_benchmark(result), result.need("mode").text()
        if len(modes[title]) > 1:
            title = f"{title} ({mode})"
        primary = result.need("primaryMetric")
        _jmh_add(collector, name, title, primary, "higher" if mode == "thrpt" else "lower")
        collector.main.add(title)
        if primary.get("rawDataHistogram") is not None:
            _add_percentiles(collector, name, title, primary)
        secondary = result.get("secondaryMetrics")
        for key, metric in secondary.members() if secondary else ():
            _jmh_add(collector, name, f"{title} {key.removeprefix('·')}", metric, "none")
    return collector.table()


def _jmh_benchmark(result: DocumentNode) -> str:
    params = result.get("params")
    described = ", ".join(f"{key}={value.text()}" for key, value in params.members()) if params else ""
    benchmark = result.need("benchmark").text()
    return f"{benchmark} [{described}]" if described else benchmark


def _jmh_metric(title: str, unit: DocumentNode, direction: Direction) -> tuple[Metric, float]:
    before, _, after = unit.text().partition("/")
    scale: tuple[str, float] = _BYTES.get(unit.text(), (unit.text(), 1.0))
    if before == "ops" and after in _JMH_SECONDS:
        scale = ("1/s", 1 / _JMH_SECONDS[after])
    elif after in ("op", "") and before in _JMH_SECONDS:
        scale = ("s", _JMH_SECONDS[before])
    metric = Metric(
        name=title,
        title=title,
        unit=scale[0],
        direction=direction,
        scale="difference" if direction == "none" else "ratio",
    )
    return metric, scale[1]


def _jmh_add(collector: Collector, name: str, title: str, scored: DocumentNode, direction: Direction) -> None:
    metric, factor = _jmh_metric(title, scored.need("scoreUnit"), direction)
    histogram = scored.get("rawDataHistogram")
    forks = histogram or scored.need("rawData")
    for number, fork in enumerate(forks.items(), 1):
        for iteration in fork.items():
            value = _mean(iteration) if histogram else iteration.number()
            collector.add(name, metric, value * factor, unit=str(number))


def _mean(iteration: DocumentNode) -> float:
    # Of pairs of a time and a count.
    total, number = 0.0, 0.0
    for pair in iteration.items():
        both = pair.items()
        if len(both) != 2 or both[1].number() <= 0:
            raise pair.wrong("a time and how often it was measured")
        total += both[0].number() * both[1].number()
        number += both[1].number()
    if not number:
        raise iteration.wrong("at least one time")
    return total / number


def _add_percentiles(collector: Collector, name: str, title: str, primary: DocumentNode) -> None:
    # Of all samples together: one value each.
    percentiles = primary.need("scorePercentiles")
    for key, word in _PRINTED.items():
        value = percentiles.get(key)
        if value is not None:
            metric, factor = _jmh_metric(f"{title} {word}", primary.need("scoreUnit"), "lower")
            collector.add(name, metric, value.number() * factor)
