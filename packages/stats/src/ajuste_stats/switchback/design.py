"""Switchback designs: which treatment a live system has in which slice of time.

A block is what is drawn at random as one. Under every order any two treatments of a block could as well have been
exchanged: that alone makes the verdicts of ``judge`` valid, whatever the load does (Bojinov, Simchi-Levi and Zhao 2023,
"Design and analysis of switchback experiments", Management Science 69).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ajuste_stats.orders import latin_order, raw_bits
from ajuste_stats.terms import SwitchbackOrder

STAY: Final = 6
"""Slices in a row under one treatment in a block of stays."""

# Keeps the random numbers of these blocks apart from those of others.
_MIRRORED = 2


def slices_a_block(treatments: int, order: SwitchbackOrder = "random") -> int:
    """Return the number of slices of a block of so many ``treatments`` in that ``order``."""
    if order == "random":
        return treatments
    if order == "mirrored":
        return 2 * treatments
    return treatments**2 * (2 if treatments % 2 else 1)


def order_of_block(
    number: int, treatments: Sequence[str], seed: int, order: SwitchbackOrder = "random", *, stay: int = 1
) -> tuple[str, ...]:
    """Return which of ``treatments`` each slice of block ``number`` (0 …) has, in the ``order`` drawn by ``seed``.

    A block whose treatments are fewer than before (some are decided) is drawn in the same way, and so is a block of
    stays, in which each treatment of the random order remains for ``stay`` slices.
    """
    if stay > 1 and order != "random":
        raise ValueError(f"the order {order} has no stays")
    if number < 0 or seed < 0:
        raise ValueError(f"block {number}, seed {seed}: none may be negative")
    if len(set(treatments)) != len(treatments) or len(treatments) < 2:
        raise ValueError("expected at least two treatments of different names")
    if order == "latin":
        size = len(treatments)
        rows = slices_a_block(size, order) // size
        drawn = [latin_order(row, treatments, (seed, number, _MIRRORED)) for row in range(rows)]
        return tuple(name for row in drawn for name in row)
    keys = raw_bits((seed, number, _MIRRORED), len(treatments))
    once = [name for _, name in sorted(zip(keys, treatments, strict=True))]
    return tuple([name for name in once for _ in range(stay)] if order == "random" else [*once, *reversed(once)])
