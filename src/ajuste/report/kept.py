"""What a run keeps in its environment, in a form of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ajuste.model.results import Results

M = TypeVar("M", bound=BaseModel)


def kept(results: Results, place: str, form: type[M]) -> dict[str, M]:
    """The documents at ``place`` by their names; one that is not understood is left out."""
    documents = results.environment.get(place)
    found = {}
    for name, document in documents.items() if isinstance(documents, Mapping) else ():
        try:
            found[str(name)] = form.model_validate(document)
        except ValidationError:
            continue
    return found
