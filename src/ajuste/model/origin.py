"""The origin of results that this Ajuste did not measure: tables of other programs, and imported runs."""

from __future__ import annotations

from typing import Final, Literal

from ajuste.model.base import BaseModel
from ajuste.model.facet import Facet


class Elsewhere(BaseModel):
    """The origin of results that were measured elsewhere: ``formats`` of the files, ``files`` by name, ``values`` how
    many single values or summaries they have. ``paired`` says whether all, some or none of the comparisons are within
    blocks; ``inference`` and ``pairing`` say in sentences what the intervals are good for.
    """

    formats: str
    files: tuple[str, ...]
    values: int
    paired: Literal["all", "some", "none"]
    inference: str
    pairing: str


ELSEWHERE: Final = Facet[Elsewhere | None]("elsewhere", Elsewhere, None)

IMPORTED: Final = Facet[bool]("imported", bool, absent=False, always=False)
