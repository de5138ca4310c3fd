"""Readers of what programs write, one file each, which nothing lists.

``parse`` reads the output of a workload; the catalogue calls it by the file's name (``parser``), or those of a file
with several by their names in ``PARSERS``. ``TEXTS`` and ``DOCUMENTS`` are the formats of files that ``ajuste analyse``
reads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType, ModuleType

from ajuste.model.base import modules_of
from ajuste.model.error import RequestError
from ajuste.outputs.format import DocumentFormat, TextFormat

Parser = Callable[[str], dict[str, float]]
"""From the standard output of a program to its metrics. Raises ParseError."""


def _modules() -> Mapping[str, ModuleType]:
    return modules_of(sys.modules[__name__])


@cache
def parsers() -> Mapping[str, Parser]:
    """Of each file the function ``parse`` by the file's name, or its ``PARSERS``, as the catalogue calls them."""
    found: dict[str, Parser] = {}
    for name, module in _modules().items():
        found |= {name: module.parse} if hasattr(module, "parse") else getattr(module, "PARSERS", {})
    return MappingProxyType(dict(sorted(found.items())))


def parser(name: str) -> Parser:
    """The parser of that name. Raises RequestError if there is none."""
    try:
        return parsers()[name]
    except KeyError:
        raise RequestError(f'parser "{name}" not found; expected one of {", ".join(parsers())}') from None


def text_formats() -> tuple[TextFormat, ...]:
    """``TEXTS`` of each file that has some, in the order in which they are asked."""
    found = (one for module in _modules().values() for one in getattr(module, "TEXTS", ()))
    return tuple(sorted(found, key=lambda one: not one.around))


def document_formats() -> tuple[DocumentFormat, ...]:
    """``DOCUMENTS`` of each file that has some."""
    return tuple(one for module in _modules().values() for one in getattr(module, "DOCUMENTS", ()))
