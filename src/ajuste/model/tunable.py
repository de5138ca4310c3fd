"""Tunables: named settings of the system, with where they are in which kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Final, Literal, Self, get_args

from pydantic import Field, model_validator

from ajuste.model.base import BaseModel, ClosedModel
from ajuste.model.cause import Cause
from ajuste.model.kernel import KernelVersion

# Prefix of the name of what a service has, such as `service.nice`.
SERVICE_PREFIX: Final = "service."

# Maximum number of levels worth trying of a tunable.
MOST_TRIES: Final = 4

Risk = Literal["none", "performance", "hang", "data"]
# What a setting with a risk does, in words.
RISKS: Final[Mapping[str, str]] = {
    "performance": "can slow the machine down",
    "hang": "can hang the machine",
    "data": "can lose data of the server",
}
AttributeName = Literal["nice", "policy", "affinity", "cgroup_weight"]
Kind = Literal[
    "sysctl",
    "debugfs",
    "sysfs",
    "procfs",
    "flag",
    "choice",
    "feature",
    "ring",
    "coalesce",
    "qdisc",
    "latency",
    "process",
    "cgroup",
    "scratch",
    "scheduler",
    "redis",
    "postgresql",
]

PATH_KINDS = frozenset({"sysctl", "debugfs", "sysfs", "procfs", "flag", "choice"})
# Kinds of places that are requested by the name of a network interface.
DEVICE_KINDS = frozenset({"feature", "ring", "coalesce", "qdisc"})

# Kinds of servers of this machine, whose own settings are the places.
SERVER_KINDS: Final[tuple[Literal["redis", "postgresql"], ...]] = ("redis", "postgresql")

# Kinds that are not of the machine: these are made for each trial.
WORKLOAD_KINDS = frozenset({"process", "cgroup", "scratch", "scheduler"})

_NAMED_KINDS = frozenset({"feature", "ring", "coalesce", "process", "cgroup", "scratch", *SERVER_KINDS})
_PLACEHOLDER = re.compile(r"\{([a-z]+)\}")
_FOLDERS = {"sysctl": "/proc/sys/", "debugfs": "/sys/kernel/debug/", "procfs": "/proc/", "sysfs": "/sys/"}


class ProcessAttribute(BaseModel):
    """An attribute of the workload's process, not a file: a field of ``model.plan.Attributes``."""

    name: AttributeName


class CgroupLimit(BaseModel):
    """A file of the control group that is made for the workload, such as ``cpu.max``."""

    name: str


class ScratchAttribute(BaseModel):
    """An option of making or mounting the file system of a trial: ``type``, ``block_size`` and others."""

    name: str


class SchedulerProgram(BaseModel):
    """The scheduler written in BPF (sched_ext) that the guest has during the trial."""


# A tunable that is no place of the machine but something of the trial's own.
Marker = ProcessAttribute | CgroupLimit | ScratchAttribute | SchedulerProgram


def marker_words(marker: Marker) -> str:
    """Describe a marker in words."""
    match marker:
        case ProcessAttribute():
            return f"an attribute of the process: {marker.name}"
        case CgroupLimit():
            return f"{marker.name} of the workload's own control group"
        case ScratchAttribute():
            return f"{marker.name} of the file system made for the trial"
        case SchedulerProgram():
            return "a program that runs for the length of the trial"


class Where(ClosedModel):
    """A place of a tunable for kernels ``since`` ≤ version < ``before`` (major.minor; ``None``: from ever, for ever).

    ``kind``: ``sysctl``, ``debugfs``, ``sysfs``, ``procfs`` (``path``: a file with the value), ``flag`` (one word of
    the file ``path``: ``flag`` or NO_``flag``), ``choice`` (``path``: a file that marks one word); ``feature``,
    ``ring``, ``coalesce`` (what ethtool(8) calls ``attribute``), ``qdisc`` of the network interface ``device``;
    ``latency`` (/dev/cpu_dma_latency); ``redis``, ``postgresql`` (the setting ``attribute`` of the server at the
    address ``device``); and of the trial's own ``process`` (an ``attribute``), ``cgroup`` (the file
    ``attribute``), ``scratch`` (an ``attribute`` of its file system) and ``scheduler`` (a program that loads one).

    ``needs`` names the kernel options that must be on, separated by blanks (SCHED_DEBUG always is from 6.15 on).
    ``note`` is a sentence on these kernels.
    ``initial`` is the value after boot of the series' latest stable release where it is known (see
    ``Tunable.scaled``); ``choices`` are those of these kernels where they differ from the tunable's.
    """

    kind: Kind
    path: str = ""
    flag: str = ""
    attribute: str = ""
    device: str = ""
    since: str | None = None
    before: str | None = None
    needs: str = ""
    note: str = ""
    initial: str = ""
    choices: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.kind in _NAMED_KINDS) != bool(self.attribute):
            raise ValueError(f"attribute belongs to the kinds {', '.join(sorted(_NAMED_KINDS))}, and only to them")
        if self.kind == "process" and self.attribute not in get_args(AttributeName):
            raise ValueError(f"a process has no attribute {self.attribute!r}")
        if (self.kind in PATH_KINDS) != bool(self.path):
            raise ValueError(f"path belongs to the kinds {', '.join(sorted(PATH_KINDS))}, and only to them")
        if not self.path.startswith(_FOLDERS.get(self.kind, "")):
            raise ValueError(f"a path of kind {self.kind} begins with {_FOLDERS[self.kind]}")
        if (self.kind == "flag") != bool(self.flag):
            raise ValueError("flag belongs to kind flag, and only to it")
        bounds = [KernelVersion.parse(bound) for bound in (self.since, self.before) if bound is not None]
        if len(bounds) == 2 and not bounds[0] < bounds[1]:
            raise ValueError(f"since {self.since} is not before {self.before}")
        return self

    def holds_for(self, version: KernelVersion) -> bool:
        if self.since is not None and version < KernelVersion.parse(self.since):
            return False
        return self.before is None or version < KernelVersion.parse(self.before)

    @property
    def placeholders(self) -> tuple[str, ...]:
        """Return the parts that are still to be named, in the order of the path."""
        if self.kind in DEVICE_KINDS:
            return () if self.device else ("interface",)
        return tuple(_PLACEHOLDER.findall(self.path))

    def of(self, parts: Mapping[str, str]) -> Where:
        """Return the place for the named ``parts``, each of which must have been read by its ``Part``."""
        device = parts["interface"] if self.kind in DEVICE_KINDS else ""
        path = _PLACEHOLDER.sub(lambda match: parts[match[1]], self.path)
        return self.model_copy(update={"path": path, "device": device})


class Tunable(ClosedModel):
    """A catalogue entry. ``what`` is two or three plain sentences; ``default`` the rule by which the kernel chooses it.

    ``minimum`` and ``maximum`` are in ``unit``; ``special`` gives values a meaning of their own (they may lie outside
    the range, or be words). ``integers`` are ``count`` of them, each in the range (any number if 0). The words of a
    ``boolean`` are ``choices``, off first, if they are not 0 and 1. A ``choice`` is one of ``choices`` or what the
    regular expression ``also`` matches as a whole, a ``text`` is what it matches. ``scaled``: ``initial`` is for one
    CPU and grows with the CPUs as the kernel's tunable scaling says, by 1 + log2(CPUs).

    ``instances`` names the parts by which one of several is chosen, as in ``cpu/domain`` (parts.toml has their forms);
    paths contain ``{cpu}`` and ``{domain}``, its name is then ``NAME[cpu0/domain0]``, and ``chosen`` has these parts.
    ``companions`` are other tunables, of the same instance where they have one, that the kernel changes along with
    this one, ``companion_directories`` directories of files that it does. ``modules`` are the kernel's modules that its
    choices need where they are not built in. ``aliases`` are other names that people know it by.

    ``matters_if`` names conditions (see ``model.relevance``) that must all be met, or it cannot matter.

    ``acts_on`` are the causes of lost time (see ``model.cause``) that it can lessen or worsen, the most direct first;
    none for what only matters for security, limits or diagnosis. ``tries`` are the levels worth trying beside the
    default, as a person types them, the most promising first: on both sides of the default where either can help
    somebody. None of them can hang the machine; there are none where the right levels depend on the machine.
    ``try_first``: it often matters a lot where it matters at all, so it is tried before the others of its causes.

    ``removed`` says when and why it went, ``successor`` names a related but different tunable of later kernels, with
    the same type, unit and range, ``predecessor`` the like of earlier ones. ``where`` has its places, the oldest
    first.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]+(\[[^\[\]]+\])?$")
    title: str
    subsystem: str
    what: str
    unit: str = ""
    type: Literal["integer", "integers", "boolean", "choice", "cpu-list", "cpu-mask", "text"]
    count: int = 0
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    also: str = ""
    special: dict[str, str] = Field(default_factory=dict)
    default: str
    scaled: bool = False
    matters_if: tuple[str, ...] = ()
    acts_on: tuple[Cause, ...] = ()
    tries: tuple[str, ...] = Field(default=(), max_length=MOST_TRIES)
    try_first: bool = False
    instances: str = ""
    chosen: dict[str, str] = Field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()
    companion_directories: tuple[str, ...] = ()
    modules: dict[str, str] = Field(default_factory=dict)
    risk: Risk = "none"
    risk_note: str = ""
    successor: str | None = None
    predecessor: str | None = None
    removed: str = ""
    see: tuple[str, ...] = ()
    source: str = ""
    where: tuple[Where, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        ranged = self.type in ("integer", "integers")
        if ranged and (self.minimum is None or self.maximum is None or self.minimum > self.maximum):
            raise ValueError("an integer needs a minimum and a maximum that is not smaller")
        if self.type == "choice" and not self.choices:
            raise ValueError("a choice needs choices")
        if unknown := self.modules.keys() - set(self.choices):
            raise ValueError(f"a module for {min(unknown)}, which is no choice")
        if self.type == "boolean" and len(self.choices) not in (0, 2):
            raise ValueError("the choices of a boolean are two: off, on")
        if self.risk in ("hang", "data") and not self.risk_note:
            raise ValueError("a risk of hanging the machine or of losing data needs a risk_note that says which values")
        for field, words in (("acts_on", self.acts_on), ("tries", self.tries)):
            if len(set(words)) < len(words):
                raise ValueError(f"{field} names one twice")
        if self.tries and not self.acts_on:
            raise ValueError("levels worth trying need what they act on: acts_on")
        if self.try_first and not self.tries:
            raise ValueError("what is tried first needs levels worth trying: tries")
        for earlier, later in pairwise(self.where):
            if (
                not earlier.before
                or not later.since
                or KernelVersion.parse(later.since) < KernelVersion.parse(earlier.before)
            ):
                raise ValueError("its places must be in the order of kernels and not overlap")
        for place in self.where:
            if not self.chosen and place.placeholders != self.parts:
                raise ValueError(f"its instances are {self.instances or 'none'}, but a place has {place.placeholders}")
        return self

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the names of the parts by which one of several is chosen; none if there is only one."""
        return tuple(self.instances.split("/")) if self.instances else ()

    @property
    def entry(self) -> str:
        """Return the name in the catalogue, also for one of several."""
        return self.name.partition("[")[0]

    def place_in(self, version: KernelVersion) -> Where | None:
        """Return its place in a kernel of ``version``, or ``None`` if such kernels do not have it."""
        return next((w for w in self.where if w.holds_for(version)), None)

    def instance(self, parts: Mapping[str, str]) -> Tunable:
        """Return the one of several that ``parts`` choose, which ``Part.read`` must have read. See
        ``Catalogue.instance``.
        """
        chosen = {part: parts[part] for part in self.parts}
        return self.model_copy(
            update={
                "name": f"{self.name}[{'/'.join(chosen.values())}]",
                "instances": "",
                "chosen": chosen,
                "where": tuple(where.of(chosen) for where in self.where),
            }
        )


# Values of tunables as the kernel shows them.


def same_value(text: str, other: str) -> bool:
    """Return whether two texts are one value to the kernel: blanks and the form of numbers do not matter."""
    return _normalised(text) == _normalised(other)


def _normalised(text: str) -> list[str | int]:
    words: list[str | int] = []
    for word in text.split():
        try:
            words.append(int(word, 0) if word.lower().startswith("0x") else int(word))
        except ValueError:
            # A mask of CPUs is shown without leading zeros.
            words.append({"Y": 1, "N": 0}.get(word, word.lstrip("0,")))
    return words


# Parts: the kinds of things that a machine has several of, each with settings of its own.


class InstanceKind(ClosedModel):
    """A kind of thing that there are several of, such as a CPU, a disk or a network interface.

    In the paths of the catalogue ``{name}`` stands for one of them. ``pattern`` is the regular expression of a whole
    name; its first group, if it has one, is what stands in the path. ``there`` is where the kernel shows them: a glob
    pattern whose last component matches them.
    """

    name: str = Field(pattern=r"^[a-z]+$")
    title: str
    pattern: str
    example: str
    there: str = Field(pattern=r"^/(proc|sys)/")

    @model_validator(mode="after")
    def _example_fits(self) -> Self:
        if self.read(self.example) != self.example:
            raise ValueError(f"the example {self.example!r} is no {self.title} by the pattern")
        return self

    def read(self, text: str) -> str | None:
        """Return the name that ``text`` means, fit to stand in a path, or ``None`` if it can be no such thing.

        Never has a slash or two dots in a row, whatever the pattern lets through.
        """
        match = re.fullmatch(self.pattern, text, re.ASCII)
        if not match:
            return None
        name: str = match[1] if match.re.groups else match[0]
        return name if name and "/" not in name and ".." not in name and name != "." else None


# Spans: the range of a numeric factor, in the unit that its tunable counts in.


# Spacing of levels: by equal differences, or by equal ratios.
Scale = Literal["linear", "log"]


class Span(BaseModel):
    """A range from ``low`` to ``high``, both included, in the tunable's own unit. ``points`` levels were made from it;
    0 where the levels were given one by one, and it only says where others may be tried.
    """

    low: int
    high: int
    scale: Scale = "linear"
    points: int = 0
