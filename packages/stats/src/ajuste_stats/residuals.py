"""Residuals: measurements without the means of their treatments, in the order of running."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ajuste_stats.outliers import FAR, MAD_SCALE, distances_from_median, far_places, median
from ajuste_stats.terms import Scale

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

FEWEST_OF_EACH: Final = 5
"""Fewer values of a treatment have no outliers."""

# Relative to the values: residuals smaller than this are rounding errors of the computer, not noise.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Residuals:
    """Values without the mean of their treatment, in the order of running; of the logarithm where ``scale`` is *ratio*.

    ``treatment`` is the place in ``names``, ``block`` counts the blocks that have any from 0, ``position`` is the
    place in the block.
    """

    scale: Scale
    names: tuple[str, ...]
    values: Floats
    treatment: Whole
    block: Whole
    position: Whole
    numbers: Whole

    def __len__(self) -> int:
        return len(self.values)

    @property
    def blocks(self) -> int:
        return len(self.numbers)

    @cached_property
    def each_block(self) -> Floats:
        """Return how many trials each block has."""
        return np.bincount(self.block, minlength=self.blocks).astype(np.float64)

    @cached_property
    def block_averages(self) -> Floats:
        """Return the mean residual of every block."""
        return np.bincount(self.block, self.values, minlength=self.blocks) / self.each_block

    @cached_property
    def by_treatment(self) -> list[Floats]:
        """Return the residuals of each treatment, in the order of running."""
        order = np.argsort(self.treatment, kind="stable")
        bounds = np.searchsorted(self.treatment[order], np.arange(1, len(self.names)))
        return np.split(self.values[order], bounds)

    @cached_property
    def from_median(self) -> list[Floats]:
        """Return how far each of ``by_treatment`` is from its treatment's median."""
        return [distances_from_median(group) for group in self.by_treatment]

    @cached_property
    def far(self) -> list[list[int]]:
        """Return the outliers' places in ``by_treatment``; none where values are few or mostly alike."""
        if min(map(len, self.from_median)) < FEWEST_OF_EACH:
            return [[] for _ in self.names]
        # Of many treatments with few values some have a small spread by chance: an outlier is far by that of all.
        usual = MAD_SCALE * median(np.concatenate(self.from_median))
        return [[place for place in far_places(away) if away[place] > FAR * usual] for away in self.from_median]

    @property
    def sd(self) -> float:
        """Return the standard deviation of a single trial, drift included."""
        return float(np.sqrt(np.sum(self.values**2) / max(1, len(self) - len(self.names))))

    @property
    def vary(self) -> bool:
        """Return whether there is any noise at all."""
        return len(self) > len(self.names) and float(np.ptp(self.values)) > 0


def compute_residuals(
    values: Floats,
    treatments: Whole,
    blocks: Whole,
    positions: Whole,
    *,
    names: Sequence[str],
    scale: Scale,
    numbers: Whole | None = None,
) -> Residuals:
    """Return the residuals of ``values`` in the order of running, at least one and none of them NaN.

    ``treatments`` are places in ``names``, ``blocks`` whole numbers from 0 (places in ``numbers``, if these are given),
    ``positions`` places within the block. Logarithms are taken if ``scale`` is *ratio* and all values are positive.
    """
    scale = "ratio" if scale == "ratio" and bool(np.all(values > 0)) else "difference"
    values = np.log(values) if scale == "ratio" else values
    codes, treatment = _numbered(treatments)
    block_codes, block = _numbered(blocks)
    averages = np.bincount(treatment, values) / np.bincount(treatment)
    residuals = values - averages[treatment]
    residuals[np.abs(residuals) <= _ROUNDING * (1.0 if scale == "ratio" else np.abs(averages[treatment]))] = 0.0
    return Residuals(
        scale=scale,
        names=tuple(names[code] for code in codes),
        values=residuals,
        treatment=treatment,
        block=block,
        position=positions,
        numbers=block_codes if numbers is None else numbers[block_codes],
    )


def _numbered(codes: NDArray[Any]) -> tuple[Whole, Whole]:
    # Return the codes that occur and the place of each: `numpy.unique` without sorting a million.
    there = np.bincount(codes) > 0
    return np.flatnonzero(there), (np.cumsum(there) - 1)[codes]
