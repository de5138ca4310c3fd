"""The tables of a study file on what is run, on what is read from it, and on how long."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, Strict, StringConstraints, WithJsonSchema, model_validator

from ajuste.model.base import BaseModel
from ajuste.model.plan import Policy, SamplerSource
from ajuste.model.topology import parse_cpus
from ajuste_stats.terms import Direction, Scale

# What fields of a study file may be: kinds of values, and the table that all tables are.


Whole = Annotated[int, Strict()]
Real = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Switch = Annotated[bool, Strict()]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$", max_length=80)]

_LEVEL_SCHEMA = {"type": ["integer", "number", "string", "boolean"]}

_CPUS_SCHEMA = {
    "anyOf": [
        {"type": "string", "pattern": r"^\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*$"},
        {"type": "integer", "minimum": 0},
        {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
    ]
}

Share = Annotated[Real, Field(gt=0, le=10)]

Precision = Annotated[
    Share | None,
    Field(
        exclude_if=lambda precision: precision is None,
        description="Go on until no deciding interval is wider than this to each side of its estimate, relative to the "
        "baseline (default: until all verdicts are decided).",
    ),
]

Argument = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]

# Claim about a kernel, in form: `numa`, `no-numa`, `hz=250`.
Claimed = Annotated[str, StringConstraints(pattern=r"^(no-)?[a-z][a-z0-9_]*(=[a-z0-9]+)?$", max_length=40)]

Argv = Annotated[tuple[Argument, ...], Field(min_length=1)]
ReadyText = Annotated[str, StringConstraints(pattern=r"^(none|port|port:[0-9]{1,5}|socket:[^\x00]+|log:[^\x00]+)$")]
LoadReady = Annotated[str, StringConstraints(pattern=r"^(settled|none|log:[^\x00]+)$")]
StopSignal = Literal["TERM", "INT", "QUIT", "HUP", "USR1", "USR2"]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_WHEN: Final = 'Only in configurations with these levels, such as { load = "on" }; a list allows several levels.'


def level_text(value: Any) -> str:
    """Return a level as text, as it is written to the kernel: ``true`` is ``1``."""
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


Level = Annotated[str, BeforeValidator(level_text), WithJsonSchema(_LEVEL_SCHEMA)]
Cpus = Annotated[str, BeforeValidator(_cpus_text), WithJsonSchema(_CPUS_SCHEMA)]
Levels = Annotated[
    tuple[Level, ...],
    BeforeValidator(lambda value: value if isinstance(value, list | tuple) else (value,)),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [_LEVEL_SCHEMA, {"type": "array", "items": _LEVEL_SCHEMA, "minItems": 1}]}),
]


class StudyTable(BaseModel):
    """A table in which nothing is that is not known."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class AttributesTable(StudyTable):
    """The attributes with which a process is run. What is not given is left as the kernel would have it."""

    nice: Whole | None = Field(default=None, ge=-20, le=19, description="−20 (most favoured) to 19 (least).")
    policy: Policy | None = Field(default=None, description="The scheduling policy.")
    priority: Whole | None = Field(
        default=None, ge=1, le=99, description="The real-time priority, for the policies fifo and rr (default: 1)."
    )
    affinity: Cpus | None = Field(default=None, description='The CPUs it may run on: "0", "0,2" or "0-3".')
    cgroup_weight: Whole | None = Field(
        default=None,
        ge=1,
        le=10000,
        description="cpu.weight of its control group (kernel default: 100).",
    )


class PatternTable(StudyTable):
    """A metric read from the output of a custom command."""

    name: Name = Field(description="Lower-case letters, digits and hyphens.")
    pattern: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="A Python regular expression for each line (its first 4096 characters); its first group is the "
        "number, which may have a unit of its own (12.3ms, 1.5K): it is converted. The last match counts; none flags "
        "the trial.",
    )
    pointer: str | None = Field(
        default=None,
        max_length=500,
        description="Instead of a pattern: a JSON pointer (RFC 6901) such as /jobs/0/read/iops into the one JSON "
        "document that the command prints.",
    )
    unit: str = Field(default="", description="The unit to show and convert to; empty for a count.")
    direction: Direction = Field(description="The better direction: lower, higher, or none.")
    title: str = Field(default="", description="The title to show (default: the name).")
    scale: Scale = Field(
        default="ratio", description="Compare by ratios (always positive) or by differences (can be 0 or negative)."
    )
    resolution: Real = Field(
        default=0.0,
        ge=0,
        description="The smallest step of the printed figure, in the unit: equal values are known no better.",
    )
    stream: Literal["stdout", "stderr"] = Field(default="stdout", description="Where the command prints it.")

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if (self.pattern is None) == (self.pointer is None):
            raise ValueError('pattern and pointer are mutually exclusive; expected pattern = "…" or pointer = "/…"')
        return self


class SamplerTable(StudyTable):
    """Figures of the system that are read again and again while the workload runs."""

    source: SamplerSource = Field(
        description="vmstat, meminfo, diskstats, schedstat, pressure, softirqs, interrupts, stat, or process (the "
        "workload's own)."
    )
    keys: tuple[Argument, ...] = Field(
        min_length=1,
        description="Names of figures, or prefixes followed by *. See `ajuste help samplers`.",
    )
    interval_ms: Real = Field(default=100.0, ge=1, le=60_000, description="Milliseconds between two readings.")


class TimelineTable(StudyTable):
    """A metric computed from the figures of a sampler."""

    name: Name = Field(description="Lower-case letters, digits and hyphens.")
    source: SamplerSource = Field(description="The sampler that reads it.")
    key: str = Field(description="The figure.")
    take: Literal["delay", "growth", "rate", "mean", "maximum", "minimum", "last"] = Field(
        description="delay: seconds until fraction of the figure's whole growth has happened; growth: from the first "
        "to the last reading; rate: growth by second; mean, maximum, minimum, last: of the readings."
    )
    fraction: Real = Field(default=0.9, gt=0, le=1, description="For delay.")
    since: Literal["start", "end"] = Field(
        default="start", description="Readings count from the workload's start, or from its end."
    )
    unit: str = Field(default="", description="The unit to show (default for a delay: s).")
    direction: Direction = Field(description="The better direction: lower, higher, or none.")
    title: str = Field(default="", description="The title to show (default: the name).")
    scale: Scale = Field(default="ratio", description="Compare by ratios or by differences.")


class VariantTable(StudyTable):
    """A command among several that are compared: a level of the factor "command"."""

    name: str = Field(min_length=1, max_length=200, description="The name to show.")
    command: Argv = Field(description="A program and its arguments, run without a shell.")
    directory: Argument | None = Field(
        default=None,
        exclude_if=lambda directory: directory is None,
        description="The directory that it runs in, relative to the study file (default: that of all commands).",
    )


class ScratchTable(StudyTable):
    """A file system that is made for every trial, is the workload's working directory, and is gone afterwards."""

    filesystem: Name = Field(default="ext4", description="Its type; requires mkfs.TYPE on this machine.")
    size_mib: Whole = Field(default=256, ge=8, le=1048576, description="Its size, if no device is given.")
    device: str | None = Field(
        default=None,
        description="A block device to overwrite, on this machine only with --accept-risk (default: a loop device on a "
        "temporary file).",
    )
    directory: str | None = Field(default=None, description="The directory of that file: on the disk to measure.")
    make_options: tuple[Argument, ...] = Field(
        default=(),
        description="More arguments for mkfs. Those that may name another disk require --accept-risk on this machine.",
    )
    options: dict[str, Level] = Field(
        default_factory=dict, description="Values of the catalogue's fs.* tunables, such as block_size or data."
    )
    mount_options: str = Field(default="", description="More mount options, separated by commas.")


class DiskTable(StudyTable):
    """The disk that the study is about, which may be overwritten. All of the study that names ``device`` means it."""

    device: str = Field(
        pattern=r"^/dev/[A-Za-z0-9]{1,32}$", description="In a guest: a disk that a module makes, such as null_blk."
    )
    size_mib: Whole = Field(
        default=512,
        ge=1,
        le=1048576,
        description="On this machine: its minimum size. It is a loop device past the page cache, on a nameless file in "
        "/var/tmp, or --disk DEVICE, which requires --accept-risk and must be unused.",
    )

    @property
    def name(self) -> str:
        """Return the disk's name in the kernel."""
        return self.device.removeprefix("/dev/")


class _Job(StudyTable):
    kind: str | None = Field(default=None, description="A workload of the catalogue.")
    command: Argv | None = Field(
        default=None,
        description="Instead of kind: a program and its arguments, run without a shell. A relative path with a slash "
        "is relative to the study file.",
    )
    parameters: dict[str, Level] = Field(
        default_factory=dict, description="Parameters of the kind; each is optional and has a default."
    )
    attributes: AttributesTable = Field(default=AttributesTable(), description="How it is run.")

    @model_validator(mode="after")
    def _check_job(self) -> Self:
        if (self.kind is not None) + (self.command is not None) + bool(self._variants) != 1:
            raise ValueError('kind and command are mutually exclusive; expected kind = "…" or command = ["…"]')
        if self.kind is None and (self.parameters or self._elsewhere):
            raise ValueError("parameters require kind; write a command's arguments in command")
        return self

    @property
    def _variants(self) -> tuple[object, ...]:
        return ()

    @property
    def _elsewhere(self) -> dict[str, Level]:
        return {}


# Levels by factor, under which something is there.
When = dict[str, Levels]


class BackgroundTable(_Job):
    """A load that runs beside the workload from before its start until its end."""

    count: Whole = Field(default=1, ge=1, le=1000, description="How many instances run.")
    ready: Argv | LoadReady = Field(
        default="settled",
        description="When the workload may start: settled (the load's processes and their use of the CPUs are as a "
        'moment before), log:TEXT (it has printed TEXT), a command that succeeds (["PROGRAM", …]), or none.',
    )
    ready_timeout_s: Real | None = Field(
        default=None,
        gt=0,
        le=3600,
        description="How long that may take, in seconds: a trial whose load has not settled by then (default: 5) is "
        "flagged, one whose load is not ready otherwise (default: 60) failed.",
    )
    when: When = Field(default_factory=dict, description=_WHEN)

    @property
    def patience_s(self) -> float:
        """Return how long it may take until the load is ready, in seconds."""
        if self.ready == "none":
            return 0.0
        return self.ready_timeout_s or (5.0 if self.ready == "settled" else 60.0)


class ServiceTable(StudyTable):
    """A server that the workload needs. Each trial starts it, waits until it is ready, and stops it afterwards."""

    name: Name | None = Field(
        default=None, description="Lower-case letters, digits and hyphens (default: its program's)."
    )
    command: Argv = Field(
        description="A program that stays in the foreground, and its arguments, run without a shell. {port} is a free "
        "port, {data} the directory with its data; elsewhere {port:NAME} and {data:NAME}."
    )
    ready: Argv | ReadyText | None = Field(
        default=None,
        description="port, port:NUMBER, socket:PATH, log:PATTERN (a line of its output matches), a command that "
        'succeeds (["PROGRAM", …]), or none (default: port if the command has {port}, else none).',
    )
    ready_timeout_s: Real = Field(
        default=30.0, gt=0, le=3600, description="How long that may take, in seconds; then the trial failed."
    )
    settle_s: Real = Field(default=0.0, ge=0, le=3600, description="How long to wait after that, in seconds.")
    stop: Argv | StopSignal = Field(
        default="TERM", description="How it is stopped: TERM, INT, QUIT, HUP, USR1, USR2, or a command."
    )
    stop_timeout_s: Real = Field(
        default=10.0, gt=0, le=3600, description="How long that may take, in seconds; then it is killed."
    )
    data: Argv | None = Field(
        default=None,
        description="A command that fills {data}, such as initdb -D {data}. It runs once before all trials, and each "
        "trial gets a copy; in a guest, and with [scratch], it runs in each trial.",
    )
    setting: Argv | None = Field(
        default=None,
        exclude_if=lambda setting: setting is None,
        description='The arguments that pass a setting, for factors such as service.threads: ["--{name}={value}"] '
        "(default: those of its program, if the catalogue knows it). If the command or the environment has {threads}, "
        "the level replaces that instead.",
    )
    environment: dict[VariableName, Argument] = Field(default_factory=dict, description="More environment variables.")
    files: tuple[Argument, ...] = Field(default=(), description="Files it needs, relative to the study file.")
    when: When = Field(default_factory=dict, description=_WHEN)
    attributes: AttributesTable = Field(default=AttributesTable(), description="How it is run.")
    user: Argument | None = Field(
        default=None, description="Whose process it is (default: the workload's); in a guest, root or nobody else."
    )

    @model_validator(mode="after")
    def _check_setting(self) -> Self:
        text = " ".join(self.setting or ("{name}", "{value}"))
        if "{name}" not in text or "{value}" not in text:
            raise ValueError('a setting needs its name and value; expected setting = ["--{name}={value}"] or similar')
        return self

    @property
    def called(self) -> str:
        """Return its name, or its program's."""
        program = PurePosixPath(self.command[0]).name.lower()
        return self.name or re.sub(r"[^a-z0-9-]+", "-", program)[:80].strip("-") or "service"


class WorkloadTable(_Job):
    """The workload: what is measured."""

    host_parameters: dict[str, Level] = Field(
        default_factory=dict,
        description="Parameters that override those for a guest when the study runs on this machine (--target host), "
        "which is faster.",
    )
    programs: tuple[Argument, ...] = Field(
        default=(),
        description="More programs that the command starts, and by absolute path libraries that they load themselves; "
        "they are copied into the guest.",
    )
    files: tuple[Argument, ...] = Field(
        default=(),
        description="Files it needs, beside or below the study file; they are in its working directory (in a guest "
        "/study).",
    )
    timeout_s: Real = Field(
        default=60.0,
        gt=0,
        le=86400,
        description="Time limit in seconds (by the virtual clock, the guest's own); then the trial is stopped and "
        "flagged.",
    )
    settle_s: Real = Field(
        default=0.02,
        ge=0,
        le=3600,
        description="Seconds between the start of the background load and of the workload, at least: it also waits "
        "until the load is ready.",
    )
    background: tuple[BackgroundTable, ...] = Field(
        default=(), description="Loads that run beside the workload, until it ends; one that fails flags the trial."
    )
    services: tuple[ServiceTable, ...] = Field(
        default=(),
        alias="service",
        exclude_if=lambda services: not services,
        description="Servers that the workload needs, in the order in which they are started.",
    )
    metrics: tuple[PatternTable, ...] = Field(
        default=(), alias="metric", description="Custom metrics, read from the output of a custom command."
    )
    variants: tuple[VariantTable, ...] = Field(
        default=(), alias="variant", description='Instead of kind or command: the levels of the factor "command".'
    )
    setup: Argv | None = Field(
        default=None, description="A command that runs once before all trials (in a guest: at the start of each)."
    )
    prepare: Argv | None = Field(default=None, description="A command that runs, unmeasured, before each trial.")
    cleanup: Argv | None = Field(
        default=None, description="A command that runs once after all trials (in a guest: at the end of each)."
    )
    ignore_failure: Switch = Field(
        default=False, description="Also measure it when its exit code is not 0 or a signal kills it."
    )
    keep_output: Switch = Field(
        default=False,
        description="Keep all that is printed in a trial; otherwise long output and binary data are cut.",
    )
    console_failure: str = Field(
        default="",
        max_length=500,
        exclude_if=lambda pattern: not pattern,
        description="A Python regular expression: a trial has failed if the guest's kernel prints a line that matches, "
        "such as WARNING: (guests only).",
    )
    as_root: Switch = Field(
        default=False,
        description="Run as root, not as the user who called Ajuste; in a guest, not as uid 1000, which "
        "may use any priority and lock any memory.",
    )
    observe_s: Real = Field(
        default=0.0, ge=0, le=3600, description="Seconds for which samplers continue after the workload's end."
    )
    samplers: tuple[SamplerTable, ...] = Field(
        default=(), alias="sampler", description="Counters to sample while it runs."
    )
    timelines: tuple[TimelineTable, ...] = Field(
        default=(), alias="timeline", description="Metrics computed from what samplers read."
    )

    @property
    def service_names(self) -> tuple[str, ...]:
        return tuple(service.called for service in self.services)

    @property
    def _variants(self) -> tuple[object, ...]:
        return self.variants

    @property
    def _elsewhere(self) -> dict[str, Level]:
        return self.host_parameters
