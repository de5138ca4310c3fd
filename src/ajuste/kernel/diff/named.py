"""The configuration that a person names: a kernel, a .config, or the running system."""

from __future__ import annotations

import gzip
import platform
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ajuste.home import Home
from ajuste.kernel.build.built import find_built
from ajuste.kernel.fetch import fetch_kernel
from ajuste.kernel.kconfig.config_file import MOST_BYTES, ConfigFile, parse_config
from ajuste.kernel.spec import OwnKernel, parse_spec
from ajuste.model.error import RequestError

Say = Callable[[str], None]

RUNNING: Final = "running"
FORMS: Final = "a kernel (debian:6.1, mine:NAME), a .config file, or running"

_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True)
class NamedConfig:
    """``asked`` are the options that were asked for when the kernel was built here, ``source`` what it was built
    from, as its record has it.
    """

    name: str
    config: ConfigFile
    asked: Mapping[str, str] = field(default_factory=dict)
    source: str = ""


def named_config(text: str, home: Home, say: Say, *, root: Path = Path("/")) -> NamedConfig:
    """The configuration that ``text`` names; a kernel is fetched if it is not here. ``root`` is where the running
    system has its files. Raises RequestError, or RunError where fetching fails.
    """
    if text == RUNNING:
        return NamedConfig(text, _of_running(root))
    path = Path(text).expanduser()
    if path.is_dir() and (path / ".config").is_file():
        path = path / ".config"
    if path.is_file():
        return NamedConfig(text, _of_file(path))
    try:
        spec = parse_spec(text)
    except RequestError as error:
        raise RequestError(f"{text!r} is no file; {error.message}", hint=f"expected {FORMS}") from error
    if isinstance(spec, OwnKernel):
        built = find_built(spec.name, home)
        provenance = built.provenance
        return NamedConfig(text, _of_image(text, built.image.config), provenance.settings, provenance.source)
    return NamedConfig(text, _of_image(text, fetch_kernel(text, home, say=say).config))


def _of_image(text: str, config: Path | None) -> ConfigFile:
    if config is None:
        raise RequestError(f"the kernel {text} comes without its configuration", hint="name its .config file instead")
    return _of_file(config)


def _of_running(root: Path) -> ConfigFile:
    """Source: CONFIG_IKCONFIG_PROC of the kernel, and where distributions put the file."""
    release = platform.release()
    places = (
        root / "proc/config.gz",
        root / f"boot/config-{release}",
        root / f"lib/modules/{release}/config",
        root / f"usr/lib/modules/{release}/config",
    )
    for place in places:
        if place.is_file():
            return _of_file(place)
    raise RequestError(
        f"the running kernel {release} does not tell its configuration: there is no {places[0]} and no {places[1]}",
        hint="modprobe configs may bring /proc/config.gz; or name its .config file",
    )


def _of_file(path: Path) -> ConfigFile:
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
        with gzip.open(path) if packed else path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise RequestError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > MOST_BYTES:
        raise RequestError(f"{path} has more than {MOST_BYTES >> 20} MiB: it is no kernel's .config")
    return parse_config(content.decode("utf-8", errors="replace"), str(path))
