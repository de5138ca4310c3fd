"""The texts of a search's goal: objectives, which are to become better, and constraints, which must hold."""

from __future__ import annotations

import re
from typing import Final, Literal

from ajuste.model.error import RequestError

_CONSTRAINT: Final = re.compile(r"(\S+)\s*(<=|>=|≤|≥)\s*(\S.*?)\s*", re.ASCII)
CONSTRAINTS: Final = '"elapsed@p99 <= +5%" is relative to the baseline, "hackbench.time <= 2 s" is not'


def split_objective(text: str) -> tuple[str, Literal["lower", "higher"] | None]:
    """Split ``context-switches=lower`` into name and direction, ``None`` without one. Raises RequestError."""
    name, mark, direction = text.partition("=")
    if not mark:
        return name, None
    if direction == "lower":
        return name, "lower"
    if direction == "higher":
        return name, "higher"
    raise RequestError(f'the objective "{text}": expected =lower or =higher after the metric')


def constrained_metric(text: str) -> str:
    """Return the name of the metric that a constraint is on. Raises RequestError for what is no constraint."""
    return split_constraint(text)[0]


def split_constraint(text: str) -> tuple[str, bool, str]:
    """Return the metric of a constraint, whether its bound is the upper one, and the bound. Raises RequestError."""
    match = _CONSTRAINT.fullmatch(text.strip())
    if not match:
        raise RequestError(f'the constraint "{text}": expected METRIC <= VALUE or METRIC >= VALUE', hint=CONSTRAINTS)
    return match[1], match[2] in ("<=", "≤"), match[3]
