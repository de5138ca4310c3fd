"""What a rule says of one metric under one configuration, before anything is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Forecast:
    """Between ``low`` and ``high``, in the metric's unit; ``why`` says in a few words how that comes about."""

    configuration: str
    metric: str
    low: float
    high: float
    why: str = ""
