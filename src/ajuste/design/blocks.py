"""Blocks: one trial of every configuration that still counts, in random order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from ajuste.model.plan import Perturbation
from ajuste.model.trial import Slot
from ajuste.model.verdict import Finding, Verdict
from ajuste_stats.orders import latin_order, raw_bits

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
    """Return the trials of block ``number`` (0 …) in the order in which they are to run.

    The order and the block's own seed follow from the study's ``seed`` and ``number`` alone, so that any block can be
    planned without the others; a Latin order from ``since`` too, the first block that holds just these configurations,
    where a square begins. The first ``warm_up`` blocks are marked as such. All slots of a block share its seed: that
    makes them comparable pair by pair.
    """
    if number < since or since < 0 or seed < 0 or warm_up < 0:
        raise ValueError(f"block {number} since {since}, seed {seed}, warm_up {warm_up}: none may be negative")
    if len(set(configurations)) != len(configurations):
        raise ValueError("two configurations have the same name")
    return _block(number, tuple(configurations), seed, warm_up, order, since)


# A block is asked for several times: to plan it, to measure it, and to say that it is done.
@lru_cache(maxsize=1 << 14)
def _block(
    number: int, configurations: tuple[str, ...], seed: int, warm_up: int, order: Order, since: int
) -> tuple[Slot, ...]:
    order_bits, *keys = raw_bits((seed, number), 1 + len(configurations))
    if order == "latin":
        ordered = latin_order(number - since, configurations, (seed, since))
    else:
        ordered = [name for _, name in sorted(zip(keys, configurations, strict=True))]
    return tuple(
        Slot(
            block=number,
            position=position,
            configuration=name,
            seed=order_bits >> (64 - SEED_BITS),
            warm_up=number < warm_up,
        )
        for position, name in enumerate(ordered)
    )


# Allocation: which configurations later blocks hold, once some of them are decided.


Allocation = Literal["undecided", "all", "refine", "best"]
"""``undecided``: later blocks hold the baseline and what is still undecided; ``all``: every block holds everything;
``refine``: blocks hold what the surface over a grid of levels needs (a schedule of ``ajuste-search``); ``best``: later
blocks hold the baseline and what may be the best.
"""


def members(names: Sequence[str], baseline: str, findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return the configurations of the blocks that follow ``findings``, in the order of ``names``.

    The baseline, and what is undecided on a metric that decides, or less precise than was asked for, with what it is
    compared with. Where nothing is,
    and yet it goes on (for the least time that was asked for), all of them: a block of the baseline alone would tell
    nothing.

    Every comparison is a confidence sequence of its own over the blocks that hold its pair. Up to when it is measured
    depends on its past only, and the sequence holds at every such time: a comparison that ended stays as it was then.
    """
    still_open = {v.subject for v in findings if v.deciding and v.is_open}
    if not still_open:
        return tuple(names)
    references = {v.against for v in findings if isinstance(v, Verdict) and v.subject in still_open}
    return tuple(name for name in names if name == baseline or name in still_open or name in references)


# What the seed of a block changes in the machine, so that replicates under a virtual clock are not one trial.


TICK_NS = 4_000_000
"""A timer tick at 250 Hz, the rate of Debian's kernels."""

PADDING_STEP = 16
"""Bytes: the alignment of the stack on x86-64. A page has 256 such places."""


def perturbation(seed: int) -> Perturbation:
    """Return the perturbation that belongs to a block's ``seed``. All configurations of a block share it.

    Other address-space layouts, one of 256 stack layouts within a page (Mytkowicz et al., "Producing wrong data
    without doing anything obviously wrong", ASPLOS 2009), and a start anywhere within a timer tick.
    """
    entropy, padding, delay = raw_bits((seed,), 3)
    return Perturbation(
        entropy=entropy, environment_bytes=PADDING_STEP * (padding % 256), start_delay_ns=delay % TICK_NS
    )
