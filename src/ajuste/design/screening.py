"""Screening: which of many factors matter, from few combinations of their levels."""

from __future__ import annotations

from itertools import count
from typing import Final

FEWEST: Final = {2: 5, 3: 4}
"""By the number of levels: with fewer factors than this, all combinations are hardly more than a screening design."""


def signs(factors: int, levels: int) -> list[tuple[int, ...]]:
    """A screening design: for each configuration the level of each factor, -1 low, 0 middle, 1 high; the baseline
    first, which is all low of two levels and all middle of three.

    Of two levels the design of Plackett and Burman (1946, "The design of optimum multifactorial experiments",
    Biometrika 33) with its fold-over, the same with all levels exchanged (Box and Wilson 1951, "On the experimental
    attainment of optimum conditions", Journal of the Royal Statistical Society B 13). Of three a definitive screening
    design (Jones and Nachtsheim 2011, Journal of Quality Technology 43). In both, no main effect is correlated with
    another one or with an interaction of two factors.
    """
    if levels == 3:
        from pydoe import definitive_screening_design  # takes long to load, and only screening needs it

        return sorted(_rows(definitive_screening_design(factors)), key=lambda row: any(row))
    half = _plackett_burman(factors)
    rows = [*half, *(tuple(-sign for sign in row) for row in half)]
    return sorted(rows, key=lambda row: any(sign > 0 for sign in row))


def _plackett_burman(factors: int) -> list[tuple[int, ...]]:
    """The smallest design that there is for so many factors: not every multiple of four is known to the library."""
    from pydoe import pbdesign  # takes long to load, and only screening needs it

    for columns in count(factors):
        try:
            return [row[:factors] for row in _rows(pbdesign(columns))]
        except ValueError:
            continue
    raise AssertionError("there is a Hadamard matrix for every power of two")


def _rows(matrix: object) -> list[tuple[int, ...]]:
    return [tuple(int(sign) for sign in row) for row in matrix]  # type: ignore[attr-defined]
