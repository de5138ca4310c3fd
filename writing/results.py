"""The page of the document that ``--json`` prints: every table with its keys, from the models that it is made of."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel

import ajuste.model.base
from ajuste.model.facets import FACETS
from ajuste.model.plugins import plugins
from ajuste.model.results import Results
from ajuste_live.record import RECORD

_BASES: Final = {BaseModel.__module__, ajuste.model.base.__name__}
_PLAIN: Final = {str: "text", int: "number", float: "number", bool: "true or false", type(None): "null"}


def results_page(note: str) -> str:
    """Return the page of every table of the document, in the order in which it is first named."""
    parts = [
        "# Results in JSON\n\nThis page lists the keys of the document that `--json` prints, for `ajuste run`, "
        "`compare`, `analyse`, `tune` and `report RUN`. Later versions add keys; existing ones keep their meaning.\n",
        note,
    ]
    for table in tables():
        fields = {name: field.annotation for name, field in table.model_fields.items()}
        rows = [
            f"| `{name}` | {_kind(annotation)} |"
            for name, annotation in (fields | (_facets() if table is Results else {})).items()
        ]
        parts += [
            f"## {'The document' if table is Results else table.__name__}\n",
            f"{_description(table)}\n",
            "\n".join(["| Key | Value |", "|---|---|", *rows]) + "\n",
        ]
    return "\n".join(parts)


def tables() -> list[type[BaseModel]]:
    """The models of the document, itself first."""
    models: list[type[BaseModel]] = []
    waiting: list[type[BaseModel]] = [Results]
    while waiting:
        table = waiting.pop(0)
        if table not in models:
            models.append(table)
            waiting += [model for field in table.model_fields.values() for model in _models(field.annotation)]
            if table is Results:
                waiting += [model for annotation in _facets().values() for model in _models(annotation)]
    return models


def _facets() -> dict[str, Any]:
    """Return the keys that packages add to the document, with what their modules find."""
    finders = {name: plugin.load().find for name, plugin in plugins("facets").items()}
    added = {name: _without_null(typing.get_type_hints(find)["return"]) for name, find in sorted(finders.items())}
    kinds = {facet.key: facet.kind | None if facet.absent is None else facet.kind for facet in (*FACETS, RECORD)}
    return kinds | added


def _without_null(annotation: Any) -> Any:
    # A facet that a run does not have has no key.
    parts = typing.get_args(annotation)
    return next(part for part in parts if part is not type(None)) if type(None) in parts else annotation


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from _models(part)


def _kind(annotation: Any) -> str:
    """Return what the values of a key are, in words."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _kind(parts[0])
    if origin is typing.Literal:
        return ", ".join(f"`{word}`" for word in parts)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_kind(part) for part in parts))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"{_kind(parts[1])}, by name"
    if parts:
        return f"list: {', '.join(dict.fromkeys(_kind(part) for part in parts if part is not ...))}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    return _PLAIN.get(annotation, "any")


def _description(table: type[BaseModel]) -> str:
    """Return what a table says of itself, and what those say that it extends."""
    models = [model for model in table.__mro__ if issubclass(model, BaseModel) and model.__module__ not in _BASES]
    paragraphs = [
        part for model in models for part in re.split(r"\n\s*\n", (model.__dict__.get("__doc__") or "").strip())
    ]
    text = "\n\n".join(" ".join(part.split()) for part in paragraphs if part)
    return re.sub(r"(?:``)?\bNone\b(?:``)?", "`null`", text).replace("``", "`")
