"""Switchback designs: which configuration a live system has in which slice of time.

A block is what is drawn at random as one. Under every order any two configurations of a block could as well have been
exchanged: that alone makes the verdicts of ``analysis.switchback`` valid, whatever the load does (Bojinov, Simchi-Levi
and Zhao 2023, "Design and analysis of switchback experiments", Management Science 69).
"""

from __future__ import annotations

from collections.abc import Sequence

from ajuste.design.blocks import latin_order, raw_bits
from ajuste.model.live import SwitchbackOrder

_MIRRORED = 2
"""Keeps the random numbers of these blocks apart from those of others."""


def slices_a_block(configurations: int, order: SwitchbackOrder = "random") -> int:
    """How many slices a block has."""
    if order == "random":
        return configurations
    if order == "mirrored":
        return 2 * configurations
    return configurations**2 * (2 if configurations % 2 else 1)


def order_of_block(
    number: int, configurations: Sequence[str], seed: int, order: SwitchbackOrder = "random"
) -> tuple[str, ...]:
    """The configurations of the slices of block ``number`` (0 …), in order; they follow from ``seed`` and ``number``.

    A block whose configurations are fewer than before (some are decided) is drawn in the same way.
    """
    if number < 0 or seed < 0:
        raise ValueError(f"block {number}, seed {seed}: none may be negative")
    if len(set(configurations)) != len(configurations) or len(configurations) < 2:
        raise ValueError("expected at least two configurations of different names")
    if order == "latin":
        size = len(configurations)
        rows = slices_a_block(size, order) // size
        drawn = [latin_order(row, configurations, (seed, number, _MIRRORED)) for row in range(rows)]
        return tuple(name for row in drawn for name in row)
    keys = raw_bits((seed, number, _MIRRORED), len(configurations))
    once = [name for _, name in sorted(zip(keys, configurations, strict=True))]
    return tuple(once if order == "random" else [*once, *reversed(once)])
