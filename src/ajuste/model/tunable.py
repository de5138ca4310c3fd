"""Tunables: named settings of the system, with where they are in which kernel."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ajuste.model.kernel import KernelVersion

Risk = Literal["none", "performance", "hang"]
AttributeName = Literal["nice", "policy", "affinity", "cgroup_weight"]

INSTANCE = "{instance}"
"""Stands in a path for the instance, such as ``cpu0``, of a tunable that there is several times."""


class ProcessAttribute(BaseModel):
    """Not a file: an attribute of the workload's process, a field of ``model.plan.Attributes``."""

    model_config = ConfigDict(frozen=True)
    name: AttributeName


class Where(BaseModel):
    """A place of a tunable for kernels ``since`` ≤ version < ``before`` (major.minor; ``None``: from ever, for ever).

    ``kind``: ``sysctl``, ``debugfs``, ``sysfs`` (a ``path``), ``flag`` (``path`` and ``flag``), ``choice`` (``path``),
    ``process`` (an attribute of the workload's process, named by ``attribute``). ``needs`` names the kernel options
    that must be on, separated by blanks. ``note`` is a sentence on these kernels. ``initial`` is the value after boot
    of the series' latest stable release where it can be said (see ``Tunable.scaled``); ``choices`` are those of these
    kernels where they differ from the tunable's.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Literal["sysctl", "debugfs", "sysfs", "flag", "choice", "process"]
    path: str = ""
    flag: str = ""
    attribute: Literal["", "nice", "policy", "affinity", "cgroup_weight"] = ""
    since: str | None = None
    before: str | None = None
    needs: str = ""
    note: str = ""
    initial: str = ""
    choices: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.kind == "process") != bool(self.attribute):
            raise ValueError("attribute belongs to kind process, and only to it")
        if (self.kind == "process") == bool(self.path):
            raise ValueError("every kind has a path, except for process")
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


class Tunable(BaseModel):
    """A catalogue entry. ``what`` is two or three plain sentences; ``default`` the rule by which the kernel chooses it.

    ``minimum`` and ``maximum`` are in ``unit``; ``special`` gives values a meaning of their own (they may lie outside
    the range). The words of a ``boolean`` are ``choices``, off first, if they are not 0 and 1. ``scaled``: ``initial``
    is for one CPU and grows with the CPUs as the kernel's tunable scaling says. ``instances`` is the form of the
    instances of a tunable that there is several times, with N for a number, such as ``cpuN``; the name of one is
    ``NAME@cpu0``. ``removed`` says when and why it went, ``successor`` names a related but different tunable of later
    kernels, ``predecessor`` the like of earlier ones.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str = Field(pattern=r"^[A-Za-z0-9_]+(@[a-z0-9/]+)?$")
    title: str
    subsystem: str
    what: str
    unit: str = ""
    type: Literal["integer", "boolean", "choice", "cpu-list"]
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    special: dict[str, str] = Field(default_factory=dict)
    default: str
    scaled: bool = False
    instances: str = ""
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
        if self.type == "integer" and (self.minimum is None or self.maximum is None or self.minimum > self.maximum):
            raise ValueError("an integer needs a minimum and a maximum that is not smaller")
        if self.type == "choice" and not self.choices:
            raise ValueError("a choice needs choices")
        if self.type == "boolean" and len(self.choices) not in (0, 2):
            raise ValueError("the choices of a boolean are two: off, on")
        if (self.risk == "hang") and not self.risk_note:
            raise ValueError("a risk of hanging the machine needs a risk_note that says which values")
        for earlier, later in pairwise(self.where):
            if (
                not earlier.before
                or not later.since
                or KernelVersion.parse(later.since) < KernelVersion.parse(earlier.before)
            ):
                raise ValueError("its places must be in the order of kernels and not overlap")
        for place in self.where:
            if place.kind != "process" and bool(self.instances) != (INSTANCE in place.path):
                raise ValueError(f"a tunable with instances, and only such a one, has {INSTANCE} in its paths")
        return self

    def place_in(self, version: KernelVersion) -> Where | None:
        """Where it is in a kernel of ``version``, or ``None`` if such kernels have no such knob."""
        return next((w for w in self.where if w.holds_for(version)), None)

    def instance(self, name: str) -> Tunable | None:
        """The instance ``name`` (such as ``cpu0``) of a tunable that there is several times; ``None`` if the name is
        not of the form of its instances."""
        form = re.escape(self.instances).replace("N", "(0|[1-9][0-9]{0,3})")
        if not self.instances or not re.fullmatch(form, name):
            return None
        places = tuple(w.model_copy(update={"path": w.path.replace(INSTANCE, name)}) for w in self.where)
        return self.model_copy(update={"name": f"{self.name}@{name}", "instances": "", "where": places})
