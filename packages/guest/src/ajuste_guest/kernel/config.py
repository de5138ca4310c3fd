"""A kernel's ``.config``: the options that it was built with."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from ajuste.model.caller import open_found, open_given
from ajuste.model.error import Place, RequestError
from ajuste.model.kernel import KernelImage

Kind = Literal["switch", "text", "number", "hex", "absent"]

MOST_BYTES: Final = 8 << 20
"""Limit of a .config; a kernel's has some 300 KB."""

_GZIP: Final = b"\x1f\x8b"
_SET: Final = re.compile(r"CONFIG_(\w+)=(.*)")
_UNSET: Final = re.compile(r"# CONFIG_(\w+) is not set")
_END: Final = "# end of "
_VERSION: Final = re.compile(r"# Linux/\S+ (\S+) Kernel Configuration")
_NUMBER: Final = re.compile(r"-?\d+")
_HEX: Final = re.compile(r"0[xX][0-9a-fA-F]+")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class ConfigSetting:
    """The value of an option: ``text`` without quotes; ``n`` for an option that is off, empty for one that is not
    there at all.
    """

    kind: Kind
    text: str

    @property
    def is_on(self) -> bool:
        """Return whether the option is neither off nor absent."""
        return self.kind != "absent" and self != OFF

    def __str__(self) -> str:
        """Return the value as a .config has it, ``absent`` where it has none."""
        if self.kind == "absent":
            return "absent"
        return f'"{self.text}"' if self.kind == "text" else self.text


OFF: Final = ConfigSetting("switch", "n")
ABSENT: Final = ConfigSetting("absent", "")


@dataclass(frozen=True)
class ConfigFile:
    """A .config. ``menus`` has for each option the titles of the menus around it, outermost first. ``kernel`` is the
    version it was made for, ``compiler`` what the compiler calls itself; empty where the file does not say.
    """

    settings: Mapping[str, ConfigSetting]
    menus: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kernel: str = ""

    def __getitem__(self, name: str) -> ConfigSetting:
        return self.settings.get(name, ABSENT)

    @property
    def compiler(self) -> str:
        return self["CC_VERSION_TEXT"].text

    def text(self) -> str:
        """Return the file again, without its menus."""
        return "".join(setting_line(name, setting) for name, setting in self.settings.items())


def setting_line(name: str, setting: ConfigSetting) -> str:
    """Return the line of a .config that gives an option its value, with its line feed."""
    escaped = setting.text.replace("\\", "\\\\").replace('"', '\\"')
    return option_line(name, f'"{escaped}"' if setting.kind == "text" else setting.text or "n")


def option_line(name: str, value: str) -> str:
    """Return the line for a ``value`` as it stands in a .config, ``n`` for off."""
    return f"# CONFIG_{name} is not set\n" if value == "n" else f"CONFIG_{name}={value}\n"


def split_line(line: str) -> tuple[str, str] | None:
    """Return the option of a line and its value as it stands there, ``n`` for off; ``None`` for other lines."""
    if match := _UNSET.fullmatch(line):
        return match[1], "n"
    match = _SET.fullmatch(line)
    return (match[1], match[2].strip()) if match else None


def read_config(path: Path, *, named: bool = False) -> ConfigFile:
    """Read the .config at ``path``, perhaps packed by gzip; ``named`` by a person, or else found by Ajuste. Raises
    RequestError for any other file.
    """
    try:
        with (open_given if named else open_found)(path) as file:
            packed = file.peek(len(_GZIP)).startswith(_GZIP)
            content = (gzip.GzipFile(fileobj=file) if packed else file).read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise RequestError(
            f"cannot read {path}: {getattr(error, 'strerror', None) or error}",
            hint="check that the file exists and is readable",
        ) from error
    if len(content) > MOST_BYTES:
        raise RequestError(f"{path} is larger than {MOST_BYTES >> 20} MiB; expected a kernel's .config")
    return parse_config(content.decode("utf-8", errors="replace"), str(path))


def parse_config(text: str, name: str = ".config") -> ConfigFile:
    """Parse a .config, which errors call ``name``; the last line of an option counts, as for Kconfig. Raises
    RequestError with the wrong line. Source: scripts/kconfig/confdata.c of the kernel.
    """
    lines = text.splitlines()
    titles = {line.removeprefix(_END) for line in lines if line.startswith(_END)}
    settings: dict[str, ConfigSetting] = {}
    menus: dict[str, tuple[str, ...]] = {}
    menu: list[str] = []
    kernel = ""
    for number, line in enumerate(lines, 1):
        setting = _option(line, Place(name, number))
        if setting:
            settings[setting[0]] = setting[1]
            menus.setdefault(setting[0], tuple(menu))
        elif line.startswith(_END):
            if menu and menu[-1] == line.removeprefix(_END):
                menu.pop()
        elif match := _VERSION.fullmatch(line):
            kernel = match[1]
        elif _is_heading(lines, number - 1):
            title = line.removeprefix("# ")
            if title in titles:
                menu.append(title)
            elif not menu or menu[-1] not in titles:
                # A menu that only older versions of Kconfig would have closed, or a remark: it holds for what follows.
                menu = [title]
        elif line.strip() and not line.startswith("#"):
            raise RequestError(
                "expected CONFIG_NAME=VALUE or # CONFIG_NAME is not set", place=Place(name, number), hint=line[:80]
            )
    if not settings:
        raise RequestError(f"{name} has no kernel options", hint="give a .config file with lines such as CONFIG_NUMA=y")
    return ConfigFile(settings, menus, kernel)


def parse_setting(text: str) -> ConfigSetting:
    """Parse what stands after ``=``. Raises ValueError."""
    if text in ("y", "m", "n"):
        return ConfigSetting("switch", text)
    if match := _QUOTED.fullmatch(text):
        return ConfigSetting("text", re.sub(r"\\(.)", r"\1", match[1]))
    if _NUMBER.fullmatch(text):
        return ConfigSetting("number", text)
    if _HEX.fullmatch(text):
        return ConfigSetting("hex", text.lower())
    raise ValueError(text)


def _option(line: str, place: Place) -> tuple[str, ConfigSetting] | None:
    parts = split_line(line)
    if parts is None:
        return None
    name, value = parts
    try:
        return name, parse_setting(value)
    except ValueError as error:
        raise RequestError(
            f"CONFIG_{name} is {value[:80]!r}; expected y, m, n, a number, 0x… or a text in quotes", place=place
        ) from error


def _is_heading(lines: list[str], index: int) -> bool:
    if not 0 < index < len(lines) - 1 or not lines[index].startswith("# "):
        return False
    return lines[index - 1] == "#" == lines[index + 1]


def read_options(text: str) -> dict[str, str]:
    """Read the options of a ``.config`` or a fragment of one; the last line on an option counts."""
    return dict(filter(None, (split_line(line.strip()) for line in text.splitlines())))


def kernel_options(image: KernelImage) -> dict[str, str]:
    """Return the options that a kernel was built with; none where its configuration is not known."""
    return read_options(image.config.read_text(encoding="utf-8")) if image.config else {}
