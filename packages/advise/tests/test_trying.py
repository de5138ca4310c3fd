"""Screening and choosing: what is promising, what there is time for, and the fewest settings that reach the best."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste.run.testbed import RunOptions
from ajuste.study.command_line.request import Request
from ajuste_advise.answer import answer_sentence, effect_text
from ajuste_advise.budget import ABLATION, FEWEST_TRIALS, MIN_BLOCKS, PROOF, SCREEN, SEARCH, Budget
from ajuste_advise.candidates import Choice, within
from ajuste_advise.model import Candidate, Line, Look, Stage, TimeShare, Tried, gain
from ajuste_advise.proof import ablation_study
from ajuste_advise.question import Question
from ajuste_advise.trying import Screen, fewest, screen_blocks, smallest_seen
from ajuste_search.tuning.goal import resolve_goal
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
    return Question(request, catalogue(), RunOptions(Home(home, home, home)), Budget(seconds), "ajuste advise")


def candidate(name: str, *levels: str) -> Candidate:
    return Candidate(setting=name, title=name, causes=("user",), levels=levels)


def test_gains_have_one_sign_for_both_directions() -> None:
    assert gain(verdict(0.75)) == pytest.approx(0.25)
    assert gain(verdict(1.25, direction="higher")) == pytest.approx(0.25)


def test_a_difference_says_of_how_much_it_is_one() -> None:
    fewer = verdict(-30.0, -36.0, -24.0, scale="difference", unit="", old=36.2)
    assert effect_text(fewer) == "elapsed −30 of 36.2 (−36 to −24)"


def test_gains_of_differences_are_shares_of_the_baseline_too() -> None:
    fewer = verdict(-30.0, scale="difference", old=120.0, new=90.0)
    assert gain(fewer) == pytest.approx(0.25)
    assert gain(verdict(5.0, scale="difference", old=0.0, new=5.0, direction="higher")) == 1.0
    row = Tried(setting="a", level="1", verdict=verdict(-30.0, -36.0, -24.0, scale="difference", old=120.0))
    assert Screen(Stage(name="screen", run="r", trials=9, blocks=3, answer=""), (row,)).at_most == pytest.approx(0.3)


def test_only_what_looks_better_by_what_matters_is_promising() -> None:
    rows = [("a", "1", 0.99), ("b", "1", 0.9), ("b", "2", 0.8), ("c", "1", 1.5)]
    tried = tuple(Tried(setting=name, level=level, gain=gain(verdict(ratio))) for name, level, ratio in rows)
    screened = Screen(Stage(name="screen", run="r", trials=9, blocks=3, answer=""), tried)
    assert {name: [row.level for row in rows] for name, rows in screened.promising(0.02).items()} == {"b": ["2", "1"]}


def test_what_seems_to_break_a_constraint_is_not_promising(tmp_path: Path) -> None:
    asking = replace(question(tmp_path, 600), constraints=("task-clock <= +5%",))
    limits = resolve_goal(asking.goal, [catalogue().metrics[name] for name in asking.metrics]).limits
    for ratio, keeps in ((1.04, True), (1.06, False)):
        so_far = results_with(verdict(0.5), verdict(ratio, metric="task-clock"))
        assert asking.keeps(limits, so_far, "c") is keeps
    row = Tried(setting="b", level="2", gain=0.2, keeps=False)
    assert Screen(Stage(name="screen", run="r", trials=9, blocks=3, answer=""), (row,)).promising(0.02) == {}


def test_the_limit_is_that_of_the_least_known_level() -> None:
    stage = Stage(name="screen", run="r", trials=9, blocks=3, answer="")
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


def test_a_job_that_takes_too_long_says_how_much_time_it_needs() -> None:
    assert int(Budget(600).levels(1.0, 3, 2)) == 139
    with pytest.raises(RequestError, match="too long to try anything in 30 s") as raised:
        Budget(30).levels(10_800.0, 3, 1)
    needed = int(str(raised.value.hint).split("--max-time ")[1].removesuffix("m"))
    assert Budget(60 * needed).levels(10_800.0, 3, 1) >= 1


def test_a_noisy_workload_has_fewer_blocks_rather_than_no_level() -> None:
    wanted = 20
    assert Budget(600).blocks(wanted, 0.1, 1) == wanted
    few = Budget(90).blocks(wanted, 1.0, 1)
    assert MIN_BLOCKS <= few < wanted
    assert Budget(90).levels(1.0, few, 1) >= 8
    assert smallest_seen(0.2, few) > smallest_seen(0.2, wanted)


@given(trials=st.integers(FEWEST_TRIALS, 5_000), lines=st.integers(2, 4))
def test_no_advice_takes_more_trials_than_were_allowed(trials: int, lines: int) -> None:
    budget = Budget(trials=trials)
    screened = int(budget.levels(1.0, MIN_BLOCKS, 2)) + 1
    combinations = min(2**lines, int(budget.configurations(SEARCH, MIN_BLOCKS)))
    lines = min(lines, combinations.bit_length() - 1)
    stages = [(SCREEN, screened, MIN_BLOCKS), (SEARCH, combinations, MIN_BLOCKS), (PROOF, 2, 5)]
    if lines > 1:
        stages.append((ABLATION, 2**lines, MIN_BLOCKS))  # a block holds every combination of so few
    tables = [(number, budget.table(share, number, min_blocks=least)) for share, number, least in stages]
    assert 3 + sum(number * table["max_blocks"] for number, table in tables) <= trials


def test_taking_four_lines_apart_stays_within_its_trials(tmp_path: Path) -> None:
    """A block holds every combination of so few lines: 16 trials."""
    asking = replace(question(tmp_path, 600), budget=Budget(trials=600))
    lines = {"nice": "-10", "policy": "batch", "cgroup_weight": "1000", "vm.swappiness": "10"}
    study = ablation_study(asking, lines)
    assert 16 * study.budget.max_blocks <= ABLATION * 600


def test_too_few_trials_are_refused() -> None:
    with pytest.raises(RequestError, match="--max-trials 20: too few") as raised:
        Budget(trials=20)
    assert str(FEWEST_TRIALS) in str(raised.value.hint)


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
    advised = answer_sentence(LOOK, choice, tried, lines, proof, (), None, Budget(600))
    assert advised.startswith("Set a=1: elapsed −31")
    nothing = answer_sentence(LOOK, choice, tried, (), None, (), 0.04, Budget(600))
    assert (
        nothing
        == "Not even the one setting tried improves elapsed by more than 4 %: 88 % of the time is running its own code."
    )
    assert "proved" in answer_sentence(LOOK, choice, tried, lines, verdict(1.0, 0.9, 1.1), (), None, Budget(600))
    limit = KeptLimit(
        configuration="c", text="task-clock <= +5%", metric="task-clock", unit="ms", relative=True, bound=1.05,
        estimate=1.2, low=1.1, high=1.3, holds="no",
    )  # fmt: skip
    broken = answer_sentence(LOOK, choice, tried, lines, proof, (limit,), None, Budget(600))
    assert broken.startswith("Nothing is advised")
    assert "breaks task-clock <= +5%" in broken
    assert "may matter: a" in answer_sentence(LOOK, choice, (), (), None, (), None, Budget(600))
