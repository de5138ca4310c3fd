"""The table of the bundled LINPACK: a row for each number of repetitions, then the residual of the solution."""

from __future__ import annotations

import re

from ajuste.parse.failure import ParseError, excerpt
from ajuste.parse.figure import figure

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
