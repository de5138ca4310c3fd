"""Marking: points for predictions and answers, and what speaks against a hand-in."""

from __future__ import annotations

import csv
import io
import math
import random
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

from ajuste.catalogue.loader import Catalogue
from ajuste.machine.home import ajuste_version
from ajuste.model.error import AjusteError, RequestError
from ajuste.model.wording import count_of, visible
from ajuste.run.runner import Watcher
from ajuste.run.testbed import RunOptions
from ajuste_course.evidence import (
    Finding,
    Prints,
    asked_metrics,
    copies,
    design_findings,
    digest_findings,
    measured_again,
    prints_of,
    sample_of,
    study_findings,
    trial_findings,
)
from ajuste_course.figures import (
    Outcome,
    Predicted,
    expectation_problems,
    is_right,
    judged,
    outcomes_of,
    right_answer,
    run_outcome,
)
from ajuste_course.hand_in import OpenedHandIn, open_hand_in
from ajuste_course.sheet import AskStep, MeasureStep, PredictStep, Sheet, figures_of
from ajuste_course.student import check_student
from ajuste_course.workbook import Prediction

State = Literal["right", "wrong", "made", "missing", "to mark", "marked", "no key"]
Decision = Literal["accepted", "look", "not accepted", "nothing handed in"]
DEFAULT_SAMPLE: Final = 4
_CLOCK_AHEAD: Final = timedelta(days=1)


@dataclass(frozen=True)
class Mark:
    """Points for one prediction or answer. ``points`` is None where a person marks; ``rubric`` says how."""

    name: str
    state: State
    points: float | None
    most: float
    value: str = ""
    right: str = ""
    rubric: str = ""


@dataclass(frozen=True)
class Marked:
    """A hand-in, marked. ``problem`` says why the file could not be marked; then nothing else is there.

    Of several files of one student one ``counts``: the newest that is accepted. A student of the class who handed in
    nothing has no ``file``.
    """

    file: str
    student: str = ""
    problem: str = ""
    marks: tuple[Mark, ...] = ()
    findings: tuple[Finding, ...] = ()
    measured_again: int = 0
    made: str = ""
    counts: bool = True
    language: str = ""
    predictions: dict[str, tuple[Prediction, Predicted]] = field(default_factory=dict)

    @property
    def decision(self) -> Decision:
        """Return what became of it: not accepted where its figures are proved not to be the student's own."""
        if not self.file:
            return "nothing handed in"
        if self.problem or any(finding.weight == "proof" for finding in self.findings):
            return "not accepted"
        return "look" if self.findings else "accepted"

    @property
    def is_accepted(self) -> bool:
        """Return whether its marks count, also where a person has to look at it."""
        return self.decision in ("accepted", "look")

    @property
    def points(self) -> float:
        """Return the points without what a person marks; 0 where it is not accepted."""
        return sum(mark.points or 0.0 for mark in self.marks) if self.is_accepted else 0.0

    @property
    def open_points(self) -> float:
        """Return the points that a person has to give."""
        return sum(mark.most for mark in self.marks if mark.points is None)


@dataclass(frozen=True)
class Marking:
    """The way to mark: ``sample`` trials of each run are measured again; ``students`` are the numbers of the class,
    ``points`` those that a person gave to texts, by student and question.
    """

    sample: int = DEFAULT_SAMPLE
    students: frozenset[str] = frozenset()
    points: Mapping[tuple[str, str], float] = field(default_factory=dict)
    generator: random.Random = field(default_factory=random.SystemRandom)


def read_class(file: Path) -> frozenset[str]:
    """Return the student numbers in a CSV file: its column *student*, *id* or *ID number*, or its first. Raises
    RequestError.
    """
    rows = _rows(file, "--students")
    head = [cell.strip().casefold() for cell in rows[0]]
    column = next((head.index(name) for name in ("student", "id number", "idnumber", "id") if name in head), None)
    values = rows if column is None else rows[1:]
    return frozenset(
        row[column or 0].strip() for row in values if len(row) > (column or 0) and row[column or 0].strip()
    )


def read_points(file: Path) -> dict[tuple[str, str], float]:
    """Return the points that a person gave, by student and question: the columns *student*, *question* and *points* of
    ``to-mark.csv``; rows without points are left out. Raises RequestError.
    """
    rows = _rows(file, "--points")
    head = [cell.strip().casefold() for cell in rows[0]]
    if lacking := [name for name in ("student", "question", "points") if name not in head]:
        raise RequestError(f"--points {file}: column {lacking[0]} not found", hint="use to-mark.csv of --output")
    points: dict[tuple[str, str], float] = {}
    for number, row in enumerate(rows[1:], 2):
        cells = {name: row[place].strip() if place < len(row) else "" for place, name in enumerate(head)}
        if not cells["points"]:
            continue
        try:
            value = float(cells["points"].replace(",", "."))
        except ValueError:
            value = math.nan
        if not 0 <= value <= 100:
            raise RequestError(
                f"--points {file}: row {number}: found {visible(cells['points'][:40])!r}; "
                "expected points between 0 and 100"
            )
        points[cells["student"].removeprefix("'"), cells["question"]] = value
    return points


def _decoded(data: bytes) -> str:
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252")


def _rows(file: Path, option: str) -> list[list[str]]:
    # Spreadsheets separate by semicolons where a comma is part of numbers, and may not write UTF-8.
    try:
        data = file.read_bytes()
        text = _decoded(data)
        first = text.partition("\n")[0]
        separator = max(",;\t", key=first.count)
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as failure:
        raise RequestError(f"{option} {file}: cannot be read: {failure}", hint="give a CSV file in UTF-8") from None
    if not rows:
        raise RequestError(f"{option} {file}: has no rows", hint="give a CSV file with a row for each student")
    return rows


def mark_all(
    sheet: Sheet,
    files: Sequence[Path],
    marking: Marking,
    known: Catalogue,
    options: RunOptions,
    watcher: Watcher,
    done: Callable[[Marked], None],
) -> list[Marked]:
    """Mark hand-ins, one after the other; one that cannot be read stops none of the others."""
    marked: list[Marked] = []
    prints: list[Prints] = []
    for file in files:
        student = ""
        try:
            with open_hand_in(file) as opened:
                student = visible(opened.about.workbook.student)
                marked.append(mark_one(sheet, opened, marking, known, options, watcher))
                prints.append(prints_of(opened))
        except AjusteError as failure:
            marked.append(Marked(str(file), student, problem=failure.message))
        done(marked[-1])
    common = copies(_newest(prints))
    again = _handed_in_twice(marked)
    judged_all = [
        replace(each, findings=(*each.findings, *_copied(each, common), *again.get(each.file, ()))) for each in marked
    ]
    counting = {each.student: each.file for each in sorted(judged_all, key=_weight) if each.student}
    absent = sorted(marking.students - {each.student for each in marked})
    return [
        *(replace(each, counts=counting.get(each.student, each.file) == each.file) for each in judged_all),
        *(Marked("", student) for student in absent if re.fullmatch(sheet.students, student)),
    ]


def _weight(each: Marked) -> tuple[bool, str]:
    return each.is_accepted, each.made


def _copied(each: Marked, common: Mapping[str, Sequence[Finding]]) -> list[Finding]:
    # Whose trials are those of their own seed has measured them: it is no proof that somebody else has them, too.
    findings = common.get(each.student, ())
    if any(finding.weight == "proof" for finding in each.findings):
        return list(findings)
    return [replace(finding, weight="remark") for finding in findings]


def _newest(prints: Sequence[Prints]) -> list[Prints]:
    # Two files of one student have the same trials, and are no copies.
    return list({each.student: each for each in prints}.values())


def _handed_in_twice(marked: Sequence[Marked]) -> dict[str, list[Finding]]:
    files: dict[str, list[str]] = {}
    for each in marked:
        if each.student:
            files.setdefault(each.student, []).append(each.file)
    return {
        file: [Finding("remark", f"{student} handed in {count_of(len(several), 'file')}")]
        for student, several in files.items()
        if several[1:]
        for file in several
    }


def mark_one(
    sheet: Sheet, opened: OpenedHandIn, marking: Marking, known: Catalogue, options: RunOptions, watcher: Watcher
) -> Marked:
    """Mark one hand-in. Raises RequestError for one of another sheet or version, or of a student that is not there."""
    workbook = opened.about.workbook
    if workbook.sheet != sheet.name:
        raise RequestError(f"{opened.file} is of the sheet {visible(workbook.sheet)}; expected {sheet.name}")
    if (workbook.version, workbook.digest) != (sheet.version, sheet.digest):
        raise RequestError(
            f"{opened.file} is of version {workbook.version} of {sheet.name} ({workbook.digest[:12]}); "
            f"expected version {sheet.version} ({sheet.digest[:12]})"
        )
    if marking.students and workbook.student not in marking.students:
        raise RequestError(f"{opened.file}: found student {visible(workbook.student)}; expected one of the class")
    check_student(sheet, workbook.student)
    findings = [*digest_findings(opened), *_of_clock(opened)]
    outcomes: dict[str, Outcome] = {}
    count = 0
    for step in sheet.kind(MeasureStep):
        if step.name not in opened.runs:
            findings.append(Finding("remark", f"{step.name}: not measured"))
            continue
        stored = opened.runs[step.name]
        against, resolved = study_findings(sheet, step, opened, known, options)
        findings += against
        if resolved is None:
            continue  # The figures of another study answer no question.
        outcomes[step.name] = run_outcome(stored.run, stored.store)
        trials = list(stored.trials)
        changed = [
            *_by_version(design_findings(step.name, resolved, stored.run.stopped, trials), opened),
            *trial_findings(step.name, resolved, trials),
        ]
        findings += changed
        if marking.sample and not any(finding.weight == "proof" for finding in changed):
            sample = sample_of(trials, asked_metrics(sheet, step.name), marking.sample, marking.generator)
            findings += measured_again(step.name, opened, resolved, sample, known, options, watcher)
            count += len(sample)
        problems = expectation_problems(step, sheet, workbook.student, outcomes[step.name])
        findings += [Finding("remark", f"{step.name}: not what the sheet expects: {problem}") for problem in problems]
    outcomes = outcomes_of(sheet, workbook, outcomes)
    predictions = {
        step.name: (
            workbook.predictions[step.name],
            judged(step, sheet, workbook.student, workbook.predictions[step.name], outcomes),
        )
        for step in sheet.kind(PredictStep)
        if step.name in workbook.predictions
    }
    return Marked(
        file=str(opened.file),
        student=workbook.student,
        marks=tuple(_with_points(mark, workbook.student, marking) for mark in _marks(sheet, opened, outcomes)),
        findings=tuple(findings),
        measured_again=count,
        made=opened.about.made,
        language=workbook.language,
        predictions=predictions,
    )


def _by_version(findings: Sequence[Finding], opened: OpenedHandIn) -> list[Finding]:
    # Another version may order its trials, or end, in another way.
    if opened.about.ajuste == ajuste_version():
        return list(findings)
    by = f"by Ajuste {visible(opened.about.ajuste)}, here {ajuste_version()}"
    return [Finding("remark", f"{finding.text} ({by})") for finding in findings]


def _of_clock(opened: OpenedHandIn) -> list[Finding]:
    # Nothing is decided by a time: the clock of a student's machine may be wrong.
    times = [opened.about.made, *(each.made for each in opened.about.workbook.predictions.values())]
    try:
        latest = max(datetime.fromisoformat(time) for time in times)
        ahead = latest - datetime.now(UTC) > _CLOCK_AHEAD
    except (ValueError, TypeError):
        return [Finding("remark", "a time in the file is not a time")]
    return [Finding("remark", f"the clock of its machine was wrong: {latest.date()}")] if ahead else []


def _with_points(mark: Mark, student: str, marking: Marking) -> Mark:
    points = marking.points.get((student, mark.name))
    if points is None or mark.points is not None:
        return mark
    return replace(mark, state="marked", points=min(points, mark.most))


def _marks(sheet: Sheet, opened: OpenedHandIn, outcomes: dict[str, Outcome]) -> list[Mark]:
    workbook = opened.about.workbook
    marks = []
    for step in sheet.steps:
        if isinstance(step, PredictStep):
            # A wrong prediction is how one learns: what counts is that it was made, and why.
            made = step.name in workbook.predictions
            marks.append(Mark(step.name, "made" if made else "missing", step.points if made else 0.0, step.points))
        elif isinstance(step, AskStep):
            marks.append(_mark(sheet, step, opened, outcomes))
    return marks


def _mark(sheet: Sheet, step: AskStep, opened: OpenedHandIn, outcomes: dict[str, Outcome]) -> Mark:
    workbook = opened.about.workbook
    if step.name not in workbook.answers:
        return Mark(step.name, "missing", 0.0, step.points)
    value = workbook.answers[step.name].value
    if step.answer_by == "text":
        return Mark(step.name, "to mark", None, step.points, str(value), rubric=step.rubric)
    right = right_answer(sheet, step, workbook.student, outcomes)
    if right is None and any(figure.study not in outcomes for figure in figures_of(step)):
        return Mark(step.name, "missing", 0.0, step.points, _text(step, value))
    if right is None:
        return Mark(step.name, "no key", None, step.points, f"{value}")
    correct = is_right(step, value, right)
    points = step.points if correct else 0.0
    return Mark(step.name, "right" if correct else "wrong", points, step.points, _text(step, value), _text(step, right))


def _text(step: AskStep, value: float | str) -> str:
    if step.answer_by == "choice" and isinstance(value, int | float) and 1 <= value <= len(step.choices):
        return step.choices[int(value) - 1]
    return f"{value:.4g}" if isinstance(value, int | float) else value
