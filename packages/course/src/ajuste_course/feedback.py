"""Feedback for one student: points, right answers, what came of predictions, and why; in the student's language."""

from __future__ import annotations

from ajuste.model.wording import visible
from ajuste_course.marking import Mark, Marked
from ajuste_course.sheet import AskStep, MeasureStep, PredictStep, Sheet, SimulateStep, filled
from ajuste_course.student import drawn
from ajuste_course.translation import say


def feedback_text(texts: Sheet, marked: Marked, language: str) -> str:
    """Return the feedback as Markdown; ``texts`` is the sheet with its key in ``language``."""
    values = drawn(texts, marked.student)
    marks = {mark.name: mark for mark in marked.marks}
    parts = [f"# {texts.title}", f"{marked.student}: {marked.points:g} / {texts.points:g}"]
    for step in texts.steps:
        if isinstance(step, PredictStep | AskStep) and step.name in marks:
            parts += [f"## {step.name}", str(filled(step.text, values)).strip(), _line(marks[step.name], language)]
        if isinstance(step, PredictStep) and step.name in marked.predictions:
            prediction, outcome = marked.predictions[step.name]
            measured = "" if outcome.estimate is None else f" ×{outcome.estimate:.3g}"
            size = "" if prediction.direction == "same" else f" ×{prediction.ratio:.3g}"
            parts.append(
                f"{say(language, 'Your prediction')}: {say(language, prediction.direction)}{size}; "
                f"{say(language, 'measured')}:{measured or ' –'}"
            )
        if isinstance(step, AskStep | MeasureStep | SimulateStep) and step.explanation:
            parts.append(str(filled(step.explanation, values)).strip())
    return visible("\n\n".join(parts)) + "\n"


def _line(mark: Mark, language: str) -> str:
    points = "?" if mark.points is None else f"{mark.points:g}"
    answer = f"{say(language, 'Your answer')}: {mark.value}. " if mark.value else ""
    right = f"{say(language, 'Right')}: {mark.right}. " if mark.right and mark.state == "wrong" else ""
    return f"{answer}{right}**{points} / {mark.most:g}**"
