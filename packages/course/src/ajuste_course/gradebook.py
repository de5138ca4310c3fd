"""Marks as tables: all of them, and as Moodle's gradebook imports them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from ajuste_course.marking import Marked
from ajuste_course.sheet import AskStep, PredictStep, Sheet

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def marks_csv(sheet: Sheet, marked: Sequence[Marked]) -> str:
    """Return a row for each hand-in: points by question, what a person has to mark, and what speaks against it."""
    names = [step.name for step in sheet.steps if isinstance(step, PredictStep | AskStep)]
    head = ["student", "decision", "counts", "points", "to mark", "of", *names, "findings", "file"]
    rows = []
    for each in marked:
        by_name = {mark.name: mark for mark in each.marks}
        cells = [_points(by_name[name].points) if name in by_name else "" for name in names]
        texts = "; ".join(filter(None, (each.problem, *(finding.text for finding in each.findings))))
        total = "" if each.problem else f"{each.points:g}"
        rows.append(
            [
                each.student,
                each.decision,
                "yes" if each.counts else "no",
                total,
                f"{each.open_points:g}",
                f"{sheet.points:g}",
                *cells,
                texts,
                each.file,
            ]
        )
    return _csv([head, *rows])


def moodle_csv(sheet: Sheet, marked: Sequence[Marked]) -> str:
    """Return what *Grades → Import → CSV file* of Moodle takes: map *ID number* to the user's ID number, the points to
    a grade item and the feedback to its feedback. Of several files the newest accepted one counts; who was not
    accepted, handed in nothing, or has points that a person has to give, has no points yet.
    """
    rows = [
        [each.student, _moodle_points(each), _feedback(each)]
        for each in sorted(marked, key=lambda each: each.student)
        if each.student and each.counts
    ]
    return _csv([["ID number", sheet.title, "Feedback comments"], *rows])


def to_mark_csv(marked: Sequence[Marked]) -> str:
    """Return a row for each text that a person has to mark, with its rubric; *points* is to be filled in."""
    rows = [
        [each.student, mark.name, "", f"{mark.most:g}", mark.value, mark.rubric]
        for each in marked
        if each.counts and each.is_accepted
        for mark in each.marks
        if mark.state == "to mark"
    ]
    return _csv([["student", "question", "points", "most", "text", "rubric"], *rows])


def _moodle_points(each: Marked) -> str:
    # "-" is no grade yet; an empty cell would be one.
    return f"{each.points:g}" if each.is_accepted and not each.open_points else "-"


def _feedback(each: Marked) -> str:
    if each.decision == "not accepted":
        return "Please talk to your teacher about this hand-in."
    if each.decision == "nothing handed in":
        return "Nothing was handed in."
    wrong = [f"{mark.name}: {mark.value}, right is {mark.right}" for mark in each.marks if mark.state == "wrong"]
    lacking = [f"{mark.name}: missing" for mark in each.marks if mark.state == "missing"]
    waiting = [f"{mark.name}: not marked yet" for mark in each.marks if mark.points is None]
    return "; ".join([*wrong, *lacking, *waiting]) or "All right."


def marks_document(sheet: Sheet, marked: Sequence[Marked]) -> dict[str, Any]:
    """Return all marks as one JSON document."""
    return {
        "sheet": sheet.name,
        "version": sheet.version,
        "points": sheet.points,
        "hand_ins": [
            {
                "student": each.student,
                "file": each.file,
                "decision": each.decision,
                "counts": each.counts,
                "points": each.points,
                "to_mark": each.open_points,
                "problem": each.problem,
                "measured_again": each.measured_again,
                "findings": [{"weight": finding.weight, "text": finding.text} for finding in each.findings],
                "marks": [vars(mark) for mark in each.marks],
            }
            for each in marked
        ],
    }


def _points(points: float | None) -> str:
    return "?" if points is None else f"{points:g}"


def _csv(rows: Sequence[Sequence[str]]) -> str:
    written = io.StringIO()
    csv.writer(written).writerows([[_plain(cell) for cell in row] for row in rows])
    return written.getvalue()


def _plain(cell: str) -> str:
    # A spreadsheet would compute what begins like a formula; "-" alone is no formula.
    return f"'{cell}" if cell.startswith(_FORMULA) and cell != "-" else cell
