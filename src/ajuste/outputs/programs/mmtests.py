"""mmtests: the samples of each iteration from ``extract-mmtests.pl``, as text or ``--print-json`` (each run of a list
is a configuration); or the text of ``compare-kernels.sh``, one value of each summary (each kernel is a configuration).

Source: mmtests, bin/lib/MMTests/Compare.pm (_generateRenderTable), Extract.pm (addData, printReport), Stat.pm (pdiff
and pndiff: what is better is positive).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Direction, Metric
from ajuste.outputs.base import excerpt
from ajuste.outputs.collector import LOOKED_AT, Collector, number_at, utf8
from ajuste.outputs.format import DocumentFormat, DocumentNode, ResultSource, TextFormat, in_beginning

_NUMBER: Final = r"-?\d{1,20}(?:\.\d{1,12})?"
_LONGEST: Final = 2000


# The comparison: a row for each summary of each operation, a column for each kernel, and in brackets how much better.


COMPARED: Final = "mmtests' comparison"
_STATISTIC: Final = r"(?:Min|Max|[ABHG]{0,2}[Mm]ean|Stddev|CoeffVar|[123][a-z]{2}-qrtle|Lat)\S{0,40}"
_PAIR: Final = re.compile(rf"({_NUMBER})\s+[(*]\s*([+-]?\d{{1,9}}\.\d\d)%[)*]")
_ROW: Final = re.compile(
    rf"(?P<statistic>{_STATISTIC})\s+(?P<operation>\S.{{0,100}}?)??\s+(?P<pairs>{_NUMBER}\s+[(*]\s*[+-]?[\d.]{{1,12}}%[)*].*)"
)
_STARTS: Final = re.compile(rf"{_STATISTIC}\s+\S")
_RECOGNISED: Final = re.compile(rf"^{_STATISTIC}\s.{{0,120}}?\s{_NUMBER}\s+[(*]\s*[+-]?[\d.]+%[)*]", re.MULTILINE)


@dataclass(frozen=True)
class _Row:
    name: str
    values: tuple[float, ...]
    better: tuple[float, ...]
    line: int


def read_comparison(source: ResultSource) -> MeasuredTable:
    """Each kernel is a configuration, each summary of an operation one value of a metric. mmtests prints 0 where a
    kernel has no result.
    """
    found = Collector(COMPARED, source.file)
    heads: list[str] = []
    kernels: list[str] = []
    left_out = 0
    for number, whole in enumerate(source.text.splitlines(), 1):
        line = whole[:_LONGEST].expandtabs().rstrip()
        if not _STARTS.match(line):
            heads, kernels = ([*heads, line][-2:] if line else []), []
            continue
        row = _row(line, Place(source.file, number))
        kernels = kernels or _kernels(heads, line, len(row.values), Place(source.file, number))
        if len(kernels) != len(row.values):
            raise RequestError(
                f"found {len(row.values)} columns; expected {len(kernels)}, as in the heading",
                place=Place(source.file, number),
            )
        metric = Metric(name=row.name, title=row.name, unit="", direction=_direction(row))
        for kernel, value, better in zip(kernels, row.values, row.better, strict=True):
            if value == 0 and better == 0 and row.values[0] != 0:
                left_out += 1
            else:
                found.add(kernel, metric, value, line=number)
    if left_out:
        found.notes.append(f"{utf8(source.file.name)}: left out {left_out} summaries of 0 that stand for no result.")
    return found.table()


def _row(line: str, place: Place) -> _Row:
    parts = _ROW.fullmatch(line)
    pairs = _PAIR.findall(parts["pairs"]) if parts else []
    if parts is None or _PAIR.sub("", parts["pairs"]).strip():
        raise RequestError(f"found {excerpt(line)}; expected a figure and its change for each kernel", place=place)
    return _Row(
        " ".join(filter(None, (parts["statistic"], parts["operation"]))),
        tuple(number_at(value, "a summary", place) for value, _ in pairs),
        tuple(number_at(better, "a change", place) for _, better in pairs),
        place.line or 0,
    )


def _kernels(heads: Sequence[str], line: str, count: int, place: Place) -> list[str]:
    """The names above the columns: they end where the columns do, and are in two lines, split at their first dash."""
    ends = [found.end() for found in _PAIR.finditer(line)]
    starts = [0, *ends[:-1]]
    names = ["-".join(filter(None, (head[a:b].strip() for head in heads))) for a, b in zip(starts, ends, strict=True)]
    if len(names) != count or not all(names) or len(set(names)) != count:
        raise RequestError("the names of the kernels are missing above this row; expected two lines", place=place)
    return names


def _direction(row: _Row) -> Direction:
    """mmtests prints a positive change for what is better."""
    first = row.values[0]
    signs = {(value > first) == (better > 0) for value, better in zip(row.values, row.better, strict=True) if better}
    if len(signs) != 1:
        return "none"
    return "higher" if signs.pop() else "lower"


# The samples, as a text: operation, iteration, number of the sample, value.


EXTRACTED: Final = "extract-mmtests.pl"
_SAMPLE: Final = re.compile(
    rf"(?P<operation>[^\s\d]\S{{0,100}})\s+\d{{1,6}}\s+\d{{1,12}}(?:\.\d+)?\s+(?P<value>{_NUMBER})\s*", re.ASCII
)
_SURE: Final = 3


def recognise_samples(text: str) -> bool:
    """Whether the first lines of a text are samples."""
    lines = text[:LOOKED_AT].split("\n", _SURE)[:_SURE]
    return all(_SAMPLE.fullmatch(line[:_LONGEST]) for line in lines if line.strip()) and bool(lines[0].strip())


def read_samples(source: ResultSource) -> MeasuredTable:
    """Each operation is a metric, each sample of each iteration a value."""
    found = Collector(EXTRACTED, source.file)
    for number, line in enumerate(source.text.splitlines(), 1):
        if not line.strip():
            continue
        sample = _SAMPLE.fullmatch(line[:_LONGEST])
        if sample is None:
            raise RequestError(
                f"found {excerpt(line)}; expected operation, iteration, sample and value",
                place=Place(source.file, number),
            )
        name = sample["operation"]
        metric = Metric(name=name, title=name, unit="", direction="none")
        found.add(source.name, metric, number_at(sample["value"], name, Place(source.file, number)), line=number)
    return found.table()


# The same as JSON, which says what is better.


_PREFERRED: Final[dict[str, Direction]] = {"Lower": "lower", "Higher": "higher"}


def recognise(document: DocumentNode) -> bool:
    """Whether a document is what ``--print-json`` prints: a benchmark, or several kernels' results of it."""
    whole = document.value if isinstance(document.value, list) else [document.value]
    return bool(whole) and all(isinstance(one, dict) and "_ResultData" in one for one in whole)


def read(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Several results are configurations, called as their runs were; one is the configuration ``name``."""
    found = Collector(EXTRACTED, file)
    modules = document.items() if isinstance(document.value, list) else [document]
    for module in modules:
        configuration = name if len(modules) == 1 else module.need("_TestName").text()
        preferred = module.get("_PreferredVal")
        direction = _PREFERRED.get(preferred.text(), "none") if preferred else "none"
        for operation, value in _values(module):
            own = Metric(name=operation, title=operation, unit="", direction=direction)
            found.add(configuration, own, value)
    return found.table()


def _values(module: DocumentNode) -> Iterator[tuple[str, float]]:
    """Perl writes numbers as texts or as numbers."""
    for operation, iterations in sorted(module.need("_ResultData").members(), key=lambda one: one[0]):
        for iteration in iterations.items():
            for value in iteration.need("Values").items():
                if isinstance(value.value, str):
                    yield utf8(operation), number_at(value.text(), operation, value.place)
                else:
                    yield utf8(operation), value.number()


TEXTS: Final = (
    TextFormat("mmtests", COMPARED, in_beginning(_RECOGNISED), read_comparison),
    TextFormat("mmtests", EXTRACTED, recognise_samples, read_samples),
)
DOCUMENTS: Final = (DocumentFormat("mmtests", "extract-mmtests.pl --print-json", recognise, read),)
