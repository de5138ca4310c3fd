"""Tunables: named settings of the system, with where they are in which kernel."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ajuste.model.kernel import KernelVersion

Risk = Literal["none", "performance", "hang"]


class Where(BaseModel):
    """A place of a tunable for kernels ``since`` ≤ version < ``before`` (major.minor; ``None``: from ever, for ever).

    ``kind``: ``sysctl``, ``debugfs``, ``sysfs`` (a ``path``), ``flag`` (``path`` and ``flag``), ``choice`` (``path``),
    ``process`` (an attribute of the workload's process, named by ``attribute``). ``needs`` names the kernel option
    that must be on.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Literal["sysctl", "debugfs", "sysfs", "flag", "choice", "process"]
    path: str = ""
    flag: str = ""
    attribute: Literal["", "nice", "policy", "affinity", "cgroup_weight"] = ""
    since: str | None = None
    before: str | None = None
    needs: str = ""

    def holds_for(self, version: KernelVersion) -> bool:
        if self.since is not None and version < KernelVersion.parse(self.since):
            return False
        return self.before is None or version < KernelVersion.parse(self.before)


class Tunable(BaseModel):
    """A catalogue entry. ``what`` is two or three plain sentences; ``default`` the rule by which the kernel
    chooses it;
    ``removed`` says when and why it went, ``successor`` names a related but different tunable of later kernels."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
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
    risk: Risk = "none"
    risk_note: str = ""
    successor: str | None = None
    predecessor: str | None = None
    removed: str = ""
    see: tuple[str, ...] = ()
    source: str = ""
    where: tuple[Where, ...]

    def place_in(self, version: KernelVersion) -> Where | None:
        """Where it is in a kernel of ``version``, or ``None`` if such kernels have no such knob."""
        return next((w for w in self.where if w.holds_for(version)), None)
