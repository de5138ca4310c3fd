"""Suites of benchmarks: lkp-tests, mmtests, the Phoronix Test Suite and UnixBench."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, NoReturn
from xml.parsers import expat

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable, Summarised
from ajuste.model.metric import Metric
from ajuste.outputs.base import excerpt
from ajuste.outputs.format import (
    LOOKED_AT,
    Collector,
    DocumentFormat,
    DocumentNode,
    Parser,
    ResultSource,
    TextFormat,
    in_beginning,
    number_at,
    utf8,
)
from ajuste_programs.printed import NUMBER, PrintedReport, PrintedRow
from ajuste_stats.terms import Direction

# Source: lkp-tests, lib/compare.rb (show_group_header, show_perf_change, show_failure_change), lib/matrix.rb: the
# JSON has a number for each statistic of a run, or a list with one of each run.


LKP_COMPARED: Final = "lkp's comparison"
# A standard deviation of up to so many per cent of the mean is not printed; others are cut to whole per cents.
_UNPRINTED: Final = 2.0
_LKP_NUMBER: Final = r"-?\d{1,20}(?:\.\d{1,9})?(?:e[+-]\d{1,3})?"
_CELL: Final = rf"({_LKP_NUMBER})(?: ±\s*(\d{{1,6}})%)?"
_FIRST: Final = re.compile(rf"\s*{_CELL}")
_NEXT: Final = re.compile(rf"\s+[+-]?{_LKP_NUMBER}%?\s+{_CELL}")
_LKP_STATISTIC: Final = re.compile(r"[ \t]+(?P<name>[^\s\d±+-]\S{0,150})\s*")
_FAILURES: Final = re.compile(r"\s*\d{0,9}:\d{1,9}\s")
_HEAD: Final = re.compile(r"^[ \t]*%stddev(?:[ \t]+%change[ \t]+%stddev)+[ \t]*$", re.MULTILINE)
_RULE: Final = re.compile(r"-{8,}(?:\s+-{8,})+\s*")
_LKP_LONGEST: Final = 1000


def read_comparison_lkp(source: ResultSource) -> MeasuredTable:
    """Read a table in which each commit is a configuration, each statistic a metric: the mean of the runs, of which the
    table does not say how many they are. Deviations are taken as large as the table allows.
    """
    collector = Collector(LKP_COMPARED, source.file)
    commits: list[str] = []
    inside = False
    before = ""
    failures = 0
    for number, whole in enumerate(source.text.splitlines(), 1):
        line = whole[:_LKP_LONGEST].rstrip()
        place = Place(source.file, number)
        if _RULE.fullmatch(line):
            commits, inside = before.split(), False
            if len(commits) != len(line.split()) or len(set(commits)) != len(commits):
                raise RequestError(f"found {excerpt(before)}; expected a commit for each column", place=place)
        elif _HEAD.match(line):
            inside = True
            if len(commits) < 2:
                raise RequestError(
                    "found a table without names; expected the names of the commits above this line", place=place
                )
        elif _FAILURES.match(line):
            failures += 1
        elif not line or line.startswith("==="):
            inside = inside and not line.startswith("===")
        elif inside and not set(line) <= set(" |\\"):
            _add_row(collector, line, commits, source.runs, place)
        before = line
    if failures:
        collector.notes.append(f"{utf8(source.file.name)}: left out {failures} rows of failed runs.")
    return collector.table()


def _add_row(collector: Collector, line: str, commits: Sequence[str], runs: int | None, place: Place) -> None:
    cells = []
    part = _FIRST.match(line)
    for _ in commits:
        if part is None:
            break
        cells.append((part[1], part[2]))
        end = part.end()
        part = _NEXT.match(line, end)
    statistic = _LKP_STATISTIC.fullmatch(line, end) if len(cells) == len(commits) else None
    if statistic is None:
        raise RequestError(f"found {excerpt(line)}; expected a figure for each commit, and a name", place=place)
    metric = Metric(name=statistic["name"], title=statistic["name"], unit="", direction="none")
    for commit, (mean, deviation) in zip(commits, cells, strict=True):
        value = number_at(mean, metric.name, place)
        if runs is None:
            raise RequestError(
                "found means of several runs; the number of runs is missing",
                place=place,
                hint="give it with --runs N: the runs of each commit",
            )
        most = float(deviation) + 1 if deviation else _UNPRINTED
        sem = abs(value) * most / 100 / math.sqrt(runs)
        collector.add_summary(commit, metric, Summarised(runs, value, sem), place.line)


LKP_FORMAT: Final = "lkp's statistics"


def recognise_lkp(document: DocumentNode) -> bool:
    """Return whether a document is of this kind: numbers, or lists of them, by dotted names."""
    whole = document.value
    return (
        isinstance(whole, dict)
        and bool(whole)
        and all("." in name or name == "stats_source" for name in whole)
        and all(isinstance(value, int | float | list) for value in whole.values())
    )


def read_lkp(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Read a document in which each statistic is a metric, with a value of each run."""
    collector = Collector(LKP_FORMAT, file)
    for statistic, value in document.members():
        if statistic == "stats_source":
            continue
        metric = Metric(name=utf8(statistic), title=utf8(statistic), unit="", direction="none")
        for run in value.items() if isinstance(value.value, list) else [value]:
            collector.add(name, metric, run.number())
    return collector.table()


# Source: mmtests, bin/lib/MMTests/Compare.pm (_generateRenderTable), Extract.pm (addData, printReport), Stat.pm
# (pdiff and pndiff: what is better is positive).


_MMTESTS_NUMBER: Final = r"-?\d{1,20}(?:\.\d{1,12})?"
_MMTESTS_LONGEST: Final = 2000


# The comparison: a row for each summary of each operation, a column for each kernel, and in brackets how much better.


MMTESTS_COMPARED: Final = "mmtests' comparison"
_MMTESTS_STATISTIC: Final = r"(?:Min|Max|[ABHG]{0,2}[Mm]ean|Stddev|CoeffVar|[123][a-z]{2}-qrtle|Lat)\S{0,40}"
_PAIR: Final = re.compile(rf"({_MMTESTS_NUMBER})\s+[(*]\s*([+-]?\d{{1,9}}\.\d\d)%[)*]")
_ROW: Final = re.compile(
    rf"(?P<statistic>{_MMTESTS_STATISTIC})\s+(?P<operation>\S.{{0,100}}?)??\s+(?P<pairs>{_MMTESTS_NUMBER}\s+[(*]\s*[+-]?[\d.]{{1,12}}%[)*].*)"
)
_STARTS: Final = re.compile(rf"{_MMTESTS_STATISTIC}\s+\S")
_RECOGNISED: Final = re.compile(
    rf"^{_MMTESTS_STATISTIC}\s.{{0,120}}?\s{_MMTESTS_NUMBER}\s+[(*]\s*[+-]?[\d.]+%[)*]", re.MULTILINE
)


@dataclass(frozen=True)
class _Row:
    name: str
    values: tuple[float, ...]
    better: tuple[float, ...]
    line: int


def read_comparison_mmtests(source: ResultSource) -> MeasuredTable:
    """Read a table in which each kernel is a configuration, each summary of an operation one value of a metric. mmtests
    prints 0 where a kernel has no result.
    """
    collector = Collector(MMTESTS_COMPARED, source.file)
    heads: list[str] = []
    kernels: list[str] = []
    left_out = 0
    for number, whole in enumerate(source.text.splitlines(), 1):
        line = whole[:_MMTESTS_LONGEST].expandtabs().rstrip()
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
        # mmtests prints a positive change for what is better.
        changes = [
            (value > row.values[0]) == (better > 0)
            for value, better in zip(row.values, row.better, strict=True)
            if better
        ]
        direction: Direction = "none"
        if len(set(changes)) == 1:
            direction = "higher" if changes[0] else "lower"
        metric = Metric(name=row.name, title=row.name, unit="", direction=direction)
        for kernel, value, better in zip(kernels, row.values, row.better, strict=True):
            if value == 0 and better == 0 and row.values[0] != 0:
                left_out += 1
            else:
                collector.add(kernel, metric, value, line=number)
    if left_out:
        collector.notes.append(
            f"{utf8(source.file.name)}: left out {left_out} summaries of 0 that stand for no result."
        )
    return collector.table()


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
    # The names above the columns: they end where the columns do, and are in two lines, split at their first dash.
    ends = [match.end() for match in _PAIR.finditer(line)]
    starts = [0, *ends[:-1]]
    names = ["-".join(filter(None, (head[a:b].strip() for head in heads))) for a, b in zip(starts, ends, strict=True)]
    if len(names) != count or not all(names) or len(set(names)) != count:
        raise RequestError("the names of the kernels are missing above this row; expected two lines", place=place)
    return names


# The samples, as a text: operation, iteration, number of the sample, value.


EXTRACTED: Final = "extract-mmtests.pl"
_SAMPLE: Final = re.compile(
    rf"(?P<operation>[^\s\d]\S{{0,100}})\s+\d{{1,6}}\s+\d{{1,12}}(?:\.\d+)?\s+(?P<value>{_MMTESTS_NUMBER})\s*", re.ASCII
)
_SURE: Final = 3


def recognise_samples(text: str) -> bool:
    """Return whether the first lines of a text are samples."""
    lines = text[:LOOKED_AT].split("\n", _SURE)[:_SURE]
    return all(_SAMPLE.fullmatch(line[:_MMTESTS_LONGEST]) for line in lines if line.strip()) and bool(lines[0].strip())


def read_samples(source: ResultSource) -> MeasuredTable:
    """Read a text in which each operation is a metric, each sample of each iteration a value."""
    collector = Collector(EXTRACTED, source.file)
    for number, line in enumerate(source.text.splitlines(), 1):
        if not line.strip():
            continue
        sample = _SAMPLE.fullmatch(line[:_MMTESTS_LONGEST])
        if sample is None:
            raise RequestError(
                f"found {excerpt(line)}; expected operation, iteration, sample and value",
                place=Place(source.file, number),
            )
        name = sample["operation"]
        metric = Metric(name=name, title=name, unit="", direction="none")
        collector.add(source.name, metric, number_at(sample["value"], name, Place(source.file, number)), line=number)
    return collector.table()


# The same as JSON, which says what is better.


_PREFERRED: Final[dict[str, Direction]] = {"Lower": "lower", "Higher": "higher"}


def recognise_mmtests(document: DocumentNode) -> bool:
    """Return whether a document is what ``--print-json`` prints: a benchmark, or several kernels' results of it."""
    whole = document.value if isinstance(document.value, list) else [document.value]
    return bool(whole) and all(isinstance(module, dict) and "_ResultData" in module for module in whole)


def read_mmtests(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Several results are configurations, called as their runs were; one is the configuration ``name``."""
    collector = Collector(EXTRACTED, file)
    modules = document.items() if isinstance(document.value, list) else [document]
    for module in modules:
        configuration = name if len(modules) == 1 else module.need("_TestName").text()
        preferred = module.get("_PreferredVal")
        direction = _PREFERRED.get(preferred.text(), "none") if preferred else "none"
        for operation, value in _values(module):
            operation_metric = Metric(name=operation, title=operation, unit="", direction=direction)
            collector.add(configuration, operation_metric, value)
    return collector.table()


def _values(module: DocumentNode) -> Iterator[tuple[str, float]]:
    # Perl writes numbers as texts or as numbers.
    for operation, iterations in sorted(module.need("_ResultData").members(), key=lambda member: member[0]):
        for iteration in iterations.items():
            for value in iteration.need("Values").items():
                if isinstance(value.value, str):
                    yield utf8(operation), number_at(value.text(), operation, value.place)
                else:
                    yield utf8(operation), value.number()


# Source: phoronix-test-suite, pts-core/objects/pts_result_file_writer.php: PhoronixTestSuite/Result/Data/Entry with
# Identifier, Value and RawString, where the values of the runs are separated by colons.
#
# The parser is expat. It refuses whatever declares an entity or a document type, so nothing is expanded or fetched.


PHORONIX_FORMAT: Final = "Phoronix Test Suite XML"
_ROOT: Final = re.compile(r"<PhoronixTestSuite[\s>]")
_BETTER: Final[dict[str, Direction]] = {"LIB": "lower", "HIB": "higher"}
_UNITS: Final = {"seconds": "s", "second": "s", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_MOST_DEEP: Final = 64
_ENTRY: Final = ("PhoronixTestSuite", "Result", "Data", "Entry")
_RESULT: Final = ("PhoronixTestSuite", "Result")


def recognise_phoronix(text: str) -> bool:
    """Return whether a text is of this kind."""
    return text.lstrip().startswith("<") and _ROOT.search(text[:LOOKED_AT]) is not None


def read_phoronix(source: ResultSource) -> MeasuredTable:
    """Read a text in which each identifier is a configuration, each test with its description a metric; a single
    identifier is the configuration of that file.
    """
    reading = _Reading(source.file)
    reading.feed(source.text)
    collector = Collector(PHORONIX_FORMAT, source.file)
    several = len({identifier for identifier, *_ in reading.values}) > 1
    for identifier, metric, value, line in reading.values:
        collector.add(identifier if several else source.name, metric, value, line=line)
    if reading.without:
        collector.notes.append(f"{utf8(source.file.name)}: left out {reading.without} results without a number.")
    return collector.table()


class _Reading:
    # What was read of a document so far: the way to the current element, and the texts of its result and entry.
    def __init__(self, file: Path) -> None:
        self.values: list[tuple[str, Metric, float, int]] = []
        self.without = 0
        self._file = file
        self._way: list[str] = []
        self._text: list[str] = []
        self._result: dict[str, str] = {}
        self._entry: dict[str, str] = {}
        self._parser = expat.ParserCreate("utf-8")  # as it is handed over, whatever the file declares
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text.append
        self._parser.StartDoctypeDeclHandler = self._declared
        self._parser.EntityDeclHandler = self._declared
        self._parser.ExternalEntityRefHandler = self._declared

    def feed(self, text: str) -> None:
        try:
            self._parser.Parse(text.encode("utf-8", "backslashreplace"), True)  # noqa: FBT003 - expat takes it by its place
        except expat.ExpatError as error:
            raise RequestError(
                f"not valid XML: {expat.ErrorString(error.code)}",
                place=Place(self._file, error.lineno),
                hint="give one complete document in UTF-8",
            ) from None

    def _refuse(self, problem: str, expected: str) -> NoReturn:
        place = Place(self._file, self._parser.CurrentLineNumber)
        raise RequestError(f"{problem}; expected {expected}", place=place)

    def _declared(self, *_: object) -> NoReturn:
        self._refuse("found a document type or an entity declaration", "elements and texts only")

    def _start(self, name: str, _: dict[str, str]) -> None:
        self._way.append(name)
        if len(self._way) > _MOST_DEEP:
            self._refuse("the elements are nested too deeply", f"at most {_MOST_DEEP} levels")
        self._text.clear()
        if tuple(self._way) == _RESULT:
            self._result = {}
        elif tuple(self._way) == _ENTRY:
            self._entry = {}

    def _end(self, name: str) -> None:
        text = "".join(self._text).strip()
        self._text.clear()
        parent = tuple(self._way[:-1])
        if parent == _RESULT:
            self._result[name] = text
        elif parent == _ENTRY:
            self._entry[name] = text
        elif tuple(self._way) == _ENTRY:
            self._add_entry()
        self._way.pop()

    def _add_entry(self) -> None:
        identifier = self._entry.get("Identifier", "")
        if not identifier:
            self._refuse("found an entry without Identifier", "a name")
        texts = [part for part in self._entry.get("RawString", "").split(":") if part.strip()]
        texts = texts or [self._entry.get("Value", "")]
        if not any(texts):
            self.without += 1
            return
        line = self._parser.CurrentLineNumber
        for text in texts:
            value = number_at(text, "Value or RawString", Place(self._file, line))
            self.values.append((identifier, self._metric(), value, line))

    def _metric(self) -> Metric:
        title = self._result.get("Title", "")
        if not title:
            self._refuse("found a result without Title", "its test")
        scale = self._result.get("Scale", "")
        described = self._result.get("Description", "")
        name = f"{title} ({described})" if described else title
        return Metric(
            name=name,
            title=name,
            unit=_UNITS.get(scale.lower(), scale),
            direction=_BETTER.get(self._result.get("Proportion", ""), "none"),
        )


# Source: byte-unixbench 6.0, UnixBench/Run (logResults, logIndexCategory).


_TESTS: Final = (
    ("Dhrystone 2 using register variables", "dhrystone"),
    ("Double-Precision Whetstone", "whetstone"),
    ("Execl Throughput", "execl"),
    ("File Copy 1024 bufsize 2000 maxblocks", "file-copy-1024"),
    ("File Copy 256 bufsize 500 maxblocks", "file-copy-256"),
    ("File Copy 4096 bufsize 8000 maxblocks", "file-copy-4096"),
    ("Pipe Throughput", "pipe"),
    ("Pipe-based Context Switching", "context-switch"),
    ("Process Creation", "process-creation"),
    (r"Shell Scripts \(1 concurrent\)", "shell-1"),
    (r"Shell Scripts \(8 concurrent\)", "shell-8"),
    ("System Call Overhead", "system-call"),
)


def _unixbench_row(label: str, name: str) -> PrintedRow:
    return PrintedRow(
        rf"{label}\s+(?={NUMBER}\s+{NUMBER}\s+{NUMBER}$)",
        rf"{NUMBER}\s+({NUMBER})\s+({NUMBER})",
        (name, f"{name}-index"),
    )


UNIXBENCH: Final = PrintedReport(
    name="unixbench",
    title="UnixBench",
    reads="UnixBench: the result of each test and its index, which is the ratio to a machine of 1995.",
    begins=r"^Benchmark Run: ",
    needed=("index",),
    main=r"index",
    rows=(
        *(_unixbench_row(label, name) for label, name in _TESTS),
        PrintedRow(
            r"System Benchmarks Index Score(?: \(Partial Only\))?\s+",
            rf"({NUMBER})",
            ("index",),
        ),
    ),
)


PARSERS: Final[Mapping[str, Parser]] = MappingProxyType({"unixbench": UNIXBENCH.parse})
TEXTS: Final = (
    TextFormat(
        "lkp",
        LKP_COMPARED,
        in_beginning(_HEAD),
        read_comparison_lkp,
        reads=(
            "lkp-tests: `matrix.json` and `stats.json`, the value of each run; or the comparison of commits in "
            "reports of the kernel test robot (`%stddev`), a summary of each commit, with `--runs N`."
        ),
    ),
    TextFormat(
        "mmtests",
        MMTESTS_COMPARED,
        in_beginning(_RECOGNISED),
        read_comparison_mmtests,
        reads=(
            "mmtests: the samples of each iteration from `extract-mmtests.pl`, as text or `--print-json` (each run of "
            "a list is a configuration); or the text of `compare-kernels.sh`, one value of each summary (each kernel "
            "is a configuration)."
        ),
    ),
    TextFormat("mmtests", EXTRACTED, recognise_samples, read_samples),
    TextFormat(
        "phoronix",
        PHORONIX_FORMAT,
        recognise_phoronix,
        read_phoronix,
        reads=(
            "Phoronix Test Suite's composite.xml: each run of a test (`RawString`), or its `Value`; each identifier "
            "is a configuration."
        ),
    ),
    *UNIXBENCH.texts(),
)
DOCUMENTS: Final = (
    DocumentFormat("lkp", LKP_FORMAT, recognise_lkp, read_lkp),
    DocumentFormat("mmtests", "extract-mmtests.pl --print-json", recognise_mmtests, read_mmtests),
)
