"""Base of all models."""

from __future__ import annotations

from functools import cache
from importlib import import_module
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
