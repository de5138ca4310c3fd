"""A study as it would run: everything that ``ajuste plan`` shows, in words and as JSON."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ajuste.model.configuration import Factor
from ajuste.model.metric import Metric
from ajuste.model.plan import Sampler
from ajuste.model.results import Clock
from ajuste.model.trial import Slot


class _Planned(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlannedWrite(_Planned):
    """A value that would be written. ``where`` is the path (and flag) in the target; ``now`` what a host has there now,
    or why that cannot be said.
    """

    tunable: str
    where: str
    value: str
    now: str = ""


class PlannedCommand(_Planned):
    """A program that would run. ``attributes`` are nice, policy, affinity and the like, as text; ``count`` copies.
    ``user`` is whose process it would be on a host.
    """

    role: str
    argv: tuple[str, ...] = Field(min_length=1)
    attributes: dict[str, str] = Field(default_factory=dict)
    environment: dict[str, str] = Field(default_factory=dict)
    directory: str = "/"
    user: str = ""
    count: int = Field(default=1, ge=1)


class PlannedConfiguration(_Planned):
    """What one configuration writes and runs; ``target`` only where it is not the study's (another kernel), and
    ``kernel_arguments`` beside the study's; ``modules`` are those of Ajuste's own.
    """

    name: str
    levels: dict[str, str]
    baseline: bool = False
    target: str = ""
    kernel_arguments: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    writes: tuple[PlannedWrite, ...] = ()
    commands: tuple[PlannedCommand, ...] = ()


class PlannedBudget(_Planned):
    """Blocks that are run at least and at most, and minutes at most (``None``: no limit)."""

    min_blocks: int
    max_blocks: int
    max_minutes: float | None = None


class PlannedNeed(_Planned):
    """About how many ``blocks`` tell the smallest effect that matters from none, where single runs scatter by
    ``run_percent``; ``None`` where it takes more than can be told.
    """

    run_percent: float
    blocks: int | None


class PlannedStudy(_Planned):
    """``target`` describes in a line where trials would run. ``trials`` are those of the first blocks, in order;
    later blocks are drawn in the same way from ``seed``. ``once`` is what runs before the first and after the last
    trial. ``design`` says in sentences how they are ordered. ``units`` are the factors' units, where they have one.
    """

    schema_version: int = 1
    study: str
    title: str
    question: str
    target: str
    clock: Clock
    seed: int
    factors: tuple[Factor, ...]
    units: dict[str, str] = Field(default_factory=dict)
    configurations: tuple[PlannedConfiguration, ...]
    once: tuple[PlannedCommand, ...] = ()
    trials: tuple[Slot, ...]
    design: str = ""
    budget: PlannedBudget
    warm_up_blocks: int = 0
    timeout_s: float
    settle_s: float = 0.0
    samplers: tuple[Sampler, ...] = ()
    observe_s: float = 0.0
    deciding: tuple[Metric, ...]
    described: tuple[Metric, ...] = ()
    counters: tuple[str, ...] = ()
    level: float
    smallest_effect: float
    correction: str = ""
    needed: tuple[PlannedNeed, ...] = ()
    notes: tuple[str, ...] = ()
