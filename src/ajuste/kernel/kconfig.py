"""A kernel's build options: its ``.config``, and its Kconfig tree, which a process of its own reads."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from pydantic import TypeAdapter, ValidationError

from ajuste.catalogue.programs import install_hint
from ajuste.machine.files import require_trusted
from ajuste.model.base import BaseModel
from ajuste.model.caller import open_found, open_given
from ajuste.model.error import Place, RequestError, RunError

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


# The Kconfig tree of a kernel's source, read by a process of its own: what it is asked, and what it answers.


class KconfigQuestion(BaseModel):
    """A question about one configuration, ``config``: the value of each option as text, ``n`` where it is off.

    ``explain`` has for each option in question the value that was wanted, if any; ``describe`` further options that are
    only to be described; ``defaults`` those whose value without the configuration's word is wanted; ``values`` asks for
    the value of all.
    """

    config: dict[str, str]
    explain: dict[str, str | None] = {}
    describe: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()
    values: bool = False


class KconfigReading(BaseModel):
    """A request to the reader of Kconfig files: questions, answered in their order with one reading of the tree."""

    asked: tuple[KconfigQuestion, ...]


class KconfigAnswer(BaseModel):
    """The answer to a question. ``options`` has those that the kernel has. ``values`` is what the whole configuration
    comes to once Kconfig has applied its rules.
    """

    explanations: dict[str, OptionExplanation] = {}
    options: dict[str, KconfigOption] = {}
    values: dict[str, str] = {}
    defaults: dict[str, str] = {}


# Why an option of a kernel has its value.


Cause = Literal["asked", "dependency", "selected", "choice", "hidden", "default", "range", "unknown"]
"""``asked``: the configuration says so and may; ``dependency``: a ``depends on`` (or the condition of a prompt) is
not met; ``selected``: other options force it on; ``choice``: of a group another one is taken; ``hidden``: it has no
prompt, so it can only follow from others; ``default``: nobody chose a value; ``range``: a number beyond its limits;
``unknown``: this kernel has no such option."""


class KconfigOption(BaseModel):
    """An option by a kernel's Kconfig: ``title`` is its prompt, ``help`` the first sentence of its help,
    ``menus`` the menus around it, outermost first, ``file`` where it is defined, below the source.
    """

    name: str
    kind: Literal["bool", "tristate", "string", "int", "hex"]
    title: str = ""
    help: str = ""
    menus: tuple[str, ...] = ()
    file: str = ""
    line: int = 0

    @property
    def directory(self) -> str:
        """Return the most probable directory of its code, such as ``net/mptcp``."""
        return self.file.rpartition("/")[0]


class OptionExplanation(BaseModel):
    """The reason why the option ``name`` has its ``value``, as ``sentence`` says; ``wanted`` is the value it was
    compared with, if any.

    ``deciding`` are the options that it follows from, most direct first: what is not met of its dependencies, what
    selects it, what is taken instead. ``because`` says of those that were not simply asked for why they are so.
    ``nearest`` are names like that of an unknown option.
    """

    name: str
    value: str
    wanted: str | None = None
    cause: Cause
    sentence: str
    deciding: tuple[str, ...] = ()
    because: tuple[OptionExplanation, ...] = ()
    nearest: tuple[str, ...] = ()

    def sentences(self) -> Iterator[str]:
        """Return the whole chain, from the option to what decides."""
        yield self.sentence
        for cause in self.because:
            yield from cause.sentences()

    def hint(self) -> str:
        """Return the chain in one text, for an error."""
        return "\n".join(dict.fromkeys(self.sentences()))


LONGEST_S: Final = 300.0
"""Limit of one reading. It runs some two hundred tests of the compiler: 5 s on a machine of today, minutes on one that
is very busy."""

_ANSWERS: Final = TypeAdapter(tuple[KconfigAnswer, ...])
_MAKE_VARIABLE: Final = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)\s*=[ \t]*(\S*)", re.MULTILINE)
_LONGEST_MESSAGE: Final = 600


def explain(source: Path, config: ConfigFile, wanted: Mapping[str, str | None]) -> dict[str, OptionExplanation]:
    """Explain why each option that ``wanted`` names has the value that ``config`` gives it under the rules of
    ``source``, and not the wanted one (None: any). Raises RequestError where ``source`` is no kernel or a program for
    reading it is missing, RunError where reading it fails.
    """
    return ask(source, [KconfigQuestion(config=as_values(config), explain=dict(wanted))])[0].explanations


def ask(source: Path, questions: list[KconfigQuestion], *, longest_s: float = LONGEST_S) -> tuple[KconfigAnswer, ...]:
    """Answer all questions with one reading of the tree. Raises as ``explain``."""
    require_sources_of_root(source)
    environment = _environment(source)
    request = KconfigReading(asked=tuple(questions)).model_dump_json().encode()
    try:
        child = subprocess.run(
            [sys.executable, "-P", "-m", "ajuste.kernel.kconfig_reader"],
            input=request,
            capture_output=True,
            check=False,
            cwd=source,
            env=environment,
            timeout=longest_s,
        )
    except subprocess.TimeoutExpired as error:
        raise RunError(f"reading the Kconfig files of {source} took longer than {longest_s:g} s") from error
    if child.returncode:
        complaint = child.stderr.decode(errors="replace").strip()[-_LONGEST_MESSAGE:]
        raise RunError(f"cannot read the Kconfig files of {source}: {complaint or f'exit code {child.returncode}'}")
    try:
        return _ANSWERS.validate_json(child.stdout)
    except ValidationError as error:
        raise RunError(f"reading the Kconfig files of {source} gave no answer") from error


def as_values(config: ConfigFile) -> dict[str, str]:
    """Return the configuration as ``KconfigQuestion`` has it."""
    return {name: setting.text for name, setting in config.settings.items() if setting.kind != "absent"}


def require_sources_of_root(source: Path) -> None:
    """Raise RequestError where root would use sources that another user can change: their files run commands."""
    if os.geteuid() != 0:
        return
    try:
        for path in (source, source / "Makefile", source / "Kconfig"):
            require_trusted(path.resolve(), environment={})
    except RequestError:
        raise RequestError(
            f"as root, nothing is run from {source}, which another user can change",
            hint="run it without sudo, or from a copy that belongs to root",
        ) from None


def source_version(source: Path) -> str:
    """Return the version of a kernel's source, such as ``6.1.192``. Raises RequestError where it is no kernel."""
    try:
        makefile = (source / "Makefile").read_text(errors="replace")
    except OSError:
        makefile = ""
    parts: dict[str, str] = dict(_MAKE_VARIABLE.findall(makefile))
    if not {"VERSION", "PATCHLEVEL"} <= parts.keys() or not (source / "Kconfig").is_file():
        raise RequestError(f"{source} is not a Linux kernel source", hint="give a directory with Makefile and Kconfig")
    numbers = [parts[name] for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL") if parts.get(name)]
    return ".".join(numbers) + parts.get("EXTRAVERSION", "")


def _environment(source: Path) -> dict[str, str]:
    # What Kconfig expects of make. Source: the kernel's Makefile and scripts/kconfig/Makefile.
    version = source_version(source)
    for program in ("gcc", "ld"):
        if shutil.which(program) is None:
            raise RequestError(
                f"{program} was not found; kernel options depend on the compiler",
                hint=install_hint("gcc", "binutils"),
            )
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "HOME": os.environ.get("HOME", "/"),
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        "PYTHONDONTWRITEBYTECODE": "1",
        "srctree": str(source.absolute()),
        "abs_srctree": str(source.absolute()),
        "ARCH": "x86",
        "SRCARCH": "x86",
        "SUBARCH": "x86",
        "KERNELVERSION": version,
        "CC": "gcc",
        "CC_VERSION_TEXT": _first_line("gcc", "--version"),
        "HOSTCC": "gcc",
        "HOSTCXX": "g++",
        "LD": "ld",
        "AR": "ar",
        "NM": "nm",
        "OBJCOPY": "objcopy",
        "RUSTC": "rustc",
        "RUSTC_VERSION_TEXT": _first_line("rustc", "--version"),
        "RUSTC_OR_CLIPPY": "rustc",
        "BINDGEN": "bindgen",
        "PAHOLE": "pahole",
        "PAHOLE_VERSION": _first_line(str(source.absolute() / "scripts/pahole-version.sh"), "pahole"),
        "CONFIG_SHELL": "/bin/sh",
    }


def _first_line(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.partition("\n")[0]
    except OSError:
        return ""
