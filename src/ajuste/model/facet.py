"""Facets: parts of the results of a run that only some runs have, or that not every reader needs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

ValueT = TypeVar("ValueT")


class HasFacets(Protocol):
    """Results, as far as facets know them."""

    @property
    def facets(self) -> Mapping[str, Any]: ...


class Facet(Generic[ValueT]):
    """A part of the results with a ``key`` of its own in their document, where it is a JSON document of type ``kind``.

    ``absent`` is its value where the results lack it; unless it is there ``always``, such results have no key either.
    """

    def __init__(self, key: str, kind: Any, absent: ValueT, *, always: bool = True) -> None:
        self.key = key
        self.kind = kind
        self.absent = absent
        self._always = always

    @cached_property
    def _adapter(self) -> TypeAdapter[ValueT]:
        return TypeAdapter(self.kind)  # built when it is first needed: most commands read few facets

    def of(self, results: HasFacets) -> ValueT:
        """Return what ``results`` have of it. Raises ValueError for a document of another type."""
        document = results.facets.get(self.key)
        return self.absent if document is None else self._adapter.validate_python(document)

    def document(self, value: ValueT) -> dict[str, Any]:
        """Return the part of the results' document that ``value`` is: its key with its document, or nothing."""
        return {self.key: to_jsonable_python(value, by_alias=False)} if self._always or value != self.absent else {}
