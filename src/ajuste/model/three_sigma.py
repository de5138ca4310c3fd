"""Verdicts of the 3-sigma rule beside those of Ajuste."""

from __future__ import annotations

from typing import Final

from ajuste.model.base import BaseModel
from ajuste.model.facet import Facet
from ajuste_stats.terms import Word


class ThreeSigma(BaseModel):
    """The verdict of the 3-sigma rule on one configuration and one metric.

    ``values`` is mean ± 3 standard deviations of single values, ``means`` mean ± 3 standard deviations of the mean, in
    the metric's unit; None below two values. ``values_differ`` and ``means_differ`` tell whether the rule calls it
    different from the baseline in each form; None for the baseline itself. ``why`` says why the rule ``disagrees`` with
    the ``verdict``.
    """

    configuration: str
    metric: str
    n: int
    mean: float
    values: tuple[float, float] | None
    means: tuple[float, float] | None
    values_differ: bool | None = None
    means_differ: bool | None = None
    verdict: Word | None = None
    disagrees: bool = False
    why: str = ""


THREE_SIGMA: Final = Facet[tuple[ThreeSigma, ...]]("three_sigma", tuple[ThreeSigma, ...], ())
