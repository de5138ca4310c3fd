"""Surfaces: one metric over the levels of one or two numeric factors, and what is known of its shape."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from ajuste.model.base import BaseModel
from ajuste.model.facet import Facet
from ajuste_stats.terms import Scale, Shape


class SurfaceAxis(BaseModel):
    """A numeric factor: its ``levels`` as they are written, in the order of their ``values``. ``scale`` is how it is
    drawn and how slopes along it are meant: logarithmic where the levels span a decade.
    """

    factor: str
    levels: tuple[str, ...]
    values: tuple[float, ...]
    scale: Literal["linear", "log"]


class SurfacePoint(BaseModel):
    """The metric of one configuration, in its unit, with what blocks have in common taken out.

    ``low`` and ``high`` hold for all points of the surface together; None while there are too few blocks.
    """

    configuration: str
    value: float
    low: float | None = None
    high: float | None = None


class Region(BaseModel):
    """A stretch of a curve from the level ``first`` to ``last``, named by its ``shape``.

    ``change`` is the value at its end against that at its start, ``span`` the largest against the smallest within it:
    ratios or differences, as the surface's ``scale`` says.
    """

    shape: Shape
    first: str
    last: str
    change: float
    span: float


class Curve(BaseModel):
    """The metric along one factor, the other ones ``fixed``. ``regions`` follow each other and share their ends; there
    are none where the curve has too few points or no noise is known.
    """

    along: str
    fixed: dict[str, str]
    regions: tuple[Region, ...] = ()


class Surface(BaseModel):
    """A metric over one axis or two (the first the one with more levels), other factors ``fixed``.

    ``best`` is the configuration with the best value, ``best_set`` those that are not distinguishable from the best:
    the truly best one is among them with the confidence ``level``, for all surfaces of deciding metrics together and
    whenever the study stops. Both are empty for a metric of which no direction is better, and for one that is only
    described. ``flat`` says that every configuration is equivalent to the baseline; ``within`` is then the largest
    distance that an interval leaves, as a share of the baseline.
    """

    metric: str
    scale: Scale
    deciding: bool
    axes: tuple[SurfaceAxis, ...]
    fixed: dict[str, str] = Field(default_factory=dict)
    points: tuple[SurfacePoint, ...]
    curves: tuple[Curve, ...] = ()
    best: str | None = None
    best_set: tuple[str, ...] = ()
    flat: bool = False
    within: float | None = None
    level: float
    blocks: int


class Correlation(BaseModel):
    """Spearman's ``rho`` of two metrics' means over ``n`` configurations, with an interval that holds for all
    correlations of ``metric`` together.
    """

    metric: str
    other: str
    rho: float
    low: float
    high: float
    n: int
    level: float


SURFACES: Final = Facet[tuple[Surface, ...]]("surfaces", tuple[Surface, ...], ())
"""The surfaces that numeric factors span."""

CORRELATIONS: Final = Facet[tuple[Correlation, ...]]("correlations", tuple[Correlation, ...], ())
"""The correlations of deciding metrics with all others, over the points of surfaces."""
