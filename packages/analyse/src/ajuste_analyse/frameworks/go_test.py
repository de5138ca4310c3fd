"""Output of ``go test -bench``.

Source: golang.org/design/14313-benchmark-format and golang.org/x/perf/benchfmt (Unit lines, names without
Benchmark).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.base import excerpt
from ajuste.outputs.format import (
    Collector,
    ResultSource,
    number_at,
)
from ajuste_stats.terms import Direction

GO_TEST_FORMAT: Final = "go test -bench"
_NUMBER: Final = r"[0-9.eE+-]{1,40}"
_BEGUN: Final = re.compile(r"Benchmark\S{0,200}\s+\d+(?:\s|$)")
_RESULT: Final = re.compile(
    rf"Benchmark(?P<name>\S{{0,200}})\s+\d{{1,18}}(?P<figures>(?:\s+{_NUMBER}\s+[^\s\d]\S{{0,60}}){{1,40}})\s*"
)
# Also of a run that failed or has no benchmarks.
RECOGNISED: Final = re.compile(
    rf"^(?:Benchmark\S{{0,200}}\s+\d{{1,18}}\s+{_NUMBER}\s+[^\s\d]\S*|(?:goos|pkg): \S|--- FAIL: Benchmark)",
    re.MULTILINE,
)
_FIGURE: Final = re.compile(rf"({_NUMBER})\s+([^\s\d]\S{{0,60}})")
_FAILED: Final = re.compile(r"(?:--- FAIL:|FAIL\b|panic:)")
_BETTER: Final = re.compile(r"Unit\s+(?P<unit>\S{1,60})\s+(?:.*\s)?better=(?P<better>higher|lower)\b")
_PACKAGE: Final = re.compile(r"pkg:\s*(\S{1,200})")
# As benchstat has them; the unit of what has none here is written after the benchmark's name.
_SCALES: Final[dict[str, tuple[str, float, Direction]]] = {
    "ns/op": ("s", 1e-9, "lower"),
    "MB/s": ("bytes/s", 1e6, "higher"),
    "B/op": ("bytes", 1.0, "lower"),
    "allocs/op": ("", 1.0, "lower"),
}
_LONGEST: Final = 4000


@dataclass(frozen=True)
class _Result:
    package: str
    process: int
    name: str
    unit: str
    value: float
    line: int


def read_go_test(source: ResultSource) -> MeasuredTable:
    """Read each benchmark as a metric for each of its units, named as benchstat does, with its package if there are
    several.
    """
    collector = Collector(GO_TEST_FORMAT, source.file, level="process")
    better: dict[str, Direction] = {}
    results = list(_results(source, better))
    packages = {result.package for result in results}
    for result in results:
        name = f"{result.package}.{result.name}" if len(packages) > 1 else result.name
        unit, factor, direction = _SCALES.get(
            result.unit, (result.unit, 1.0, "higher" if result.unit.endswith("/s") else "none")
        )
        title = name if result.unit == "ns/op" else f"{name} {result.unit}"
        scale = "difference" if result.unit in ("B/op", "allocs/op") else "ratio"
        metric = Metric(name=title, title=title, unit=unit, direction=better.get(result.unit, direction), scale=scale)
        collector.add(source.name, metric, result.value * factor, unit=str(result.process), line=result.line)
    return collector.table()


def _results(source: ResultSource, better: dict[str, Direction]) -> Iterator[_Result]:
    package, process = "", 1
    started: set[str] = set()
    for number, whole in enumerate(source.text.splitlines(), 1):
        line = whole[:_LONGEST]
        place = Place(source.file, number)
        if _FAILED.match(line):
            raise RequestError(f"found {excerpt(line)}", place=place, hint="fix the failure and measure again")
        if match := _PACKAGE.match(line):
            package = match[1]
            process += package in started
            started.add(package)
        elif match := _BETTER.match(line):
            better[match["unit"]] = "higher" if match["better"] == "higher" else "lower"
        elif _BEGUN.match(line):
            result = _RESULT.fullmatch(line)
            if result is None:
                raise RequestError(f"found {excerpt(line)}; expected figures, each with its unit", place=place)
            for text, unit in _FIGURE.findall(result["figures"]):
                name, value = result["name"] or "Benchmark", number_at(text, unit, place)
                yield _Result(package, process, name, unit, value, number)
