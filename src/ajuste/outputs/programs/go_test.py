"""``go test -bench``, which benchstat reads too: each line (``-count`` gives several), a metric for each benchmark and
unit, named as benchstat does. All lines of a run come from one process of a package: runs are compared.

Source: golang.org/design/14313-benchmark-format and golang.org/x/perf/benchfmt (Unit lines, names without Benchmark).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Direction, Metric
from ajuste.outputs.base import excerpt
from ajuste.outputs.collector import Collector, number_at
from ajuste.outputs.format import ResultSource, TextFormat, in_beginning

FORMAT: Final = "go test -bench"
_NUMBER: Final = r"[0-9.eE+-]{1,40}"
_BEGUN: Final = re.compile(r"Benchmark\S{0,200}\s+\d+(?:\s|$)")
_RESULT: Final = re.compile(
    rf"Benchmark(?P<name>\S{{0,200}})\s+\d{{1,18}}(?P<figures>(?:\s+{_NUMBER}\s+[^\s\d]\S{{0,60}}){{1,40}})\s*"
)
_RECOGNISED: Final = re.compile(rf"^Benchmark\S{{0,200}}\s+\d{{1,18}}\s+{_NUMBER}\s+[^\s\d]\S*", re.MULTILINE)
_FIGURE: Final = re.compile(rf"({_NUMBER})\s+([^\s\d]\S{{0,60}})")
_FAILED: Final = re.compile(r"(?:--- FAIL:|FAIL\b|panic:)")
_BETTER: Final = re.compile(r"Unit\s+(?P<unit>\S{1,60})\s+(?:.*\s)?better=(?P<better>higher|lower)\b")
_PACKAGE: Final = re.compile(r"pkg:\s*(\S{1,200})")
_SCALES: Final[dict[str, tuple[str, float, Direction]]] = {
    "ns/op": ("s", 1e-9, "lower"),
    "MB/s": ("bytes/s", 1e6, "higher"),
    "B/op": ("bytes", 1.0, "lower"),
    "allocs/op": ("", 1.0, "lower"),
}
"""As benchstat has them; the unit of what has none here is written after the benchmark's name."""
_LONGEST: Final = 4000


@dataclass(frozen=True)
class _Result:
    package: str
    process: int
    name: str
    unit: str
    value: float
    line: int


def read(source: ResultSource) -> MeasuredTable:
    """Each benchmark is a metric for each of its units, called as benchstat does; with its package if there are
    several.
    """
    found = Collector(FORMAT, source.file, level="process")
    better: dict[str, Direction] = {}
    results = list(_results(source, better))
    packages = {one.package for one in results}
    for one in results:
        name = f"{one.package}.{one.name}" if len(packages) > 1 else one.name
        metric, factor = _metric(name, one.unit, better)
        found.add(source.name, metric, one.value * factor, unit=str(one.process), line=one.line)
    return found.table()


def _results(source: ResultSource, better: dict[str, Direction]) -> Iterator[_Result]:
    """The figures of all lines; ``better`` gets the directions that the file gives of its units."""
    package, process = "", 1
    begun: set[str] = set()
    for number, whole in enumerate(source.text.splitlines(), 1):
        line = whole[:_LONGEST]
        place = Place(source.file, number)
        if _FAILED.match(line):
            raise RequestError(f"found {excerpt(line)}", place=place, hint="fix the failure and measure again")
        if said := _PACKAGE.match(line):
            package = said[1]
            process += package in begun
            begun.add(package)
        elif said := _BETTER.match(line):
            better[said["unit"]] = "higher" if said["better"] == "higher" else "lower"
        elif _BEGUN.match(line):
            result = _RESULT.fullmatch(line)
            if result is None:
                raise RequestError(f"found {excerpt(line)}; expected figures, each with its unit", place=place)
            for text, unit in _FIGURE.findall(result["figures"]):
                name, value = result["name"] or "Benchmark", number_at(text, unit, place)
                yield _Result(package, process, name, unit, value, number)


def _metric(name: str, unit: str, better: dict[str, Direction]) -> tuple[Metric, float]:
    known, factor, direction = _SCALES.get(unit, (unit, 1.0, "higher" if unit.endswith("/s") else "none"))
    title = name if unit == "ns/op" else f"{name} {unit}"
    scale = "difference" if unit in ("B/op", "allocs/op") else "ratio"
    made = Metric(name=title, title=title, unit=known, direction=better.get(unit, direction), scale=scale)
    return made, factor


TEXTS: Final = (TextFormat("go", FORMAT, in_beginning(_RECOGNISED), read),)
