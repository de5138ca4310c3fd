"""Exports: the settings of one configuration with their evidence, and the files that they become."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from ajuste.catalogue.place import sysctl_name
from ajuste.model.plan import Attributes, FileLocation, Location, location_words
from ajuste.model.wording import visible_line

NO_WORDS: Final = "the format has no words for it"
PROCESS: Final = "it belongs to the process: --format systemd has it for a service"
BOOT: Final = "it belongs to the kernel's command line: --format tuned has it"
_ON: Final = {"1": "on", "0": "off"}


@dataclass(frozen=True)
class ExportSetting:
    """A tunable: the value that was ``asked`` for, what it ``became`` in the kernel, and its value ``before`` the run
    (``None`` if no trial read it). ``companions`` are places that the kernel changes along with it.
    """

    tunable: str
    location: Location
    asked: str
    became: str
    before: str | None = None
    companions: tuple[Location, ...] = ()

    @property
    def where(self) -> str:
        return location_words(self.location)


@dataclass(frozen=True)
class LeftOut:
    """A part of the configuration that is not in the files."""

    what: str
    why: str


@dataclass(frozen=True)
class Export:
    """The export of a configuration beside its baseline. ``name`` is good for file names; ``evidence`` are sentences.

    ``attributes`` are those of the workload's process that differ from the baseline's.
    """

    name: str
    configuration: str
    evidence: tuple[str, ...]
    settings: tuple[ExportSetting, ...]
    attributes: Attributes = field(default_factory=Attributes)
    kernel_arguments: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True)
class ExportFile:
    """A file of the export; ``place`` is where it belongs on a system, if anywhere."""

    name: str
    text: str
    place: str
    executable: bool = False

    @property
    def mode(self) -> int:
        return 0o755 if self.executable else 0o644


@dataclass(frozen=True)
class Rendered:
    """An export in one format: its files, and what the format has no words for."""

    files: tuple[ExportFile, ...]
    left_out: tuple[LeftOut, ...] = ()


# Values and comments as lines of a text file.


def comment(lines: Iterable[str]) -> list[str]:
    """Return each of ``lines`` as a comment of one line."""
    return [f"# {visible_line(line)}".rstrip() for line in lines]


def what_became(setting: ExportSetting) -> list[str]:
    """Return a comment where the kernel changed a value."""
    if plain(setting.asked) == plain(setting.became):
        return []
    return comment([f"{setting.tunable}: {setting.asked} was asked for, the kernel made {setting.became} of it"])


def not_here(left_out: Sequence[LeftOut]) -> list[str]:
    """Return comments on what is not in the file."""
    return comment(f"Not in here: {setting.what} ({setting.why})" for setting in left_out)


def plain(value: str) -> str:
    """Return ``value`` with single blanks: the kernel separates numbers by tabs."""
    return " ".join(value.split())


def on_or_off(value: str) -> str:
    """Return the ``value`` of a switch in the words of ethtool(8)."""
    return _ON.get(value, value)


def setting_sysctl(setting: ExportSetting) -> str | None:
    """Return the name of a setting that is a sysctl."""
    return sysctl_name(setting.location.path) if isinstance(setting.location, FileLocation) else None


def without_words(setting: ExportSetting) -> LeftOut:
    """Return a setting that a format cannot say."""
    return LeftOut(f"{setting.tunable} = {setting.became}", f"{setting.where}: {NO_WORDS}")


def without_process(attributes: Attributes) -> list[LeftOut]:
    """Return what belongs to a process, for a format that is not about one."""
    return [LeftOut(what, PROCESS) for what in attribute_words(attributes)]


def beside_settings(export: Export) -> list[LeftOut]:
    """Return what a format for system settings leaves out besides: the process's and the kernel's command line."""
    boot = [LeftOut(word, BOOT) for word in export.kernel_arguments]
    return [*export.left_out, *without_process(export.attributes), *boot]


def attribute_words(attributes: Attributes) -> list[str]:
    """Return the attributes of a process that are set, in words."""
    return [f"{name} {value}" for name, value in attributes if value is not None and value != {}]
