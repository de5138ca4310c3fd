"""The table of LINPACK, which ends with the residual of the solution: the KFLOPS of each row."""

from __future__ import annotations

import re
from typing import Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.base import ParseError, excerpt, figure
from ajuste.outputs.collector import Collector
from ajuste.outputs.format import ResultSource, TextFormat, in_beginning

_SHARE = r"[\d.]{1,20}%[ \t]+"
_ROW = re.compile(
    rf"^[ \t]*(\d{{1,12}})[ \t]+[\d.]{{1,20}}[ \t]+{_SHARE}{_SHARE}{_SHARE}([\d.]{{1,20}})[ \t]*$", re.MULTILINE
)
_INTERRUPTS = re.compile(r"^Interrupts[ \t]+(\d{1,15}) on CPU \d{1,5}[ \t]*$", re.MULTILINE)
_RESIDUAL = re.compile(r"^Residual[ \t]+(\S{1,40})[ \t]+normalised[ \t]+(\S{1,40})[ \t]*$", re.MULTILINE)


def parse(output: str) -> dict[str, float]:
    """``linpack.kflops``: thousands of floating-point operations a second in the row with the most repetitions.

    ``linpack.residual``: the normalised residual, a few units where the machine calculates rightly.
    ``linpack.interrupts``, where it counted them: those of the CPU that it began on.
    """
    rows = [(int(repetitions), kflops) for repetitions, kflops in _ROW.findall(output)]
    if not rows:
        raise ParseError(f"LINPACK printed no row with KFLOPS: {excerpt(output)}")
    residuals = _RESIDUAL.findall(output)
    if len(residuals) != 1:
        raise ParseError(f"LINPACK printed {len(residuals)} residuals instead of one")
    _, kflops = max(rows, key=lambda row: row[0])
    found = {
        "linpack.kflops": figure(kflops, "KFLOPS"),
        "linpack.residual": figure(residuals[0][1], "the normalised residual"),
    }
    if interrupts := _INTERRUPTS.findall(output):
        found["linpack.interrupts"] = figure(interrupts[-1], "the interrupts")
    return found


# The table of the classic LINPACK benchmark in C: each row is one value of its speed.
#
# Source: netlib.org/benchmark/linpackc.new: "Reps Time(s) DGEFA DGESL OVERHEAD KFLOPS".


FORMAT: Final = "LINPACK table"
_HEAD: Final = re.compile(
    r"^[ \t]*Reps[ \t]+Time\(s\)[ \t]+DGEFA[ \t]+DGESL[ \t]+OVERHEAD[ \t]+KFLOPS[ \t\r]*$", re.MULTILINE
)
_CLASSIC_ROW: Final = re.compile(
    r"^\s*(?P<reps>\d{1,12})\s+(?P<time>\d{1,9}[.,]\d{1,9})\s+(?:\d{1,3}[.,]\d{1,4}\s*%\s+){3}(?P<kflops>\d{1,12}[.,]\d{1,9})\s*$"
)
_BEGUN: Final = re.compile(r"^\s*\d+\s+\S+\s+\S+%")
SPEED: Final = Metric(
    name="kflops",
    title="LINPACK speed",
    unit="kflop/s",
    direction="higher",
    what="Thousands of floating-point operations a second, a value for each row of the table.",
)


def read(source: ResultSource) -> MeasuredTable:
    """Every row is a value. Rows of a table repeat ever more work, and so are not quite alike; where several tables
    are in one file, rows of as many repetitions are too.
    """
    found = Collector(FORMAT, source.file)
    inside = False
    for number, line in enumerate(source.text.splitlines(), start=1):
        if _HEAD.match(line[:200]):
            inside = True
        elif row := _CLASSIC_ROW.match(line[:200]):
            found.add(source.name, SPEED, float(row["kflops"].replace(",", ".")), line=number)
        elif inside and _BEGUN.match(line):
            raise RequestError(
                f"found {line.strip()[:60]!r}; expected a complete row of the table", place=Place(source.file, number)
            )
    return found.table()


TEXTS: Final = (TextFormat("linpack", "LINPACK's table", in_beginning(_HEAD), read),)
