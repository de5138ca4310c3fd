"""Goals: how they are read, and which trials show them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ajuste.model.error import RequestError
from ajuste_hunt.goal import Ending, read_goal, read_time

WELL = Ending(
    exit_code=0,
    signal=None,
    timed_out=False,
    problem="",
    console="",
    seconds=0.01,
    metrics={"elapsed": 0.01, "task-clock": 8.0},
)


def unit_of(name: str) -> str:
    units = {"elapsed": "s", "task-clock": "ms", "context-switches": ""}
    if name not in units:
        raise RequestError(f'metric "{name}" not found')
    return units[name]


@pytest.mark.parametrize(
    ("text", "showing", "other"),
    [
        ("exit != 0", replace(WELL, exit_code=1), WELL),
        ("exit != 0", replace(WELL, exit_code=None, signal=11), replace(WELL, timed_out=True)),
        ("exit = 139", replace(WELL, exit_code=None, signal=11), replace(WELL, exit_code=1)),
        ("hung", replace(WELL, timed_out=True), replace(WELL, exit_code=1)),
        ("hung", replace(WELL, problem="the guest hung: it did not end within its time limit"), WELL),
        (
            "dmesg: BUG: .*mutex",
            replace(WELL, console="x\n[1.0] BUG: bad mutex\n"),
            replace(WELL, console="BUG:\nmutex"),
        ),
        ("elapsed > 10x", replace(WELL, metrics={"elapsed": 0.11}), replace(WELL, metrics={"elapsed": 0.1})),
        ("elapsed > 50ms", replace(WELL, metrics={"elapsed": 0.051}), WELL),
        ("task-clock > 50ms", replace(WELL, metrics={"task-clock": 50.1}), WELL),
        ("elapsed < 0.005", replace(WELL, metrics={"elapsed": 0.004}), WELL),
        ("stall > 2ms", replace(WELL, metrics={"stall": 0.0021}), replace(WELL, metrics={"stall": 0.0019})),
    ],
)
def test_a_trial_shows_a_goal_or_not(text: str, showing: Ending, other: Ending) -> None:
    goal = read_goal(text, unit_of)
    assert goal.is_met(showing, typical=0.01)
    assert not goal.is_met(other, typical=0.01)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected 'exit != 0'"),
        ("exit", "expected 'exit != 0'"),
        ("dmesg:", "the pattern is missing"),
        ("dmesg: (", "not a regular expression"),
        ("elapsed > ", "expected 'exit != 0'"),
        ("elapsed > 1.2.3s", "is not a number"),
        ("elapsed > 5 kg", "is not a unit of elapsed"),
        ("context-switches > 5ms", "is not a unit of context-switches"),
        ("colour > 5", 'metric "colour" not found'),
    ],
)
def test_what_is_no_goal_is_refused(text: str, expected: str) -> None:
    with pytest.raises(RequestError) as raised:
        read_goal(text, unit_of)
    assert expected in raised.value.message


def test_a_time_has_a_unit() -> None:
    assert (read_time("--x", "100us"), read_time("--x", "2 ms")) == (pytest.approx(1e-4), pytest.approx(2e-3))
    for text in ("100", "us", "-1us", "1 kg"):
        with pytest.raises(RequestError, match="expected a time with its unit"):
            read_time("--x", text)
