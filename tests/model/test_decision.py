"""Streams of decisions: whatever somebody writes, only what fits together is one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from ajuste.model.decision import Decisions, NamedDecisions
from ajuste.model.explanation import Recorded
from decisions import AGENT, FIRST, PATHS, Step, calling, steps, stream

STEPS: list[Step] = [("new", 0), ("switch", 4), ("timer", 0), ("wakeup", 3), ("resched", 4), ("switch", 3)]


def document(**changes: Any) -> dict[str, Any]:
    """Return a document as the lens writes it."""
    whole = stream(STEPS).model_dump(exclude={"functions", "instruction_ns"})
    return whole | {"version": 1, "paths": [[1 << 63, 5], [7], []]} | changes


@given(steps())
def test_what_is_kept_is_read_again(taken: list[Step]) -> None:
    recorded = Recorded(configuration="a", block=0, seed=1, decisions=stream(taken))
    assert Recorded.model_validate_json(recorded.model_dump_json()) == recorded


def test_without_decisions_nothing_is_said_of_them() -> None:
    assert not {"decisions", "decisions_problem"} & set(Recorded(configuration="a", block=0, seed=1).model_dump())


def test_what_the_lens_writes_is_read() -> None:
    assert len(Decisions.model_validate(document())) == len(STEPS)


def test_time_is_that_of_the_guests_clock() -> None:
    decisions = stream(STEPS, idle_ns=(0, 0, 0, 9, 9, 9))
    assert [decisions.time_ns(place) for place in range(6)] == [200, 400, 600, 809, 1009, 1209]
    assert decisions.path(0) == tuple(decisions.functions[place] for place in reversed(PATHS[0]))
    assert stream(STEPS, ways=(-1,) * 6).path(0) == ()


CALLS = calling([(FIRST, 10, 20), (AGENT, 25, None)])


def test_system_calls_have_a_begin_and_an_end() -> None:
    decisions = stream(STEPS, calls=CALLS | {"idle_ns": (0, 3), "ended_idle_ns": (4, None)})
    assert [decisions.call_ns(place) for place in range(2)] == [(20, 64), (53, None)]
    assert len(stream(STEPS).calls) == 0


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"at": (10,)}, "equally long"),
        ({"at": (25, 10)}, "not in the order"),
        ({"tasks": (FIRST, 99)}, "not there"),
        ({"functions": (0, 99)}, "function that is not there"),
        ({"ended_at": (9, None)}, "before it begins"),
        ({"ended_idle_ns": (None, None)}, "without a time"),
    ],
)
def test_system_calls_that_do_not_fit_are_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        stream(STEPS, calls=CALLS | changes)


TASK = {"number": 9, "parent": None, "role": "kernel", "birth": 0}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"at": (5, 4, 6, 7, 8, 9)}, "not in the order"),
        ({"at": (1, 2, 3, 4, 5, 701)}, "not in the order"),
        ({"idle_ns": (5, 4, 4, 4, 4, 4)}, "not in the order"),
        ({"cpus": (0,)}, "equally long"),
        ({"kinds": (9,) * 6}, "less than 5"),
        ({"cpus": (64,) * 6}, "less than 64"),
        ({"running": (99,) * 6}, "not there"),
        ({"others": (99,) * 6}, "not there"),
        ({"others": (-1,) * 6}, "about a task"),
        ({"ways": (3,) * 6}, "path that is not there"),
        ({"ways": (-2,) * 6}, "greater than or equal to -1"),
        ({"tasks": (TASK, TASK)}, "same number"),
        ({"tasks": (TASK | {"parent": 9},)}, "younger"),
        ({"tasks": (TASK | {"parent": 3},)}, "younger"),
        ({"tasks": (TASK | {"name": "x" * 201},)}, "at most 200"),
        ({"tasks": (TASK | {"role": "root"},)}, "role"),
        ({"paths": [[0] * 49]}, "at most 48"),
        ({"instructions": -1}, "instructions"),
        ({"version": 2}, "version"),
        ({"secret": 1}, "secret"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Decisions.model_validate(document(**changes))


def test_functions_of_paths_are_there() -> None:
    with pytest.raises(ValidationError, match="function that is not there"):
        stream(STEPS, functions=("schedule",))
    with pytest.raises(ValidationError, match="path that is not there"):
        stream(STEPS, paths=((0,),))


def test_damaged_decisions_are_refused() -> None:
    whole = Recorded(configuration="a", block=0, seed=1, decisions=stream(STEPS)).model_dump_json()
    with pytest.raises(ValidationError, match="damaged"):
        Recorded.model_validate_json(whole.replace('"decisions":"eJ', '"decisions":"AA'))
    assert NamedDecisions.model_validate(stream(STEPS).model_dump()) == stream(STEPS)
