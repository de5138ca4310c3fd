"""Feedback for one student: points, right answers, what came of predictions, and why; in the student's language."""

from __future__ import annotations

import re

from ajuste.model.wording import visible
from ajuste_course.marking import Mark, Marked
from ajuste_course.sheet import AskStep, MeasureStep, PredictStep, Sheet, SimulateStep, Step, filled
from ajuste_course.student import drawn
from ajuste_course.translation import say


def feedback_text(plain: Sheet, texts: Sheet, marked: Marked, language: str) -> str:
    """Return the feedback as Markdown; ``texts`` is the sheet ``plain`` in ``language``."""
    values = drawn(texts, marked.student)
    marks = {mark.name: mark for mark in marked.marks}
    open_points = f" + {marked.open_points:g} ?" if marked.open_points else ""
    parts = [f"# {texts.title}", f"{marked.student}: {marked.points:g}{open_points} / {texts.points:g}"]
    for step in texts.steps:
        if isinstance(step, PredictStep | AskStep) and step.name in marks:
            parts += [
                f"## {step.name}",
                str(filled(step.text, values)).strip(),
                _line(marks[step.name], plain.find(step.name), step, language),
            ]
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


def _line(mark: Mark, plain: Step, texts: Step, language: str) -> str:
    points = "?" if mark.points is None else f"{mark.points:g}"
    answer = f"{say(language, 'Your answer')}: {_choice(mark.value, plain, texts)}. " if mark.value else ""
    right = ""
    if mark.right and mark.state == "wrong":
        right = f"{say(language, 'Right')}: {_choice(mark.right, plain, texts)}. "
    return f"{answer}{right}**{points} / {mark.most:g}**"


def _choice(value: str, plain: Step, texts: Step) -> str:
    # A choice in the student's language; other answers stay, in one line and without Markdown.
    if isinstance(plain, AskStep) and isinstance(texts, AskStep) and value in plain.choices:
        return texts.choices[plain.choices.index(value)]
    return re.sub(r"([\\`*_#<>\[\]|])", r"\\\1", " ".join(value.split()))
