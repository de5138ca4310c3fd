"""A profile: settings that somebody put together, line by line; and what they come to on a study's machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class Unmapped:
    """A line that is left out, with the reason: it completes a sentence that begins with the line."""

    line: ProfileLine
    reason: str


@dataclass(frozen=True)
class PlacedSetting:
    """The setting of one line: ``levels`` by the tunable's name. ``now`` are the present values, where known."""

    line: ProfileLine
    levels: Mapping[str, str]
    now: Mapping[str, str]

    @property
    def words(self) -> str:
        """Return ``vm.swappiness = 10 (was 60)``, or the number of several tunables."""
        if len(self.levels) != 1:
            return f"{self.line.words} ({len(self.levels)} places)"
        ((name, level),) = self.levels.items()
        return f"{self.line.name} = {level} (was {' '.join(self.now[name].split())})"


@dataclass(frozen=True)
class Placed:
    """``settings`` change something. ``unchanged`` are those that are so already, ``unmapped`` what is omitted."""

    profile: Profile
    settings: tuple[PlacedSetting, ...]
    unchanged: tuple[PlacedSetting, ...]
    unmapped: tuple[Unmapped, ...]

    def without(self, idle: Mapping[str, str], names: Sequence[str]) -> Placed:
        """Return it without the lines that are ``idle`` for a reason; ``names`` are those of the settings, in order."""
        pairs = list(zip(self.settings, names, strict=True))
        left = (Unmapped(setting.line, idle[name]) for setting, name in pairs if name in idle)
        active = tuple(setting for setting, name in pairs if name not in idle)
        return replace(self, settings=active, unmapped=(*self.unmapped, *left))


def profile_notes(placed: Sequence[Placed]) -> tuple[str, ...]:
    """Return for each profile its source, what it sets, what holds already, and what is omitted and why."""
    return tuple(note for profile in placed for note in _notes(profile))


def _notes(placed: Placed) -> list[str]:
    name = placed.profile.name
    sets = "; ".join(setting.words for setting in placed.settings) or "nothing"
    notes = [f"The profile {name}, from {placed.profile.origin}, sets here: {sets}."]
    if placed.unchanged:
        same = "; ".join(setting.line.words for setting in placed.unchanged)
        notes.append(f"Lines of {name} that are already in effect: {same}.")
    if placed.unmapped:
        left = "; ".join(f"{setting.line.words} ({setting.reason.rstrip('.')})" for setting in placed.unmapped)
        notes.append(f"Lines of {name} that are left out: {left}.")
    return notes
