"""A sheet as a Jupyter notebook, and the functions that its cells call."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import ajuste_version, home
from ajuste.run.experiment import measured
from ajuste.run.notebook import MeasuredRun, load
from ajuste.run.testbed import RunOptions
from ajuste.store.store import Store
from ajuste_course.guide import step_text
from ajuste_course.hand_in import missing, write_hand_in
from ajuste_course.sheet import (
    AskStep,
    Direction,
    MeasureStep,
    PredictStep,
    Sheet,
    SimulateStep,
    filled,
    find_sheet,
    read_sheet,
)
from ajuste_course.simulation import MadeData, made_data
from ajuste_course.student import check_student, drawn
from ajuste_course.study import student_study
from ajuste_course.workbook import Shelf, read_prediction


@dataclass(frozen=True)
class OpenSheet:
    """A sheet that a student works through in a notebook. Every method raises RequestError for what is wrong."""

    sheet: Sheet = field(repr=False)
    student: str

    def predict(self, name: str, direction: Direction, size: str = "", why: str = "") -> None:
        """Make a prediction: its ``size`` is ``30%`` or ``3x``."""
        prediction = read_prediction(direction, size, why)
        Shelf(home()).predict(self.sheet, self.student, name, prediction)

    def measure(self, name: str) -> MeasuredRun:
        """Measure a step in guests, or return its run from the store."""
        shelf, step = Shelf(home()), self.sheet.find_kind(name, MeasureStep)
        workbook = shelf.find(self.sheet, self.student)
        workbook.require_predictions(self.sheet, name)
        seed = workbook.seed(self.sheet, name)
        study = student_study(self.sheet, step, self.student, seed, catalogue())
        line = shlex.join(["ajuste", "course", "measure", self.sheet.name, name])
        with measured(study, catalogue(), RunOptions(home()), named=line, quiet=True) as measurement:
            if measurement.run.stopped == "failed":
                raise measurement.failure()
            run = measurement.run.id
        shelf.update(self.sheet, self.student, lambda workbook: workbook.with_measured(self.sheet, name, run, seed))
        return load(run)

    def data(self, name: str) -> MadeData:
        """Return the made data of a step."""
        workbook, step = Shelf(home()).find(self.sheet, self.student), self.sheet.find_kind(name, SimulateStep)
        workbook.require_predictions(self.sheet, name)
        return made_data(self.sheet, step, self.student, workbook.seed(self.sheet, name))

    def answer(self, name: str, value: object) -> None:
        """Answer a question: the number of a choice, a number, or a text."""
        Shelf(home()).answer(self.sheet, self.student, name, str(value))

    def missing(self) -> list[str]:
        """Return the steps that are not done yet."""
        return missing(self.sheet, Shelf(home()).find(self.sheet, self.student))

    def hand_in(self, file: str | Path) -> Path:
        """Write the file to hand in."""
        path = Path(file)
        with Store(home().store_url) as store:
            write_hand_in(path, Shelf(home()).find(self.sheet, self.student), store, ajuste_version())
        return path


def open_sheet(name: str, student: str) -> OpenSheet:
    """Open a sheet for a student; it goes on where it was left."""
    sheet = read_sheet(find_sheet(name))
    Shelf(home()).begin(sheet, check_student(sheet, student), sheet.language)
    return OpenSheet(sheet, student)


def notebook_text(named: str, sheet: Sheet, student: str, language: str) -> str:
    """Return a notebook of a sheet, whose texts are in ``language``."""
    import nbformat

    v4: Any = nbformat.v4

    values = drawn(sheet, student)
    cells = [
        v4.new_markdown_cell(f"# {sheet.title}\n\n{sheet.summary}", id="title"),
        v4.new_code_cell(
            f"from ajuste_course.notebook import open_sheet\n\nsheet = open_sheet({named!r}, student={student!r})",
            id="open",
        ),
    ]
    for number, step in enumerate(sheet.steps):
        text = step_text(step, values)
        if isinstance(step, AskStep):
            choices = [f"{place}. {filled(choice, values)}" for place, choice in enumerate(step.choices, 1)]
            text = "\n".join([text, "", *choices]) if choices else text
        cells.append(v4.new_markdown_cell(text, id=f"text-{number}"))
        if code := _code(step):
            cells.append(v4.new_code_cell(code, id=f"code-{number}"))
    cells.append(v4.new_code_cell(f"sheet.hand_in({f'{sheet.name}-{student}.ajuste'!r})", id="hand-in"))
    notebook = v4.new_notebook(
        cells=cells, metadata={"language_info": {"name": "python"}, "ajuste": {"language": language}}
    )
    nbformat.validate(notebook)
    return f"{v4.writes(notebook)}\n"


def _code(step: object) -> str:
    if isinstance(step, PredictStep):
        return f'sheet.predict("{step.name}", "rises | falls | same", "30%", why="")'
    if isinstance(step, MeasureStep):
        return f'run = sheet.measure("{step.name}")\nrun'
    if isinstance(step, SimulateStep):
        return f'print(sheet.data("{step.name}").text())'
    if isinstance(step, AskStep):
        return f'sheet.answer("{step.name}", "")'
    return ""
