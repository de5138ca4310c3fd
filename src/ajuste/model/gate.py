"""What a gate says of two revisions: whether a figure became worse by more than its limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from ajuste.model.metric import Direction, Scale
from ajuste.model.results import Clock
from ajuste.model.verdict import LimitWord

GateWord = Literal["pass", "regression", "undecided", "failed"]
"""Of one figure: ``failed`` where it was not measured."""

Policy = Literal["pass", "fail"]
"""What an undecided figure means for the exit code."""

OF_LIMIT: Final[dict[LimitWord, GateWord]] = {"beyond": "regression", "within": "pass", "undecided": "undecided"}


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class GrownFunction(_Frozen):
    """A function that carries out more instructions in the head: so many ``more``, ``of`` all that were added."""

    name: str
    more: int
    of: int


class GrownCall(_Frozen):
    """A system call that is made more often in the head."""

    name: str
    base: int
    head: int


class GateFigure(_Frozen):
    """One metric of one benchmark. ``base`` and ``head`` are means; ``estimate``, ``low`` and ``high`` as in a verdict:
    ratios to the base, or differences in ``unit`` where ``scale`` says so. ``limit`` is a share of the base. ``digest``
    is of all trials, ``run`` is where the store has them. ``line`` is where the benchmark stands in the project file.
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
    limit: float
    blocks: int = 0
    clock: Clock | None = None
    run: str = ""
    digest: str = ""
    line: int | None = None
    functions: tuple[GrownFunction, ...] = ()
    calls: tuple[GrownCall, ...] = ()
    reason: str = ""


class GateRevision(_Frozen):
    """``revision`` as it was named; empty for the working tree, whose ``commit`` is what it began from."""

    revision: str
    commit: str

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.revision or 'working tree'} ({self.commit[:12]})"


class GateResult(_Frozen):
    """``file`` is the project file, relative to the repository. ``result`` is the worst of all figures."""

    result: GateWord
    file: str
    base: GateRevision
    head: GateRevision
    benchmarks: tuple[GateFigure, ...]

    def having(self, verdict: GateWord) -> tuple[GateFigure, ...]:
        """The figures with that verdict."""
        return tuple(one for one in self.benchmarks if one.verdict == verdict)

    def exit_code(self, undecided: Policy) -> int:
        """0 passed, 3 a regression is proved, 4 undecided, 1 something could not be measured."""
        codes: dict[GateWord, int] = {"pass": 0, "regression": 3, "undecided": 4 if undecided == "fail" else 0}
        return codes.get(self.result, 1)


def worst(figures: Sequence[GateFigure]) -> GateWord:
    """What counts most: what could not be measured, then what is worse, then what is not known."""
    said = {one.verdict for one in figures}
    order: tuple[GateWord, ...] = ("failed", "regression", "undecided", "pass")
    return next((word for word in order if word in said), "pass")
