"""lkp-tests: ``matrix.json`` and ``stats.json``, the value of each run; or the comparison of commits in reports of the
kernel test robot (``%stddev``), a summary of each commit, with ``--runs N``.

Source: lkp-tests, lib/compare.rb (show_group_header, show_perf_change, show_failure_change), lib/matrix.rb: the JSON
has a number for each statistic of a run, or a list with one of each run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable, Summarised
from ajuste.model.metric import Metric
from ajuste.outputs.base import excerpt
from ajuste.outputs.collector import Collector, number_at, utf8
from ajuste.outputs.format import DocumentFormat, DocumentNode, ResultSource, TextFormat, in_beginning

COMPARED: Final = "lkp's comparison"
_LEAST_SHOWN: Final = 2.0
"""A standard deviation of up to so many per cent of the mean is not printed; others are cut to whole per cents."""
_NUMBER: Final = r"-?\d{1,20}(?:\.\d{1,9})?(?:e[+-]\d{1,3})?"
_CELL: Final = rf"({_NUMBER})(?: ±\s*(\d{{1,6}})%)?"
_FIRST: Final = re.compile(rf"\s*{_CELL}")
_NEXT: Final = re.compile(rf"\s+[+-]?{_NUMBER}%?\s+{_CELL}")
_STATISTIC: Final = re.compile(r"[ \t]+(?P<name>[^\s\d±+-]\S{0,150})\s*")
_FAILURES: Final = re.compile(r"\s*\d{0,9}:\d{1,9}\s")
_HEAD: Final = re.compile(r"^[ \t]*%stddev(?:[ \t]+%change[ \t]+%stddev)+[ \t]*$", re.MULTILINE)
_RULE: Final = re.compile(r"-{8,}(?:\s+-{8,})+\s*")
_LONGEST: Final = 1000


def read_comparison(source: ResultSource) -> MeasuredTable:
    """Each commit is a configuration, each statistic a metric: the mean of the runs, of which the table does not say
    how many they are. Deviations are taken as large as the table allows.
    """
    found = Collector(COMPARED, source.file)
    commits: list[str] = []
    inside = False
    before = ""
    failures = 0
    for number, whole in enumerate(source.text.splitlines(), 1):
        line = whole[:_LONGEST].rstrip()
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
            _add_row(found, line, commits, source.runs, place)
        before = line
    if failures:
        found.notes.append(f"{utf8(source.file.name)}: left out {failures} rows of failed runs.")
    return found.table()


def _add_row(found: Collector, line: str, commits: Sequence[str], runs: int | None, place: Place) -> None:
    cells = []
    part = _FIRST.match(line)
    for _ in commits:
        if part is None:
            break
        cells.append((part[1], part[2]))
        end = part.end()
        part = _NEXT.match(line, end)
    statistic = _STATISTIC.fullmatch(line, end) if len(cells) == len(commits) else None
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
        most = float(deviation) + 1 if deviation else _LEAST_SHOWN
        sem = abs(value) * most / 100 / math.sqrt(runs)
        found.add_summary(commit, metric, Summarised(runs, value, sem), place.line)


FORMAT: Final = "lkp's statistics"


def recognise(document: DocumentNode) -> bool:
    """Whether a document is of this kind: numbers, or lists of them, by dotted names."""
    whole = document.value
    return (
        isinstance(whole, dict)
        and bool(whole)
        and all("." in name or name == "stats_source" for name in whole)
        and all(isinstance(value, int | float | list) for value in whole.values())
    )


def read(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Each statistic is a metric, with a value of each run."""
    found = Collector(FORMAT, file)
    for statistic, value in document.members():
        if statistic == "stats_source":
            continue
        metric = Metric(name=utf8(statistic), title=utf8(statistic), unit="", direction="none")
        for one in value.items() if isinstance(value.value, list) else [value]:
            found.add(name, metric, one.number())
    return found.table()


TEXTS: Final = (TextFormat("lkp", COMPARED, in_beginning(_HEAD), read_comparison),)
DOCUMENTS: Final = (DocumentFormat("lkp", FORMAT, recognise, read),)
