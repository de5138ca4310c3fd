"""The goal of a hunt: what a trial must show, as it is typed after ``--until``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from ajuste.model.error import Place, RequestError
from ajuste.model.wording import number, quantity

Kind = Literal["exit", "hung", "dmesg", "metric"]
_GOALS: Final = "'exit != 0', hung, 'dmesg: PATTERN' or a metric's limit such as 'elapsed > 10x'"
_EXIT: Final = re.compile(r"exit\s*(!=|==|=)\s*(-?[0-9]{1,4})")
_LIMIT: Final = re.compile(
    r"(?P<metric>[A-Za-z][A-Za-z0-9._@/-]*)\s*(?P<sign>[<>])\s*(?P<value>[0-9.]+)\s*(?P<unit>[a-zµ%]*)"
)
_UNITS: Final[Mapping[str, float]] = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_TIME: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-zµ]+)")
_MS: Final = 1e-3
HUNG: Final = "the guest hung"
STALL: Final = "stall"
"""The longest time for which a task of the workload could run and had no CPU: seconds, by the scheduler's decisions."""


@dataclass(frozen=True)
class Ending:
    """The end of a trial: its workload's exit code, or the signal that ended it; None for a guest that failed.

    ``problem`` is what went wrong with the guest, ``console`` what its kernel printed, ``seconds`` how long the
    workload ran by the guest's clock.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    problem: str
    console: str
    seconds: float
    metrics: Mapping[str, float]

    @property
    def hangs(self) -> bool:
        return self.timed_out or self.problem.startswith(HUNG)

    @property
    def in_words(self) -> str:
        """Return how it ended: ``exit code 1``."""
        if self.problem:
            return self.problem
        if self.timed_out:
            return "it did not end within its time limit"
        return f"killed by signal {self.signal}" if self.signal is not None else f"exit code {self.exit_code}"


@dataclass(frozen=True)
class Goal:
    """A goal as ``text``. Of a ``metric``: it must be beyond ``limit``, in the metric's base unit, or so many times
    what is typical, if ``relative``.
    """

    text: str
    kind: Kind
    code: int = 0
    equal: bool = False
    pattern: str = ""
    metric: str = ""
    above: bool = True
    limit: float = 0.0
    relative: bool = False

    def is_met(self, ending: Ending, typical: float | None) -> bool:
        """Return whether a trial shows it; ``typical`` is the metric's median in plain trials."""
        if self.kind == "hung":
            return ending.hangs
        if self.kind == "dmesg":
            lines = (*ending.console.splitlines(), ending.problem)
            return any(re.search(self.pattern, line) for line in lines)
        if self.kind == "exit":
            if ending.problem or ending.timed_out:
                return False
            code = ending.exit_code if ending.signal is None else 128 + ending.signal
            return (code == self.code) == self.equal
        value = ending.metrics.get(self.metric)
        return value is not None and self._exceeds(value, self.bound(typical))

    def nearness(self, ending: Ending) -> float:
        """Return a figure that grows towards the goal; 0 where nothing tells."""
        value = ending.metrics.get(self.metric, 0.0) if self.kind == "metric" else 0.0
        return value if self.above else -value

    def in_words(self, typical: float | None, unit: str) -> str:
        """Return the goal with its limit in the metric's unit."""
        if self.kind != "metric":
            return self.text
        return f"{self.metric} {'>' if self.above else '<'} {quantity(number(self.bound(typical)), unit)}"

    def bound(self, typical: float | None) -> float:
        """Return the limit of the metric, in its base unit."""
        if not self.relative:
            return self.limit
        return self.limit * (typical or 0.0)

    def _exceeds(self, value: float, bound: float) -> bool:
        return value > bound if self.above else value < bound


def read_time(option: str, text: str) -> float:
    """Return a time such as 100us in seconds. Raises RequestError."""
    match = _TIME.fullmatch(text.strip())
    if match is None or match[2] not in _UNITS or not match[2]:
        raise RequestError(f"{option} {text}: expected a time with its unit, such as 100us or 2ms")
    return float(match[1]) * _UNITS[match[2]]


def read_goal(text: str, unit_of: Callable[[str], str]) -> Goal:
    """Read a goal; ``unit_of`` a metric raises RequestError where there is none. Raises RequestError."""
    words = text.strip()
    place = Place(f"--until {text}")
    if words == "hung":
        return Goal(words, "hung")
    if words.startswith("dmesg:"):
        pattern = words.removeprefix("dmesg:").strip()
        if not pattern:
            raise RequestError(f"the pattern is missing; expected {_GOALS}", place=place)
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as failure:
            message = f"not a regular expression: {failure}; expected the syntax of Python"
            raise RequestError(message, place=place) from None
        return Goal(words, "dmesg", pattern=pattern)
    if match := _EXIT.fullmatch(words):
        return Goal(words, "exit", code=int(match[2]), equal=match[1] != "!=")
    match = _LIMIT.fullmatch(words)
    if match is None:
        raise RequestError(f"this is not a goal; expected {_GOALS}", place=place)
    return _of_metric(words, match, unit_of, place)


def _of_metric(text: str, match: re.Match[str], unit_of: Callable[[str], str], place: Place) -> Goal:
    try:
        value = float(match["value"])
    except ValueError:
        raise RequestError(f"{match['value']} is not a number; expected {_GOALS}", place=place) from None
    unit = "s" if match["metric"] == STALL else unit_of(match["metric"])
    relative = match["unit"] == "x"
    if relative:
        limit = value
    elif match["unit"] not in _UNITS or (match["unit"] and unit not in ("s", "ms")):
        raise RequestError(
            f"{match['unit']} is not a unit of {match['metric']}; expected a number, one with x such as 10x, or a time "
            "with s, ms or us of a metric that is one",
            place=place,
        )
    else:
        limit = value * _UNITS[match["unit"]] / (_MS if unit == "ms" and match["unit"] else 1.0)
    return Goal(text, "metric", metric=match["metric"], above=match["sign"] == ">", limit=limit, relative=relative)
