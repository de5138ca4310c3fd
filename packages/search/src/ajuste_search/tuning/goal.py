"""The goal of a search: which metrics are to become better, and what must not become worse."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ajuste.catalogue.level import real_number
from ajuste.design.goal import CONSTRAINTS, split_constraint, split_objective
from ajuste.model.error import RequestError
from ajuste.model.metric import Metric
from ajuste.model.search import Search

_RELATIVE: Final = re.compile(r"([+-]?\d{1,6}(?:\.\d{1,6})?)\s*%", re.ASCII)


@dataclass(frozen=True)
class Constraint:
    """A constraint on ``metric``: at most ``bound`` (at least, if ``upper`` is false), in its unit; relative ones as a
    factor of the baseline's.
    """

    metric: Metric
    upper: bool
    bound: float
    relative: bool
    text: str

    def excess(self, value: float, baseline: float) -> float:
        """Return how far ``value`` is beyond the bound: logarithmically if possible, otherwise as a share of it."""
        bound = self.bound * baseline if self.relative else self.bound
        sign = 1.0 if self.upper else -1.0
        if value > 0 and bound > 0:
            return sign * math.log(value / bound)
        return sign * (value - bound) / (abs(bound) or 1.0)


@dataclass(frozen=True)
class Goal:
    """The metrics that are to become better, each with a direction, and the limits."""

    objectives: tuple[Metric, ...]
    limits: tuple[Constraint, ...] = ()


def resolve_goal(search: Search, metrics: Sequence[Metric]) -> Goal:
    """Return the goal of ``search`` in terms of ``metrics``, which have all that it names. Raises RequestError."""
    known = {metric.name: metric for metric in metrics}
    objectives = []
    for text in search.objectives:
        name, direction = split_objective(text)
        metric = known[name]
        if metric.direction == "none" and direction is None:
            raise RequestError(
                f"{name} has no better direction; expected =lower or =higher",
                hint=f"give --objective {name}=lower, or =higher",
            )
        objectives.append(metric.model_copy(update={"direction": direction or metric.direction}))
    return Goal(tuple(objectives), tuple(_limit(text, known) for text in search.constraints))


def _limit(text: str, known: dict[str, Metric]) -> Constraint:
    name, upper, bound = split_constraint(text)
    metric = known[name]
    relative = _RELATIVE.fullmatch(bound)
    if relative:
        factor = 1 + float(relative[1]) / 100
        if factor <= 0:
            raise RequestError(f'the constraint "{text}": expected a decrease of less than 100 %')
        if metric.scale != "ratio":
            raise RequestError(
                f'the constraint "{text}": {name} can be 0, so it does not support a relative bound',
                hint=f'use an absolute value, such as "{name} <= 10"',
            )
        return Constraint(metric, upper, factor, relative=True, text=text)
    number = real_number(bound, metric.unit)
    if number is None:
        unit = f" in {metric.unit}" if metric.unit else ""
        raise RequestError(f'the constraint "{text}": "{bound}" is not a value of {name}{unit}', hint=CONSTRAINTS)
    return Constraint(metric, upper, number, relative=False, text=text)
