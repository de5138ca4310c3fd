"""Latin squares balanced for what comes before: each configuration once at each position, each after every other.

E. J. Williams (1949), "Experimental designs balanced for the estimation of residual effects of treatments", Australian
Journal of Scientific Research A 2. docs/designs.md says what the random relabelling is good for.
"""

from __future__ import annotations

from collections.abc import Sequence

from ajuste.design.bits import raw_bits

_SQUARES = 1
"""Keeps the random numbers of squares apart from those of blocks."""


def square(size: int) -> list[list[int]]:
    """A Latin square of Williams: ``size`` rows, the order of a block each.

    For an even size every one of 0 … size − 1 follows every other exactly once. For an odd one it takes this square and
    the same with every row backwards, where each follows each other twice.
    """
    first = [0]
    for step in range(1, size):
        first.append((first[-1] + (step if step % 2 else -step)) % size)
    return [[(place + shift) % size for place in first] for shift in range(size)]


def latin_order(place: int, configurations: Sequence[str], entropy: Sequence[int]) -> list[str]:
    """The order of the block at ``place`` (0 …) of an endless series of squares over ``configurations``.

    Each square (each two, of an odd number) has its configurations relabelled at random, and its rows in random order.
    """
    size = len(configurations)
    number, row = divmod(place, size)
    group, mirrored = divmod(number, 2) if size % 2 else (number, 0)
    words = raw_bits((*entropy, group, _SQUARES), 3 * size)
    labels, rows = _shuffled(words[:size]), _shuffled(words[size * (1 + mirrored) : size * (2 + mirrored)])
    own = square(size)[rows[row]]
    return [configurations[labels[which]] for which in (reversed(own) if mirrored else own)]


def _shuffled(keys: Sequence[int]) -> list[int]:
    return sorted(range(len(keys)), key=lambda place: (keys[place], place))
