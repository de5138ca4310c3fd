"""Places in a page that are written by a program: between ``<!-- NAME -->`` and ``<!-- end NAME -->``; pure."""

from __future__ import annotations

import re


def marks(text: str) -> tuple[str, ...]:
    """The names of all places, in their order."""
    return tuple(re.findall(r"^<!-- end (.+) -->$", text, re.MULTILINE))


def content(text: str, name: str) -> str:
    """Return what stands in the place ``name``. Raises ValueError if there is no such place, or several."""
    return text[slice(*_span(text, name))].strip("\n")


def put(text: str, name: str, inside: str) -> str:
    """``text`` with ``inside`` in the place ``name``. Raises ValueError if there is no such place, or several."""
    first, last = _span(text, name)
    return f"{text[:first]}\n{inside.strip(chr(10))}\n\n{text[last:]}"


def _span(text: str, name: str) -> tuple[int, int]:
    quoted = re.escape(name)
    places = list(re.finditer(rf"^<!-- {quoted} -->\n(.*?)^<!-- end {quoted} -->$", text, re.MULTILINE | re.DOTALL))
    if len(places) != 1:
        raise ValueError(f"{len(places)} places are called {name!r}; expected one")
    return places[0].span(1)
