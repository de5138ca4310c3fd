"""How a search stands, for whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass

from ajuste.model.metric import Metric
from ajuste.model.tuning import Phase


@dataclass(frozen=True)
class Standing:
    """``trials`` of ``allowed`` are measured, ``tried`` counts configurations besides the baseline. ``change`` is how
    much worse than the baseline the best of these is on ``metric``: the logarithm of a ratio, or a difference.
    """

    phase: Phase
    trials: int
    allowed: int
    tried: int
    best: str | None
    change: float | None
    as_ratio: bool
    metric: Metric
