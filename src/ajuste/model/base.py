"""Base of all models, and of all folders of plug-ins."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any

import pydantic


class BaseModel(pydantic.BaseModel):
    """Pydantic's model, frozen; its validator is built when it is first needed: a command needs few of hundreds."""

    model_config = pydantic.ConfigDict(frozen=True, defer_build=True)


class ClosedModel(BaseModel):
    """A model that refuses fields that it does not have: for what others write."""

    model_config = pydantic.ConfigDict(extra="forbid")


def first_problem(error: pydantic.ValidationError) -> str:
    """Return the first thing that is wrong with a document, such as ``levels.0: Input should be a valid string``."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]


def rare(module: str, name: str) -> pydantic.BeforeValidator:
    """Annotate the ``Any`` of a field that few documents have: it is validated as ``name`` of ``module``, which takes
    long to load, when it comes.
    """

    @cache
    def adapter() -> pydantic.TypeAdapter[Any]:
        return pydantic.TypeAdapter(getattr(import_module(module), name))

    return pydantic.BeforeValidator(lambda value: adapter().validate_python(value))


# Plug-ins: a file in their folder is enough, nothing lists it.


def package_modules(package: ModuleType) -> Mapping[str, ModuleType]:
    """Return the modules of ``package`` by name, in the order of their names."""
    from pkgutil import iter_modules  # plug-ins are seldom looked for

    names = sorted(module.name for module in iter_modules(package.__path__))
    return MappingProxyType({name: import_module(f"{package.__name__}.{name}") for name in names})
