"""Latencies as fio reports them, of one job or of several together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Count = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Real = Annotated[float, Field(strict=True, ge=0, lt=1e18, allow_inf_nan=False)]
Digits = Annotated[str, Field(pattern=r"^[0-9]{1,18}$")]
Percent = Annotated[str, Field(pattern=r"^[0-9]{1,3}\.[0-9]{1,9}$")]

PERCENTILES: Final = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}

_ROUNDING: Final = 1e-9
"""fio prints six decimals of a mean."""


class Latency(BaseModel):
    """``N`` latencies in nanoseconds. ``bins`` (json+) says how often each value was seen, to fio's 64th of a power
    of two; ``percentile`` has fio's own reading of them.
    """

    model_config = ConfigDict(frozen=True)
    N: Count
    min: Real
    max: Real
    mean: Real
    stddev: Real
    percentile: dict[Percent, Count] = Field(default_factory=dict)
    bins: dict[Digits, Count] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.N and not self.min * (1 - _ROUNDING) - 1e-6 <= self.mean <= self.max * (1 + _ROUNDING) + 1e-6:
            raise ValueError("the mean is not between the least and the greatest latency")
        if self.bins and sum(self.bins.values()) != self.N:
            raise ValueError("the bins do not hold as many latencies as there are")
        return self

    def percentiles(self) -> dict[str, float]:
        """Nanoseconds by the names of ``PERCENTILES``: from the bins, or else those that fio printed."""
        if self.bins:
            ordered = sorted((int(value), count) for value, count in self.bins.items())
            return {name: _rank(ordered, share / 100 * self.N) for name, share in PERCENTILES.items()}
        printed = {float(share): value for share, value in self.percentile.items()}
        return {name: float(printed[share]) for name, share in PERCENTILES.items() if share in printed}


def together(parts: Sequence[Latency]) -> Latency | None:
    """All latencies of ``parts`` as one; ``None`` if there are none.

    Percentiles are known only where all parts have bins, or there is one part alone. Deviations are pooled as fio does
    itself (stat.c, sum_stat; Chan, Golub and LeVeque 1979, "Updating formulae and a pairwise algorithm for computing
    sample variances").
    """
    counted = [part for part in parts if part.N]
    if len(counted) <= 1:
        return counted[0] if counted else None
    number = sum(part.N for part in counted)
    mean = sum(part.N * part.mean for part in counted) / number
    squares = sum(part.stddev**2 * (part.N - 1) + part.N * (part.mean - mean) ** 2 for part in counted)
    bins: Counter[str] = Counter()
    if all(part.bins for part in counted):
        for part in counted:
            bins.update(part.bins)
    return Latency(
        N=number,
        min=min(part.min for part in counted),
        max=max(part.max for part in counted),
        mean=mean,
        stddev=math.sqrt(squares / (number - 1)),
        bins=dict(bins),
    )


def _rank(ordered: Sequence[tuple[int, int]], rank: float) -> float:
    """The smallest value that ``rank`` of them do not exceed (stat.c, calc_clat_percentiles)."""
    seen = 0
    for value, count in ordered:
        seen += count
        if seen >= rank:
            return float(value)
    return float(ordered[-1][0])
