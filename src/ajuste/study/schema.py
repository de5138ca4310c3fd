"""The study file as data: every table and field of it, with what each may be.

Names are checked here for form only; whether a tunable, workload or metric exists is ``study.check``'s to say, and
whether a kernel has it is ``study.resolve``'s.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    Strict,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from ajuste.design.combinations import Combine
from ajuste.model.configuration import KERNEL_FACTOR
from ajuste.model.error import Place, RequestError
from ajuste.model.metric import Direction, Scale
from ajuste.model.plan import Policy, SamplerSource
from ajuste.model.results import DEFAULT_INSTRUCTION_NS, Clock, InstructionNs
from ajuste.study.cpus import parse_cpus
from ajuste.study.source import Origin

Whole = Annotated[int, Strict()]
Real = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Switch = Annotated[bool, Strict()]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$", max_length=80)]


def level_text(value: Any) -> str:
    """A level as text, as it is written to the kernel: ``true`` is ``1``."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError("expected a number, a text, true or false")


def _cpus_text(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, list | tuple) and value and all(type(v) is int for v in value):
        value = ",".join(map(str, value))
    parse_cpus(value if isinstance(value, str) else repr(value))
    return str(value)


_LEVEL_SCHEMA = {"type": ["integer", "number", "string", "boolean"]}
_CPUS_SCHEMA = {
    "anyOf": [
        {"type": "string", "pattern": r"^\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*$"},
        {"type": "integer", "minimum": 0},
        {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
    ]
}
Level = Annotated[str, BeforeValidator(level_text), WithJsonSchema(_LEVEL_SCHEMA)]
Cpus = Annotated[str, BeforeValidator(_cpus_text), WithJsonSchema(_CPUS_SCHEMA)]
Levels = Annotated[
    tuple[Level, ...],
    BeforeValidator(lambda value: value if isinstance(value, list | tuple) else (value,)),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [_LEVEL_SCHEMA, {"type": "array", "items": _LEVEL_SCHEMA, "minItems": 1}]}),
]
Argument = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
Argv = Annotated[tuple[Argument, ...], Field(min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class FactorTable(_Table):
    """One thing that is varied."""

    name: str = Field(
        description="A tunable of the catalogue (ajuste tunables), a process attribute (nice, policy, affinity, "
        'cgroup_weight), "kernel", "command" (the workload\'s variants), or "workload." and one of the workload\'s '
        "parameters. With settings: any name."
    )
    levels: tuple[Level, ...] = Field(min_length=1, description="The values under study, in the order to be shown.")
    settings: dict[str, dict[str, Level]] = Field(
        default_factory=dict,
        description="For a factor that sets several things at once: for each level, by its name, what it sets: "
        "tunables, process attributes, workload parameters, and kernel_arguments (words for the kernel's command "
        "line). The levels are those of settings if they are not given.",
    )
    baseline: Level | None = Field(
        default=None, description="The level that the others are compared with; the first one if not given."
    )
    successor: Switch = Field(
        default=False,
        description="On a kernel without this tunable, vary its named successor instead (a related but different "
        "tunable) and name it as such everywhere.",
    )

    @model_validator(mode="before")
    @classmethod
    def _levels_of_settings(cls, data: Any) -> Any:
        if isinstance(data, dict) and "levels" not in data and isinstance(data.get("settings"), dict):
            return {**data, "levels": list(data["settings"])}
        return data

    @model_validator(mode="after")
    def _settings_for_every_level(self) -> Self:
        if self.settings and set(self.settings) != set(self.levels):
            raise ValueError("settings must say for each of the levels, and only for these, what it sets")
        return self

    @property
    def baseline_level(self) -> str:
        return self.levels[0] if self.baseline is None else self.baseline


class AttributesTable(_Table):
    """How a process is run. What is not given is left as the kernel would have it."""

    nice: Whole | None = Field(default=None, ge=-20, le=19, description="−20 (most favoured) to 19 (least).")
    policy: Policy | None = Field(default=None, description="The scheduling policy.")
    priority: Whole | None = Field(
        default=None, ge=1, le=99, description="The real-time priority, for the policies fifo and rr; 1 if not given."
    )
    affinity: Cpus | None = Field(default=None, description='The CPUs it may run on: "0", "0,2" or "0-3".')
    cgroup_weight: Whole | None = Field(
        default=None,
        ge=1,
        le=10000,
        description="cpu.weight of a control group of its own; the kernel's default is 100.",
    )


class PatternTable(_Table):
    """A metric read from the output of a command of one's own."""

    name: Name = Field(description="Lower-case letters, digits and hyphens.")
    pattern: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="A Python regular expression that is sought in each line; its first group is the number. The last "
        "line that matches counts.",
    )
    pointer: str | None = Field(
        default=None,
        max_length=500,
        description="Instead of a pattern: a JSON pointer (RFC 6901) such as /jobs/0/read/iops into the one JSON "
        "document that the command prints.",
    )
    unit: str = Field(default="", description="As it is to be shown; none for a count.")
    direction: Direction = Field(description="Which is better: lower, higher, or none of them.")
    title: str = Field(default="", description="As it is to be shown; the name if not given.")
    scale: Scale = Field(
        default="ratio", description="Compare by ratios (always positive) or by differences (can be 0 or negative)."
    )
    resolution: Real = Field(default=0.0, ge=0, description="The smallest step of the printed figure, in the unit.")
    stream: Literal["stdout", "stderr"] = Field(default="stdout", description="Where the command prints it.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.pattern is None) == (self.pointer is None):
            raise ValueError('expected either pattern = "…" or pointer = "/…", and not both')
        return self


class SamplerTable(_Table):
    """Figures of the system that are read again and again while the workload runs."""

    source: SamplerSource = Field(
        description="vmstat, meminfo, diskstats, schedstat, pressure, softirqs, interrupts, stat, or process (the "
        "workload's own)."
    )
    keys: tuple[Argument, ...] = Field(
        min_length=1, description="Names of figures, or beginnings of them followed by *. See docs/samplers.md."
    )
    interval_ms: Real = Field(default=100.0, ge=1, le=60_000, description="Milliseconds from one reading to the next.")


class TimelineTable(_Table):
    """A metric computed from the figures of a sampler."""

    name: Name = Field(description="Lower-case letters, digits and hyphens.")
    source: SamplerSource = Field(description="The sampler that has it.")
    key: str = Field(description="The figure.")
    take: Literal["delay", "growth", "rate", "mean", "maximum", "minimum", "last"] = Field(
        description="delay: seconds until fraction of the figure's whole growth has happened; growth: from the first "
        "to the last reading; rate: growth by second; mean, maximum, minimum, last: of the readings."
    )
    fraction: Real = Field(default=0.9, gt=0, le=1, description="For delay.")
    since: Literal["start", "end"] = Field(
        default="start", description="Readings count from the workload's start, or from its end."
    )
    unit: str = Field(default="", description="As it is to be shown; s for a delay.")
    direction: Direction = Field(description="Which is better: lower, higher, or none of them.")
    title: str = Field(default="", description="As it is to be shown; the name if not given.")
    scale: Scale = Field(default="ratio", description="Compare by ratios or by differences.")


class VariantTable(_Table):
    """One of several commands that are compared: a level of the factor "command"."""

    name: str = Field(min_length=1, max_length=200, description="As it is to be shown.")
    command: Argv = Field(description="A program and its arguments, run without a shell.")


class ScratchTable(_Table):
    """A file system that is made for every trial, is the workload's working directory, and is gone afterwards."""

    filesystem: Name = Field(default="ext4", description="Its type; mkfs.TYPE must be on this machine.")
    size_mib: Whole = Field(default=256, ge=8, le=1048576, description="Its size, if no device is given.")
    device: str | None = Field(
        default=None,
        description="A block device that may be overwritten; a file of its own behind a loop device if not.",
    )
    directory: str | None = Field(
        default=None, description="Where that file is made: on the disk that is to be measured."
    )
    make_options: tuple[Argument, ...] = Field(default=(), description="More arguments for mkfs.")
    options: dict[str, Level] = Field(
        default_factory=dict, description="Values of the catalogue's fs.* tunables, such as block_size or data."
    )
    mount_options: str = Field(default="", description="More mount options, separated by commas.")


class _Job(_Table):
    kind: str | None = Field(default=None, description="A workload of the catalogue.")
    command: Argv | None = Field(
        default=None,
        description="Instead of kind: a program and its arguments, run without a shell. A program with a slash that is "
        "not absolute is a file beside the study.",
    )
    parameters: dict[str, Level] = Field(
        default_factory=dict, description="Parameters of the kind; those not given have their defaults."
    )
    attributes: AttributesTable = Field(default=AttributesTable(), description="How it is run.")

    @model_validator(mode="after")
    def _one_job(self) -> Self:
        if (self.kind is not None) + (self.command is not None) + bool(self._variants) != 1:
            raise ValueError('expected either kind = "…" or command = ["…"], and not both')
        if self.kind is None and self.parameters:
            raise ValueError("parameters belong to a kind; write a command's arguments into the command")
        return self

    @property
    def _variants(self) -> tuple[object, ...]:
        return ()


class BackgroundTable(_Job):
    """A load that runs beside the workload from before its start until its end."""

    count: Whole = Field(default=1, ge=1, le=1000, description="How many of it run.")
    when: dict[str, Levels] = Field(
        default_factory=dict,
        description='Only in the configurations with these levels of factors, such as { load = "on" }; a list allows '
        "several levels.",
    )


class WorkloadTable(_Job):
    """What is measured."""

    programs: tuple[Argument, ...] = Field(
        default=(), description="More programs of this machine that the command starts; they are taken along."
    )
    files: tuple[Argument, ...] = Field(
        default=(), description="Files it needs, relative to the study file; they are found in its working directory."
    )
    timeout_s: Real = Field(default=60.0, gt=0, le=86400, description="Seconds after which it is stopped and flagged.")
    settle_s: Real = Field(
        default=0.02, ge=0, le=3600, description="Seconds between the start of the background load and of the workload."
    )
    background: tuple[BackgroundTable, ...] = Field(default=(), description="Loads that run beside it.")
    metrics: tuple[PatternTable, ...] = Field(
        default=(), alias="metric", description="Metrics read from the output of a command of one's own."
    )
    variants: tuple[VariantTable, ...] = Field(
        default=(), alias="variant", description='Instead of kind or command: the levels of the factor "command".'
    )
    setup: Argv | None = Field(
        default=None, description="A command that runs once before all trials (in a guest: at the start of each)."
    )
    prepare: Argv | None = Field(default=None, description="A command that runs before each trial and is not measured.")
    cleanup: Argv | None = Field(
        default=None, description="A command that runs once after all trials (in a guest: at the end of each)."
    )
    ignore_failure: Switch = Field(
        default=False, description="Measure it too when it exits with another code than 0 or is killed by a signal."
    )
    as_root: Switch = Field(
        default=False, description="Run as root, not as the person who called Ajuste. In a guest everything does."
    )
    observe_s: Real = Field(
        default=0.0, ge=0, le=3600, description="Seconds for which the samplers go on after the workload's end."
    )
    samplers: tuple[SamplerTable, ...] = Field(
        default=(), alias="sampler", description="What is read again and again while it runs."
    )
    timelines: tuple[TimelineTable, ...] = Field(
        default=(), alias="timeline", description="Metrics computed from what samplers read."
    )

    @property
    def _variants(self) -> tuple[object, ...]:
        return self.variants


class TargetTable(_Table):
    """Where it is measured."""

    kind: Literal["vm", "host"] = Field(
        default="vm",
        description="A virtual machine, or this machine by its own clock, with its own kernel and CPUs.",
    )
    kernel: str | None = Field(
        default=None, description="debian:5.10, debian:6.12/rt, path:VMLINUZ …; leave it out where kernel is a factor."
    )
    clock: Clock = Field(
        default="virtual", description="virtual: instructions counted, bit-exact; wall: the host's time."
    )
    instruction_ns: InstructionNs = Field(
        default=DEFAULT_INSTRUCTION_NS,
        description="How many nanoseconds every instruction takes under the virtual clock: 1, 2, 4, 8 or 16. With a "
        "slower CPU a second of the guest costs less of this machine's time.",
    )
    cpus: Whole = Field(default=1, ge=1, le=64, description="CPUs of the machine.")
    memory_mib: Whole = Field(default=256, ge=64, le=1048576, description="Memory of the machine, in MiB.")
    modules: tuple[Argument, ...] = Field(
        default=(),
        description="Kernel modules to load before the trials, with parameters if need be: 'null_blk memory_backed=1'.",
    )
    kernel_arguments: tuple[Argument, ...] = Field(default=(), description="More words for the kernel's command line.")

    @model_validator(mode="before")
    @classmethod
    def _clock_of_host(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("kind") == "host":
            return {"clock": "wall", **data}
        return data

    @model_validator(mode="after")
    def _host_has_a_clock_of_its_own(self) -> Self:
        if self.kind == "host" and self.clock != "wall":
            raise ValueError('the host has no virtual clock; use kind = "vm" for it')
        return self


class AnalysisTable(_Table):
    """What is to be known, and how surely."""

    metrics: tuple[str, ...] = Field(
        min_length=1, description="The metrics that get verdicts and decide when the study stops."
    )
    describe: tuple[str, ...] | None = Field(
        default=None, description="Metrics that are only described; all others that were measured if not given."
    )
    confidence: Real = Field(default=0.95, ge=0.5, le=0.9999, description="Of all verdicts together.")
    smallest_effect: Real = Field(
        default=0.05, gt=0, le=10, description="Relative to the baseline; anything smaller counts as equivalent."
    )
    prediction: str | None = Field(
        default=None, description="A rule of the kernel that predicts a metric; shown beside what was measured."
    )
    three_sigma: Switch = Field(
        default=False, description="Show what the 3-sigma rule would have said beside the verdicts."
    )


class DesignTable(_Table):
    """The order of things."""

    seed: Whole = Field(default=1, ge=0, description="Everything random follows from it.")
    combine: Combine = Field(
        default="all",
        description="all: every combination of levels; one-at-a-time: the baseline, and each other level by itself.",
    )
    warm_up: Whole = Field(default=0, ge=0, le=100, description="Blocks at the start that are kept but not compared.")


class BudgetTable(_Table):
    """How long to go on. A block is one trial of every configuration."""

    min_blocks: Whole = Field(default=5, ge=1, le=100_000, description="Never stop before.")
    max_blocks: Whole = Field(default=30, ge=1, le=100_000, description="Stop then, decided or not.")
    max_minutes: Real = Field(default=20.0, gt=0, le=100_000, description="Stop then, decided or not.")
    min_seconds: Real = Field(
        default=0.0, ge=0, le=100_000, description="Do not stop as decided before so many seconds of measuring."
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_blocks > self.max_blocks:
            raise ValueError(f"min_blocks is {self.min_blocks}, more than max_blocks, {self.max_blocks}")
        return self


class Study(_Table):
    """A question, what is varied, what is run, where, and how surely the answer is to be known."""

    version: Literal[1] = Field(default=1, alias="schema", description="The version of this format.")
    name: Name = Field(description="Lower-case letters, digits and hyphens.")
    title: str = Field(default="", description="As it is to be shown; the name if not given.")
    question: str = Field(default="", description="What is to be answered, in a sentence.")
    factors: tuple[FactorTable, ...] = Field(
        alias="factor", description="What is varied; with an empty list one configuration is described."
    )
    workload: WorkloadTable
    scratch: ScratchTable | None = Field(default=None, description="A file system made for every trial.")
    target: TargetTable = TargetTable()
    analysis: AnalysisTable
    design: DesignTable = DesignTable()
    budget: BudgetTable = BudgetTable()

    _source: Origin | None = PrivateAttr(default=None)

    @property
    def source(self) -> Origin | None:
        """Where it comes from, if that is known."""
        return self._source

    def place(self, *path: str | int) -> Place | None:
        """Where ``path``, such as ``("factor", 0, "levels")``, is written down."""
        return self._source.place(path) if self._source else None

    def at(self, source: Origin) -> Self:
        """The same study, known to be from ``source``."""
        copy = self.model_copy()
        copy._source = source
        return copy

    def with_choices(self, *, kernel: str | None = None, seed: int | None = None) -> Self:
        """The same study with another kernel or seed, as chosen on the command line. Raises RequestError."""
        update: dict[str, Any] = {}
        if kernel is not None:
            if any(factor.name == KERNEL_FACTOR for factor in self.factors):
                raise RequestError("the kernel is a factor of this study; no other can be chosen for it")
            update["target"] = self.target.model_copy(update={"kernel": kernel})
        if seed is not None:
            if seed < 0:
                raise RequestError(f"the seed is {seed}; expected 0 or more")
            update["design"] = self.design.model_copy(update={"seed": seed})
        return self.model_copy(update=update)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The specs of all kernels that the study needs, each once."""
        for factor in self.factors:
            if factor.name == KERNEL_FACTOR:
                return factor.levels
        return (self.target.kernel,) if self.target.kernel else ()
