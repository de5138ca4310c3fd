"""Axes of surfaces: the numeric factors along which a metric is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ajuste.model.surface import SurfaceAxis
from ajuste.model.trial import Factor

FEWEST_ALONE: Final = 5
"""Levels of a factor that is the only numeric one."""
FEWEST_OF_TWO: Final = 9
"""Combinations of the levels of two."""
DECADE: Final = 10.0


def surface_axes(factors: Sequence[Factor]) -> tuple[SurfaceAxis, ...]:
    """Return the two numeric factors with the most levels, or one with enough; empty where there is no surface."""
    numeric = [axis for factor in factors if (axis := _axis(factor)) is not None]
    numeric.sort(key=lambda axis: -len(axis.levels))
    two = numeric[:2]
    if len(two) == 2 and len(two[0].levels) * len(two[1].levels) >= FEWEST_OF_TWO and len(two[0].levels) > 2:
        return tuple(two)
    return tuple(axis for axis in numeric[:1] if len(axis.levels) >= FEWEST_ALONE)


def _axis(factor: Factor) -> SurfaceAxis | None:
    # `None` for a factor that does not vary, or with a level that is no number or repeated.
    try:
        values = [float(level) for level in factor.levels]
    except ValueError:
        return None
    if len(values) < 2 or len(set(values)) < len(values) or not all(map(math.isfinite, values)):
        return None
    ordered = sorted(zip(values, factor.levels, strict=True))
    low, high = ordered[0][0], ordered[-1][0]
    return SurfaceAxis(
        factor=factor.name,
        levels=tuple(level for _, level in ordered),
        values=tuple(value for value, _ in ordered),
        scale="log" if low > 0 and high / low >= DECADE else "linear",
    )
