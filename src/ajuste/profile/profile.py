"""A profile: settings that somebody put together, line by line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ajuste.model.error import Place


@dataclass(frozen=True)
class ProfileLine:
    """A setting of a profile. ``plugin`` says what ``option`` is of: ``sysctl``, or one of tuned's plug-ins.

    ``devices`` are the devices that it is for, as tuned has them (``*``, ``sd*``, ``!sda``). ``unless`` says why it
    does not hold or cannot be computed here; empty if it does. ``may_fail``: it is no mistake if the kernel lacks it.
    """

    plugin: str
    option: str
    value: str
    file: Path
    number: int | None = None
    devices: str = "*"
    unless: str = ""
    may_fail: bool = False

    @property
    def name(self) -> str:
        """Return the name for people: ``vm.swappiness``, ``cpu governor``."""
        return self.option if self.plugin in ("sysctl", "sysfs") else f"{self.plugin} {self.option}"

    @property
    def words(self) -> str:
        """Name and value, as ``vm.swappiness = 10``."""
        return f"{self.name} = {self.value}"

    @property
    def place(self) -> Place:
        """Return where it is written down."""
        return Place(self.file, self.number)


@dataclass(frozen=True)
class Profile:
    """``name`` is short, ``spec`` what a person calls it by, ``origin`` where it was read. Each option is set once."""

    name: str
    spec: str
    origin: str
    lines: tuple[ProfileLine, ...]


# What a profile may ask of the machine that it is for.


@dataclass(frozen=True)
class MachineFacts:
    """``cpus`` are the numbers of those online. ``cpuinfo`` is /proc/cpuinfo, ``None`` where it is not known before
    the machine runs; ``architecture`` as ``uname -m`` says it; ``virtual``: it is a guest.
    """

    cpus: tuple[int, ...]
    architecture: str = "x86_64"
    cpuinfo: str | None = None
    virtual: bool = False
