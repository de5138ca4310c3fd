"""A trial: one execution of the workload under one configuration, with all that was seen of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from ajuste.model.base import BaseModel
from ajuste.model.event import Event, Written
from ajuste.model.tunable import Span

if TYPE_CHECKING:
    from ajuste.model.cost import Costs
    from ajuste.model.decision import Decisions

# Factors and configurations: what is varied, and one choice of it.


KERNEL_FACTOR = "kernel"
COMMAND_FACTOR = "command"
# Name of the factor whose levels speak for themselves: `vm.swappiness=10 nice=5`.
SETTINGS_FACTOR = "settings"


class Factor(BaseModel):
    """A tunable, process attribute, workload parameter (``workload.NAME``), ``kernel``, ``command``, or a name for
    several settings at once, with the levels under study.

    Levels are text as they are written, in the order given; ``baseline`` is one of them. ``span`` is the range of a
    numeric one that was given as a range. ``in_order`` says that each level is a later version of the one before.
    """

    name: str
    levels: tuple[str, ...] = Field(min_length=1)
    baseline: str
    span: Span | None = None
    in_order: bool = Field(default=False, exclude_if=lambda in_order: not in_order)

    @property
    def speaks_for_itself(self) -> bool:
        """Return whether its levels say what they are of, without its name."""
        return self.name in (COMMAND_FACTOR, SETTINGS_FACTOR)

    @property
    def has_versions(self) -> bool:
        """Return whether its levels may be versions, one after the other: what has a history."""
        return self.in_order or self.name == KERNEL_FACTOR


class Configuration(BaseModel):
    """A level for every factor, in the factors' order. ``name`` is unique in a study, e.g. ``nice=4
    base_slice_ns=3000000``. It is compared with the baseline, or with the one ``against``: the baseline of its level of
    the study's conditions.
    """

    name: str
    levels: dict[str, str]
    baseline: bool = False
    against: str = Field(default="", exclude_if=lambda against: not against)


@dataclass(frozen=True)
class Compared:
    """A configuration and the one that it is compared with."""

    name: str
    reference: str


def compared(configurations: Iterable[Configuration]) -> tuple[Compared, ...]:
    """Return what is compared: all configurations but the baseline of the study and those of its conditions."""
    made = tuple(configurations)
    baseline = next(c.name for c in made if c.baseline)
    references = {baseline, *(c.against for c in made)}
    return tuple(Compared(c.name, c.against or baseline) for c in made if c.name not in references)


Status = Literal["ok", "flagged", "failed"]


class Slot(BaseModel):
    """The place of a trial in the design: block (0 …), position in it (0 …), configuration and seed."""

    block: int
    position: int
    configuration: str
    seed: int
    warm_up: bool = False


class Trial(BaseModel):
    """A trial as it is stored. ``events`` are the agent's lines as they came, from which ``metrics`` were computed
    before long output was cut (see ``outputs.trial``).

    ``status``: *ok*; *flagged* (measured, but not cleanly: left out of the verdict, and repeated); *failed* (not
    measured).
    ``attempt`` counts the repetitions of one slot from 0. ``started`` and ``host_seconds`` are the host's time and
    are no part of a digest.
    """

    slot: Slot
    attempt: int = 0
    status: Status
    reason: str = ""
    metrics: dict[str, float] = Field(default_factory=dict)
    not_supported: dict[str, str] = Field(default_factory=dict)
    written: tuple[Written, ...] = ()
    events: str = ""
    console: str = ""
    started: str = ""
    host_seconds: float = 0.0


# What a target gives back for one plan.


@dataclass(frozen=True)
class Observation:
    """The agent's answer to a plan: ``lines`` are its event lines for this plan as they came, from ``accepted`` to
    ``end``; ``events`` the same, parsed.

    ``problem`` is empty when the stream is complete and well-formed (from ``accepted`` to an ``end`` that counts them
    all); otherwise it says in one line what went wrong: the guest panicked, hung, ended early, sent something
    malformed. A complete stream may still contain ``failed`` events. ``console`` is the end of the guest's console;
    ``host_seconds`` is the host's time from asking to answer and no part of what was measured. On a host ``console``
    says what else the machine did, and ``disturbances`` what of that makes the trial doubtful. ``costs`` and
    ``decisions`` are there where they were requested.
    """

    lines: str = ""
    events: tuple[Event, ...] = ()
    problem: str = ""
    console: str = ""
    disturbances: tuple[str, ...] = ()
    host_seconds: float = 0.0
    costs: Costs | None = None
    decisions: Decisions | None = None
