"""What the verdict of one step of a bisection says of the difference that is sought."""

from __future__ import annotations

import math
from typing import Final

from ajuste.design.bisection import Outcome
from ajuste.model.verdict import Verdict

CERTAIN: Final = frozenset({"improves", "worsens", "differs"})


def is_difference(ends: Verdict) -> bool:
    """Whether the bad end certainly differs from the good one, so that there is something to seek."""
    return ends.verdict in CERTAIN and ends.estimate is not None


def outcome_of(ends: Verdict, candidate: Verdict) -> Outcome:
    """Whether the difference between the ends is in ``candidate``, both compared with the good end.

    It is there where the whole interval of the candidate lies beyond half of that difference, absent where the whole
    interval does not reach half of it; otherwise what was measured does not tell. Ratios are halved on the logarithmic
    scale. So a small difference that comes with another step is not taken for the one that is sought.
    """
    sought = _size(ends.estimate, ends.scale == "ratio")
    ratio = candidate.scale == "ratio"
    if candidate.scale != ends.scale or candidate.estimate is None or not sought:
        return "undecided"
    low = -math.inf if candidate.low is None else _size(candidate.low, ratio)
    high = math.inf if candidate.high is None else _size(candidate.high, ratio)
    if sought < 0:
        sought, low, high = -sought, -high, -low
    half = sought / 2
    if low > half:
        return "there"
    return "absent" if high < half else "undecided"


def _size(value: float | None, ratio: bool) -> float:
    if value is None:
        return 0.0
    if not ratio:
        return value
    return math.log(value) if value > 0 else -math.inf
