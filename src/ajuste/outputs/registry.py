"""The parsers by the name that the catalogue gives them: the name of their file in ``outputs/programs``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

from ajuste.model.error import RequestError
from ajuste.model.plug_in import modules_of
from ajuste.outputs import programs

Parser = Callable[[str], dict[str, float]]
"""From the standard output of a program to its metrics. Raises ParseError."""


@cache
def parsers() -> Mapping[str, Parser]:
    """All parsers: the function ``parse`` of each file."""
    return MappingProxyType({name: module.parse for name, module in modules_of(programs).items()})


def parser(name: str) -> Parser:
    """The parser of that name. Raises RequestError if there is none."""
    try:
        return parsers()[name]
    except KeyError:
        raise RequestError(f'parser "{name}" not found; expected one of {", ".join(parsers())}') from None
