"""Options of a kernel, as they are asked for and as Kconfig makes them.

Source: Documentation/kbuild/kconfig-language.rst and kconfig.rst of the Linux kernel.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Final, Literal

from ajuste.kernel.building.built import SourceOrigin
from ajuste.kernel.building.make import jobs_here, run_make
from ajuste.kernel.building.workspace import Edits, Workspace
from ajuste.kernel.fetch import fetch_kernel
from ajuste.kernel.kconfig.config_file import option_line, split_line
from ajuste.machine.home import Home
from ajuste.model.error import AjusteError, RequestError, nearest_names
from ajuste.model.wording import Say

Options = Mapping[str, str]
"""By name without ``CONFIG_``; ``n`` is off; texts are in quotation marks, as in a ``.config``."""

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


class OptionsConflict(RequestError):
    """Kconfig has no configuration with the options that were asked for."""


def read_options(text: str) -> dict[str, str]:
    """The options of a ``.config`` or a fragment of one. The last line on an option counts."""
    return dict(filter(None, (split_line(line.strip()) for line in text.splitlines())))


def written(options: Options) -> str:
    """As a fragment of a ``.config``."""
    return "".join(option_line(name, value) for name, value in options.items())


def bundled_fragment(name: str) -> str:
    """The text of ``catalogue/kernels/options/NAME.config``."""
    return (files("ajuste.catalogue") / "kernels" / "options" / f"{name}.config").read_text(encoding="utf-8")


def symbols_of(origin: SourceOrigin, edits: Edits) -> dict[str, str]:
    """All options that the Kconfig files of ``origin``, as patches leave them, define for any machine, with their
    types (``bool``, ``tristate``, ``int``, ``hex``, ``string``); an empty one where it is not always the same.
    """
    kept = [path for path in origin.manifest if _is_kconfig(path) and path not in edits]
    patched = [edit.content for path, edit in edits.items() if _is_kconfig(path) and edit.content is not None]
    found: dict[str, set[str]] = {}
    for content in chain(origin.read_all(kept), patched):
        for name, lines in _SYMBOL.findall(content + b"\n"):
            kinds = found.setdefault(name.decode(), set())
            if (first := _TYPE.search(lines)) and first[1]:
                kinds.add(first[1].decode())
    return {name: kinds.pop() if len(kinds) == 1 else "" for name, kinds in found.items()}


def _is_kconfig(path: str) -> bool:
    return path.rpartition("/")[2].startswith("Kconfig")


def require_known(asked: Options, symbols: Mapping[str, str], origin: SourceOrigin) -> None:
    """Raises RequestError for names that there are not, with the nearest, and for values of another type."""
    for name, value in asked.items():
        if name not in symbols:
            near = nearest_names(name, sorted(symbols), most=3, likeness=70, parts=False)
            raise RequestError(
                f"option {name} is not supported by {origin.title}",
                hint=f"nearest: {', '.join(near)}" if near else None,
            )
        pattern, expected = _VALUES.get(symbols[name], ("", ""))
        if pattern and not re.fullmatch(pattern, value):
            raise RequestError(
                f"option {name} has no value {value}; expected {expected}",
                hint=f"write {name}=VALUE with {expected} as VALUE",
            )


def missed(asked: Options, came: Options) -> dict[str, str]:
    """What was asked for and is otherwise, with what it is."""
    return {name: came.get(name, "n") for name, value in asked.items() if came.get(name, "n") != value}


def read_config_file(path: Path) -> str:
    """Raises RequestError for a file that is no ``.config``."""
    try:
        if path.exists() and not path.is_file():  # A FIFO would make its reader wait.
            raise ValueError
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise RequestError(f"--config {path}: {why}", hint="expected lab, lab-ext, distro or a .config file") from None
    if not read_options(text):
        raise RequestError(f"--config {path}: found no option; expected lines such as CONFIG_NUMA=y")
    return text


# The options that a kernel is built with: what they start from, what was asked for, and what Kconfig makes of it.


_FRAGMENTS: Final[Mapping[str, tuple[str, ...]]] = {"lab": ("lab",), "lab-ext": ("lab", "sched-ext")}
DISTRO: Final = "distro"


@dataclass(frozen=True)
class Start:
    """What a configuration starts from. Of a ``fragment`` all that is not named is off; what a ``file`` does not name
    is as Kconfig has it by default.
    """

    kind: Literal["fragment", "file"]
    text: str


def start_of(config: str, version: str, home: Home, say: Say) -> Start:
    """The start that ``config`` names, for a kernel of ``version`` (``6.1.192``). Raises RequestError, RunError."""
    if config in _FRAGMENTS:
        return Start("fragment", "\n".join(bundled_fragment(name) for name in _FRAGMENTS[config]))
    if config != DISTRO:
        return Start("file", read_config_file(Path(config).expanduser()))
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
    """Make the ``.config`` of the tree, and say what it has. Raises RequestError for what did not come out."""
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
    """What a fragment names and this kernel knows, but did not get: because of the ``settings``, or by itself."""
    if start.kind == "file":
        return {}
    asked = {name: value for name, value in read_options(start.text).items() if name in symbols}
    return missed({name: value for name, value in asked.items() if name not in settings}, came)
