"""The bundled matrix product: one line ``matrix size=N repetitions=R checksum=…``."""

from __future__ import annotations

import re

from ajuste.parse.failure import ParseError, excerpt
from ajuste.parse.figure import figure

_LINE = re.compile(r"^matrix size=(\d{1,12}) repetitions=(\d{1,12}) checksum=(\S{1,40})$", re.MULTILINE)


def parse(output: str) -> dict[str, float]:
    """``matrix.checksum`` of the product: the same for the same size and repetitions, or the machine miscalculates."""
    found = _LINE.findall(output)
    if len(found) != 1:
        raise ParseError(f"matrix printed {len(found)} lines of results instead of one: {excerpt(output)}")
    return {"matrix.checksum": figure(found[0][2], "the checksum")}
