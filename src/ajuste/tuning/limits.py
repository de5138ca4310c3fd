"""Whether configurations keep the constraints, by the intervals of the check."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.pairs import Trials, clean_trials
from ajuste.analysis.precision import interval_of
from ajuste.model.tuning import KeptLimit
from ajuste.model.verdict import Verdict
from ajuste.tuning.goal import Limit


def kept_limits(
    limits: Sequence[Limit], names: Sequence[str], verdicts: Sequence[Verdict], trials: Trials, alpha: float
) -> tuple[KeptLimit, ...]:
    """Every limit for every one of ``names``: relative ones by the ``verdicts``, others by intervals of error rate
    ``alpha`` of what ``trials`` measured.
    """
    clean = clean_trials(trials)
    found = []
    for name in names:
        for limit in limits:
            if limit.relative:
                own = next(v for v in verdicts if v.configuration == name and v.metric == limit.metric.name)
                three = (own.estimate, own.low, own.high) if own.scale == "ratio" else (None, None, None)
            else:
                three = _absolute(limit, clean.values(name, limit.metric.column), alpha)
            estimate, low, high = three
            found.append(
                KeptLimit(
                    configuration=name,
                    text=limit.text,
                    metric=limit.metric.name,
                    unit=limit.metric.unit,
                    relative=limit.relative,
                    bound=limit.bound,
                    estimate=estimate,
                    low=low,
                    high=high,
                    holds=_holds(limit, low, high),
                )
            )
    return tuple(found)


def _absolute(
    limit: Limit, values: NDArray[np.float64], alpha: float
) -> tuple[float | None, float | None, float | None]:
    if not len(values):
        return None, None, None
    interval = interval_of(values, limit.metric, alpha)
    finite = [point if math.isfinite(point) else None for point in (interval.low, interval.high)]
    return interval.mean, finite[0], finite[1]


def _holds(limit: Limit, low: float | None, high: float | None) -> Literal["yes", "no", "unknown"]:
    within, beyond = (high, low) if limit.upper else (low, high)
    sign = 1 if limit.upper else -1
    if within is not None and sign * within <= sign * limit.bound:
        return "yes"
    return "no" if beyond is not None and sign * beyond > sign * limit.bound else "unknown"
