"""The way through a sheet in a terminal: read, predict, measure, answer; it goes on where it was left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, get_args

import typer
from rich.markdown import Markdown

from ajuste.model.error import RequestError
from ajuste.model.wording import visible, visible_line
from ajuste.report.console import Console
from ajuste_course.sheet import AskStep, Direction, MeasureStep, PredictStep, Sheet, SimulateStep, TextStep, filled
from ajuste_course.student import Drawn, drawn
from ajuste_course.translation import say
from ajuste_course.workbook import Shelf, Workbook, next_step, read_prediction

DIRECTIONS: Final[tuple[Direction, ...]] = get_args(Direction)


@dataclass(frozen=True)
class Guide:
    """The way through ``sheet``, whose texts are in ``language``; ``plain`` is the same as it is written.

    ``measure`` measures a step and returns the workbook with its run; ``make`` writes the data of a step and returns
    where.
    """

    sheet: Sheet
    plain: Sheet
    language: str
    shelf: Shelf
    console: Console
    measure: Callable[[MeasureStep, Workbook], Workbook]
    make: Callable[[SimulateStep, Workbook], str]

    def lead(self, workbook: Workbook) -> Workbook:
        """Lead from the first step that is not done to the end. Raises KeyboardInterrupt if the person leaves."""
        values = drawn(self.sheet, workbook.student)
        begin = next_step(self.sheet, workbook)
        # Who goes on reads the texts right before the next step again, and gets the data again.
        while begin and isinstance(self.sheet.steps[begin - 1], TextStep | SimulateStep):
            begin -= 1
        if not (workbook.predictions or workbook.runs or workbook.answers):
            begin = 0
            self.console.print(Markdown(f"# {visible(self.sheet.title)}\n\n{visible(self.sheet.summary)}"))
        for step in self.sheet.steps[begin:]:
            workbook = self._step(step, workbook, values)
        return workbook

    def _step(
        self, step: TextStep | PredictStep | MeasureStep | SimulateStep | AskStep, workbook: Workbook, values: Drawn
    ) -> Workbook:
        self.console.print()
        self.console.print(Markdown(step_text(step, values)))
        if isinstance(step, PredictStep) and step.name not in workbook.predictions:
            return self._predicted(step, workbook)
        if isinstance(step, MeasureStep) and step.name not in workbook.runs:
            self._wait(self._say("Press Enter to measure"))
            return self.measure(step, workbook)
        if isinstance(step, SimulateStep):
            self.console.print(visible_line(self._say("Your data: {file}", file=self.make(step, workbook))))
        if isinstance(step, AskStep) and step.name not in workbook.answers:
            return self._answered(step, workbook, values)
        return workbook

    def _predicted(self, step: PredictStep, workbook: Workbook) -> Workbook:
        words = [self._say(word) for word in DIRECTIONS]
        while True:
            for number, word in enumerate(words, 1):
                self.console.print(f"  {number}  {word}")
            answer = self._ask(self._say("Your prediction, 1 to 3"))
            if answer not in ("1", "2", "3"):
                self.console.print(self._say("Choose 1, 2 or 3."), style="red")
                continue
            direction = DIRECTIONS[int(answer) - 1]
            try:
                size = "" if direction == "same" else self._ask(self._say("By how much, such as 30% or 3x"))
                read_prediction(direction, size, "")  # before the longer answer is typed
                prediction = read_prediction(direction, size, self._ask(self._say("Why do you think so")))
                return self.shelf.predict(self.plain, workbook.student, step.name, prediction)
            except RequestError as error:
                self.console.print(visible_line(error.message), style="red")

    def _answered(self, step: AskStep, workbook: Workbook, values: Drawn) -> Workbook:
        while True:
            for number, choice in enumerate(step.choices, 1):
                self.console.print(f"  {number}  {visible_line(str(filled(choice, values)))}", highlight=False)
            unit = f" ({step.unit})" if step.unit else ""
            try:
                text = self._ask(self._say("Your answer") + unit)
                return self.shelf.answer(self.plain, workbook.student, step.name, text)
            except RequestError as error:
                self.console.print(visible_line(error.message), style="red")

    def _wait(self, text: str) -> None:
        typer.prompt(text, default="", show_default=False, prompt_suffix=" ")

    def _ask(self, text: str) -> str:
        return str(typer.prompt(text)).strip()

    def _say(self, text: str, **values: object) -> str:
        return say(self.language, text, **values)


def step_text(step: TextStep | PredictStep | MeasureStep | SimulateStep | AskStep, values: Drawn) -> str:
    """Return the text of a step for one student, in Markdown."""
    return visible(str(filled(step.text, values)))


def sheet_text(sheet: Sheet, values: Drawn, language: str) -> str:
    """Return a whole sheet as Markdown, such as for printing."""
    parts = [f"# {sheet.title}", sheet.summary]
    for step in sheet.steps:
        parts.append(step_text(step, values))
        if isinstance(step, AskStep):
            parts += [f"{number}. {filled(choice, values)}" for number, choice in enumerate(step.choices, 1)]
        if isinstance(step, MeasureStep | SimulateStep):
            parts.append(f"*{step.name}*")
        if isinstance(step, PredictStep | AskStep):
            parts.append(f"*{say(language, '{name}, {points} points', name=step.name, points=f'{step.points:g}')}*")
    return visible("\n\n".join(part.strip() for part in parts)) + "\n"
