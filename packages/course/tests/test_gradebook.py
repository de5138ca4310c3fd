"""Tables of marks, read back with csv: what spreadsheets and Moodle make of them."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from packages.course.tests.cheating import LIGHT

from ajuste.model.error import RequestError
from ajuste_course.evidence import Finding
from ajuste_course.gradebook import marks_csv, marks_document, moodle_csv, to_mark_csv
from ajuste_course.marking import Mark, Marked, read_points
from ajuste_course.sheet import Sheet, read_sheet

PROOF, REMARK = Finding("proof", "figures were changed"), Finding("remark", "two files")
FORMULAS = ['=HYPERLINK("http://x")', "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", '=1,"\n2']


@pytest.fixture(scope="module")
def sheet() -> Sheet:
    return read_sheet(LIGHT)


def marked(student: str, **changes: Any) -> Marked:
    marks = (
        Mark("switches", "made", 2.0, 2.0),
        Mark("mean", "right", 3.0, 3.0, "5", "5"),
        Mark("turn", "wrong", 0.0, 2.0, "3", "4.1"),
        Mark("verdict", "missing", 0.0, 2.0),
        Mark("why", "to mark", None, 1.0, "Because.", rubric="the tick"),
    )
    return Marked(**{"file": f"{student}.ajuste", "student": student, "marks": marks, **changes})


def without_texts(student: str, **changes: Any) -> Marked:
    return marked(student, **{"marks": marked(student).marks[:4], **changes})


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_every_hand_in_has_a_row_with_its_points(sheet: Sheet) -> None:
    first, second, third = rows(
        marks_csv(sheet, [marked("1"), marked("2", findings=(PROOF,)), Marked("3.ajuste", problem="is half")])
    )
    assert (first["student"], first["decision"], first["points"], first["to mark"], first["of"]) == (
        "1",
        "accepted",
        "5",
        "1",
        "10",
    )
    assert [first[name] for name in ("switches", "mean", "turn", "verdict", "why")] == ["2", "3", "0", "0", "?"]
    assert (second["decision"], second["points"], second["findings"]) == ("not accepted", "0", PROOF.text)
    assert (third["file"], third["points"], third["findings"]) == ("3.ajuste", "", "is half")


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_cell_begins_like_a_formula(sheet: Sheet, formula: str) -> None:
    hostile = without_texts(formula, file=formula, findings=(Finding("remark", formula),))
    wrong = without_texts("2", marks=(Mark("turn", "wrong", 0.0, 2.0, formula, formula),))
    renamed = sheet.model_copy(update={"title": formula})
    for text in (marks_csv(renamed, [hostile, wrong]), moodle_csv(renamed, [hostile, wrong])):
        table = list(csv.reader(io.StringIO(text, newline="")))
        assert len(table) == 3
        for cell in (cell for row in table for cell in row):
            assert cell == "-" or not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_moodle_gets_points_only_where_nothing_is_open(sheet: Sheet) -> None:
    every = [
        without_texts("1"),
        marked("2"),
        without_texts("3", findings=(PROOF,)),
        without_texts("4", findings=(REMARK,)),
    ]
    table = {row["ID number"]: row[sheet.title] for row in rows(moodle_csv(sheet, every))}
    assert table == {"1": "5", "2": "-", "3": "-", "4": "5"}


def test_moodle_gets_one_row_of_a_student_with_several_files(sheet: Sheet) -> None:
    worse = marked("1", marks=(Mark("mean", "wrong", 0.0, 3.0, "9", "5"),))
    earlier = replace(worse, counts=False)
    for order in ([earlier, without_texts("1")], [without_texts("1"), earlier]):
        (row,) = rows(moodle_csv(sheet, [*order, Marked("x.ajuste", problem="is half")]))
        assert (row["ID number"], row[sheet.title]) == ("1", "5")
        assert "4.1" in row["Feedback comments"]


def test_who_handed_in_nothing_has_a_row_without_points(sheet: Sheet) -> None:
    (row,) = rows(moodle_csv(sheet, [Marked("", "7")]))
    assert (row["ID number"], row[sheet.title]) == ("7", "-")


def test_points_of_a_person_are_read_back_from_the_table_that_asks_for_them(sheet: Sheet, tmp_path: Path) -> None:
    texts = to_mark_csv([marked("1")])
    (row, *_) = rows(texts)
    assert row["text"]
    file = tmp_path / "to-mark.csv"
    file.write_text(f"student;question;points\n1;{row['question']};1,5\n1;other;\n", encoding="utf-8")
    assert read_points(file) == {("1", row["question"]): 1.5}
    file.write_text("student,question,points\n1,why,many\n", encoding="utf-8")
    with pytest.raises(RequestError, match="row 2"):
        read_points(file)


def test_feedback_accuses_nobody(sheet: Sheet) -> None:
    (row,) = rows(moodle_csv(sheet, [without_texts("1", findings=(PROOF,))]))
    assert PROOF.text not in row["Feedback comments"]


def test_the_document_has_all_marks(sheet: Sheet) -> None:
    document = json.loads(json.dumps(marks_document(sheet, [marked("1", findings=(REMARK,))])))
    (only,) = document["hand_ins"]
    assert (document["sheet"], only["decision"], only["points"], only["to_mark"]) == ("light", "look", 5.0, 1.0)
    assert only["findings"] == [{"weight": "remark", "text": "two files"}]
    assert [mark["name"] for mark in only["marks"]] == ["switches", "mean", "turn", "verdict", "why"]
