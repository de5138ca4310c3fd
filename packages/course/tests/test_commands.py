"""``ajuste course`` as a person types it: what it says, its JSON, and its exit codes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from packages.course.tests.cheating import LIGHT

from ajuste_course.sheet import sheet_files
from shell import Shell

WHY = ("--why", "longer turns mean fewer switches")


@pytest.fixture
def course(ajuste: Shell) -> Shell:
    (ajuste.directory / "light.toml").write_text(LIGHT.read_text())
    return ajuste


def refused(shell: Shell, *words: str) -> str:
    output, complained = shell(*words, expect=2)
    assert output == ""
    assert "Traceback" not in complained
    return complained


def test_the_sheets_are_listed(ajuste: Shell) -> None:
    listed: Any = ajuste.json("course", "list")
    assert {sheet["name"] for sheet in listed} == set(sheet_files())
    assert all(sheet["points"] == 20 and {"en", "es", "ru"} <= set(sheet["languages"]) for sheet in listed)
    assert all(name in ajuste("course", "list")[0] for name in sheet_files())


def test_a_sheet_is_shown_with_the_values_of_a_student(course: Shell) -> None:
    plain, _ = course("course", "show", "./light.toml")
    filled, _ = course("course", "show", "./light.toml", "--student", "1001")
    assert ("{size}" in plain, "{size}" in filled, "60 × 60" in filled) == (True, False, True)
    spanish, _ = course("course", "show", "granularity", "--language", "es")
    assert spanish != course("course", "show", "granularity", "--language", "en")[0]
    assert "xx" in refused(course, "course", "show", "granularity", "--language", "xx")


def test_a_sheet_is_worked_through_step_by_step(course: Shell) -> None:
    light = "./light.toml"
    assert "nobody" in refused(course, "course", "status", light)
    assert "predict" in course("course", "open", light, "--student", "1001")[0]
    assert "switches" in refused(course, "course", "measure", light, "levels")
    assert "a lot" in refused(course, "course", "predict", light, "switches", "falls", "a lot", *WHY)
    assert "sideways" in refused(course, "course", "predict", light, "switches", "sideways", "3x", *WHY)
    assert "measure" in course("course", "predict", light, "switches", "falls", "50%", *WHY)[0]
    assert "many" in refused(course, "course", "answer", light, "mean", "many")
    course("course", "answer", light, "mean", "5")
    status = course.json("course", "status", light)
    assert status["missing"] == ["levels", "turn", "verdict", "why"]
    assert (status["student"], status["predictions"]["switches"]["ratio"]) == ("1001", 0.5)
    assert "levels" in refused(course, "course", "hand-in", light)
    done = course.json("course", "hand-in", light, "--unfinished", "-o", "1.ajuste")
    assert (done["student"], done["missing"]) == ("1001", ["levels", "turn", "verdict", "why"])
    assert "1.ajuste" in refused(course, "course", "hand-in", light, "--unfinished", "-o", "1.ajuste")
    course("course", "open", light, "--student", "1002")
    assert "2 students" in refused(course, "course", "status", light)
    assert course.json("course", "status", light, "--student", "1001")["answers"]["mean"]["value"] == 5
    course("course", "open", light, "--student", "1001", "--fresh")
    assert course.json("course", "status", light, "--student", "1001")["answers"] == {}


def test_marking_has_its_exit_codes(course: Shell) -> None:
    light = "./light.toml"
    course("course", "open", light, "--student", "1001")
    course("course", "predict", light, "switches", "same")
    course("course", "hand-in", light, "--unfinished", "-o", "good.ajuste")
    (course.directory / "bad.ajuste").write_bytes(b"no hand-in")
    (course.directory / "class.csv").write_text("student\n1001\n")
    course("course", "mark", light, "good.ajuste", "--quiet", "--students", "class.csv")
    output, complained = course("course", "mark", light, "good.ajuste", "bad.ajuste", "-o", "marks", expect=3)
    assert "bad.ajuste" in output
    assert "Traceback" not in complained
    with (course.directory / "marks" / "marks.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["student"], row["decision"]) for row in rows] == [("1001", "look"), ("", "not accepted")]
    assert (course.directory / "marks" / "class.html").stat().st_size > 1000
    assert (course.directory / "marks" / "feedback" / "student-1001.md").exists()
    document = json.loads(course("course", "mark", light, "bad.ajuste", "--json", expect=3)[0])
    assert document["hand_ins"][0]["decision"] == "not accepted"
    assert "exists" in course("course", "mark", light, "good.ajuste", "-o", "marks", expect=2)[1]
    course("course", "mark", light, "good.ajuste", "-o", "marks", "--force")


def test_a_copy_for_students_marks_nothing(course: Shell) -> None:
    course("course", "students", "./light.toml", "-o", "copy.toml")
    assert "exists" in refused(course, "course", "students", "./light.toml", "-o", "copy.toml")
    assert "key" in refused(course, "course", "mark", "./copy.toml", "x.ajuste")
    first, second = (course.json("course", "check", name) for name in ("./light.toml", "./copy.toml"))
    assert (first["digest"] == second["digest"], first["key"], second["key"], first["ways"]) == (True, True, False, 60)
    assert "cannot be marked" in course("course", "check", "./copy.toml")[0]


def test_made_data_are_written_once(course: Shell) -> None:
    course("course", "open", "statistics", "--student", "1001")
    course("course", "data", "statistics", "nothing", "-o", "n.csv")
    assert len((course.directory / "n.csv").read_text().splitlines()) == 61
    assert "exists" in refused(course, "course", "data", "statistics", "nothing", "-o", "n.csv")
    assert "no made data" in refused(course, "course", "data", "statistics", "placebo")


def test_a_translation_is_begun(course: Shell) -> None:
    assert "light.de.po" in course("course", "translate", "light.toml", "de")[0]
    assert (course.directory / "light.de.po").exists()
    assert "Deutsch" in refused(course, "course", "translate", "light.toml", "Deutsch")


@pytest.mark.parametrize(
    "words",
    [
        ("show", "granularty"),
        ("show", "./absent.toml"),
        ("open", "granularity", "--student", "../x"),
        ("predict", "granularity", "small", "falls", "3x"),
        ("measure", "granularity", "mean"),
        ("answer", "granularity", "mean", "1"),
        ("hand-in", "granularity"),
        ("mark", "granularity", "absent.ajuste", "--students", "absent.csv"),
        ("check", "./light.toml", "--student"),
        ("students", "granularity"),
    ],
)
def test_what_cannot_be_done_is_refused_without_a_traceback(course: Shell, words: tuple[str, ...]) -> None:
    assert refused(course, "course", *words)


@pytest.mark.vm
def test_a_sheet_is_measured_and_handed_in(course: Shell) -> None:
    light = "./light.toml"
    course("course", "open", light, "--student", "1001")
    course("course", "predict", light, "switches", "falls", "50%", *WHY)
    course("course", "measure", light, "--quiet")
    assert "sealed" in refused(course, "course", "predict", light, "switches", "falls", "51%", *WHY)
    for name, value in (("mean", "1"), ("turn", "1"), ("verdict", "1"), ("why", "The tick ends a turn.")):
        course("course", "answer", light, name, value)
    course("course", "hand-in", light)
    marks = course.json("course", "mark", light, "light-1001.ajuste", "--sample", "2")["hand_ins"]
    assert [(each["decision"], each["measured_again"]) for each in marks] == [("accepted", 2)]
    assert Path(course.directory / "light-1001.ajuste").exists()
