"""Workbooks: sizes as people write them, predictions that are sealed, and files of several students."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packages.course.tests.cheating import LIGHT, STEP

from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste_course.sheet import AskStep, Sheet, parse_sheet, read_sheet
from ajuste_course.workbook import Shelf, Workbook, next_step, read_answer, read_prediction

WHY = "the turns become longer"


@pytest.fixture
def sheet() -> Sheet:
    return read_sheet(LIGHT)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state"))


@pytest.mark.parametrize(
    ("direction", "size", "ratio"),
    [
        ("rises", "30%", 1.3),
        ("rises", "30", 1.3),
        ("rises", "+30 %", 1.3),
        ("rises", "3x", 3.0),
        ("rises", "3 X", 3.0),
        ("rises", "2,5×", 2.5),
        ("rises", "1000%", 11.0),
        ("falls", "30%", 0.7),
        ("falls", "-30%", 0.7),
        ("falls", "−30%", 0.7),
        ("falls", "0,5", 0.995),
        ("falls", "4 times", 0.25),
        ("same", "", 1.0),
        ("same", "whatever", 1.0),
    ],
)
def test_sizes_are_read_as_people_write_them(direction: str, size: str, ratio: float) -> None:
    assert read_prediction(direction, size, WHY).ratio == pytest.approx(ratio)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("direction", "size"),
    [
        ("rises", ""),
        ("rises", "a lot"),
        ("rises", "30%%"),
        ("rises", "0"),
        ("rises", "0x"),
        ("rises", "1x"),
        ("rises", "0.5x"),
        ("falls", "100%"),
        ("falls", "120%"),
        ("falls", "0x"),
        ("falls", "0.5x"),
        ("rises", "9" * 400),
        ("rises", "1e400x"),
        ("rises", "nan"),
        ("rises", "\x1b[2J"),
    ],
)
def test_what_is_no_size_is_refused(direction: str, size: str) -> None:
    with pytest.raises(RequestError) as failure:
        read_prediction(direction, size, WHY)  # type: ignore[arg-type]
    assert "\x1b" not in failure.value.message


@given(size=st.text(max_size=20), direction=st.sampled_from(["rises", "falls"]))
def test_any_text_is_a_size_in_its_direction_or_refused(size: str, direction: str) -> None:
    try:
        ratio = read_prediction(direction, size, WHY).ratio  # type: ignore[arg-type]
    except RequestError:
        return
    assert 0 < ratio <= 1e6
    assert (ratio > 1) == (direction == "rises")


def test_a_prediction_says_why(sheet: Sheet, shelf: Shelf) -> None:
    workbook = shelf.begin(sheet, "1", "en")
    with pytest.raises(RequestError, match="3 words"):
        workbook.with_prediction(sheet, "switches", read_prediction("falls", "30%", "no idea"))
    assert workbook.with_prediction(sheet, "switches", read_prediction("same", "", "")).predictions


def test_a_prediction_is_sealed_once_its_study_was_measured(sheet: Sheet, shelf: Shelf) -> None:
    first = read_prediction("falls", "30%", WHY)
    workbook = shelf.begin(sheet, "1", "en").with_prediction(sheet, "switches", first)
    changed = workbook.with_prediction(sheet, "switches", read_prediction("falls", "31%", WHY))
    assert changed.seed(sheet, STEP) != workbook.seed(sheet, STEP)
    measured = changed.with_run(STEP, "20261130-063000-abcdef")
    with pytest.raises(RequestError, match="sealed"):
        measured.with_prediction(sheet, "switches", first)


def test_nothing_is_measured_before_its_prediction(sheet: Sheet, shelf: Shelf) -> None:
    workbook = shelf.begin(sheet, "1", "en")
    with pytest.raises(RequestError, match="switches"):
        workbook.require_predictions(sheet, STEP)
    workbook.with_prediction(sheet, "switches", read_prediction("same", "", "")).require_predictions(sheet, STEP)


def test_names_of_other_kinds_are_refused(sheet: Sheet, shelf: Shelf) -> None:
    workbook = shelf.begin(sheet, "1", "en")
    with pytest.raises(RequestError, match="no prediction"):
        workbook.with_prediction(sheet, "mean", read_prediction("same", "", ""))
    with pytest.raises(RequestError, match="no question"):
        workbook.with_answer(sheet, "switches", "1")
    with pytest.raises(RequestError, match="mean"):
        workbook.with_answer(sheet, "meen", "1")


def ask(sheet: Sheet, name: str) -> AskStep:
    step = sheet.find(name)
    assert isinstance(step, AskStep)
    return step


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("mean", "17.3", 17.3),
        ("mean", " −17,3 ", -17.3),
        ("mean", "1e3", 1000.0),
        ("turn", "4 ms", 4.0),
        ("turn", "4ms", 4.0),
        ("verdict", "2", 2),
        ("verdict", "It is undecided", 3),
        ("why", "  because ", "because"),
    ],
)
def test_answers_are_read_as_people_write_them(sheet: Sheet, name: str, text: str, value: object) -> None:
    assert read_answer(ask(sheet, name), text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mean", ""),
        ("mean", "many"),
        ("mean", "nan"),
        ("mean", "inf"),
        ("mean", "1e300"),
        ("turn", "4 s"),
        ("verdict", "0"),
        ("verdict", "4"),
        ("verdict", "٢٢"),
        ("verdict", "\x1b[2J"),
        ("why", " "),
        ("why", "x" * 10_001),
    ],
)
def test_what_is_no_answer_is_refused(sheet: Sheet, name: str, text: str) -> None:
    with pytest.raises(RequestError) as failure:
        read_answer(ask(sheet, name), text)
    assert "\x1b" not in failure.value.message


def test_a_workbook_is_kept_and_goes_on(sheet: Sheet, shelf: Shelf) -> None:
    workbook = shelf.keep(shelf.begin(sheet, "1", "en").with_answer(sheet, "mean", "5"))
    assert shelf.begin(sheet, "1", "en") == workbook == shelf.find(sheet, None)
    assert shelf.begin(sheet, "1", "es").answers == workbook.answers
    assert shelf.begin(sheet, "1", "en", fresh=True).answers == {}


def test_two_students_on_one_machine_say_who_they_are(sheet: Sheet, shelf: Shelf) -> None:
    with pytest.raises(RequestError, match="nobody"):
        shelf.find(sheet, None)
    first, second = shelf.begin(sheet, "1", "en"), shelf.begin(sheet, "2", "en")
    with pytest.raises(RequestError, match="2 students"):
        shelf.find(sheet, None)
    assert (shelf.find(sheet, "1"), shelf.find(sheet, "2")) == (first, second)
    with pytest.raises(RequestError, match="as 3"):
        shelf.find(sheet, "3")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": "ajuste workbook"}'])
def test_a_damaged_file_is_named(sheet: Sheet, shelf: Shelf, content: bytes) -> None:
    shelf.begin(sheet, "1", "en")
    file = shelf.file("light", "1")
    file.write_bytes(content)
    with pytest.raises(RequestError, match="damaged") as failure:
        shelf.find(sheet, "1")
    assert str(file) in failure.value.message


def test_a_workbook_of_another_version_is_refused(sheet: Sheet, shelf: Shelf) -> None:
    shelf.begin(sheet, "1", "en")
    with pytest.raises(RequestError, match="version 2"):
        shelf.find(sheet.model_copy(update={"version": 2}), "1")
    document = sheet.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    other = parse_sheet({"schema": 1, **document, "title": "Another"})
    with pytest.raises(RequestError, match=other.digest[:12]):
        shelf.find(other, "1")


def test_a_disk_that_takes_nothing_is_said(sheet: Sheet, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    shelf = Shelf(Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state"))
    with pytest.raises(RequestError, match="data"):
        shelf.begin(sheet, "1", "en")


def test_the_next_step_is_the_first_that_is_not_done(sheet: Sheet, shelf: Shelf) -> None:
    workbook: Workbook = shelf.begin(sheet, "1", "en")
    steps = []
    while (index := next_step(sheet, workbook)) < len(sheet.steps):
        step = sheet.steps[index]
        steps.append(getattr(step, "name", ""))
        if step.kind == "predict":
            workbook = workbook.with_prediction(sheet, step.name, read_prediction("same", "", ""))
        elif step.kind == "measure":
            workbook = workbook.with_run(step.name, "20261130-063000-abcdef")
        elif step.kind == "ask":
            workbook = workbook.with_answer(sheet, step.name, "1")
    assert steps == ["switches", "levels", "mean", "turn", "verdict", "why"]


def test_an_answer_that_is_given_while_a_study_is_measured_stays(sheet: Sheet, shelf: Shelf) -> None:
    before = shelf.keep(
        shelf.begin(sheet, "1001", "en").with_prediction(sheet, "switches", read_prediction("same", "", WHY))
    )
    seed = before.seed(sheet, STEP)
    shelf.update(sheet, "1001", lambda now: now.with_answer(sheet, "mean", "5"))
    after = shelf.update(sheet, "1001", lambda now: now.with_measured(sheet, STEP, "a-run", seed))
    assert after.answers["mean"].value == 5
    assert after.runs == {STEP: "a-run"}


def test_a_run_is_not_taken_where_its_prediction_was_changed_meanwhile(sheet: Sheet, shelf: Shelf) -> None:
    first = shelf.begin(sheet, "1001", "en").with_prediction(sheet, "switches", read_prediction("same", "", WHY))
    seed = shelf.keep(first).seed(sheet, STEP)
    other = read_prediction("falls", "30%", WHY)
    shelf.update(sheet, "1001", lambda now: now.with_prediction(sheet, "switches", other))
    with pytest.raises(RequestError, match="changed while"):
        shelf.update(sheet, "1001", lambda now: now.with_measured(sheet, STEP, "a-run", seed))
