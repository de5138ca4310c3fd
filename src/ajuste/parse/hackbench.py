"""Hackbench of rt-tests: it ends with ``Time: 0.123`` (seconds)."""

from __future__ import annotations

import re

from ajuste.parse.failure import ParseError, excerpt
from ajuste.parse.figure import figure

_TIME = re.compile(r"^Time:[ \t]*(\S{1,40})[ \t]*$", re.MULTILINE)


def parse(output: str) -> dict[str, float]:
    """``hackbench.time``: seconds from the first message to the last, as hackbench measures it itself."""
    found = _TIME.findall(output)
    if len(found) != 1:
        raise ParseError(
            f"hackbench printed {len(found)} lines of the form Time: SECONDS instead of one: {excerpt(output)}"
        )
    return {"hackbench.time": figure(found[0], "hackbench's time")}
