"""Readers of what programs write, a file for each kind of program, which nothing lists.

``PARSERS`` of a file read the output of workloads, by the names that the catalogue calls them (``parser``). A file with
one such reader may have a function ``parse`` instead, called by the file's name. ``TEXTS`` and ``DOCUMENTS`` are the
formats of files that ``ajuste analyse`` reads.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType, ModuleType

from ajuste.catalogue.programs import with_benchmark_programs
from ajuste.model.error import RequestError
from ajuste.model.plugins import modules
from ajuste.outputs.format import DocumentFormat, Parser, TextFormat


@cache
def _modules() -> Mapping[str, ModuleType]:
    return modules(sys.modules[__name__], "outputs")


@cache
def parsers() -> Mapping[str, Parser]:
    """Return all parsers by the names that the catalogue calls them."""
    by_name: dict[str, Parser] = {}
    for name, module in _modules().items():
        by_name |= {name: module.parse} if hasattr(module, "parse") else getattr(module, "PARSERS", {})
    return MappingProxyType(dict(sorted(by_name.items())))


def parser(name: str) -> Parser:
    """Return the parser of that name. Raises RequestError if there is none."""
    try:
        return parsers()[name]
    except KeyError:
        known = with_benchmark_programs(", ".join(parsers()))
        raise RequestError(f'parser "{name}" not found; expected one of {known}') from None


def text_formats() -> tuple[TextFormat, ...]:
    """Return the formats of text files, in the order in which they are tried."""
    formats = (text for module in _modules().values() for text in getattr(module, "TEXTS", ()))
    return tuple(sorted(formats, key=lambda text: (not text.around, text.name)))


def document_formats() -> tuple[DocumentFormat, ...]:
    """Return the formats of JSON documents, in the order in which they are tried."""
    formats = (document for module in _modules().values() for document in getattr(module, "DOCUMENTS", ()))
    return tuple(sorted(formats, key=lambda document: document.name))
