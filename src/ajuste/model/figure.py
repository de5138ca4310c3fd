"""Figures that samplers read: what each source has, and what it means."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ajuste.model.plan import SamplerSource

_PLACEHOLDERS = {"{disk}": r".+", "{cpu}": r"cpu\d*", "{line}": r"[^.]+", "{name}": r".+"}


class Figure(BaseModel):
    """One figure, or all whose names have the same form. A *counter* only grows; a *level* goes up and down."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    kind: Literal["counter", "level"]
    unit: str = ""
    what: str

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pieces = re.split(r"(\{[a-z]+\})", self.name)
        return re.compile("".join(_PLACEHOLDERS.get(piece) or re.escape(piece) for piece in pieces))

    def is_called(self, name: str) -> bool:
        """Whether ``name`` is this figure's, or one of its form."""
        return self._pattern.fullmatch(name) is not None


class FigureSource(BaseModel):
    """What a sampler can read. ``figures`` in the order in which a name is sought."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
    name: SamplerSource
    files: tuple[str, ...]
    what: str
    figures: tuple[Figure, ...] = Field(alias="figure", min_length=1)

    def find(self, name: str) -> Figure | None:
        """The figure of that name, if the source can have one."""
        return next((figure for figure in self.figures if figure.is_called(name)), None)
