"""Constraints of what was searched for: whether a configuration keeps them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from ajuste.analysis.pairs import Trials, clean_trials
from ajuste.model.verdict import Verdict
from ajuste_search.tuning.goal import Constraint
from ajuste_search.tuning.model import KeptLimit
from ajuste_stats.precision import estimate_interval


def kept_limits(
    limits: Sequence[Constraint], names: Sequence[str], verdicts: Sequence[Verdict], trials: Trials, alpha: float
) -> tuple[KeptLimit, ...]:
    """Check every limit for each of ``names``: by the ``verdicts`` if relative, else by intervals of ``trials``."""
    clean = clean_trials(trials)
    checked_limits = []
    unknown: tuple[float | None, float | None, float | None] = (None, None, None)
    for name in names:
        for limit in limits:
            estimate, low, high = unknown
            if limit.relative:
                verdict = next(v for v in verdicts if v.configuration == name and v.metric == limit.metric.name)
                if verdict.scale == "ratio":
                    estimate, low, high = verdict.estimate, verdict.low, verdict.high
            elif len(values := clean.values(name, limit.metric.column)):
                interval = estimate_interval(values, limit.metric, alpha)
                estimate = interval.mean
                low, high = (point if math.isfinite(point) else None for point in (interval.low, interval.high))
            checked_limits.append(
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
    return tuple(checked_limits)


def _holds(limit: Constraint, low: float | None, high: float | None) -> Literal["yes", "no", "unknown"]:
    within, beyond = (high, low) if limit.upper else (low, high)
    sign = 1 if limit.upper else -1
    if within is not None and sign * within <= sign * limit.bound:
        return "yes"
    return "no" if beyond is not None and sign * beyond > sign * limit.bound else "unknown"
