"""Orders of running, drawn at random for ever the same: balanced Latin squares, and the bits that draw them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Latin squares balanced for what comes before: each treatment once at each position, each after every other.
#
# By E. J. Williams (1949), "Experimental designs balanced for the estimation of residual effects of treatments",
# Australian Journal of Scientific Research A 2. docs/reference/designs.md says what the random relabelling is good for.


# Keeps the random numbers of squares apart from those of blocks.
_SQUARES = 1


def square(size: int) -> list[list[int]]:
    """Return a Latin square of Williams: ``size`` rows, the order of a block each.

    For an even size every one of 0 … size − 1 follows every other exactly once. For an odd one it takes this square and
    the same with every row backwards, where each follows each other twice.
    """
    first = [0]
    for step in range(1, size):
        first.append((first[-1] + (step if step % 2 else -step)) % size)
    return [[(place + shift) % size for place in first] for shift in range(size)]


def latin_order(place: int, treatments: Sequence[str], entropy: Sequence[int]) -> list[str]:
    """Return the order of the block at ``place`` (0 …) of an endless series of squares over ``treatments``.

    Each square (each two, of an odd number) has its treatments relabelled at random, and its rows in random order.
    """
    size = len(treatments)
    number, row = divmod(place, size)
    group, mirrored = divmod(number, 2) if size % 2 else (number, 0)
    words = raw_bits((*entropy, group, _SQUARES), 3 * size)
    labels, rows = _shuffled(words[:size]), _shuffled(words[size * (1 + mirrored) : size * (2 + mirrored)])
    latin_row = square(size)[rows[row]]
    return [treatments[labels[which]] for which in (reversed(latin_row) if mirrored else latin_row)]


def _shuffled(keys: Sequence[int]) -> list[int]:
    return sorted(range(len(keys)), key=lambda place: (keys[place], place))


def raw_bits(entropy: Sequence[int], count: int) -> list[int]:
    """Return ``count`` random 64-bit numbers that follow from ``entropy`` alone.

    The raw output of PCG64 and SeedSequence never changes between NumPy versions and platforms (NEP 19); the methods of
    ``Generator`` may, and so they are not used.
    """
    source = np.random.PCG64(np.random.SeedSequence(list(entropy)))
    return [int(word) for word in source.random_raw(count)]
