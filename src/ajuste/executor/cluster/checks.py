"""Which trials of a cluster are measured twice, and what follows where two answers are not the same to the bit.

Which ones is unknown in advance: the choice is made with a key that the coordinator keeps to itself.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ajuste.executor.cluster.answer import Said
from ajuste.executor.executor import TrialDone
from ajuste.model.plan import Plan

ONE_IN: Final = 10
"""So many trials are measured once for one that is measured twice."""


class Given(NamedTuple):
    """What the worker ``by`` gave for a trial, and what it comes to."""

    by: str
    said: tuple[Said, ...]
    done: TrialDone


@dataclass
class _Pair:
    """A trial that is measured twice; ``first`` is who had it first."""

    plan: Plan
    first: Given | None = None
    second: Given | None = None


@dataclass
class Checks:
    """What workers gave is kept back until their first trial was confirmed, and what is measured twice until it was.

    ``measure`` carries out a plan on this machine, which decides where two workers disagree.
    """

    measure: Callable[[Plan], Said]
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    one_in: int = ONE_IN
    made: int = 0
    _confirmed: set[str] = field(default_factory=set)
    _wanted: set[str] = field(default_factory=set)
    _pairs: dict[int, _Pair] = field(default_factory=dict)
    _kept_back: dict[str, list[TrialDone]] = field(default_factory=dict)

    def begin(self) -> None:
        """Other trials, numbered anew."""
        self._pairs, self._kept_back = {}, {}
        self._wanted = set(self._confirmed)

    def chosen(self, number: int, plan: Plan) -> bool:
        """Whether that trial is to be measured twice."""
        content = plan.model_dump_json().encode()
        drawn = int.from_bytes(hmac.digest(self.key, content, hashlib.sha256)[:8], "big")
        if drawn % self.one_in == 0:
            self._pairs[number] = _Pair(plan)
            return True
        return False

    def add(self, number: int, plan: Plan, given: Given) -> list[TrialDone]:
        """What may be kept now. A trial that has a ``first_of`` afterwards is to be measured by another worker, too."""
        if number not in self._pairs and given.by not in self._wanted:
            self._pairs[number] = _Pair(plan)
        pair = self._pairs.get(number)
        if pair is None:
            if given.by in self._confirmed:
                return [given.done]
            self._kept_back.setdefault(given.by, []).append(given.done)
            return []
        self._wanted.add(given.by)
        if pair.first is None:
            pair.first = given
            return []
        pair.second = given
        return self._compare(number, pair)

    def first_of(self, number: int) -> str | None:
        """Who has given a trial that is to be measured twice, and was not yet."""
        pair = self._pairs.get(number)
        return pair.first.by if pair is not None and pair.first is not None else None

    def alone(self, number: int) -> list[TrialDone]:
        """As ``add`` where no other worker is there: this machine measures it."""
        return self._compare(number, self._pairs[number])

    def forget(self, number: int) -> None:
        """It could not be measured at all."""
        self._pairs.pop(number, None)

    def _compare(self, number: int, pair: _Pair) -> list[TrialDone]:
        del self._pairs[number]
        self.made += 1
        assert pair.first is not None
        given = [one for one in (pair.first, pair.second) if one is not None]
        if len(given) == 2 and _same(given[0].said, given[1].said):
            right = given
        else:
            own = [self.measure(pair.plan)]
            right = [one for one in given if _same(one.said, own)]
            if wrong := [one.by for one in given if one not in right]:
                raise Disagreed(dict.fromkeys(wrong, pair.plan.id))
        released = [given[0].done]
        for one in right:
            self._confirmed.add(one.by)
            released += self._kept_back.pop(one.by, [])
        return released


class Disagreed(Exception):
    """``workers`` gave for a plan what it does not come to; the plan's name is with each."""

    def __init__(self, workers: dict[str, str]) -> None:
        super().__init__(", ".join(workers))
        self.workers = workers


def _same(one: Sequence[Said], other: Sequence[Said]) -> bool:
    return [(said.lines, said.problem) for said in one] == [(said.lines, said.problem) for said in other]
