"""The words and quantities that all of the library speaks of; loads nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol

Direction = Literal["lower", "higher", "none"]
"""The better direction of a quantity; of *none* a change only differs."""

Scale = Literal["ratio", "difference"]
"""The way to compare two treatments: by ratios for what is always positive, by differences for what can be 0."""

Word = Literal["improves", "worsens", "differs", "equivalent", "undecided"]
"""A verdict in a word."""

LimitWord = Literal["beyond", "within", "undecided"]
"""A change for the worse against a limit: the whole interval lies beyond it, or none of it does."""

SwitchbackOrder = Literal["random", "mirrored", "latin"]
"""The way to draw a block of a switchback.

*random*: each treatment once a block, in an order drawn anew. *mirrored*: that order, then the same backwards, so that
a steady drift hits all alike, for load that changes within a few slices. *latin*: a whole square of Williams (two for
an odd number), in which each treatment follows every other equally often, for systems that are slow to settle.
"""

Shape = Literal["fast fall", "fall", "slow fall", "fast rise", "rise", "slow rise", "oscillating", "flat"]
"""The character of a stretch of a curve."""

Kind = Literal[
    "drift",
    "warm-up",
    "order",
    "carry-over",
    "autocorrelation",
    "bimodality",
    "outliers",
    "unequal variance",
]
"""A defect of noise that a diagnostic looks for."""

SEEN: Final = 0.1
"""*Equivalent* needs enough trials that what happens in this share of them is in at least one."""


class Quantity(Protocol):
    """A figure to compare. Any object with these attributes will do, such as a ``Measure``.

    ``resolution`` is the smallest step the figure can take (1 for a count), in ``unit``; 0 where the printed digits
    show it. With a ``quantile`` (between 0 and 1) that quantile of the values is compared, not their mean.
    """

    @property
    def unit(self) -> str: ...
    @property
    def direction(self) -> Direction: ...
    @property
    def scale(self) -> Scale: ...
    @property
    def resolution(self) -> float: ...
    @property
    def quantile(self) -> float | None: ...


@dataclass(frozen=True)
class Measure:
    """A quantity and nothing else: the ``direction`` that is better, and the ``scale`` on which it is compared.

    ``resolution`` and ``quantile`` are as in ``Quantity``. Whole numbers without a ``unit``, compared by differences,
    are counts, which no rounding has made whole.
    """

    direction: Direction = "none"
    scale: Scale = "ratio"
    resolution: float = 0.0
    quantile: float | None = None
    unit: str = ""


def by_difference(quantity: Quantity) -> Measure:
    """Return ``quantity``, compared by differences."""
    return Measure(quantity.direction, "difference", quantity.resolution, quantity.quantile, quantity.unit)


def undirected(quantity: Quantity) -> Measure:
    """Return ``quantity``, of which no direction is better."""
    return Measure("none", quantity.scale, quantity.resolution, quantity.quantile, quantity.unit)
