"""Behaviour of every executor that carries out one plan at a time, or several at once."""

from __future__ import annotations

import threading

import pytest

from ajuste.executor.executor import TrialRequest
from ajuste.model.error import RunError
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation
from played import PlayedExecutor, trials


class Guest(PlayedExecutor):
    """Says its name; ``spoilt`` is a plan that it is lost with. Where ``parallel`` is more than 1, that many trials
    have to be there at once.
    """

    def __init__(self, name: str, spoilt: str = "", parallel: int = 1) -> None:
        super().__init__()
        self.name, self.spoilt = name, spoilt
        self.parallel = parallel
        self.left = threading.Event()
        self.together = threading.Barrier(parallel)

    def __exit__(self, *_: object) -> None:
        self.left.set()

    def run(self, plan: Plan) -> Observation:
        self.plans.append(plan)
        if plan.id == self.spoilt:
            raise RunError("the disk is full")
        if self.spoilt:
            assert self.left.wait(60), "what goes on is ended"
        else:
            self.together.wait(60)
        return Observation(console=self.name)


def test_trials_of_several_guests_begin_in_the_order_asked() -> None:
    first, other = Guest("one"), Guest("other")
    requests = [*trials(first, 2), *trials(other, 1, first=2), *trials(first, 1, first=3)]
    started: list[TrialRequest] = []
    done = [each for some in first.carry_out(requests, started.append) for each in some]
    assert started == [each.request for each in done] == requests
    assert [each.observation.console for each in done] == ["one", "one", "other", "one"]


def test_as_many_run_at_once_as_there_is_room_for() -> None:
    guest = Guest("one", parallel=4)
    done = [each for some in guest.carry_out(trials(guest, 12), lambda _: None) for each in some]
    assert sorted(each.request.slot.block for each in done) == list(range(12))
    assert not guest.left.is_set()


def test_where_one_is_lost_the_others_are_ended() -> None:
    guest = Guest("one", spoilt="b1p0a0", parallel=2)
    with pytest.raises(RunError, match="the disk is full"):
        list(guest.carry_out(trials(guest, 100), lambda _: None))
    assert guest.left.is_set()
    assert len(guest.plans) <= 3
