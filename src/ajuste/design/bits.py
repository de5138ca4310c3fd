"""Random bits that never change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def raw_bits(entropy: Sequence[int], count: int) -> list[int]:
    """``count`` random 64-bit numbers that follow from ``entropy`` alone.

    The raw output of PCG64 and SeedSequence never changes between NumPy versions and platforms (NEP 19); the methods
    of ``Generator`` may, and so they are not used.
    """
    source = np.random.PCG64(np.random.SeedSequence(list(entropy)))
    return [int(word) for word in source.random_raw(count)]
