"""Verdicts: what the analysis says of one configuration against the baseline on one metric."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import Field

from ajuste.model.base import BaseModel
from ajuste.model.facet import Facet
from ajuste.model.wording import block_words, change, count_of, percent
from ajuste_stats.terms import SEEN, Direction, LimitWord, Scale, Word

EXTREME: Final = 10.0
UNSEEN_COST: Final = 0.25
"""Slowdown of the trials that were not seen, as a share; a gain that survives it is not in doubt."""


def is_extreme(ratio: float | None) -> bool:
    """Return whether a figure changed more than ten times: it alone would decide a geometric mean of several."""
    return ratio is not None and not 1 / EXTREME <= ratio <= EXTREME


class Finding(BaseModel):
    """The finding of one comparison on one metric.

    ``estimate``, ``low`` and ``high`` are ratios, or differences in ``unit`` where ``scale`` says so.
    They are ``None`` where too little is known for a number (``low``/``high`` = None: unbounded on that side).
    ``level`` is the confidence of the whole family, e.g. 0.95; ``blocks`` how many complete blocks it rests on;
    ``more_blocks`` about how many more would decide it (only of what is open). With ``of_rounds`` both count rounds of
    boots. ``reason`` is a plain sentence.
    ``precise`` says whether the interval is as narrow as was asked for, if that was; until then it stays open.
    ``deciding`` is False for what is only described and does not keep the study going. What ``depends_on_machine`` is
    undecided for good: two machines certainly say different things. ``against_limit`` is there where a study decides
    whether a limit is exceeded. ``unseen`` is the largest share of all trials that so few blocks may have missed.
    ``old`` and ``new`` are the typical figures under the baseline and otherwise, on the same scale as the estimate.
    ``means_disagree``: arithmetic means lie on the other side of no effect than typical trials. ``few_trials``: the
    interval lies within the zone of equivalence, and only the number of trials is lacking. What is ``too_coarse`` is
    undecided for good: the steps of the figures hide more than the verdict needs. What ``reverses`` improves at once,
    is certainly no gain when it stays, and is undecided for good.
    """

    metric: str
    unit: str
    direction: Direction
    scale: Scale
    verdict: Word
    estimate: float | None
    low: float | None
    high: float | None
    level: float
    blocks: int
    more_blocks: int | None = None
    of_rounds: bool = Field(default=False, exclude_if=lambda of_rounds: not of_rounds)
    deciding: bool = True
    depends_on_machine: bool = False
    precise: bool | None = Field(default=None, exclude_if=lambda precise: precise is None)
    against_limit: LimitWord | None = Field(default=None, exclude_if=lambda word: word is None)
    unseen: float | None = Field(default=None, exclude_if=lambda unseen: unseen is None)
    old: float | None = Field(default=None, exclude_if=lambda old: old is None)
    new: float | None = Field(default=None, exclude_if=lambda new: new is None)
    means_disagree: bool = Field(default=False, exclude_if=lambda disagree: not disagree)
    few_trials: bool = Field(default=False, exclude_if=lambda few: not few)
    too_coarse: bool = Field(default=False, exclude_if=lambda coarse: not coarse)
    reverses: bool = Field(default=False, exclude_if=lambda reverses: not reverses)
    reason: str

    @property
    def effect(self) -> str:
        """Return the estimate as people say it: ``−12.3 %``, ``+0.2 ms``; ``?`` where there is none."""
        return change(self.estimate, self.scale, self.unit)

    @property
    def interval(self) -> str:
        """Return the interval in words: ``−13 % to −11 %``; ``?`` on a side without a bound."""
        return " to ".join(change(bound, self.scale, self.unit, like=self.estimate) for bound in (self.low, self.high))

    @property
    def size(self) -> float:
        """Return the distance of the effect from none, in either direction: a key to sort by on one metric."""
        if self.estimate is None or not math.isfinite(self.estimate):
            return 0.0
        is_ratio = self.scale == "ratio" and self.estimate > 0
        return max(self.estimate, 1 / self.estimate) if is_ratio else abs(self.estimate)

    @property
    def is_open(self) -> bool:
        """Return whether more blocks can be of use: undecided, or decided but not as precise as was asked for."""
        for_good = self.depends_on_machine or self.too_coarse or self.reverses
        return not for_good and (self.is_undecided or self.precise is False)

    @property
    def is_undecided(self) -> bool:
        """Return whether what the study decides is not known yet."""
        return (self.against_limit or self.verdict) == "undecided"

    @property
    def is_within_limit(self) -> bool:
        """Return whether a limit was asked for and is certainly kept, and nothing else is known."""
        return self.against_limit == "within" and self.verdict == "undecided"

    def within_limit(self, limit: float) -> str:
        """Return ``at most 1 % worse`` where that is all that was asked and is known; else nothing."""
        if not self.is_within_limit:
            return ""
        return f"at most {percent(limit)} {'different' if self.direction == 'none' else 'worse'}"

    @property
    def about_more(self) -> str:
        """Return ``about 12 more blocks``, ``about 1 more round of boots``; empty where it is none, or unknown."""
        return f"about {block_words(self.more_blocks, 'more ', of_rounds=self.of_rounds)}" if self.more_blocks else ""

    @property
    def cannot_see(self) -> str:
        """Describe what the blocks cannot see, in a sentence; empty where that is not known."""
        return self.cannot_see_beyond("build to build")

    def cannot_see_beyond(self, replicates: str) -> str:
        """Describe the same where all trials share what differs from one of ``replicates`` to the next."""
        if self.unseen is None:
            return ""
        share = percent(round(self.unseen, 2) if self.unseen >= 0.01 else float(f"{self.unseen:.1g}"))
        return f"{self.counted} cannot show what happens in fewer than {share} of trials, or differs from {replicates}."

    @property
    def counted(self) -> str:
        """Return how many blocks it rests on, in words."""
        return block_words(self.blocks, of_rounds=self.of_rounds)

    @property
    def is_typical(self) -> str:
        """Say that a gain is that of typical trials, where those that were not seen may cost as much; else nothing.

        They may if it takes no more than to be worse by ``UNSEEN_COST``.
        """
        if self.verdict != "improves" or self.scale != "ratio" or not self.size or (self.unseen or 0.0) <= SEEN:
            return ""
        unseen, gain = self.unseen or 0.0, 1 - 1 / self.size
        if gain * (1 - unseen) > unseen * UNSEEN_COST:
            return ""
        return f"That is typical: {self.counted} can miss much worse trials, up to {percent(round(unseen, 2))} of all."

    @property
    def subject(self) -> str:
        """Return what is compared, in a word or two."""
        raise NotImplementedError


class Verdict(Finding):
    """A configuration against the baseline, from the blocks that have a clean trial of both; or ``against`` the
    baseline at its own level of the study's conditions, such as a load.

    Data that were measured elsewhere, and whose size is fixed, have a ``p_value`` (two-sided, of no difference, before
    any correction) and, if they are in no blocks, how many ``values`` baseline and configuration have. ``typical`` is
    the change of the median where ranks differ and means are undecided.
    """

    configuration: str
    against: str = Field(default="", exclude_if=lambda against: not against)
    values: tuple[int, int] | None = None
    p_value: float | None = None
    typical: float | None = Field(default=None, exclude_if=lambda typical: typical is None)

    @property
    def subject(self) -> str:
        return self.configuration

    @property
    def counted(self) -> str:
        return super().counted if self.values is None else count_of(min(self.values), "value")


class Ranked(Finding):
    """A configuration against the winner of a ranking, from the blocks that have a clean trial of both. *worsens* is
    worse than the best for certain, *equivalent* as good for all that matters, *undecided* may be as good or better.
    """

    configuration: str

    @property
    def subject(self) -> str:
        return self.configuration


class Ranking(BaseModel):
    """The ranking of all configurations on one metric. ``contenders`` cannot be distinguished from the ``winner``,
    which is the first of them; ``others`` are all but the winner, the best first. The best is one of the contenders
    with confidence ``level``, on all metrics together; intervals are those of so many ``comparisons``, as of the
    verdicts. With ``reference``, the baseline at a level of the study's conditions, only configurations at that level
    are ranked. ``looks`` is the winner's effect against the baseline and
    ``expected`` the rest of it without the luck that made it win, as ratios or differences in ``unit`` (``scale``);
    ``None`` where the baseline wins, or that luck is small.
    """

    metric: str
    reference: str = Field(default="", exclude_if=lambda reference: not reference)
    winner: str
    contenders: tuple[str, ...]
    others: tuple[Ranked, ...]
    level: float
    comparisons: int
    looks: float | None = Field(default=None, exclude_if=lambda looks: looks is None)
    expected: float | None = Field(default=None, exclude_if=lambda expected: expected is None)
    scale: Scale = Field(default="ratio", exclude_if=lambda scale: scale == "ratio")
    unit: str = Field(default="", exclude_if=lambda unit: not unit)

    @property
    def luck(self) -> str:
        """Describe how much of the winner's effect is luck, in a sentence; empty where it is little."""
        if self.looks is None or self.expected is None:
            return ""
        looks, expected = (change(value, self.scale, self.unit) for value in (self.looks, self.expected))
        return (
            f"As the best of {len(self.others) + 1}, it may owe part of its {looks} against the baseline to luck: "
            f"shrunk towards their mean it is {expected}."
        )


class FactorEffect(Finding):
    """The effect of a factor, averaged over the levels of all others, or how much it depends on another one.

    A ``main`` effect is that of its factor's level in ``levels`` against that in ``against``. An ``interaction`` is how
    much the effect of the first factor at the second level of ``levels`` differs from that at the second of
    ``against``: a ratio of ratios, or a difference of differences. ``blocks`` are those with a clean trial of every
    configuration.
    """

    kind: Literal["main", "interaction"]
    factors: tuple[str, ...]
    levels: tuple[str, ...]
    against: tuple[str, ...]

    @property
    def subject(self) -> str:
        steps = zip(self.factors, self.against, self.levels, strict=True)
        return " × ".join(f"{factor} {old} → {new}" for factor, old, new in steps)


# Role of a line of a profile for the workload: `matters` where the metric has no better, `depends` where it does
# nothing on the whole and yet something with or without the other lines.
Role = Literal["helps", "harms", "matters", "depends", "useless", "undecided"]


class Bounds(BaseModel):
    """An estimate with its interval, as in ``Finding``."""

    estimate: float | None = None
    low: float | None = None
    high: float | None = None


class LineEffect(Finding):
    """The effect of one line of a profile, of ``kind`` ``line``, or all of them together, of kind ``whole``.

    The figures of a line are its share of what the whole does: its Shapley value, which for a ratio is a factor of the
    whole's ratio; ``part`` is it as a part of the whole on the scale of the intervals, where the whole certainly does
    something. ``alone`` is the line by itself against nothing, ``last`` the whole against the whole without it, and
    ``between`` how much ``last`` differs from ``alone``. ``sets`` are the tunables with their levels.
    """

    kind: Literal["line", "whole"]
    line: str
    role: Role
    sets: dict[str, str] = {}
    part: float | None = None
    alone: Bounds = Bounds()
    last: Bounds = Bounds()
    between: Bounds = Bounds()
    remark: str = ""

    @property
    def subject(self) -> str:
        return self.line


class FactorCell(BaseModel):
    """A metric at a level each of two factors, averaged over all others, against the cell of both baselines: a ratio or
    a difference as ``scale`` says, with an interval as wide as those of the effects.
    """

    metric: str
    factors: tuple[str, str]
    levels: tuple[str, str]
    scale: Scale
    estimate: float | None
    low: float | None
    high: float | None


# What makes a command of a script fail.


@dataclass(frozen=True)
class FailCondition:
    """The condition ``text`` as it was given: a configuration worsens on one of ``metrics``, by more than ``limit`` (a
    share of the baseline) if there is one.
    """

    text: str
    metrics: tuple[str, ...]
    limit: float | None = None


# Effects by machine, where a run was measured on several: whether one answer is right for all of them.


# *alike*: no difference is seen. *differ*: how large the effect is depends on the machine. *depends*: so does what the
# verdict would be. *unknown*: too few blocks on more than one machine to tell.
Agreement = Literal["alike", "differ", "depends", "unknown"]


class MachineEffect(BaseModel):
    """The effect in the ``blocks`` of one machine, as in ``Finding``. ``verdict`` is the machine's own; its interval is
    so wide that those of all machines hold together.
    """

    machine: str
    blocks: int
    verdict: Word
    estimate: float | None
    low: float | None
    high: float | None


class AcrossMachines(BaseModel):
    """A comparison of a configuration's effects on a metric across machines. ``p_value`` is of "the same on all": None
    for a quantile, and where a machine has too few blocks. ``says`` is a sentence.
    """

    configuration: str
    metric: str
    unit: str
    scale: Scale
    machines: tuple[MachineEffect, ...]
    p_value: float | None
    agreement: Agreement
    says: str


RANKINGS: Final = Facet[tuple[Ranking, ...]]("rankings", tuple[Ranking, ...], ())

EFFECTS: Final = Facet[tuple[FactorEffect, ...]]("effects", tuple[FactorEffect, ...], ())
"""The effects of the factors, where combinations of several were tried."""

EFFECTS_CORRECTION: Final = Facet[str]("effects_correction", str, "")
"""The correction of these effects, or of those of a profile's lines: a family of their own."""

LINES: Final = Facet[tuple[LineEffect, ...]]("lines", tuple[LineEffect, ...], ())
"""The effects of the lines of a profile that was taken apart, the whole first."""

CELLS: Final = Facet[tuple[FactorCell, ...]]("cells", tuple[FactorCell, ...], ())
"""The interactions of a full factorial."""

MACHINES: Final = Facet[tuple[AcrossMachines, ...]]("machines", tuple[AcrossMachines, ...], ())
"""The effects on several machines compared, where blocks were shared out among them."""
