"""Facets: parts of the results of a run that only some runs have, or that not every reader needs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from pydantic import TypeAdapter

ValueT = TypeVar("ValueT")


class HasFacets(Protocol):
    """Results, as far as facets know them."""

    @property
    def facets(self) -> Mapping[str, Any]: ...


class Facet(Generic[ValueT]):
    """A part of the results with a key of its own in their document, where it is a JSON document of the type ``kind``.

    ``absent`` is its value where the results lack it.
    """

    def __init__(self, key: str, kind: Any, absent: ValueT) -> None:
        self.key = key
        self.absent = absent
        self._kind = kind

    @cached_property
    def _adapter(self) -> TypeAdapter[ValueT]:
        return TypeAdapter(self._kind)  # built when it is first needed: most commands read few facets

    def of(self, results: HasFacets) -> ValueT:
        """Return what ``results`` have of it. Raises ValueError for a document of another type."""
        document = results.facets.get(self.key)
        return self.absent if document is None else self._adapter.validate_python(document)
