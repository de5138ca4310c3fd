"""Reports that programs print: rows with figures, known by how they begin; a file can have those of several runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final, NoReturn

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.base import ParseError, amount, excerpt
from ajuste.outputs.format import LOOKED_AT, Collector, ResultSource, TextFormat
from ajuste_stats.terms import Direction

NUMBER: Final = r"\d{1,18}(?:\.\d{1,18})?"
QUANTITY: Final = rf"{NUMBER}[A-Za-z]{{0,3}}"
"""A number, perhaps with its unit, such as 12.3ms."""
LONGEST_LINE: Final = 400
LONGEST_PART: Final = 80
"""Characters of a line that a metric is named after."""

# What these programs mean by a suffix.
_BYTES: Final = {"B": "B", "KB": "KiB", "MB": "MiB", "GB": "GiB", "TB": "TiB"}
_QUANTITY: Final = re.compile(rf"({NUMBER})([A-Za-z]{{0,3}})")
_DECIMAL: Final = re.compile(r"\d{1,9}\.\d{1,9}", re.ASCII)


def quantity(text: str, unit: str) -> float | None:
    """Return the number that ``text`` is, in ``unit``: ``12.3ms`` is 0.0123 s; ``None`` for another unit. A number
    without a suffix is in ``unit`` already. A speed is printed without what it is by.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    data, _, by = unit.partition("/")
    suffix = _BYTES.get(match[2], "?") if data == "bytes" and match[2] else match[2]
    try:
        return amount(f"{match[1]}{suffix}/{by}" if suffix and by else f"{match[1]}{suffix}", unit, unit)
    except ParseError:
        return None


def printed_metric(
    name: str, title: str, unit: str, direction: Direction, *, step: float = 0.0, can_be_0: bool = False
) -> Metric:
    """Return a figure of a report that the catalogue does not describe; ``step`` is the last printed place."""
    scale = "difference" if can_be_0 else "ratio"
    return Metric(name=name, title=title, unit=unit, direction=direction, scale=scale, resolution=step)


@dataclass(frozen=True)
class PrintedRow:
    """A line that begins with ``label``; then ``rest`` has a group for each of ``metrics``, in their order.

    A metric is the name, after that of the report, of one of a workload in the catalogue. What no workload has is
    described here: a group that is named ``which`` replaces ``{}`` in its name and title, the heading before it
    ``{section}``. Where the catalogue has the name that results, it describes the metric.
    ``section`` is that heading where the same label is in several. ``factor`` turns a printed figure without unit into
    the metric's unit. With ``again`` the same row may come several times, and is numbered.
    """

    label: str
    rest: str
    metrics: tuple[str | Metric, ...]
    section: str = ""
    factor: float = 1.0
    again: bool = False

    @cached_property
    def begins(self) -> re.Pattern[str]:
        return re.compile(self.label)

    @cached_property
    def whole(self) -> re.Pattern[str]:
        return re.compile(f"{self.label}{self.rest}", re.ASCII)


@dataclass(frozen=True)
class PrintedFigure:
    """The figure of a line; ``again`` as of its row."""

    metric: Metric
    value: float
    line: int
    again: bool = False


@dataclass
class _Run:
    start: int
    figures: dict[str, PrintedFigure] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, figure: PrintedFigure, place: Place, *, last: bool) -> None:
        # The last of figures with the same name counts, or else there must be one.
        name = figure.metric.name
        self.counts[name] += 1
        if figure.again and self.counts[name] > 1:
            name = f"{name} ({self.counts[name]})"
            figure = replace(figure, metric=figure.metric.model_copy(update={"name": name, "title": name}))
        elif name in self.figures and not last:
            _refuse(f"{name} is given twice in a run", "it once", place)
        self.figures[name] = figure


@dataclass(frozen=True)
class PrintedReport:
    """The report of a program: where a run ``begins``, what it must have (``needed``), and its rows.

    ``ends`` is the last line of a run, where reports of intervals come before the last one, which counts. ``heading``
    has a group with the name of a section. ``failed`` are lines that say that a run is no result, and why. ``zeros``
    are figures that are printed only if they are not 0. ``main`` is a pattern of the names that decide,
    ``reads`` as of ``TextFormat``.
    """

    name: str
    title: str
    begins: str
    needed: tuple[str, ...]
    rows: tuple[PrintedRow, ...]
    main: str
    reads: str = ""
    heading: str = ""
    ends: str = ""
    failed: tuple[tuple[str, str], ...] = ()
    zeros: tuple[str, ...] = ()

    def texts(self) -> tuple[TextFormat, ...]:
        """Return the format of its files."""
        return (TextFormat(self.name, self.title, self.recognise, self.read, reads=self.reads),)

    def recognise(self, text: str) -> bool:
        """Return whether a text has such a report."""
        return re.search(self.begins, text[:LOOKED_AT], re.MULTILINE) is not None

    def read(self, source: ResultSource) -> MeasuredTable:
        """Read a file in which each run is a value of each figure."""
        collector = Collector(self.title, source.file)
        for run in self._runs(source.text, source.file):
            for printed in run:
                collector.add(source.name, printed.metric, printed.value, line=printed.line)
                if re.fullmatch(self.main, printed.metric.name):
                    collector.main.add(printed.metric.name)
        return collector.table()

    def parse(self, output: str) -> dict[str, float]:
        """Return the figures of a live workload, called ``PROGRAM.FIGURE``. Raises ParseError unless it ran once."""
        try:
            runs = list(self._runs(output, Path("stdout")))
        except RequestError as error:
            raise ParseError(f"{self.name} printed no complete report: {error}") from None
        if len(runs) != 1:
            raise ParseError(f"{self.name} printed {len(runs)} reports instead of one: {excerpt(output)}")
        return {f"{self.name}.{printed.metric.name}": printed.value for printed in runs[0]}

    def _runs(self, text: str, file: Path) -> Iterator[Sequence[PrintedFigure]]:
        begins = re.compile(self.begins)
        heading = re.compile(self.heading or r"(?!)")
        ends = re.compile(self.ends or r"(?!)")
        run: _Run | None = None
        section = ""
        for number, whole in enumerate(text.splitlines(), 1):
            line = whole[:LONGEST_LINE].rstrip()
            if begins.search(line) and (run is None or not self.ends):
                if run is not None:
                    yield self._complete(run, file)
                run = _Run(number)
            if run is None:
                continue
            if titled := heading.search(line):
                section = titled[1]
            for pattern, words in self.failed:
                if failure := re.search(pattern, line):
                    raise RequestError(
                        words.format(*failure.groups()),
                        place=Place(file, number),
                        hint="fix the failure and measure again",
                    )
            for printed in self._figures(line, section, Place(file, number)):
                run.add(printed, Place(file, number), last=bool(self.ends))
            if ends.search(line):
                yield self._complete(run, file)
                run = None
        if run is not None:
            yield self._complete(run, file)

    def _figures(self, line: str, section: str, place: Place) -> Iterator[PrintedFigure]:
        row = next((row for row in self.rows if row.section in ("", section) and row.begins.match(line)), None)
        if row is None:
            return
        match = row.whole.fullmatch(line)
        if match is None:
            _refuse(f"found {excerpt(line)}", "its figure", place)
        named = set(row.whole.groupindex.values())
        texts = [text for index, text in enumerate(match.groups(), 1) if index not in named]
        which = match.groupdict().get("which", "")
        # 99.90 is 99.9.
        plain = which.rstrip("0").rstrip(".") if _DECIMAL.fullmatch(which) else which[:LONGEST_PART]
        for form, text in zip(row.metrics, texts, strict=True):
            metric = self.describe(form, plain, section)
            value = quantity(text, metric.unit)
            if value is None:
                _refuse(f"found {excerpt(text)} in {excerpt(line)}", f"a number in {metric.unit or 'no unit'}", place)
            scaled = value * row.factor if text[-1].isdigit() else value
            yield PrintedFigure(metric, scaled, place.line or 0, row.again)

    def describe(self, metric: str | Metric, which: str = "", section: str = "") -> Metric:
        """Return a metric of a row as files have it, without the name of the report."""
        described = catalogue().workload_metrics
        if isinstance(metric, str):
            return described[f"{self.name}.{metric}"].model_copy(update={"name": metric})
        if "{" not in metric.name:
            return metric
        name, title = (form.format(which, section=section) for form in (metric.name, metric.title))
        if known := described.get(f"{self.name}.{name.lower()}"):
            return known.model_copy(update={"name": name})
        return metric.model_copy(update={"name": name, "title": title})

    def _complete(self, run: _Run, file: Path) -> Sequence[PrintedFigure]:
        for name in self.needed:
            if name not in run.figures:
                _refuse(f"the run that begins here has no {name}", f"{self.title}, complete", Place(file, run.start))
        zeros = (PrintedFigure(self.describe(name), 0.0, run.start) for name in self.zeros if name not in run.figures)
        return (*run.figures.values(), *zeros)


def _refuse(problem: str, expected: str, place: Place) -> NoReturn:
    raise RequestError(f"{problem}; expected {expected}", place=place)
