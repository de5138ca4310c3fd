"""Options of a kernel, as they are asked for and as Kconfig makes them.

Source: Documentation/kbuild/kconfig-language.rst and kconfig.rst of the Linux kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

from rapidfuzz import process

from ajuste.kernel.build.origin import Origin
from ajuste.model.error import Place, RequestError

Options = Mapping[str, str]
"""By name without ``CONFIG_``; ``n`` is off; texts are in quotation marks, as in a ``.config``."""

_LINE: Final = re.compile(r"^CONFIG_(\w+)=(.*)$|^# CONFIG_(\w+) is not set$")
_NAME: Final = re.compile(r"[A-Za-z0-9_]+")
_VALUE: Final = re.compile(r"[ymn]|-?\d+|0x[0-9a-fA-F]+|\"[^\"\\\n]*\"")
_SYMBOL: Final = re.compile(rb"^[ \t]*(?:menu)?config[ \t]+(\w+)", re.MULTILINE)


class OptionsConflict(RequestError):
    """Kconfig has no configuration with the options that were asked for."""


def read_options(text: str) -> dict[str, str]:
    """The options of a ``.config`` or a fragment of one. The last line on an option counts."""
    found = {}
    for line in text.splitlines():
        if match := _LINE.match(line.strip()):
            found[match[1] or match[3]] = match[2] if match[1] else "n"
    return found


def written(options: Options) -> str:
    """As a fragment of a ``.config``."""
    return "".join(
        f"# CONFIG_{name} is not set\n" if value == "n" else f"CONFIG_{name}={value}\n"
        for name, value in options.items()
    )


def parse_settings(texts: Sequence[str]) -> dict[str, str]:
    """``NUMA=n`` and the like. Raises RequestError that says what would be right."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().removeprefix("CONFIG_")
        place = Place(f"--set {text}")
        if not equals or not _NAME.fullmatch(name):
            raise RequestError("expected OPTION=VALUE, such as NUMA=n or HZ=1000", place=place)
        value = value.strip()
        if not _VALUE.fullmatch(value):
            value = f'"{value}"'
        if not _VALUE.fullmatch(value) or not value.isprintable():
            raise RequestError("a text may have no quotation marks, backslashes or lines", place=place)
        if found.setdefault(name, value) != value:
            raise RequestError(f"{name} is set twice, to {found[name]} and to {value}", place=place)
    return found


def bundled_fragment(name: str) -> str:
    """The text of ``catalogue/kernels/options/NAME.config``."""
    return (files("ajuste.catalogue") / "kernels" / "options" / f"{name}.config").read_text(encoding="utf-8")


def symbols_of(source: Path, paths: Iterable[str]) -> frozenset[str]:
    """All options that the Kconfig files among ``paths`` below ``source`` define, for any machine."""
    found: set[str] = set()
    for path in paths:
        if path.rpartition("/")[2].startswith("Kconfig") and (source / path).is_file():
            found.update(name.decode() for name in _SYMBOL.findall((source / path).read_bytes()))
    return frozenset(found)


def require_known(asked: Iterable[str], symbols: frozenset[str], origin: Origin) -> None:
    """Raises RequestError with the nearest names."""
    for name in asked:
        if name not in symbols:
            near = [match[0] for match in process.extract(name, symbols, limit=3, score_cutoff=70)]
            raise RequestError(
                f"{origin.title} has no option {name}", hint=f"nearest: {', '.join(near)}" if near else None
            )


def missed(asked: Options, came: Options) -> dict[str, str]:
    """What was asked for and is otherwise, with what it is."""
    return {name: came.get(name, "n") for name, value in asked.items() if came.get(name, "n") != value}


def read_config_file(path: Path) -> str:
    """Raises RequestError for a file that is no ``.config``."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise RequestError(f"--config {path}: {why}", hint="expected lab, lab-ext, distro or a .config file") from None
    if not read_options(text):
        raise RequestError(f"--config {path}: no line of it is CONFIG_NAME=VALUE")
    return text
