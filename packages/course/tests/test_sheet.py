"""Sheets: those that come with Ajuste are complete, and what is wrong in one is said with its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomlkit
from babel.messages.pofile import read_po
from packages.course.tests.cheating import LIGHT

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste_course.sheet import (
    KEY_FIELDS,
    MeasureStep,
    Sheet,
    filled,
    find_sheet,
    parse_sheet,
    read_sheet,
    sheet_files,
    student_document,
)
from ajuste_course.student import Drawn, drawn, ways
from ajuste_course.study import student_study
from ajuste_course.translation import TRANSLATED, languages, messages, translated, update_translation

SHEETS = sheet_files()
_PLACEHOLDER = re.compile(r"\{[a-z][a-z0-9_]*\}")


@pytest.mark.parametrize("name", SHEETS)
def test_a_sheet_that_comes_with_ajuste_is_complete(name: str) -> None:
    sheet = read_sheet(SHEETS[name])
    assert (sheet.name, sheet.points, sheet.has_key) == (name, 20.0, True)
    assert ways(sheet) >= 40
    assert find_sheet(name) == SHEETS[name]


@pytest.mark.parametrize("name", SHEETS)
def test_every_student_can_measure_it(name: str) -> None:
    sheet = read_sheet(SHEETS[name])
    for student in ("1", "1234567", "z-9.a_b"):
        for step in sheet.kind(MeasureStep):
            study = student_study(sheet, step, student, 7, catalogue())
            assert (study.design.seed, study.target.clock, study.target.on_host) == (7, "virtual", False)
            assert study.name.endswith(re.sub(r"[^a-z0-9]+", "-", student))


@pytest.mark.parametrize("name", SHEETS)
def test_its_translations_are_complete_with_all_placeholders(name: str) -> None:
    sheet = read_sheet(SHEETS[name])
    assert {"es", "ru"} <= set(languages(SHEETS[name]))
    for language in languages(SHEETS[name]):
        with SHEETS[name].with_name(f"{name}.{language}.po").open("rb") as file:
            words = {str(message.id): str(message.string) for message in read_po(file) if message.id}
        texts = messages(sheet)
        assert [text for text in texts if not words.get(text)] == []
        assert set(words) == set(texts)
        for text in texts:
            assert set(_PLACEHOLDER.findall(text)) == set(_PLACEHOLDER.findall(words[text])), words[text]
        other = translated(SHEETS[name], language)
        assert [step.kind for step in other.steps] == [step.kind for step in sheet.steps]
        assert other.title != sheet.title
        assert filled(other.title, drawn(sheet, "1"))


@pytest.mark.parametrize("name", SHEETS)
def test_a_copy_for_students_has_no_key_and_the_same_digest(name: str) -> None:
    sheet = read_sheet(SHEETS[name])
    text = tomlkit.dumps(student_document(sheet))
    copy = parse_sheet(tomlkit.parse(text).unwrap())
    assert copy.digest == sheet.digest
    assert not copy.has_key
    for step in copy.steps:
        assert [field for field in KEY_FIELDS if getattr(step, field, None)] == []
    explanations = [getattr(step, "explanation", "") for step in sheet.steps]
    assert not any(each and each.strip() in text for each in explanations)


def test_a_change_of_what_students_see_changes_the_digest() -> None:
    sheet = read_sheet(LIGHT)
    assert with_text("on average?", "in all?").digest != sheet.digest
    assert with_text("A turn ends in a tick.", "Ticks.").digest == sheet.digest


def with_text(before: str, after: str) -> Sheet:
    text = LIGHT.read_text()
    assert before in text
    return parse_sheet(tomlkit.parse(text.replace(before, after)).unwrap())


BAD = {
    "unknown field": ('name = "mean"', 'name = "mean"\ncolour = "red"', "colour"),
    "no kind": ('kind = "predict"', 'kind = "guess"', "guess"),
    "two names": ('name = "turn"', 'name = "mean"', "two steps are called mean"),
    "no such study": ('study = "levels", metric = "task-clock"', 'study = "level", metric = "task-clock"', "level"),
    "not drawn": ("{size} × {size}", "{sise} × {size}", "sise"),
    "too few to draw": ('"22ms", "23ms"]', '"22ms", "23ms"]\ntake = 20', "takes 20 of 12"),
    "values": ('values = ["differs", "equivalent", "undecided"]', 'values = ["differs"]', "1 values for 3 choices"),
    "one choice": (
        'choices = ["It differs", "It is equivalent", "It is undecided"]',
        'choices = ["It differs"]',
        "at least two choices",
    ),
    "choices of a number": ('unit = "ms"', 'unit = "ms"\nchoices = ["1", "2"]', "by = 'choice'"),
    "two answers": ('unit = "ms"', 'unit = "ms"\nanswer = 4', "mutually exclusive"),
    "answer of a text": ('rubric = "1 point: the tick."', "answer = 4", "rubric"),
    "points": ("points = 3", "points = -3", "points"),
    "a name": ('name = "turn"', 'name = "Turn!"', "name"),
    "a version": ("version = 1", "version = 0", "version"),
    "an expression": ("minutes = 5", 'minutes = 5\nstudents = "["', "regular expression"),
    "no study is predicted": (
        'study = "levels"\nmetric',
        'study = "level"\nmetric',
        "predicts level, which is no step",
    ),
    "a question is predicted": ('study = "levels"\nmetric', 'study = "mean"\nmetric', "predicts mean"),
    "field of a draw": ("[draw.size]", "[draw.size]\ntakes = 2", "takes"),
    "no text": ("[[step]]\nkind", "[[step\nkind", "not valid TOML"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_in_a_sheet_is_said_with_file_and_field(tmp_path: Path, name: str) -> None:
    before, after, words = BAD[name]
    text = LIGHT.read_text()
    assert before in text
    file = tmp_path / "bad.toml"
    file.write_text(text.replace(before, after, 1))
    with pytest.raises(RequestError) as failure:
        read_sheet(file)
    complaint = str(failure.value) + str(failure.value.place or "")
    assert "bad.toml" in complaint
    assert words in complaint


@pytest.mark.parametrize(
    ("after", "line"),
    [
        ('name = "mean"', 'colour = "red"'),
        ('name = "mean"', "tolerance = -1"),
        ("[draw.size]", "takes = 2"),
        ('kind = "measure"', "minutes = 5"),
        ("minutes = 5", "hours = 5"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, after: str, line: str) -> None:
    file = tmp_path / "bad.toml"
    lines = LIGHT.read_text().splitlines()
    number = lines.index(after)
    lines.insert(number + 1, line)
    file.write_text("\n".join(lines))
    with pytest.raises(RequestError) as failure:
        read_sheet(file)
    assert f"bad.toml:{number + 2}" in str(failure.value) + str(failure.value.place or "")


def test_a_sheet_that_is_not_there_is_named_with_its_nearest(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="granularity"):
        find_sheet("granularty")
    with pytest.raises(RequestError, match=r"absent\.toml"):
        read_sheet(tmp_path / "absent.toml")


def test_a_study_that_nobody_could_check_is_refused() -> None:
    sheet = with_text("analysis = { explain = false }", 'target = { kind = "host" }')
    (step,) = sheet.kind(MeasureStep)
    with pytest.raises(RequestError, match="light"):
        student_study(sheet, step, "1", 1, catalogue())


def test_placeholders_become_values_lists_and_words() -> None:
    values: Drawn = {"one": (3,), "two": ("a", "b")}
    assert filled("{one}", values) == 3
    assert filled(["x", "{two}"], values) == ["x", "a", "b"]
    assert filled("of {two} and {other}", values) == "of a, b and {other}"
    assert filled({"deep": [{"n": "{one}"}]}, values) == {"deep": [{"n": 3}]}


def test_a_translation_keeps_what_is_translated(tmp_path: Path) -> None:
    sheet = tmp_path / "mine.toml"
    sheet.write_text(LIGHT.read_text())
    file, missing = update_translation(sheet, "es")
    assert missing == len(messages(read_sheet(sheet)))
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('msgid "Why?"\nmsgstr ""', 'msgid "Why?"\nmsgstr "¿Por qué?"'), encoding="utf-8")
    assert update_translation(sheet, "es") == (file, missing - 1)
    assert [getattr(step, "text", "") for step in translated(sheet, "es").steps][-1] == "¿Por qué?"
    assert translated(sheet, "es").digest != read_sheet(sheet).digest
    file.write_bytes(b"msgid what\n")
    with pytest.raises(RequestError, match="gettext"):
        translated(sheet, "es")


def test_only_texts_are_translated() -> None:
    sheet = read_sheet(LIGHT)
    assert "levels" not in messages(sheet)
    assert set(TRANSLATED) == {"title", "summary", "text", "choices", "explanation"}
