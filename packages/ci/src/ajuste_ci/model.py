"""The findings of a gate on two revisions: whether a figure became worse by more than its limit. The findings of a
history: where it changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from pydantic import Field

from ajuste.model.base import BaseModel
from ajuste.model.results import Clock
from ajuste_stats.terms import Direction, LimitWord, Scale

# Verdict on one figure: `failed` where it was not measured; a benchmark of a harness is `new` or `removed` where only
# the head or the base has it.
GateWord = Literal["pass", "regression", "undecided", "failed", "new", "removed"]

QUIET: Final[frozenset[GateWord]] = frozenset(("pass", "new", "removed"))
"""Verdicts that are no reason to look at a benchmark."""

# Meaning of an undecided figure for the exit code.
Policy = Literal["pass", "fail"]

OF_LIMIT: Final[dict[LimitWord, GateWord]] = {"beyond": "regression", "within": "pass", "undecided": "undecided"}


# Digits of a short commit.
SHORT: Final = 12


class GrownFunction(BaseModel):
    """A function with more instructions in the head: ``more`` of them, ``of`` all additional ones."""

    name: str
    more: int
    of: int


class GrownCall(BaseModel):
    """A system call that is made more often in the head."""

    name: str
    base: int
    head: int


class ProjectCommit(BaseModel):
    """A commit with its ``subject`` and its ``date`` (YYYY-MM-DD); without a ``commit``: uncommitted changes."""

    commit: str
    date: str = ""
    subject: str = ""

    @property
    def short(self) -> str:
        """Return the commit's first digits, as many as identify it."""
        return self.commit[:SHORT]


class GateFigure(BaseModel):
    """A metric of one benchmark. ``base`` and ``head`` are typical figures, on the scale of ``estimate``, which is as
    ``low`` and ``high`` are in a verdict: a ratio to the base, or a difference in ``unit`` where ``scale`` says so.
    ``limit`` is a share of the base. ``digest`` is of all trials, ``run`` where the store has them, ``line`` where the
    benchmark stands in the project file. ``culprits`` are the commits with one of which a regression came, if they were
    searched for: a single one, unless some could not be judged. With ``layouts`` each of ``blocks`` is a build. Of a
    reproducer it is what a study ``expected`` and what was ``found``, without a change and a limit.
    """

    name: str
    metric: str
    unit: str = ""
    direction: Direction = "lower"
    scale: Scale = "ratio"
    verdict: GateWord
    base: float | None = None
    head: float | None = None
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    limit: float = 0.0
    expected: str = Field(default="", exclude_if=lambda expected: not expected)
    found: str = Field(default="", exclude_if=lambda text: not text)
    blocks: int = 0
    layouts: bool = Field(default=False, exclude_if=lambda layouts: not layouts)
    clock: Clock | None = None
    run: str = ""
    digest: str = ""
    line: int | None = None
    functions: tuple[GrownFunction, ...] = ()
    calls: tuple[GrownCall, ...] = ()
    culprits: tuple[ProjectCommit, ...] = ()
    reason: str = ""


class GateRevision(BaseModel):
    """A revision: ``revision`` as it was named; empty for the working tree, whose ``commit`` is what it began from."""

    revision: str
    commit: str

    @property
    def label(self) -> str:
        """Return the revision's label for people."""
        short = self.commit[:SHORT]
        return short if self.revision == short else f"{self.revision or 'working tree'} ({short})"


class GateResult(BaseModel):
    """The result of a gate: ``file`` is the project file, relative to the repository. ``result`` is the worst of all
    figures.
    """

    result: GateWord
    file: str
    base: GateRevision
    head: GateRevision
    benchmarks: tuple[GateFigure, ...]

    def having(self, verdict: GateWord) -> tuple[GateFigure, ...]:
        """Return the figures with that verdict."""
        return tuple(benchmark for benchmark in self.benchmarks if benchmark.verdict == verdict)

    def exit_code(self, undecided: Policy) -> int:
        """Return the exit code: 0 passed, 3 a regression is proved, 1 something could not be measured, 4 undecided; the
        first that holds of 3, 1, 4.
        """
        codes: dict[GateWord, int] = {"pass": 0, "regression": 3, "undecided": 4 if undecided == "fail" else 0}
        return codes.get(self.result, 1)


class NoopFigure(BaseModel):
    """Counts of how often one metric of one benchmark was called changed, in ``runs`` gates of a revision against
    itself: ``changed`` where the interval does not contain 0 %, ``regressions`` where it lies beyond the ``limit``.
    ``low`` and ``high`` are Wilson's 95 % interval of the share of changes; ``too_often`` that chance alone would
    hardly give so many. ``largest`` is the estimate farthest from 0 %, as in ``GateFigure``. What was not measured has
    a ``reason``.
    """

    name: str
    metric: str
    unit: str = ""
    scale: Scale = "ratio"
    limit: float
    runs: int = 0
    changed: int = 0
    regressions: int = 0
    undecided: int = 0
    low: float = 0.0
    high: float = 1.0
    too_often: bool = False
    largest: float | None = None
    reason: str = ""


class NoopResult(BaseModel):
    """The gates of ``revision`` against itself. ``promised`` is the share of changes that verdicts may have at most."""

    file: str
    revision: GateRevision
    promised: float
    benchmarks: tuple[NoopFigure, ...]

    @property
    def exit_code(self) -> int:
        """Return 3 if a metric has too many false changes, 1 if one was not measured, otherwise 0."""
        if any(benchmark.too_often for benchmark in self.benchmarks):
            return 3
        return int(any(benchmark.reason for benchmark in self.benchmarks))


def worst(figures: Sequence[GateFigure]) -> GateWord:
    """Return the most serious result: a proved regression comes before an error or an undecided figure."""
    verdicts = {figure.verdict for figure in figures}
    order: tuple[GateWord, ...] = ("regression", "failed", "undecided", "pass")
    return next((word for word in order if word in verdicts), "pass")


class CommitPoint(BaseModel):
    """A metric of one commit in its unit; None where it could not be measured, for that ``reason``. ``low`` and
    ``high`` hold for all points together.
    """

    commit: ProjectCommit
    value: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""


class CommitChange(BaseModel):
    """A change point: ``change`` is the mean of the stretch that begins with the commit ``after`` against that of the
    stretch that ends with ``before``, a ratio or a difference as the history's ``scale`` says. ``between`` are the
    commits after the one up to the other: one of them made it.
    """

    before: ProjectCommit
    after: ProjectCommit
    change: float
    worse: bool
    between: tuple[ProjectCommit, ...]


class CommitHistory(BaseModel):
    """A metric of one benchmark over commits, the oldest first. ``known`` says whether there is enough to look for
    ``changes``; what is smaller than ``limit``, a share of the first commit's figure, is none.
    """

    name: str
    metric: str
    unit: str = ""
    direction: Direction = "lower"
    scale: Scale = "ratio"
    limit: float
    points: tuple[CommitPoint, ...]
    changes: tuple[CommitChange, ...] = ()
    known: bool = False
    blocks: int = 0
    clock: Clock | None = None
    run: str = ""
    digest: str = ""
    reason: str = ""


class HistoryResult(BaseModel):
    """The history of every metric of all benchmarks in the project ``file``."""

    file: str
    histories: tuple[CommitHistory, ...]

    @property
    def exit_code(self) -> int:
        """Return 0, or 1 if a benchmark could not be measured."""
        return int(any(history.reason for history in self.histories))
