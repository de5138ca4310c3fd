"""Blocks: one trial of every configuration, in random order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ajuste.model.trial import Slot

SEED_BITS = 53
"""Seeds of blocks stay below 2⁵³, so that every JSON reader and database keeps them exactly."""


def raw_bits(entropy: Sequence[int], count: int) -> list[int]:
    """``count`` random 64-bit numbers that follow from ``entropy`` alone.

    The raw output of PCG64 and SeedSequence never changes between NumPy versions and platforms (NEP 19); the methods
    of ``Generator`` may, and so they are not used.
    """
    source = np.random.PCG64(np.random.SeedSequence(list(entropy)))
    return [int(word) for word in source.random_raw(count)]


def block(number: int, configurations: Sequence[str], seed: int, *, warm_up: int = 0) -> tuple[Slot, ...]:
    """The trials of block ``number`` (0 …) in the order in which they are to run.

    The order and the block's own seed follow from the study's ``seed`` and ``number`` alone, so that any block can be
    planned without the others. The first ``warm_up`` blocks are marked as such. All slots of a block share its seed:
    that makes them comparable pair by pair.
    """
    if number < 0 or seed < 0 or warm_up < 0:
        raise ValueError(f"block {number}, seed {seed}, warm_up {warm_up}: none may be negative")
    if len(set(configurations)) != len(configurations):
        raise ValueError("two configurations have the same name")
    own, *keys = raw_bits((seed, number), 1 + len(configurations))
    order = [name for _, name in sorted(zip(keys, configurations, strict=True))]
    return tuple(
        Slot(
            block=number,
            position=position,
            configuration=name,
            seed=own >> (64 - SEED_BITS),
            warm_up=number < warm_up,
        )
        for position, name in enumerate(order)
    )
