"""A student's workbook: predictions, runs and answers on one sheet, kept from one command to the next."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Literal, get_args

from pydantic import Field, ValidationError

from ajuste.machine.files import locked, make_directory, write_text
from ajuste.machine.home import Home
from ajuste.model.base import ClosedModel, first_problem
from ajuste.model.error import RequestError
from ajuste.model.wording import visible
from ajuste_course.sheet import AskStep, Direction, MeasureStep, PredictStep, Sheet
from ajuste_course.student import study_seed

LONGEST_TEXT: Final = 10_000
FEWEST_WORDS: Final = 3
"""Words of the reason of a prediction."""
_SIZE: Final = re.compile(r"(?P<number>\d+(?:[.,]\d+)?)\s*(?P<unit>%|x|×|times)?", re.IGNORECASE)

Text = Annotated[str, Field(max_length=LONGEST_TEXT)]


class Prediction(ClosedModel):
    """A prediction: ``ratio`` is that of the configuration to the baseline, 1 where it stays the same."""

    direction: Direction
    ratio: float = Field(gt=0, le=1e6)
    why: Text
    made: str = Field(max_length=40)


class Answer(ClosedModel):
    """An answer: the number of a choice from 1, a number in the unit that was asked for, or a text."""

    value: int | float | Text
    answered: str = Field(max_length=40)


class Workbook(ClosedModel):
    """The progress of one student on a sheet; ``runs`` are the runs of its steps."""

    format: Literal["ajuste workbook"] = "ajuste workbook"
    sheet: str = Field(max_length=60)
    version: int
    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    student: str = Field(min_length=1, max_length=64)
    language: str = Field(max_length=3)
    predictions: dict[str, Prediction] = Field(default={}, max_length=200)
    answers: dict[str, Answer] = Field(default={}, max_length=200)
    runs: dict[str, Annotated[str, Field(max_length=60)]] = Field(default={}, max_length=200)

    def sealed(self, sheet: Sheet, step: str) -> str:
        """Return the digest of all predictions before a step: the seed of its study follows from it."""
        before = [predicted.name for predicted in predictions_before(sheet, step)]
        entries = {
            name: self.predictions[name].model_dump(exclude={"made"}) for name in before if name in self.predictions
        }
        return hashlib.sha256(json.dumps(entries, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    def seed(self, sheet: Sheet, step: str) -> int:
        """Return the seed of a step's study or data."""
        return study_seed(sheet, self.student, step, self.sealed(sheet, step))

    def with_prediction(self, sheet: Sheet, name: str, prediction: Prediction) -> Workbook:
        """Return it with a prediction. Raises RequestError where its study was measured already."""
        step = sheet.find_kind(name, PredictStep)
        if measured := next((run for run in self.runs if step in predictions_before(sheet, run)), None):
            raise RequestError(
                f"{name} is sealed: {measured} was measured with it",
                hint=f"start again with ajuste course open {sheet.name} --fresh",
            )
        if prediction.direction != "same" and len(prediction.why.split()) < FEWEST_WORDS:
            raise RequestError(f"{name}: say why in at least {FEWEST_WORDS} words")
        return self.model_copy(update={"predictions": {**self.predictions, name: prediction}})

    def with_run(self, name: str, run: str) -> Workbook:
        """Return it with the run of a step."""
        return self.model_copy(update={"runs": {**self.runs, name: run}})

    def with_measured(self, sheet: Sheet, name: str, run: str, seed: int) -> Workbook:
        """Return it with the run of a step that was measured with ``seed``. Raises RequestError where a prediction was
        changed meanwhile.
        """
        if self.seed(sheet, name) != seed:
            raise RequestError(
                f"a prediction was changed while {name} was measured", hint=f"ajuste course measure {sheet.name} {name}"
            )
        return self.with_run(name, run)

    def with_answer(self, sheet: Sheet, name: str, text: str) -> Workbook:
        """Return it with an answer. Raises RequestError for one that cannot be right or wrong."""
        step = sheet.find_kind(name, AskStep)
        answer = Answer(value=read_answer(step, text), answered=now())
        return self.model_copy(update={"answers": {**self.answers, name: answer}})

    def require_predictions(self, sheet: Sheet, step: str) -> None:
        """Raise RequestError while a prediction before a step is missing."""
        for predicted in predictions_before(sheet, step):
            if predicted.name not in self.predictions:
                raise RequestError(
                    f"{step} is measured after the prediction {predicted.name}, which you have not made",
                    hint=f"ajuste course predict {sheet.name} {predicted.name} DIRECTION SIZE --why TEXT",
                )


def predictions_before(sheet: Sheet, step: str) -> tuple[PredictStep, ...]:
    """Return the predictions that stand before a step."""
    names = [getattr(each, "name", "") for each in sheet.steps]
    return tuple(each for each in sheet.steps[: names.index(step)] if isinstance(each, PredictStep))


def read_prediction(direction: str, size: str, why: str) -> Prediction:
    """Return a prediction from words: a size is ``30%`` or ``3x``. Raises RequestError."""
    known: Direction | None = next((each for each in get_args(Direction) if each == direction), None)
    if known is None:
        raise RequestError(f"found {visible(direction[:40])!r}; expected rises, falls or same")
    return Prediction(direction=known, ratio=_ratio(known, size), why=why[:LONGEST_TEXT], made=now())


def _ratio(direction: Direction, size: str) -> float:
    if direction == "same":
        return 1.0
    match = _SIZE.fullmatch(size.strip().lstrip("+-−"))
    if match is None:
        raise RequestError(
            f"found {visible(size)!r}; expected how much it {direction}, such as 30% or 3x",
            hint="give 3x for three times as much, or a third",
        )
    number = float(match["number"].replace(",", "."))
    if match["unit"] in (None, "%"):
        if direction == "falls" and number >= 100:
            raise RequestError(
                f"it cannot fall by {number:g} %; expected less than 100 %", hint="give 90% or 10x for a tenth"
            )
        ratio = 1 + number / 100 if direction == "rises" else 1 - number / 100
    else:
        ratio = number if direction == "rises" else 1 / number if number else 0
    if not 1e-6 <= ratio <= 1e6 or ratio == 1 or (ratio > 1) != (direction == "rises"):
        raise RequestError(f"found {visible(size)!r}; expected how much it {direction}, such as 30% or 3x")
    return ratio


def read_answer(step: AskStep, text: str) -> int | float | str:
    """Return an answer from words. Raises RequestError."""
    words = text.strip()
    if step.answer_by == "text":
        if not words or len(words) > LONGEST_TEXT:
            raise RequestError(f"{step.name}: expected a text of up to {LONGEST_TEXT} characters")
        return words
    if step.answer_by == "choice":
        if words.isdecimal() and 1 <= int(words) <= len(step.choices):
            return int(words)
        if words in step.choices:
            return step.choices.index(words) + 1
        raise RequestError(f"{step.name}: found {visible(words[:60])!r}; expected 1 to {len(step.choices)}")
    number = words.removesuffix(step.unit).strip() if step.unit else words
    try:
        value = float(number.replace("−", "-").replace(",", "."))
    except ValueError:
        unit = f" in {step.unit}" if step.unit else ""
        raise RequestError(f"{step.name}: found {visible(words[:60])!r}; expected a number{unit}") from None
    if math.isnan(value):
        raise RequestError(f"{step.name}: found {visible(words[:60])!r}; expected a number")
    if not abs(value) < 1e15:
        raise RequestError(f"{step.name}: found {visible(words[:60])!r}; expected a number of at most 15 digits")
    return value


def next_step(sheet: Sheet, workbook: Workbook) -> int:
    """Return the index of the first step that is not done; the number of steps if all are. Texts count as read."""
    for index, step in enumerate(sheet.steps):
        if isinstance(step, PredictStep) and step.name not in workbook.predictions:
            return index
        if isinstance(step, MeasureStep) and step.name not in workbook.runs:
            return index
        if isinstance(step, AskStep) and step.name not in workbook.answers:
            return index
    return len(sheet.steps)


def now() -> str:
    """Return the time of this machine, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Shelf:
    """The workbooks of this user, a file each."""

    def __init__(self, home: Home) -> None:
        self._directory = home.data / "course"

    def file(self, sheet: str, student: str) -> Path:
        """Return the file of a workbook; it may not be there yet."""
        return self._directory / sheet / f"{hashlib.sha256(student.encode()).hexdigest()[:16]}.json"

    def find(self, sheet: Sheet, student: str | None) -> Workbook:
        """Return the student's workbook on a sheet, or the only one. Raises RequestError if there is none, or if it is
        of another version of the sheet.
        """
        if student is not None:
            files: Iterable[Path] = [self.file(sheet.name, student)]
        else:
            files = sorted((self._directory / sheet.name).glob("*.json"))
        workbooks = [self._read(file) for file in files if file.is_file()]
        if len(workbooks) != 1:
            who = f"{len(workbooks)} students have begun" if workbooks else "nobody has begun"
            raise RequestError(
                f"{who} the sheet {sheet.name} here" + (f" as {visible(student)}" if student and not workbooks else ""),
                hint=f"ajuste course open {sheet.name} --student NUMBER",
            )
        (workbook,) = workbooks
        if (workbook.version, workbook.digest) != (sheet.version, sheet.digest):
            raise RequestError(
                f"your workbook is of version {workbook.version} of the sheet {sheet.name}, {workbook.digest[:12]}; "
                f"this is version {sheet.version}, {sheet.digest[:12]}",
                hint="use the sheet that you began with, or begin again with --fresh",
            )
        return workbook

    def begin(self, sheet: Sheet, student: str, language: str, *, fresh: bool = False) -> Workbook:
        """Return the student's workbook, a new one if there is none or a ``fresh`` one is wanted."""
        if not fresh and self.file(sheet.name, student).is_file():
            workbook = self.find(sheet, student)
            return (
                workbook
                if workbook.language == language
                else self.keep(workbook.model_copy(update={"language": language}))
            )
        return self.keep(
            Workbook(sheet=sheet.name, version=sheet.version, digest=sheet.digest, student=student, language=language)
        )

    def update(self, sheet: Sheet, student: str | None, change: Callable[[Workbook], Workbook]) -> Workbook:
        """Change the workbook as it is now, whatever other commands did meanwhile; return it. Raises as ``find``."""
        file = self.file(sheet.name, self.find(sheet, student).student)
        with locked(file.with_suffix(".lock")):
            return self.keep(change(self.find(sheet, student)))

    def predict(self, sheet: Sheet, student: str | None, name: str, prediction: Prediction) -> Workbook:
        """Add a prediction to a workbook. Raises RequestError."""
        return self.update(sheet, student, lambda workbook: workbook.with_prediction(sheet, name, prediction))

    def answer(self, sheet: Sheet, student: str | None, name: str, text: str) -> Workbook:
        """Add an answer to a workbook. Raises RequestError."""
        return self.update(sheet, student, lambda workbook: workbook.with_answer(sheet, name, text))

    def keep(self, workbook: Workbook) -> Workbook:
        """Write a workbook, and return it. Raises RequestError if the disk does not take it."""
        file = self.file(workbook.sheet, workbook.student)
        try:
            make_directory(file.parent)
            write_text(file, workbook.model_dump_json(indent=2))
        except OSError as failure:
            raise RequestError(
                f"{file}: {failure.strerror or failure}", hint="free some space, then repeat"
            ) from failure
        return workbook

    def _read(self, file: Path) -> Workbook:
        try:
            return Workbook.model_validate_json(file.read_bytes())
        except (OSError, ValueError) as failure:
            why = first_problem(failure) if isinstance(failure, ValidationError) else str(failure)
            raise RequestError(f"{file} is damaged: {why}", hint="rename it, and begin again") from None
