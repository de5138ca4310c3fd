"""Figures that answers are compared with. Truth: SciPy and NumPy on the same data."""

from __future__ import annotations

from statistics import mean, median, stdev
from typing import Any

import pytest
from packages.course.tests.cheating import LIGHT
from scipy.stats import ttest_rel

from ajuste.model.error import RequestError
from ajuste_course.figures import (
    Outcome,
    figure,
    is_right,
    judged,
    made_outcome,
    outcomes_of,
    right_answer,
    run_outcome,
)
from ajuste_course.sheet import AskStep, Figure, PredictStep, Sheet, SimulateStep, parse_sheet, read_sheet, sheet_files
from ajuste_course.simulation import BASE, OTHER, MadeData, made_data
from ajuste_course.workbook import Workbook, read_prediction
from small_stores import DECIDED, SWITCHES, small_store

WHY = "longer turns mean fewer switches"


def made_sheet(**changes: Any) -> Sheet:
    document = {
        "schema": 1,
        "name": "made",
        "version": 1,
        "title": "Made data",
        "summary": "Made data.",
        "minutes": 5,
        "step": [{"kind": "simulate", "name": "data", "text": "Data.", "blocks": 30, "noise": 0.05, **changes}],
    }
    return parse_sheet(document)


def workbook(sheet: Sheet, student: str) -> Workbook:
    return Workbook(sheet=sheet.name, version=1, digest=sheet.digest, student=student, language="en")


def outcome(sheet: Sheet, student: str) -> tuple[MadeData, dict[str, Outcome]]:
    (step,) = sheet.kind(SimulateStep)
    book = workbook(sheet, student)
    data = made_data(sheet, step, student, book.seed(sheet, "data"))
    return data, {"data": made_outcome(sheet, step, book)}


def of(what: str, configuration: str = OTHER) -> Figure:
    return Figure.model_validate({"study": "data", "metric": "value", "configuration": configuration, "of": what})


@pytest.mark.parametrize("student", ["1", "2", "3", "4", "5", "6"])
def test_figures_of_made_data_are_those_of_the_file(student: str) -> None:
    data, outcomes = outcome(made_sheet(ratio=0.95, drift=0.1), student)
    base, other = data.values(BASE), data.values(OTHER)
    assert figure(of("mean"), outcomes) == pytest.approx(mean(other))
    assert figure(of("median", BASE), outcomes) == pytest.approx(median(base))
    assert figure(of("sd"), outcomes) == pytest.approx(stdev(other))
    assert figure(of("n"), outcomes) == 30
    assert figure(of("blocks"), outcomes) == 30
    assert figure(of("ratio"), outcomes) == pytest.approx(mean(other) / mean(base))
    estimate, low, high, change = (figure(of(what), outcomes) for what in ("estimate", "low", "high", "change"))
    assert isinstance(estimate, float)
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert low < estimate < high
    assert change == pytest.approx((estimate - 1) * 100)


@pytest.mark.parametrize("student", [str(number) for number in range(1, 21)])
def test_peeks_are_those_of_the_program_that_the_sheet_prints(student: str) -> None:
    data, outcomes = outcome(made_sheet(), student)
    a, b = data.values(BASE), data.values(OTHER)
    assert figure(of("peeks"), outcomes) == sum(ttest_rel(a[:n], b[:n]).pvalue < 0.05 for n in range(3, 31))
    text = next(step.text for step in read_sheet(sheet_files()["statistics"]).steps if "ttest_rel" in step.text)
    assert "sum(ttest_rel(a[:n], b[:n]).pvalue < 0.05 for n in range(3, 31))" in text


def test_peeking_deceives_about_one_student_in_four() -> None:
    deceived = sum(bool(figure(of("peeks"), outcome(made_sheet(), str(n))[1])) for n in range(60))
    assert 5 <= deceived <= 30


@pytest.mark.parametrize(("ratio", "word"), [(0.5, "differs"), (1.0, "same")])
def test_the_rule_of_three_sigma_says_its_word(ratio: float, word: str) -> None:
    data, outcomes = outcome(made_sheet(ratio=ratio, noise=0.02), "1")
    base, other = data.values(BASE), data.values(OTHER)
    assert figure(of("three-sigma"), outcomes) == word
    spread = max(stdev(base), stdev(other))
    assert (abs(mean(other) - mean(base)) > 3 * spread) == (word == "differs")


def test_names_that_are_not_there_are_refused_and_figures_that_are_not_none() -> None:
    _, outcomes = outcome(made_sheet(), "1")
    with pytest.raises(RequestError, match="third"):
        figure(of("mean", "third"), outcomes)
    assert figure(of("mean").model_copy(update={"metric": "none"}), outcomes) is None
    assert figure(of("mean").model_copy(update={"study": "other"}), outcomes) is None


def ask(**fields: Any) -> AskStep:
    return AskStep.model_validate({"kind": "ask", "name": "q", "text": "?", **fields})


CHOICES = {"by": "choice", "choices": ["a", "b", "c"]}


@pytest.mark.parametrize(
    ("ratio", "values", "right"),
    [
        (0.5, ["..0.9", "0.9..1.1", "1.1.."], 1),
        (1.0, ["..0.9", "0.9..1.1", "1.1.."], 2),
        (3.0, ["..0.9", "0.9..1.1", "1.1.."], 3),
        (3.0, ["..0.9", "0.9..1.1", "1.1..2"], None),
    ],
)
def test_a_choice_may_be_a_range(ratio: float, values: list[str], right: int | None) -> None:
    sheet = made_sheet(ratio=ratio, noise=0.01)
    step = ask(**CHOICES, values=values, figure=of("estimate").model_dump())
    assert right_answer(sheet, step, "1", outcome(sheet, "1")[1]) == right


@pytest.mark.parametrize(("ratio", "right"), [(0.5, 1), (2.0, 1), (1.0, 2)])
def test_a_choice_may_be_several_words(ratio: float, right: int) -> None:
    sheet = made_sheet(ratio=ratio, noise=0.01, blocks=100)
    values = ["improves|worsens|differs", "equivalent", "undecided"]
    step = ask(**CHOICES, values=values, figure=of("verdict").model_dump())
    assert right_answer(sheet, step, "1", outcome(sheet, "1")[1]) == right


def test_a_choice_may_be_a_number() -> None:
    sheet = made_sheet()
    step = ask(**CHOICES, values=["10", "30", "3e1"], figure=of("blocks").model_dump())
    assert right_answer(sheet, step, "1", outcome(sheet, "1")[1]) == 2


def test_a_figure_may_be_divided_by_another_and_a_key_is_its_answer() -> None:
    sheet = made_sheet(ratio=2.0)
    data, outcomes = outcome(sheet, "1")
    step = ask(by="number", figure=of("mean").model_dump(), per=of("mean", BASE).model_dump())
    assert right_answer(sheet, step, "1", outcomes) == pytest.approx(mean(data.values(OTHER)) / mean(data.values(BASE)))
    assert right_answer(sheet, ask(by="number", answer=4.5), "1", outcomes) == 4.5
    assert right_answer(sheet, ask(by="text", rubric="?"), "1", outcomes) is None
    assert right_answer(sheet, ask(by="number", figure=of("verdict").model_dump()), "1", outcomes) is None


@pytest.mark.parametrize(
    ("value", "right", "correct"),
    [
        (100.0, 100.0, True),
        (102.0, 100.0, True),
        (97.0, 100.0, False),
        (17.3, 17.349, True),
        (0.0, 0.0, True),
        (0.01, 0.0, False),
        (-5.0, 5.0, False),
    ],
)
def test_a_number_may_be_off_by_its_tolerance(value: float, right: float, correct: bool) -> None:
    assert is_right(ask(by="number", answer=1, tolerance=0.02), value, right) is correct


def test_three_digits_are_enough_where_nothing_may_be_off() -> None:
    exact = ask(by="number", answer=1, tolerance=0)
    assert is_right(exact, 123.0, 123.4)
    assert not is_right(exact, 122.0, 123.4)
    assert not is_right(exact, 5.0, 4.0)
    assert not is_right(exact, "4", 4.0)
    assert is_right(ask(**CHOICES, answer=2), 2, 2)
    assert not is_right(ask(**CHOICES, answer=2), 1, 2)


@pytest.fixture
def small(store: Any, tmp_path: Any) -> Outcome:
    from ajuste.store.store import Store

    small_store(tmp_path / "small.sqlite")
    with Store(f"sqlite:///{tmp_path / 'small.sqlite'}") as opened:
        return run_outcome(opened.find_run(DECIDED), opened)


LARGE, SMALL = "sched_min_granularity_ns=75000000", "sched_min_granularity_ns=750000"


@pytest.mark.parametrize("wanted", [LARGE, "75000000"])
def test_a_configuration_is_named_by_its_levels(small: Outcome, wanted: str) -> None:
    assert small.configuration(wanted) == LARGE
    assert small.configuration("") == SMALL


def test_a_configuration_that_is_not_there_is_refused_with_those_that_are(small: Outcome) -> None:
    with pytest.raises(RequestError, match=SMALL):
        small.configuration("sched_min_granularity_ns=5")


def test_figures_of_a_run_are_those_of_its_trials(small: Outcome) -> None:
    def wanted(what: str, configuration: str) -> Figure:
        return Figure.model_validate(
            {"study": "levels", "metric": "involuntary-switches", "configuration": configuration, "of": what}
        )

    outcomes = {"levels": small}
    large, default = ([float(pair[n]) for pair in SWITCHES] for n in (0, 1))
    assert figure(wanted("mean", "75000000"), outcomes) == pytest.approx(mean(large))
    assert figure(wanted("mean", ""), outcomes) == pytest.approx(mean(default))
    assert figure(wanted("ratio", LARGE), outcomes) == pytest.approx(mean(large) / mean(default))
    assert figure(wanted("blocks", ""), outcomes) == 3
    assert figure(wanted("three-sigma", LARGE), outcomes) in ("differs", "same")


def judge(ratio: float, direction: Any, size: str) -> tuple[bool | None, bool | None]:
    sheet = made_sheet(ratio=ratio, noise=0.01, blocks=60)
    _, outcomes = outcome(sheet, "1")
    step = PredictStep.model_validate(
        {"kind": "predict", "name": "p", "text": "?", "study": "data", "metric": "value", "configuration": OTHER}
    )
    result = judged(step, sheet, "1", read_prediction(direction, size, WHY), outcomes)
    return result.direction, result.size


@pytest.mark.parametrize(
    ("ratio", "direction", "size", "result"),
    [
        (0.5, "falls", "50%", (True, True)),
        (0.5, "falls", "40%", (True, True)),
        (0.5, "falls", "5%", (True, False)),
        (0.5, "falls", "99%", (True, False)),
        (0.5, "rises", "2x", (False, False)),
        (0.5, "same", "", (False, False)),
        (2.0, "rises", "2x", (True, True)),
        (2.0, "rises", "100%", (True, True)),
        (1.0, "same", "", (True, True)),
        (1.0, "falls", "2x", (False, False)),
    ],
)
def test_predictions_are_compared_with_what_was_measured(
    ratio: float, direction: str, size: str, result: tuple[bool, bool]
) -> None:
    assert judge(ratio, direction, size) == result


def test_a_prediction_without_a_run_is_not_judged() -> None:
    sheet = read_sheet(LIGHT)
    (step,) = sheet.kind(PredictStep)
    result = judged(step, sheet, "1", read_prediction("same", "", ""), {})
    assert (result.direction, result.size, result.estimate) == (None, None, None)


def test_made_data_are_there_only_after_the_predictions_before_them() -> None:
    document = made_sheet().model_dump(mode="json", by_alias=True, exclude_defaults=True)
    (data,) = document["step"]
    predicted = {
        "kind": "predict",
        "name": "p",
        "text": "?",
        "study": "data",
        "metric": "value",
        "configuration": OTHER,
    }
    sheet = parse_sheet({**document, "schema": 1, "step": [predicted, data]})
    book = workbook(sheet, "1")
    assert outcomes_of(sheet, book, {}) == {}
    book = book.with_prediction(sheet, "p", read_prediction("same", "", ""))
    assert set(outcomes_of(sheet, book, {})) == {"data"}
