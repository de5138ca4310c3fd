"""A suite: several workloads as one experiment over the same configurations, and what came of it."""

from __future__ import annotations

from typing import Final, Literal

from ajuste.model.base import BaseModel
from ajuste.model.results import Clock, Results
from ajuste_stats.terms import Direction, Word

# Prefix of the names and ids of suites, which are kept beside runs.
PREFIX: Final = "suite-"


class SuiteEntry(BaseModel):
    """A member as it is kept: its ``run``, or the ``reason`` why it has none. ``failed`` while it was measured, not
    before. Both are empty as long as it was not measured.
    """

    name: str
    run: str = ""
    reason: str = ""
    failed: bool = False


class SuiteRecord(BaseModel):
    """The record of a suite. ``question`` is a digest of all that was asked, ``named`` the command as it was typed,
    ``level`` the confidence of all verdicts together. It is ``finished`` once no member is left to be measured.
    """

    id: str
    name: str
    title: str
    question: str
    named: str
    created: str
    level: float
    finished: bool = False
    entries: tuple[SuiteEntry, ...] = ()

    def with_entry(self, entry: SuiteEntry) -> SuiteRecord:
        """Return the record with the current ``entry`` of that member."""
        entries = tuple(entry if member.name == entry.name else member for member in self.entries)
        return self.model_copy(update={"entries": entries})


class SuiteMember(BaseModel):
    """A member of a suite; ``metrics`` are the names of its metrics in the results of the suite, the one that counts in
    a mean first.
    """

    name: str
    run: str = ""
    reason: str = ""
    metrics: tuple[str, ...] = ()
    clock: Clock | None = None
    blocks: int = 0
    stopped: str = ""
    digest: str = ""


class SuiteMean(BaseModel):
    """The geometric mean of the ratios of ``members`` to the baseline. It is in the interval of ``low`` and ``high``
    whenever each of them is in its own, so it needs no confidence of its own.
    """

    configuration: str
    direction: Direction
    members: tuple[str, ...]
    estimate: float
    low: float | None
    high: float | None
    verdict: Word


class SuiteResult(BaseModel):
    """The result of a suite: ``results`` have the deciding metrics of all members, without single trials.
    ``comparisons`` are all that hold together at the level of the results. ``state`` is ``partial`` as long as members
    are left to be measured.
    """

    id: str
    name: str
    state: Literal["complete", "partial"]
    comparisons: int
    members: tuple[SuiteMember, ...]
    means: tuple[SuiteMean, ...]
    results: Results
