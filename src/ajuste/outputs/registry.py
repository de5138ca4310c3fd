"""The parsers by the name that the catalogue gives them: the name of their module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ajuste.model.error import RequestError
from ajuste.outputs import cyclictest, fio, frames, glxgears, hackbench, jitter, linpack, matrix, pages, paths

Parser = Callable[[str], dict[str, float]]
"""From the standard output of a program to its metrics. Raises ParseError."""

PARSERS: Mapping[str, Parser] = MappingProxyType(
    {
        module.__name__.rpartition(".")[2]: module.parse
        for module in (cyclictest, fio, frames, glxgears, hackbench, jitter, linpack, matrix, pages, paths)
    }
)


def parser(name: str) -> Parser:
    """The parser of that name. Raises RequestError if there is none."""
    try:
        return PARSERS[name]
    except KeyError:
        raise RequestError(f'parser "{name}" not found; expected one of {", ".join(PARSERS)}') from None
