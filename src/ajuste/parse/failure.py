"""What a parser raises when an output is not what its program prints."""

from __future__ import annotations

from ajuste.model.error import RunError


class ParseError(RunError):
    """The output was not understood; the message says what was expected and what was found."""


def excerpt(text: str, limit: int = 80) -> str:
    """The beginning of an output in quotes, for messages."""
    line = text.strip().split("\n", 1)[0]
    return f'"{line}"' if len(line) <= limit else f'"{line[:limit]}…"'
