"""Values and comments as lines of a text file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ajuste.catalogue.sysctl import sysctl_name
from ajuste.export.document import Export, LeftOut, Setting
from ajuste.model.plan import Attributes, File
from ajuste.report.visible import visible_line

NO_WORDS: Final = "the format has no words for it"
PROCESS: Final = "it belongs to the process: --format systemd has it for a service"
BOOT: Final = "it belongs to the kernel's command line: --format tuned has it"
_ON: Final = {"1": "on", "0": "off"}


def comment(lines: Iterable[str]) -> list[str]:
    """Each of ``lines`` as a comment of one line."""
    return [f"# {visible_line(line)}".rstrip() for line in lines]


def what_became(setting: Setting) -> list[str]:
    """A comment where the kernel made something else of a value."""
    if plain(setting.asked) == plain(setting.became):
        return []
    return comment([f"{setting.tunable}: {setting.asked} was asked for, the kernel made {setting.became} of it"])


def not_here(left_out: Sequence[LeftOut]) -> list[str]:
    """Comments on what is not in the file."""
    return comment(f"Not in here: {one.what} ({one.why})" for one in left_out)


def plain(value: str) -> str:
    """``value`` with single blanks: the kernel separates numbers by tabs."""
    return " ".join(value.split())


def on_or_off(value: str) -> str:
    """What ethtool(8) calls the ``value`` of a switch."""
    return _ON.get(value, value)


def sysctl_of(setting: Setting) -> str | None:
    """The name of a setting that is a sysctl."""
    return sysctl_name(setting.location.path) if isinstance(setting.location, File) else None


def without_words(setting: Setting) -> LeftOut:
    """A setting that a format cannot say."""
    return LeftOut(f"{setting.tunable} = {setting.became}", f"{setting.where}: {NO_WORDS}")


def without_process(attributes: Attributes) -> list[LeftOut]:
    """What belongs to a process, for a format that is not about one."""
    return [LeftOut(what, PROCESS) for what in attribute_words(attributes)]


def beside_settings(export: Export) -> list[LeftOut]:
    """What a format for the system's own settings leaves out besides: the process's and the kernel's command line."""
    boot = [LeftOut(word, BOOT) for word in export.kernel_arguments]
    return [*export.left_out, *without_process(export.attributes), *boot]


def attribute_words(attributes: Attributes) -> list[str]:
    """Those attributes of a process that are set, in words."""
    return [f"{name} {value}" for name, value in attributes if value is not None and value != {}]
