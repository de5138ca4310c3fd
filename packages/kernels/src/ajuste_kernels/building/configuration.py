"""Options of a kernel, as they are asked for and as Kconfig makes them; and the objects that they change.

Source: Documentation/kbuild/kconfig-language.rst and kconfig.rst of the Linux kernel.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Final, Literal

from ajuste.machine.home import Home
from ajuste.model.caller import open_found, open_given
from ajuste.model.error import AjusteError, RequestError, nearest_names
from ajuste.model.wording import Say
from ajuste_guest.kernel.config import option_line, read_options
from ajuste_guest.kernel.fetch import fetch_kernel
from ajuste_kernels.building.built import SourceOrigin, digest_texts
from ajuste_kernels.building.make import Edits, Workspace, find_damage, jobs_here, run_make, unsettle

Options = Mapping[str, str]
"""Options by name without ``CONFIG_``; ``n`` is off; texts are in quotation marks, as in a ``.config``."""

# A symbol with the lines of its definition.
_SYMBOL: Final = re.compile(
    rb"^[ \t]*(?:menu)?config[ \t]+(\w+).*\n((?:(?![ \t]*(?:menu)?config[ \t])[ \t]+\S.*\n|[ \t]*\n)*)", re.MULTILINE
)
_TYPE: Final = re.compile(rb"^[ \t]+(?:(?:def_)?(bool|tristate|int|hex|string)\b|(?:---)?help)", re.MULTILINE)
_VALUES: Final[Mapping[str, tuple[str, str]]] = {
    "bool": (r"[yn]", "y or n"),
    "tristate": (r"[ymn]", "y, m or n"),
    "int": (r"-?\d+", "a number"),
    "hex": (r"\d+|0x[0-9a-fA-F]+", "a hexadecimal number such as 0x1000"),
}


# What makes an option settable, and a value that it has by another option alone: `default 100 if HZ_100`.
_PROMPT: Final = re.compile(rb'^[ \t]+(?:bool|tristate|int|hex|string|prompt)[ \t]+"', re.MULTILINE)
_DEFAULT: Final = re.compile(rb"^[ \t]+default[ \t]+(\w+)[ \t]+if[ \t]+(\w+)[ \t]*$", re.MULTILINE)
# Known without sources. Source: Linux, kernel/Kconfig.hz.
_FOLLOWING: Final[Mapping[str, Mapping[str, str]]] = {
    "HZ": {rate: f"HZ_{rate}" for rate in ("100", "250", "300", "1000")},
}

_FRAGMENTS: Final[Mapping[str, tuple[str, ...]]] = {"lab": ("lab",), "lab-ext": ("lab", "sched-ext")}
DISTRO: Final = "distro"
_WIDE: Final = 1 / 3
_MOST_ASIDE: Final = 3

# What building on takes beside a copy.
_LEFT_FREE_BYTES: Final = 4_000_000_000

_MADE_WITH: Final = "include/config/auto.conf"

# NUMA, and up to Linux 5.13 numa.h.
_READ: Final = re.compile(rb"\(wildcard include/config/([\w/]+)")


@dataclass
class KconfigSymbol:
    """An option of Kconfig: its ``type``, empty where definitions differ; for one that nobody can set, which option
    gives it each value (``100`` by ``HZ_100``).
    """

    types: set[str] = field(default_factory=set)
    settable: bool = False
    by_value: dict[str, str] = field(default_factory=dict)

    @property
    def type(self) -> str:
        return next(iter(self.types)) if len(self.types) == 1 else ""


class OptionsConflict(RequestError):
    """An error: Kconfig has no configuration with the requested options."""


def written(options: Options) -> str:
    """Return the options as a fragment of a ``.config``."""
    return "".join(option_line(name, value) for name, value in options.items())


def bundled_fragment(name: str) -> str:
    """Return the text of ``options/NAME.config``."""
    return (files("ajuste_kernels") / "options" / f"{name}.config").read_text(encoding="utf-8")


def read_symbols(origin: SourceOrigin, edits: Edits) -> dict[str, KconfigSymbol]:
    """Return all options that the Kconfig files of ``origin`` with ``edits`` define for any machine."""
    kconfig_files = [path for path in origin.manifest if _is_kconfig(path) and path not in edits]
    patched = [edit.content for path, edit in edits.items() if _is_kconfig(path) and edit.content is not None]
    symbols: dict[str, KconfigSymbol] = {}
    for content in chain(origin.read_all(kconfig_files), patched):
        for name, lines in _SYMBOL.findall(content + b"\n"):
            symbol = symbols.setdefault(name.decode(), KconfigSymbol())
            if (first := _TYPE.search(lines)) and first[1]:
                symbol.types.add(first[1].decode())
            symbol.settable |= _PROMPT.search(lines) is not None
            for value, other in _DEFAULT.findall(lines):
                symbol.by_value.setdefault(value.decode(), other.decode())
    return symbols


def _is_kconfig(path: str) -> bool:
    return path.rpartition("/")[2].startswith("Kconfig")


def require_settable(requested: Options, following: Mapping[str, Mapping[str, str]] = _FOLLOWING) -> None:
    """Raise RequestError for options that only follow from others, as HZ from HZ_100: those of every kernel, or those
    in ``following``.
    """
    for name, value in requested.items():
        if by_value := following.get(name):
            others = [f"{other}=y" for other in dict.fromkeys(by_value.values())]
            raise RequestError(
                f"option {name} follows from others and cannot be set to {value}; expected one of {', '.join(others)}",
                hint=f"write {by_value[value]}=y" if value in by_value else None,
            )


def require_known(requested: Options, symbols: Mapping[str, KconfigSymbol], origin: SourceOrigin) -> None:
    """Raise RequestError for unknown names, with the nearest, for values of another type, and for what only follows."""
    require_settable(
        requested,
        {name: s.by_value for name, s in symbols.items() if s.type in ("int", "hex", "string") and not s.settable},
    )
    for name, value in requested.items():
        if name not in symbols:
            near = nearest_names(name, sorted(symbols), most=3, likeness=70, parts=False)
            raise RequestError(
                f"option {name} is not supported by {origin.title}",
                hint=f"nearest: {', '.join(near)}" if near else None,
            )
        pattern, expected = _VALUES.get(symbols[name].type, ("", ""))
        if pattern and not re.fullmatch(pattern, value):
            raise RequestError(
                f"option {name} has no value {value}; expected {expected}",
                hint=f"write {name}=VALUE with {expected} as VALUE",
            )


def missed(requested: Options, came: Options) -> dict[str, str]:
    """Return the requested options that have another value, with that value."""
    return {name: came.get(name, "n") for name, value in requested.items() if came.get(name, "n") != value}


def read_config_file(path: Path, home: Home) -> str:
    """Read a ``.config``: one that a person names, or of the cache. Raises RequestError for a file that is none."""
    is_kept = path.resolve().is_relative_to(home.cache.resolve())
    try:
        with (open_found if is_kept else open_given)(path) as file:
            text = file.read().decode()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise RequestError(f"--config {path}: {why}", hint="expected lab, lab-ext, distro or a .config file") from None
    if not read_options(text):
        raise RequestError(f"--config {path}: found no option; expected lines such as CONFIG_NUMA=y")
    return text


# The options that a kernel is built with: what they start from, what was asked for, and what Kconfig makes of it.


@dataclass(frozen=True)
class Start:
    """The start of a configuration. Of a ``fragment`` all that is not named is off; what a ``file`` does not name
    is as Kconfig has it by default.
    """

    kind: Literal["fragment", "file"]
    text: str


def read_start(config: str, version: str, home: Home, say: Say) -> Start:
    """Return the start that ``config`` names, for a kernel of ``version``. Raises RequestError, RunError."""
    if config in _FRAGMENTS:
        return Start("fragment", "\n".join(bundled_fragment(name) for name in _FRAGMENTS[config]))
    if config != DISTRO:
        return Start("file", read_config_file(Path(config).expanduser(), home))
    series = ".".join(version.split(".")[:2])
    try:
        kernel = fetch_kernel(f"debian:{series}", home, say=say)
    except AjusteError as error:
        raise type(error)(
            f"--config {DISTRO} is the configuration of Debian's own kernel {series}: {error.message}",
            hint="use lab or a .config file",
        ) from None
    if kernel.config is None:
        raise RequestError(f"the kernel {kernel.release} has no configuration file", hint="use lab or a .config file")
    return Start("file", kernel.config.read_text(encoding="utf-8") + bundled_fragment(DISTRO))


def configure(tree: Workspace, home: Home, start: Start, settings: Options) -> dict[str, str]:
    """Make the ``.config`` of the tree and return its options. Raises RequestError for missed options."""
    wanted = {name: value for name, value in read_options(start.text).items() if name not in settings}
    text = written({**wanted, **settings})
    if start.kind == "fragment":
        fragment = tree.directory / "asked.config"
        fragment.write_text(text, encoding="utf-8")
        run_make(tree, home, [f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig"], jobs=jobs_here())
    else:
        (tree.objects / ".config").write_text(text, encoding="utf-8")
        run_make(tree, home, ["olddefconfig"], jobs=jobs_here())
    return read_options((tree.objects / ".config").read_text(encoding="utf-8"))


def fallen(start: Start, settings: Options, came: Options, symbols: Collection[str]) -> dict[str, str]:
    """Return what a fragment names and this kernel did not get, because of the ``settings`` or by itself."""
    if start.kind == "file":
        return {}
    requested = {name: value for name, value in read_options(start.text).items() if name in symbols}
    return missed({name: value for name, value in requested.items() if name not in settings}, came)


# The objects of a tree by the options they were made with: some are put aside, so that the way back from an option
# that touches every file compiles nothing.
#
# Make compiles a file again when an option changes that the file reads; the names of those options are in its
# ``.NAME.o.cmd``. Source: scripts/basic/fixdep.c of Linux.


@dataclass(frozen=True)
class OptionChange:
    """A change of options: of ``objects`` existing ones, make compiles ``affected`` again for other options."""

    objects: int
    affected: int

    @property
    def wide(self) -> bool:
        """Return whether most must be compiled again."""
        return self.affected > _WIDE * self.objects

    @property
    def unaffected(self) -> int:
        return self.objects - self.affected


def turn_to(tree: Workspace, options: Options) -> OptionChange:
    """Exchange ``tree.objects``, made with ``options``, for those that need the least compiling; where much must be
    compiled anyway, the present ones are put aside.
    """
    change = _change(tree.objects, options)
    if change.objects and not change.wide:
        return change
    aside = {objects: _change(objects, options) for objects in tree.objects_aside()}
    for nearest in sorted(aside, key=lambda objects: aside[objects].unaffected, reverse=True):
        if aside[nearest].unaffected <= change.unaffected:
            break
        if find_damage(nearest):
            shutil.rmtree(nearest)
            continue
        _exchange(tree, nearest)
        change = aside[nearest]
        break
    if change.wide:
        _copy_aside(tree)
        tree.set_complete(False)
    for objects in sorted(tree.objects_aside(), key=lambda path: path.stat().st_mtime)[:-_MOST_ASIDE]:
        shutil.rmtree(objects)
    return change


def _change(objects: Path, options: Options) -> OptionChange:
    before = _made_with(objects)
    if before is None:
        return OptionChange(0, 0)
    now = _plain(options)
    changed = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
    commands = list(objects.rglob(".*.o.cmd"))
    affected = sum(not changed.isdisjoint(_read_by(command)) for command in commands) if changed else 0
    return OptionChange(len(commands), affected)


def _made_with(objects: Path) -> dict[str, str] | None:
    try:
        return _plain(read_options((objects / _MADE_WITH).read_text(encoding="utf-8")))
    except OSError:
        return None


def _plain(options: Options) -> dict[str, str]:
    # Written as make reads them: without options that are off, and without quotation marks.
    return {name: value.strip('"') for name, value in options.items() if value != "n"}


def _read_by(command: Path) -> set[str]:
    names = {name.decode() for name in _READ.findall(command.read_bytes())}
    return names | {name.replace("/", "_").upper() for name in names if name.islower()}


def _exchange(tree: Workspace, other: Path) -> None:
    # Between the two steps both are aside.
    config = tree.objects.joinpath(".config").read_bytes()
    place = _place_aside(tree)
    if place is None or place == other:
        shutil.rmtree(tree.objects)
    else:
        _put(tree.objects, place)
    other.rename(tree.objects)
    # What is so already keeps its time: make has nothing to do then.
    if tree.objects.joinpath(".config").read_bytes() != config:
        tree.objects.joinpath(".config").write_bytes(config)


def _copy_aside(tree: Workspace) -> None:
    # Where the disk has no room for a copy, the way back is compiled again.
    place = _place_aside(tree)
    size = sum(file.lstat().st_blocks for file in tree.objects.rglob("*")) * 512
    if place is None or shutil.disk_usage(tree.directory).free < size + _LEFT_FREE_BYTES:
        return
    temporary = tree.directory / "copying"
    shutil.rmtree(temporary, ignore_errors=True)
    command = ["cp", "--archive", "--reflink=auto", "--", str(tree.objects), str(temporary)]
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        shutil.rmtree(temporary, ignore_errors=True)
        return
    _put(temporary, place)


def _put(objects: Path, place: Path) -> None:
    place.parent.mkdir(exist_ok=True)
    if place.exists():
        shutil.rmtree(place)
    unsettle(objects)  # It was configured since it was recorded.
    objects.rename(place)
    os.utime(place)


def _place_aside(tree: Workspace) -> Path | None:
    # None if nothing was made yet.
    options = _made_with(tree.objects)
    if options is None:
        return None
    return tree.aside / digest_texts([f"{name}={value}" for name, value in sorted(options.items())])[:16]
