"""The table of the classic LINPACK benchmark in C: each row is one value of its speed.

Source: netlib.org/benchmark/linpackc.new: "Reps Time(s) DGEFA DGESL OVERHEAD KFLOPS".
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ajuste.foreign.collector import LOOKED_AT, Collector
from ajuste.model.error import Place, RequestError
from ajuste.model.metric import Metric
from ajuste.model.table import Table

FORMAT: Final = "LINPACK table"
_HEAD: Final = re.compile(
    r"^[ \t]*Reps[ \t]+Time\(s\)[ \t]+DGEFA[ \t]+DGESL[ \t]+OVERHEAD[ \t]+KFLOPS[ \t\r]*$", re.MULTILINE
)
_ROW: Final = re.compile(
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


def recognise(text: str) -> bool:
    """Whether a text is of this kind."""
    return _HEAD.search(text[:LOOKED_AT]) is not None


def read(text: str, name: str, file: Path) -> Table:
    """Every row is a value. Rows of a table repeat ever more work, and so are not quite alike; where several tables
    are in one file, rows of as many repetitions are too.
    """
    found = Collector(FORMAT, file)
    inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        if _HEAD.match(line[:200]):
            inside = True
        elif row := _ROW.match(line[:200]):
            found.add(name, SPEED, float(row["kflops"].replace(",", ".")), line=number)
        elif inside and _BEGUN.match(line):
            raise RequestError(f"no whole row of the table: {line.strip()[:60]!r}", place=Place(file, number))
    return found.table()
