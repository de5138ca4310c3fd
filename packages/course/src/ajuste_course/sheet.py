"""Sheets: what a student reads, predicts, measures and answers; one TOML file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import Field, ValidationError, model_validator

from ajuste.model.base import ClosedModel
from ajuste.model.error import RequestError
from ajuste.study.problem import Problem, StudySource, error, from_validation, nearest
from ajuste.study.read import read_toml
from ajuste_stats.terms import Word

SUFFIX: Final = ".toml"
FOLDER: Final = "sheets"
_PLACEHOLDER: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_HINT: Final = "see `ajuste help file-fields`"

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,59}$", description="Lower-case letters, digits, _ and -.")]
Points = Annotated[float, Field(ge=0, le=100, description="Points for it.")]
Direction = Literal["rises", "falls", "same"]
Of = Literal[
    "mean",
    "median",
    "sd",
    "n",
    "estimate",
    "low",
    "high",
    "change",
    "verdict",
    "ratio",
    "three-sigma",
    "peeks",
    "blocks",
]
"""A figure of the trials of one configuration (``mean``, ``median``, ``sd``, ``n``), or of its comparison with the
baseline (``estimate``, ``low`` and ``high`` are ratios, ``change`` is the estimate in per cent, ``verdict`` its word,
``three-sigma`` the word of that rule, ``ratio`` the plain quotient of the two means). ``blocks`` are those of the run.
``peeks``: after how many of the blocks from the third on a paired t-test at 5 % would have called the two different."""


class Draw(ClosedModel):
    """Values of which each student gets one, or ``take`` different ones in their order, by the student's number."""

    values: tuple[str | int | float, ...] = Field(min_length=1, max_length=200, description="The values to draw from.")
    take: int = Field(default=1, ge=1, le=20, description="How many different ones each student gets.")

    @model_validator(mode="after")
    def _enough(self) -> Draw:
        if self.take > len(set(self.values)):
            raise ValueError(f"takes {self.take} of {len(set(self.values))} different values")
        return self


class Figure(ClosedModel):
    """A figure of a student's own run."""

    study: Name = Field(description="The step that measures it.")
    metric: str = Field(default="", description="The metric; not for blocks.")
    configuration: str = Field(default="", description="The configuration, by its name; empty: the baseline.")
    of: Of = Field(
        default="mean",
        description="mean, median, sd, n, ratio, estimate, low, high, change, verdict, three-sigma, peeks or blocks.",
    )


class TextStep(ClosedModel):
    """Something to read."""

    kind: Literal["text"] = Field(description="Something to read.")
    text: str = Field(description="Markdown.")


class PredictStep(ClosedModel):
    """A prediction, which is sealed before ``study`` can be measured: direction, size and why."""

    kind: Literal["predict"] = Field(description="A prediction to make before a study is measured.")
    name: Name
    text: str = Field(description="The question, in Markdown.")
    study: Name = Field(description="The step that measures it, further down.")
    metric: str = Field(description="The metric that changes.")
    configuration: str = Field(description="The configuration that is compared with the baseline.")
    within: float = Field(default=2.0, gt=1, description="A size counts as right up to this factor away.")
    points: Points = 1.0


class MeasureStep(ClosedModel):
    """A study to run. Its file is ``study``, as in the reference of study files, or a built-in study (``base``) with
    other ``levels``, ``parameters`` and limits.
    """

    kind: Literal["measure"] = Field(description="A study to run in guests under the virtual clock.")
    name: Name
    text: str = Field(description="What is measured, in Markdown.")
    base: str = Field(default="", description="A built-in study.")
    levels: dict[str, tuple[str | int | float, ...]] = Field(default={}, description="Levels of its factors.")
    parameters: dict[str, str | int | float] = Field(default={}, description="Parameters of its workload.")
    without: dict[str, tuple[str | int | float, ...]] = Field(default={}, description="Levels to leave out, by factor.")
    study: dict[str, Any] = Field(
        default={}, description="A whole study; of a base, the tables and fields to replace, table by table."
    )
    expect: tuple[ExpectedVerdict, ...] = Field(default=(), description="What every student's figures show.")
    explanation: str = Field(default="", description="Why, in Markdown; for after handing in.")


class ExpectedVerdict(ClosedModel):
    """A verdict that the mechanism brings about, whatever a student's levels are."""

    metric: str = Field(description="The metric.")
    configuration: str = Field(description="The configuration, by its levels as the sheet writes them.")
    verdict: tuple[Word, ...] = Field(min_length=1, description="The verdicts that are as expected.")


class SimulateStep(ClosedModel):
    """Made data: a file for ``ajuste analyse`` with the columns configuration, block and value, each student's own.

    A row is a trial, in the order of time. ``ratio`` is the true one of *other* to *base*; ``drift`` the growth of both
    from the first to the last trial.
    """

    kind: Literal["simulate"] = Field(description="Made data, each student's own.")
    name: Name
    text: str = Field(description="What the data are, in Markdown.")
    blocks: int | str = Field(default=30, description="How many blocks; or a value drawn, as {name}.")
    noise: float | str = Field(default=0.05, description="Standard deviation of a trial's logarithm.")
    ratio: float | str = Field(default=1.0, description="True ratio of other to base.")
    drift: float | str = Field(default=0.0, description="Growth from the first to the last block: 0.1 is 10 %.")
    order: Literal["random", "fixed"] = Field(default="random", description="fixed: all of base, then all of other.")
    explanation: str = Field(default="", description="Why, in Markdown; for after handing in.")


class AskStep(ClosedModel):
    """A question: one of ``choices``, a ``number``, or a ``text``.

    The right answer is a ``figure`` of the student's own, or the key's ``answer``. ``values`` are what a figure may be
    for each of the choices.
    """

    kind: Literal["ask"] = Field(description="A question.")
    name: Name
    text: str = Field(description="The question, in Markdown.")
    answer_by: Literal["choice", "number", "text"] = Field(
        alias="by", description="How it is answered: choice, number or text."
    )
    choices: tuple[str, ...] = Field(default=(), max_length=10, description="The choices.")
    values: tuple[str, ...] = Field(
        default=(),
        description="What the figure is where each choice is right: a word, words (a|b), or a range (..0.05).",
    )
    figure: Figure | None = Field(default=None, description="The figure of the student's own that is right.")
    per: Figure | None = Field(default=None, description="Divide the figure by this one.")
    unit: str = Field(default="", description="The unit to answer in, such as ms or %.")
    tolerance: float = Field(default=0.02, ge=0, description="Share by which a number may be off.")
    points: Points = 1.0
    answer: int | float | None = Field(
        default=None, description="Key: number of the right choice from 1, or the number."
    )
    rubric: str = Field(default="", description="Key: what a good text says, for who marks it.")
    explanation: str = Field(default="", description="Key: why; for after handing in.")

    @model_validator(mode="after")
    def _complete(self) -> AskStep:
        if self.answer_by == "choice" and not len(self.choices) >= 2:
            raise ValueError("a choice has at least two choices")
        if self.answer_by != "choice" and (self.choices or self.values):
            raise ValueError(f"choices and values are for by = 'choice'; found by = {self.answer_by!r}")
        if self.figure and self.answer_by == "choice" and len(self.values) != len(self.choices):
            raise ValueError(f"has {len(self.values)} values for {len(self.choices)} choices")
        if self.figure and self.answer is not None:
            raise ValueError("figure and answer are mutually exclusive")
        if self.answer_by == "text" and (self.figure or self.answer is not None):
            raise ValueError("a text has no figure and no answer; it may have a rubric")
        return self


MeasureStep.model_rebuild()
Step: TypeAlias = Annotated[TextStep | PredictStep | MeasureStep | SimulateStep | AskStep, Field(discriminator="kind")]
_S = TypeVar("_S", bound=ClosedModel)

KEY_FIELDS: Final = ("answer", "rubric", "explanation")
"""Fields that a student's copy of a sheet does not have."""


class Sheet(ClosedModel):
    """An exercise sheet; its ``steps`` are worked through from top to bottom."""

    schema_version: Literal[1] = Field(alias="schema", description="The version of this format.")
    name: Name
    version: int = Field(ge=1, description="Of this sheet; a hand-in names it.")
    title: str = Field(min_length=1, max_length=200, description="Its title.")
    summary: str = Field(min_length=1, max_length=500, description="What one learns, in a sentence.")
    minutes: int = Field(ge=1, le=600, description="How long a student needs.")
    language: str = Field(default="en", pattern=r"^[a-z]{2,3}$", description="Of its texts.")
    students: str = Field(
        default=r"[A-Za-z0-9._-]{1,32}", description="What a student's number looks like: a regular expression."
    )
    draw: dict[Name, Draw] = Field(default={}, max_length=50, description="Values drawn for each student, by name.")
    steps: tuple[Step, ...] = Field(
        alias="step", min_length=1, max_length=200, description="The steps, in their order, each of one kind."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Sheet:
        try:
            re.compile(self.students)
        except re.error as failure:
            raise ValueError(f"students: {self.students!r} is no regular expression: {failure}") from None
        names = [step.name for step in self.steps if not isinstance(step, TextStep)]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two steps are called {twice}")
        studies = [step.name for step in self.steps if isinstance(step, MeasureStep | SimulateStep)]
        measured: list[str] = []
        for step in self.steps:
            for figure in figures_of(step):
                if figure.study not in measured:
                    raise ValueError(
                        f"{step_name(step)} asks for a figure of {figure.study}, which is no step before it"
                    )
            if isinstance(step, PredictStep) and step.study in measured:
                raise ValueError(f"{step.name} predicts {step.study}, which is measured before it")
            if isinstance(step, PredictStep) and step.study not in studies:
                raise ValueError(f"{step.name} predicts {step.study}, which is no step that measures")
            if isinstance(step, MeasureStep | SimulateStep):
                measured.append(step.name)
        known = {*self.draw, *RESERVED}
        for text in _texts(self.model_dump(mode="json", by_alias=True)["step"]):
            if unknown := next((name for name in _PLACEHOLDER.findall(text) if name not in known), None):
                raise ValueError(f"{{{unknown}}} is drawn nowhere{nearest(unknown, sorted(known))}")
        return self

    def find(self, name: str) -> PredictStep | MeasureStep | SimulateStep | AskStep:
        """Return a step by its name. Raises RequestError."""
        named = {step.name: step for step in self.steps if not isinstance(step, TextStep)}
        if name not in named:
            raise RequestError(
                f"{self.name} has no step {name!r}{nearest(name, list(named))}", hint="see ajuste course show"
            )
        return named[name]

    def find_kind(self, name: str, of: type[_S]) -> _S:
        """Return a step of one kind by its name. Raises RequestError."""
        step = self.find(name)
        if not isinstance(step, of):
            listed = ", ".join(step_name(each) for each in self.steps if isinstance(each, of)) or "none"
            raise RequestError(f"{name} {_NOT_OF_KIND[of]}", hint=f"name one of {listed}")
        return step

    def kind(self, of: type[_S]) -> tuple[_S, ...]:
        """Return its steps of one kind, in their order."""
        return tuple(step for step in self.steps if isinstance(step, of))

    @property
    def points(self) -> float:
        """Return the most points that a student can have."""
        return sum(step.points for step in self.steps if isinstance(step, PredictStep | AskStep))

    @property
    def digest(self) -> str:
        """Return SHA-256 of all that a student sees: the same for a copy without the key."""
        text = json.dumps(student_document(self), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def has_key(self) -> bool:
        """Return whether the answers can be marked with it: a student's copy has no key."""
        return all(
            step.figure is not None or step.answer is not None or bool(step.rubric) for step in self.kind(AskStep)
        )


_NOT_OF_KIND: Final[Mapping[type[ClosedModel], str]] = {
    PredictStep: "is no prediction of this sheet",
    MeasureStep: "measures nothing",
    SimulateStep: "has no made data",
    AskStep: "is no question of this sheet",
}

RESERVED: Final = ("student", "seed")
"""Placeholders that every sheet has: the student's number, and the seed of the study."""


def step_name(step: Step) -> str:
    """Return the name of a step; of a text its kind."""
    return "text" if isinstance(step, TextStep) else step.name


def figures_of(step: Step) -> Iterator[Figure]:
    """Yield the figures that a step's answer comes from."""
    if isinstance(step, AskStep):
        yield from (figure for figure in (step.figure, step.per) if figure is not None)


def student_document(sheet: Sheet) -> dict[str, Any]:
    """Return the sheet as a file has it, without its key."""
    document = sheet.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    for step in document["step"]:
        for name in KEY_FIELDS:
            step.pop(name, None)
    return {"schema": 1, **document}


def sheet_files() -> dict[str, Path]:
    """Return the sheets that come with Ajuste, by name."""
    folder = Path(str(files("ajuste_course") / FOLDER))
    return {path.stem: path for path in sorted(folder.glob(f"*{SUFFIX}"))}


def find_sheet(name_or_path: str) -> Path:
    """Return the file of a sheet that comes with Ajuste, or the file itself. Raises RequestError."""
    known = sheet_files()
    if name_or_path in known:
        return known[name_or_path]
    path = Path(name_or_path)
    if path.suffix == SUFFIX or "/" in name_or_path:
        return path
    raise RequestError(
        f"sheet {name_or_path!r} not found{nearest(name_or_path, list(known))}",
        hint="list the sheets with ajuste course list",
    )


def read_sheet(path: Path) -> Sheet:
    """Return the sheet in a file. Raises one RequestError with all that is wrong, with file, line and field."""
    document, source = read_toml(path, "sheet", "list the sheets with `ajuste course list`", fields=_HINT)
    return parse_sheet(document, source)


def parse_sheet(document: dict[str, Any], source: StudySource | None = None) -> Sheet:
    """Return the sheet of a document. Raises RequestError."""
    try:
        return Sheet.model_validate(document)
    except ValidationError as failure:
        problems = from_validation(failure, Sheet) or [Problem((), str(failure))]
        raise error(problems, source) from None


def filled(value: Any, drawn: Mapping[str, tuple[str | int | float, ...]]) -> Any:
    """Return a document with its placeholders, as in ``"{size}"``, filled with what was drawn.

    A text that is one placeholder becomes the value itself; an element of a list becomes all values.
    """
    if isinstance(value, dict):
        return {name: filled(inner, drawn) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [each for inner in value for each in _elements(inner, drawn)]
    if not isinstance(value, str):
        return value
    if (whole := _PLACEHOLDER.fullmatch(value)) and whole[1] in drawn:
        return drawn[whole[1]][0] if len(drawn[whole[1]]) == 1 else list(drawn[whole[1]])
    return _PLACEHOLDER.sub(lambda match: _words(match, drawn), value)


def _elements(value: Any, drawn: Mapping[str, tuple[str | int | float, ...]]) -> list[Any]:
    replaced = filled(value, drawn)
    return replaced if isinstance(value, str) and isinstance(replaced, list) else [replaced]


def _words(match: re.Match[str], drawn: Mapping[str, tuple[str | int | float, ...]]) -> str:
    return ", ".join(map(str, drawn[match[1]])) if match[1] in drawn else match[0]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value
