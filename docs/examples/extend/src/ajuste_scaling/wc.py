"""wc -c: a line with the number of bytes and the file."""

from __future__ import annotations

from ajuste.outputs.base import ParseError, excerpt, figure


def parse(output: str) -> dict[str, float]:
    """``wc.bytes``."""
    words = output.split()
    if len(words) != 2:
        raise ParseError(f"wc printed {excerpt(output)}; expected a number and a file")
    return {"wc.bytes": figure(words[0], "bytes")}
