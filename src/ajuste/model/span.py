"""Spans: the range of a numeric factor, in the unit that its tunable counts in."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Scale = Literal["linear", "log"]
"""How levels are spaced: by equal differences, or by equal ratios."""


class Span(BaseModel):
    """``low`` … ``high``, both included, in the tunable's own unit. ``points`` levels were made from it; 0 where the
    levels were given one by one, and it only says where others may be sought.
    """

    model_config = ConfigDict(frozen=True)
    low: int
    high: int
    scale: Scale = "linear"
    points: int = 0
