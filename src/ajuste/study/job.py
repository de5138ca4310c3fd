"""The tables of a study file on what is run, and on what is read from it."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from ajuste.model.metric import Direction, Scale
from ajuste.model.plan import Policy, SamplerSource
from ajuste.study.fields import Argument, Argv, Cpus, Level, Levels, Name, Real, StudyTable, Switch, Whole


class AttributesTable(StudyTable):
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


class PatternTable(StudyTable):
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


class SamplerTable(StudyTable):
    """Figures of the system that are read again and again while the workload runs."""

    source: SamplerSource = Field(
        description="vmstat, meminfo, diskstats, schedstat, pressure, softirqs, interrupts, stat, or process (the "
        "workload's own)."
    )
    keys: tuple[Argument, ...] = Field(
        min_length=1,
        description="Names of figures, or beginnings of them followed by *. See docs/reference/samplers.md.",
    )
    interval_ms: Real = Field(default=100.0, ge=1, le=60_000, description="Milliseconds from one reading to the next.")


class TimelineTable(StudyTable):
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


class VariantTable(StudyTable):
    """One of several commands that are compared: a level of the factor "command"."""

    name: str = Field(min_length=1, max_length=200, description="As it is to be shown.")
    command: Argv = Field(description="A program and its arguments, run without a shell.")


class ScratchTable(StudyTable):
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


class DiskTable(StudyTable):
    """The disk that the study is about, which may be overwritten. All of the study that names ``device`` means it."""

    device: str = Field(pattern=r"^/dev/[A-Za-z0-9]{1,32}$", description="In a guest: one that a module makes.")
    size_mib: Whole = Field(
        default=512,
        ge=1,
        le=1048576,
        description="On this machine: how large it must be at least. If --disk names no other, a loop device is made "
        "for the run.",
    )

    @property
    def name(self) -> str:
        """As the kernel calls it."""
        return self.device.removeprefix("/dev/")


class _Job(StudyTable):
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
        if self.kind is None and (self.parameters or self._elsewhere):
            raise ValueError("parameters belong to a kind; write a command's arguments into the command")
        return self

    @property
    def _variants(self) -> tuple[object, ...]:
        return ()

    @property
    def _elsewhere(self) -> dict[str, Level]:
        return {}


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

    host_parameters: dict[str, Level] = Field(
        default_factory=dict,
        description="Parameters that replace those for a guest if the study is carried out on this machine "
        "(--target host), which is faster than an emulated one.",
    )
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
        default=False,
        description="Run as root, not as the person who called Ajuste; in a guest, not as an ordinary user.",
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

    @property
    def _elsewhere(self) -> dict[str, Level]:
        return self.host_parameters
