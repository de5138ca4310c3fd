"""Factors explained from the catalogue."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from ajuste.model.base import BaseModel
from ajuste.model.facet import Facet


class Explained(BaseModel):
    """A factor explained from the catalogue: ``where`` is its path in the kernel that was used, ``note`` e.g.
    names a successor. A ``condition`` is no choice, such as a load: all else is judged at each of its levels.
    """

    name: str
    title: str
    what: str
    unit: str
    default: str = ""
    where: str = ""
    initial_value: str | None = None
    note: str = ""
    condition: bool = Field(default=False, exclude_if=lambda condition: not condition)


EXPLAINED: Final = Facet[tuple[Explained, ...]]("explained", tuple[Explained, ...], ())
"""The factors that the catalogue explains."""
