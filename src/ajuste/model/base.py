"""Base of all models."""

from __future__ import annotations

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
