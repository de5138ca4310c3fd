"""The bundled matrix product: one line ``matrix size=N repetitions=R checksum=…``."""

from __future__ import annotations

import re

from ajuste.outputs.base import ParseError, excerpt, figure

_LINE = re.compile(r"^matrix size=(\d{1,12}) repetitions=(\d{1,12}) checksum=(\S{1,40})$", re.MULTILINE)


def parse(output: str) -> dict[str, float]:
    """No figure: the product is the same every time. Raises ParseError unless it was finished, with a finite
    checksum.
    """
    found = _LINE.findall(output)
    if len(found) != 1:
        raise ParseError(f"matrix printed {len(found)} lines of results instead of one: {excerpt(output)}")
    figure(found[0][2], "the checksum")
    return {}
