"""Wash-outs: how long a live system takes to settle after a change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.model.wording import number
from ajuste_stats.step_response import time_constant

Floats = NDArray[np.float64]

LEFT: Final = 0.05
"""Share of a response that is left at the end of the wash-out."""
FEWEST: Final = 3
"""Changes between the same two configurations, with fewer of which noise cannot be distinguished from a response."""


@dataclass(frozen=True)
class StepResponse:
    """The response of a metric to the change from one configuration to another: ``values`` at equal steps from the
    change on.
    """

    old: str
    new: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class WashOut:
    """``seconds`` after a change until ``LEFT`` of the response is left; it decays with ``constant_s``.

    ``constant_s`` is None where no response stands out from the noise: then ``seconds`` is the least that was asked
    for.
    """

    seconds: float
    constant_s: float | None
    says: str


def estimate_wash_out(responses: Sequence[StepResponse], step_s: float, *, least_s: float = 0.0) -> WashOut:
    """Return the wash-out from ``responses`` with a value every ``step_s`` seconds.

    An exponential decay is fitted to each response alone, for a range of time constants. Whether there is one is a t
    test over the responses to the same change, whose amplitudes do not depend on how the noise within each of them is
    correlated; Bonferroni over changes and constants.
    """
    groups = _grouped(responses)
    if not groups:
        return WashOut(least_s, None, f"fewer than {FEWEST} changes between the same two configurations were seen")
    constant = time_constant(groups)
    if constant is None:
        return WashOut(least_s, None, "no response to the changes stands out from the noise")
    constant_s = constant * step_s
    seconds = max(least_s, math.ceil(constant_s * -math.log(LEFT) / step_s) * step_s)
    return WashOut(
        seconds,
        constant_s,
        f"after a change the metric settles with a time constant of {number(constant_s)} s: "
        f"{number(100 * LEFT)} % of the response is left after {number(seconds)} s",
    )


def _grouped(responses: Sequence[StepResponse]) -> list[Floats]:
    # The responses to each change as a table, cut to the shortest; of at least `FEWEST`, with six values or more.
    by_change: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for response in responses:
        if len(response.values) >= 6 and all(map(math.isfinite, response.values)):
            by_change.setdefault((response.old, response.new), []).append(response.values)
    tables = []
    for responses_of_change in by_change.values():
        if len(responses_of_change) >= FEWEST:
            shortest = min(map(len, responses_of_change))
            tables.append(np.array([values[:shortest] for values in responses_of_change]))
    return tables
