"""Kernels that can be booted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ajuste.model.base import BaseModel
from ajuste.model.error import RequestError


class KernelVersion(BaseModel):
    """The version of a kernel as ``major.minor``, ordered. Locations of tunables depend on no more than that."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> KernelVersion:
        """Parse ``5.10`` or a release such as ``6.12.94+deb13-cloud-amd64``. Raises RequestError otherwise."""
        match = re.match(r"(\d+)\.(\d+)", text)
        if not match:
            raise RequestError(f"kernel version {text!r}: expected a version such as 5.10 or 6.12.94-amd64")
        return cls(major=int(match[1]), minor=int(match[2]))

    @property
    def scheduler(self) -> str:
        """Return the scheduler of ordinary tasks. Source: Linux 6.6, kernel/sched/fair.c, where EEVDF took the place of
        CFS.
        """
        return "CFS" if self < KernelVersion(major=6, minor=6) else "EEVDF"

    def __lt__(self, other: KernelVersion) -> bool:
        return (self.major, self.minor) < (other.major, other.minor)

    def __le__(self, other: KernelVersion) -> bool:
        return (self.major, self.minor) <= (other.major, other.minor)

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class KernelImage(BaseModel):
    """A kernel on this disk. ``spec`` is how the person named it (``debian:5.10``), ``release`` what ``uname -r``
    will say.

    ``modules`` is the ``lib/modules/RELEASE`` directory, ``config`` the file of build options, ``schedulers`` the
    directory of BPF schedulers (sched_ext) that were built for it, where there are any.
    ``package`` is the exact Debian package and version, empty for a kernel given as a path. ``sha256`` is of
    ``vmlinuz``.
    """

    spec: str
    release: str
    vmlinuz: Path
    modules: Path | None = None
    config: Path | None = None
    schedulers: Path | None = None
    package: str = ""
    sha256: str

    @property
    def version(self) -> KernelVersion:
        return KernelVersion.parse(self.release)


# In which build options the kernels of a run differ.


# Key of these options in the environment of a run, by kernel.
KERNEL_OPTIONS: Final = "kernel options"


class DifferingOption(BaseModel):
    """An option with its values in the baseline's kernel and in this one; ``because`` says what it comes from, if that
    is known.
    """

    name: str
    title: str
    baseline: str
    own: str
    because: str


class KernelOptions(BaseModel):
    """The differences from the kernel ``baseline``: ``total`` options. Some are listed, first those that were
    requested.
    """

    baseline: str
    total: int
    options: tuple[DifferingOption, ...]


# Key of the guests' Debian packages in the environment of a run: version and checksum, by name.
PACKAGES: Final = "packages"


# What a running kernel was seen to have.


# Key of the proofs in the environment of a run, by the name of each machine.
PROOFS: Final = "proofs"


class Sight(BaseModel):
    """A thing that was looked at in the running kernel, and what was found."""

    what: str
    found: str


class ShownFeature(BaseModel):
    """A feature as the running kernel shows it.

    ``present`` is ``None`` where that is unknown. ``value`` is what there is of it, for a feature that every kernel
    has in one way or another (``250`` of hz). ``options`` are those of the kernel's configuration, which prove nothing:
    ``y``, ``m``, ``n``, or ``?`` where there is no configuration. ``claim`` is what was asked for, ``holds`` whether it
    is so.
    """

    feature: str
    title: str
    present: bool | None
    value: str = ""
    evidence: tuple[Sight, ...] = ()
    options: dict[str, str] = {}
    claim: str = ""
    holds: bool = True

    @property
    def state(self) -> str:
        """Return the state in a word: ``yes``, ``no``, ``not known``, or the value."""
        if self.present is None:
            return "not known"
        return (self.value or "yes") if self.present else "no"


class Proof(BaseModel):
    """The features of one kernel that were checked. ``arguments`` are words of its command line."""

    kernel: str
    release: str
    build: str
    arguments: tuple[str, ...] = ()
    features: tuple[ShownFeature, ...]

    @property
    def broken(self) -> tuple[ShownFeature, ...]:
        """Return the claims that do not hold."""
        return tuple(feature for feature in self.features if not feature.holds)
