"""Metrics: what is measured of a trial, and which direction is better."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Direction = Literal["lower", "higher", "none"]
Scale = Literal["ratio", "difference"]


class Metric(BaseModel):
    """``scale`` is how configurations are compared: ratios for what is always positive, differences for what can
    be 0.

    ``resolution`` is the smallest step the figure can take (1 for a count), in ``unit``: values that are all alike are
    known no better than that.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    title: str
    unit: str
    direction: Direction
    scale: Scale = "ratio"
    resolution: float = 0.0
    what: str = ""
