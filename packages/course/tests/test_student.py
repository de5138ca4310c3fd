"""A student's own values and seeds: the same everywhere, fair, and different with another prediction."""

from __future__ import annotations

from collections import Counter

import pytest
from packages.course.tests.cheating import LIGHT, STEP
from scipy.stats import chisquare

from ajuste.model.error import RequestError
from ajuste_course.sheet import Draw, read_sheet, sheet_files
from ajuste_course.student import check_student, drawn, study_seed, ways
from ajuste_course.workbook import Workbook, read_prediction

NUMBERS = [f"{number:07}" for number in range(1_000_000, 1_002_000)]


def test_a_student_gets_the_same_values_everywhere() -> None:
    # Known answers: another machine, another version of Python or another order of the sheet change nothing.
    sheet = read_sheet(LIGHT)
    assert drawn(sheet, "1001") == {"size": (60,), "large": ("13ms",), "student": ("1001",)}
    assert study_seed(sheet, "1001", STEP, "0" * 64) == 455750754


@pytest.mark.parametrize("name", sheet_files())
def test_each_value_is_about_equally_likely(name: str) -> None:
    sheet = read_sheet(sheet_files()[name])
    sets = [drawn(sheet, number) for number in NUMBERS]
    for draw_name, draw in sheet.draw.items():
        counts = Counter(value for values in sets for value in values[draw_name])
        assert set(counts) == set(draw.values)
        if draw.take < len(counts):
            assert chisquare(list(counts.values())).pvalue > 1e-5, draw_name


def test_values_of_one_draw_do_not_follow_from_those_of_another() -> None:
    sheet = read_sheet(LIGHT)
    pairs = Counter((drawn(sheet, number)["size"], drawn(sheet, number)["large"]) for number in NUMBERS)
    assert len(pairs) == ways(sheet) == 60
    assert chisquare(list(pairs.values())).pvalue > 1e-5


def test_several_values_are_different_and_in_their_order() -> None:
    sheet = read_sheet(LIGHT)
    draw = Draw(values=(5, 6, 7, 8, 9), take=3)
    sheet = sheet.model_copy(update={"draw": {"some": draw}})
    assert ways(sheet) == 10
    for number in NUMBERS[:200]:
        some = drawn(sheet, number)["some"]
        assert list(some) == sorted(set(some))
        assert len(some) == 3


def test_the_seed_follows_from_each_prediction() -> None:
    sheet = read_sheet(LIGHT)
    plain = Workbook(sheet="light", version=1, digest=sheet.digest, student="1", language="en")
    words = "longer turns mean fewer switches"
    seeds = {
        plain.with_prediction(sheet, "switches", read_prediction(direction, size, why)).seed(sheet, STEP)  # type: ignore[arg-type]
        for direction, size, why in (
            ("falls", "50%", words),
            ("falls", "51%", words),
            ("rises", "50%", words),
            ("same", "", words),
            ("falls", "50%", words + "."),
        )
    }
    assert len(seeds | {plain.seed(sheet, STEP)}) == 6
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_the_time_of_a_prediction_does_not_change_the_seed() -> None:
    sheet = read_sheet(LIGHT)
    plain = Workbook(sheet="light", version=1, digest=sheet.digest, student="1", language="en")
    prediction = read_prediction("falls", "50%", "longer turns mean fewer")
    later = prediction.model_copy(update={"made": "2030-01-01T00:00:00+00:00"})
    first, second = (plain.with_prediction(sheet, "switches", each).seed(sheet, STEP) for each in (prediction, later))
    assert first == second


def test_students_have_seeds_of_their_own() -> None:
    sheet = read_sheet(LIGHT)
    assert len({study_seed(sheet, number, STEP, "") for number in NUMBERS}) == len(NUMBERS)
    assert study_seed(sheet, "1", STEP, "") != study_seed(sheet, "1", "other", "")


@pytest.mark.parametrize("number", ["", "a" * 65, "1 2", "../x", "1\n2", "\x1b[2J"])
def test_what_is_no_number_of_a_student_is_refused(number: str) -> None:
    with pytest.raises(RequestError) as failure:
        check_student(read_sheet(LIGHT), number)
    assert "\x1b" not in failure.value.message


def test_a_sheet_may_say_what_a_number_looks_like() -> None:
    sheet = read_sheet(LIGHT).model_copy(update={"students": r"\d{7}"})
    assert check_student(sheet, "1234567") == "1234567"
    with pytest.raises(RequestError, match="123456"):
        check_student(sheet, "123456")
