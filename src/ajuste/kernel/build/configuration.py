"""The options that a kernel is built with: what they start from, what was asked for, and what Kconfig makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ajuste.home import Home
from ajuste.kernel.build.make import jobs_here, run_make
from ajuste.kernel.build.options import (
    Options,
    bundled_fragment,
    missed,
    read_config_file,
    read_options,
    written,
)
from ajuste.kernel.build.origin import Say
from ajuste.kernel.build.workspace import Workspace
from ajuste.kernel.fetch import fetch_kernel
from ajuste.model.error import AjusteError, RequestError

_FRAGMENTS: Final[Mapping[str, tuple[str, ...]]] = {"lab": ("lab",), "lab-ext": ("lab", "sched-ext")}
DISTRO: Final = "distro"
NAMES: Final = (*_FRAGMENTS, DISTRO)


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
            hint="name a .config file instead, or lab",
        ) from None
    if kernel.config is None:
        raise RequestError(f"the kernel {kernel.release} comes without its configuration")
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


def fallen(start: Start, settings: Options, came: Options, symbols: frozenset[str]) -> dict[str, str]:
    """What a fragment names and this kernel knows, but did not get: because of the ``settings``, or by itself."""
    if start.kind == "file":
        return {}
    asked = {name: value for name, value in read_options(start.text).items() if name in symbols}
    return missed({name: value for name, value in asked.items() if name not in settings}, came)
