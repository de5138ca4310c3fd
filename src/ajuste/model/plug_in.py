"""Plug-ins: a file in their folder is enough, nothing lists it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType, ModuleType


def modules_of(package: ModuleType) -> Mapping[str, ModuleType]:
    """The modules of ``package`` by name, in the order of their names."""
    names = sorted(found.name for found in iter_modules(package.__path__))
    return MappingProxyType({name: import_module(f"{package.__name__}.{name}") for name in names})
