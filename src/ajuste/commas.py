"""Lists on the command line."""

from __future__ import annotations

from ajuste.model.error import Place, RequestError


def between_commas(text: str, what: str, *, hint: str | None = None, place: Place | None = None) -> tuple[str, ...]:
    """The parts of ``text``. Raises RequestError where ``what`` ("level") is missing between two commas."""
    parts = tuple(part.strip() for part in text.split(","))
    if not all(parts):
        raise RequestError(f"a {what} is missing between commas", hint=hint, place=place)
    return parts
