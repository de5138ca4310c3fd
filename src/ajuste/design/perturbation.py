"""What the seed of a block changes in the machine, so that replicates under a virtual clock are not one trial."""

from __future__ import annotations

from ajuste.design.bits import raw_bits
from ajuste.model.plan import Perturbation

TICK_NS = 4_000_000
"""One timer tick at 250 Hz, the rate of Debian's kernels."""

PADDING_STEP = 16
"""Bytes: the alignment of the stack on x86-64. A page has 256 such places."""


def perturbation(seed: int) -> Perturbation:
    """The perturbation that belongs to a block's ``seed``. All configurations of a block share it.

    Other address-space layouts, one of 256 stack layouts within a page (Mytkowicz et al., "Producing wrong data
    without doing anything obviously wrong", ASPLOS 2009), and a start anywhere within a timer tick.
    """
    entropy, padding, delay = raw_bits((seed,), 3)
    return Perturbation(
        entropy=entropy, environment_bytes=PADDING_STEP * (padding % 256), start_delay_ns=delay % TICK_NS
    )
