"""Marking: points for predictions and answers, and what speaks against a hand-in."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

from ajuste.catalogue.loader import Catalogue
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
from ajuste_course.sheet import AskStep, MeasureStep, PredictStep, Sheet
from ajuste_course.student import check_student
from ajuste_course.workbook import Prediction

State = Literal["right", "wrong", "made", "missing", "to mark", "no key"]
Decision = Literal["accepted", "look", "not accepted"]
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
    """A hand-in, marked. ``problem`` says why the file could not be read; then nothing else is there."""

    file: str
    student: str = ""
    problem: str = ""
    marks: tuple[Mark, ...] = ()
    findings: tuple[Finding, ...] = ()
    measured_again: int = 0
    language: str = ""
    predictions: dict[str, tuple[Prediction, Predicted]] = field(default_factory=dict)

    @property
    def decision(self) -> Decision:
        """Return what became of it: not accepted where its figures are proved not to be the student's own."""
        if self.problem or any(finding.weight == "proof" for finding in self.findings):
            return "not accepted"
        return "look" if self.findings else "accepted"

    @property
    def points(self) -> float:
        """Return the points without what a person marks; 0 where it is not accepted."""
        return 0.0 if self.decision == "not accepted" else sum(mark.points or 0.0 for mark in self.marks)

    @property
    def open_points(self) -> float:
        """Return the points that a person has to give."""
        return sum(mark.most for mark in self.marks if mark.points is None)


@dataclass(frozen=True)
class Marking:
    """The way to mark: ``sample`` trials of each run are measured again; ``students`` are the numbers of the class."""

    sample: int = DEFAULT_SAMPLE
    students: frozenset[str] = frozenset()
    generator: random.Random = field(default_factory=random.SystemRandom)


def read_class(file: Path) -> frozenset[str]:
    """Return the student numbers in a CSV file: its column *student*, *id* or *ID number*, or its first. Raises
    RequestError.
    """
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            rows = [row for row in csv.reader(opened) if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as failure:
        raise RequestError(f"--students {file}: cannot be read: {failure}", hint="give a CSV file in UTF-8") from None
    if not rows:
        raise RequestError(f"--students {file}: has no rows; expected a student number in each")
    head = [cell.strip().casefold() for cell in rows[0]]
    column = next((head.index(name) for name in ("student", "id number", "idnumber", "id") if name in head), None)
    values = rows if column is None else rows[1:]
    return frozenset(
        row[column or 0].strip() for row in values if len(row) > (column or 0) and row[column or 0].strip()
    )


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
        try:
            with open_hand_in(file) as opened:
                marked.append(mark_one(sheet, opened, marking, known, options, watcher))
                prints.append(prints_of(opened))
        except AjusteError as failure:
            marked.append(Marked(str(file), problem=failure.message))
        done(marked[-1])
    common = copies(_newest(prints))
    again = _handed_in_twice(marked)
    return [
        replace(each, findings=(*each.findings, *_copied(each, common), *again.get(each.file, ()))) for each in marked
    ]


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
            f"this sheet is version {sheet.version} ({sheet.digest[:12]})"
        )
    if marking.students and workbook.student not in marking.students:
        raise RequestError(f"{opened.file}: no student of the class has the number {visible(workbook.student)}")
    check_student(sheet, workbook.student)
    findings = [*digest_findings(opened), *_of_clock(opened)]
    outcomes: dict[str, Outcome] = {}
    count = 0
    for step in sheet.kind(MeasureStep):
        if step.name not in opened.runs:
            continue
        stored = opened.runs[step.name]
        against, resolved = study_findings(sheet, step, opened, known, options)
        findings += against
        if resolved is None:
            continue  # The figures of another study answer no question.
        outcomes[step.name] = run_outcome(stored.run, stored.store)
        trials = list(stored.trials)
        changed = [
            *design_findings(step.name, resolved, stored.run.stopped, trials),
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
        marks=tuple(_marks(sheet, opened, outcomes)),
        findings=tuple(findings),
        measured_again=count,
        language=workbook.language,
        predictions=predictions,
    )


def _of_clock(opened: OpenedHandIn) -> list[Finding]:
    # Nothing is decided by a time: the clock of a student's machine may be wrong.
    times = [opened.about.made, *(each.made for each in opened.about.workbook.predictions.values())]
    try:
        latest = max(datetime.fromisoformat(time) for time in times)
        ahead = latest - datetime.now(UTC) > _CLOCK_AHEAD
    except (ValueError, TypeError):
        return [Finding("remark", "a time in the file is not a time")]
    return [Finding("remark", f"the clock of its machine was wrong: {latest.date()}")] if ahead else []


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
    if right is None:
        return Mark(step.name, "no key", None, step.points, f"{value}")
    correct = is_right(step, value, right)
    points = step.points if correct else 0.0
    return Mark(step.name, "right" if correct else "wrong", points, step.points, _text(step, value), _text(step, right))


def _text(step: AskStep, value: float | str) -> str:
    if step.answer_by == "choice" and isinstance(value, int | float) and 1 <= value <= len(step.choices):
        return step.choices[int(value) - 1]
    return f"{value:.4g}" if isinstance(value, int | float) else value
