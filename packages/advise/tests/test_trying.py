"""Screening and choosing: what is promising, what there is time for, and the fewest settings that reach the best."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.design.goal import resolve_goal
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste.run.testbed import RunOptions
from ajuste.study.command_line.request import Request
from ajuste_advise.answer import answer_sentence
from ajuste_advise.candidates import Choice, within
from ajuste_advise.model import Candidate, Line, Look, Stage, TimeShare, Tried, gain
from ajuste_advise.question import Question
from ajuste_advise.trying import Screen, fewest, most_levels, screen_blocks
from ajuste_search.tuning.model import KeptLimit

LOOK = Look(
    run="r", metric="elapsed", elapsed_s=1.0, spread=0.0, trial_s=1.0, shares=(TimeShare(where="user", share=0.88),),
    causes={},
)  # fmt: skip


def verdict(estimate: float, low: float | None = None, high: float | None = None, **other: object) -> Verdict:
    fields = {
        "metric": "elapsed", "unit": "s", "direction": "lower", "scale": "ratio", "verdict": "undecided",
        "level": 0.95, "blocks": 8, "reason": "", "configuration": "c",
    }  # fmt: skip
    return Verdict.model_validate(fields | {"estimate": estimate, "low": low, "high": high} | other)


def results_with(*verdicts: Verdict) -> Results:
    fields = {
        "study": "s", "title": "", "question": "", "answer": "", "run": "r", "seed": 1, "clock": "virtual",
        "digest": "", "stopped": None, "stopped_because": "", "level": 0.95, "smallest_effect": 0.02,
        "correction": "", "blocks": 3, "configurations": (), "factors": (), "metrics": (), "trials": (),
    }  # fmt: skip
    return Results.model_validate(fields | {"verdicts": verdicts})


def question(home: Path, seconds: float) -> Question:
    request = Request(commands=(("true",),), vm=True, name="advise")
    return Question(request, catalogue(), RunOptions(Home(home, home, home)), seconds, "ajuste advise")


def candidate(name: str, *levels: str) -> Candidate:
    return Candidate(setting=name, title=name, causes=("user",), levels=levels)


def test_gains_have_one_sign_for_both_directions() -> None:
    lower = Tried(setting="a", level="1", verdict=verdict(0.5))
    higher = Tried(setting="a", level="1", verdict=verdict(2.0, direction="higher"))
    assert gain(lower) == pytest.approx(gain(higher)) == pytest.approx(0.693, abs=1e-3)
    assert gain(Tried(setting="a", level="1", problem="failed")) == 0.0


def test_only_what_looks_better_by_what_matters_is_promising() -> None:
    rows = [("a", "1", 0.99), ("b", "1", 0.9), ("b", "2", 0.8), ("c", "1", 1.5)]
    tried = tuple(Tried(setting=name, level=level, verdict=verdict(ratio)) for name, level, ratio in rows)
    screened = Screen(Stage(name="screen", run="r", trials=9, answer=""), tried)
    assert {name: [row.level for row in rows] for name, rows in screened.promising(0.02).items()} == {"b": ["2", "1"]}


def test_what_seems_to_break_a_constraint_is_not_promising(tmp_path: Path) -> None:
    asking = replace(question(tmp_path, 600), constraints=("task-clock <= +5%",))
    limits = resolve_goal(asking.goal, [catalogue().metrics[name] for name in asking.metrics]).limits
    for ratio, keeps in ((1.04, True), (1.06, False)):
        so_far = results_with(verdict(0.5), verdict(ratio, metric="task-clock"))
        assert asking.keeps(limits, so_far, "c") is keeps
    row = Tried(setting="b", level="2", verdict=verdict(0.8), keeps=False)
    assert Screen(Stage(name="screen", run="r", trials=9, answer=""), (row,)).promising(0.02) == {}


def test_the_limit_is_that_of_the_least_known_level() -> None:
    stage = Stage(name="screen", run="r", trials=9, answer="")
    rows = tuple(Tried(setting="a", level="1", verdict=verdict(1.0, low, 1.1)) for low in (0.99, 0.96))
    assert Screen(stage, rows).at_most == pytest.approx(0.04)
    unknown = (*rows, Tried(setting="b", level="1", verdict=verdict(1.0)))
    assert Screen(stage, unknown).at_most is None


def test_the_first_level_of_every_setting_is_tried_before_second_ones() -> None:
    choice = Choice((candidate("a", "1", "2"), candidate("b", "1"), candidate("c", "1", "2", "3")), ())
    few = within(choice, 4)
    assert {each.setting: each.levels for each in few.candidates} == {"a": ("1", "2"), "b": ("1",), "c": ("1",)}
    fewer = within(choice, 2)
    assert [(row.setting, row.why) for row in fewer.untried] == [("c", "time")]


def test_noisy_workloads_get_more_blocks(tmp_path: Path) -> None:
    quiet = question(tmp_path, 600)
    assert screen_blocks(quiet, 0.0) == 3
    assert screen_blocks(quiet, 0.05) == 13
    assert screen_blocks(quiet, 1.0) == 20


def test_a_job_that_takes_too_long_says_how_much_time_it_needs(tmp_path: Path) -> None:
    assert most_levels(question(tmp_path, 600), 1.0, 3, 2) == 139
    with pytest.raises(RequestError, match="too long to try anything in 30 s") as raised:
        most_levels(question(tmp_path, 30), 10_800.0, 3, 1)
    needed = int(str(raised.value.hint).split("--max-time ")[1].removesuffix("m"))
    assert most_levels(question(tmp_path, 60 * needed), 10_800.0, 3, 1) >= 1


def test_the_fewest_settings_that_reach_the_best_are_chosen() -> None:
    both = (("a", "1"), ("b", "1"))
    assert fewest({both: 0.50, both[:1]: 0.495, both[1:]: 0.1}, 0.02) == {"a": "1"}
    assert fewest({both: 0.50, both[:1]: 0.3, both[1:]: 0.3}, 0.02) == {"a": "1", "b": "1"}
    assert fewest({both: -0.1, both[:1]: -0.2}, 0.02) == {}
    assert fewest({}, 0.02) == {}


def test_the_answer_says_what_to_set_or_that_nothing_helps() -> None:
    choice = Choice((candidate("a", "1"),), ())
    tried = (Tried(setting="a", level="1", verdict=verdict(0.7)),)
    lines = (Line(setting="a", title="A", level="1"),)
    proof = verdict(0.69, 0.62, 0.76, verdict="improves")
    advised = answer_sentence(LOOK, choice, tried, lines, proof, (), None, 600)
    assert advised.startswith("Set a=1: elapsed −31")
    nothing = answer_sentence(LOOK, choice, tried, (), None, (), 0.04, 600)
    assert (
        nothing
        == "Not even the one setting tried improves elapsed by more than 4 %: 88 % of the time is running its own code."
    )
    assert "proved" in answer_sentence(LOOK, choice, tried, lines, verdict(1.0, 0.9, 1.1), (), None, 600)
    limit = KeptLimit(
        configuration="c", text="task-clock <= +5%", metric="task-clock", unit="ms", relative=True, bound=1.05,
        estimate=1.2, low=1.1, high=1.3, holds="no",
    )  # fmt: skip
    broken = answer_sentence(LOOK, choice, tried, lines, proof, (limit,), None, 600)
    assert broken.startswith("Nothing is advised")
    assert "breaks task-clock <= +5%" in broken
    assert "may matter: a" in answer_sentence(LOOK, choice, (), (), None, (), None, 600)
