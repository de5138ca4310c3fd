"""What a bisection did and found, as one document."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from ajuste.design.bisection import Outcome
from ajuste.model.verdict import Verdict

Kind = Literal["versions", "options", "revisions"]


class Step(BaseModel):
    """One candidate against the good end. ``verdict`` and ``run`` are there if it was measured, ``report`` is the file
    of its report; ``note`` says why it could not be.
    """

    model_config = ConfigDict(frozen=True)
    candidate: str
    kernel: str = ""
    outcome: Outcome
    verdict: Verdict | None = None
    run: str = ""
    report: str = ""
    note: str = ""


class Found(BaseModel):
    """``culprits`` are the versions or revisions with one of which the difference came, oldest first, or the options
    that together make it. ``good`` is known not to have it, ``among`` is how many candidates there were. The first of
    ``steps`` is the bad end.
    """

    model_config = ConfigDict(frozen=True)
    kind: Kind
    study: str
    metric: str
    good: str
    bad: str
    among: int
    steps: tuple[Step, ...]
    culprits: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    @property
    def is_certain(self) -> bool:
        """Whether there is nothing that could not be told and might be to blame instead."""
        if self.kind == "options":
            return all(step.outcome in ("there", "absent", "impossible") for step in self.steps)
        return len(self.culprits) == 1

    def answer(self) -> str:
        """In a sentence."""
        if self.kind == "options":
            named = ", ".join(self.culprits)
            text = f"Of {self.among} options that differ it takes {named}, and no fewer, to make the difference"
            if self.is_certain:
                return f"{text}."
            return f"{text}; as some steps could not be told, a smaller set may do it too."
        before = f"{self.good} does not have it yet"
        if len(self.culprits) == 1:
            return f"The difference came with {self.culprits[0]} (of {self.among} {self.kind}; {before})."
        named = ", ".join(self.culprits)
        return f"The difference came with one of {named}: what lies between could not be told ({before})."
