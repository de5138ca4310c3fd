"""Blocks: one trial of every configuration that still counts, in random order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ajuste.design.bits import raw_bits
from ajuste.design.latin import latin_order
from ajuste.model.trial import Slot

SEED_BITS = 53
"""Seeds of blocks stay below 2⁵³, so that every JSON reader and database keeps them exactly."""

Order = Literal["random", "latin"]
"""``random``: an order drawn anew for every block; ``latin``: balanced over positions and over what comes before."""


def block(
    number: int,
    configurations: Sequence[str],
    seed: int,
    *,
    warm_up: int = 0,
    order: Order = "random",
    since: int = 0,
) -> tuple[Slot, ...]:
    """The trials of block ``number`` (0 …) in the order in which they are to run.

    The order and the block's own seed follow from the study's ``seed`` and ``number`` alone, so that any block can be
    planned without the others; a Latin order from ``since`` too, the first block that holds just these configurations,
    where a square begins. The first ``warm_up`` blocks are marked as such. All slots of a block share its seed: that
    makes them comparable pair by pair.
    """
    if number < since or since < 0 or seed < 0 or warm_up < 0:
        raise ValueError(f"block {number} since {since}, seed {seed}, warm_up {warm_up}: none may be negative")
    if len(set(configurations)) != len(configurations):
        raise ValueError("two configurations have the same name")
    own, *keys = raw_bits((seed, number), 1 + len(configurations))
    if order == "latin":
        ordered = latin_order(number - since, configurations, (seed, since))
    else:
        ordered = [name for _, name in sorted(zip(keys, configurations, strict=True))]
    return tuple(
        Slot(
            block=number,
            position=position,
            configuration=name,
            seed=own >> (64 - SEED_BITS),
            warm_up=number < warm_up,
        )
        for position, name in enumerate(ordered)
    )
