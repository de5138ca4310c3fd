"""Relevance: when a setting can matter at all, and what was seen that leaves it no chance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pydantic import Field, model_validator

from ajuste.model.base import BaseModel, ClosedModel
from ajuste.model.facet import Facet

if TYPE_CHECKING:
    from ajuste.model.trial import Factor

# Key of the findings of this kind in the environment of a run.
RELEVANCE: Final = "relevance"

# Number of CPUs or NUMA nodes that the machine has.
Fact = Literal["cpus", "nodes"]

_FIGURE: Final = re.compile(r"[a-z0-9]+:[A-Za-z0-9_.{}-]+")


class RelevanceCondition(ClosedModel):
    """A condition without which settings cannot matter. ``met`` follows *Matters if*, ``unmet`` says what was seen
    instead, in sentences that stand without a capital and a full stop; ``instead`` is what a person can do then.

    It is not met where one of these says so; what cannot be read says nothing:

    - ``fact``: the machine has one of them only.
    - ``file``, whose text ``holds`` (a regular expression) does not match anywhere.
    - ``figures``, groups of ``SOURCE:NAME``: nothing in one of the groups moved. Of a counter that means that it did
      not grow (by more than ``at_least`` per second, where that is given), of a level that it was 0 all the time. The
      first of a group must be there, the others where the kernel has them. ``{disk}`` and ``{interface}`` stand for
      those of the setting.
    - ``functions`` of the kernel: it has all of them, and none ran. They are all ways to the code that reads it.

    ``standing``: it is known before anything is measured. ``hardly``: without it a setting still does a little.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    met: str
    unmet: str
    instead: str
    fact: Fact | None = None
    file: str = Field(default="", pattern=r"^(/(proc|sys)/.*)?$")
    holds: str = ""
    figures: tuple[tuple[str, ...], ...] = ()
    at_least: float = Field(default=0.0, ge=0)
    functions: tuple[str, ...] = ()
    standing: bool = False
    hardly: bool = False

    @model_validator(mode="after")
    def _check_evidence(self) -> Self:
        if not (self.fact or self.file or self.figures or self.functions):
            raise ValueError("nothing says whether it is met; expected fact, file, figures or functions")
        if bool(self.file) != bool(self.holds):
            raise ValueError("file and holds belong together")
        for name in (name for group in self.figures for name in group):
            if not _FIGURE.fullmatch(name):
                raise ValueError(f"{name!r} is no figure; expected SOURCE:NAME")
        return self

    def fill_figures(self, parts: dict[str, str]) -> tuple[tuple[str, ...], ...]:
        """Return the groups for an instance with these parts, such as a disk, without those that name other parts."""
        named = [tuple(_filled(name, parts) for name in group) for group in self.figures]
        return tuple(group for group in named if not any("{" in name for name in group))

    @property
    def counters(self) -> tuple[str, ...]:
        """Return the names of all figures, without their sources, each once."""
        return tuple(dict.fromkeys(name.partition(":")[2] for group in self.figures for name in group))


def _filled(text: str, parts: dict[str, str]) -> str:
    for name, value in parts.items():
        text = text.replace(f"{{{name}}}", value)
    return text


class NoChance(BaseModel):
    """The reason why ``factor`` had no chance to matter: ``saw`` is what was seen, ``where`` it was looked for, and
    ``instead`` what a person can do. ``never_ran`` are functions of the kernel: all ways to the code that reads the
    setting. ``hardly``: it had hardly a chance, so that nothing is stopped for it.
    """

    factor: str
    saw: str
    where: str = ""
    instead: str = ""
    never_ran: tuple[str, ...] = ()
    hardly: bool = False

    @property
    def sentence(self) -> str:
        """Return the finding without a full stop: ``vm.swappiness had no chance to matter: no swap is on``."""
        return f"{self.factor} had {'hardly a' if self.hardly else 'no'} chance to matter: {self.saw}"

    @property
    def warning(self) -> str:
        """Return the sentences for a run that is still to be measured."""
        can = "can hardly" if self.hardly else "cannot"
        return f"{self.factor} {can} matter here: {self.saw}. To see an effect, {self.instead}."

    @property
    def note(self) -> str:
        """Return all of it, in sentences."""
        where = f" ({self.where})" if self.where else ""
        ran = f" The kernel never ran the code that reads it ({', '.join(self.never_ran)})." if self.never_ran else ""
        return f"{self.sentence}{where}.{ran} To see an effect, {self.instead}."


def read_no_chance(environment: Mapping[str, Any]) -> tuple[NoChance, ...] | None:
    """Return the findings in the ``environment`` of a run; None if nobody looked."""
    stored = environment.get(RELEVANCE)
    return None if stored is None else tuple(NoChance.model_validate(document) for document in stored)


def explains_all(findings: Sequence[NoChance], factors: Sequence[Factor]) -> tuple[NoChance, ...]:
    """Return the ``findings`` for the factors that vary, if none of these had a chance; nothing otherwise."""
    varied = [factor.name for factor in factors if len(factor.levels) > 1]
    by_factor = {finding.factor: finding for finding in findings if not finding.hardly}
    return tuple(by_factor[name] for name in varied) if varied and all(name in by_factor for name in varied) else ()


class GuestQuestion(ClosedModel):
    """A question that a guest cannot answer, for lack of what it asks about. ``tunables`` are names of the catalogue,
    or beginnings followed by ``*``; ``arguments`` are words of the kernel's command line, ``options`` of its
    configuration, likewise.

    ``answer``: *refused*, unless only ``counts`` of instructions decide; *labelled*, with a note in the result.
    ``clock``: under which clock that holds; both if it is empty.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    tunables: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    answer: Literal["refused", "labelled"]
    clock: Literal["virtual", "wall", ""] = ""
    counts: bool = False
    why: str
    instead: str


NO_CHANCE: Final = Facet[tuple[NoChance, ...]]("no_chance", tuple[NoChance, ...], (), always=False)
"""The factors that had no chance to matter, as far as no verdict says otherwise."""
