"""The configuration that a person names: a kernel, a .config, or the running system."""

from __future__ import annotations

import gzip
import platform
import re
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ajuste.kernel.building.built import find_built
from ajuste.kernel.building.origin import SourceOrigin, version_of
from ajuste.kernel.building.packaged import PackagedSource, cached_sources
from ajuste.kernel.building.sources import DirectorySource, open_source
from ajuste.kernel.fetch import fetch_kernel
from ajuste.kernel.kconfig.config_file import MOST_BYTES, ConfigFile, parse_config
from ajuste.kernel.kconfig.tree import source_version
from ajuste.kernel.spec import OwnKernel, parse_spec
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste.model.wording import Say

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
        raise RequestError(f"file {text!r} not found; {error.message}", hint=f"give {FORMS}") from error
    if isinstance(spec, OwnKernel):
        built = find_built(spec.name, home)
        provenance = built.provenance
        return NamedConfig(text, _of_image(text, built.image.config), provenance.settings, provenance.source)
    return NamedConfig(text, _of_image(text, fetch_kernel(text, home, say=say).config))


def _of_image(text: str, config: Path | None) -> ConfigFile:
    if config is None:
        raise RequestError(f"the kernel {text} has no configuration file", hint="give its .config file instead")
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
        f"the configuration of the running kernel {release} was not found: expected {places[0]} or {places[1]}",
        hint="try modprobe configs for /proc/config.gz, or give its .config file",
    )


def _of_file(path: Path) -> ConfigFile:
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
        with gzip.open(path) if packed else path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise RequestError(
            f"cannot read {path}: {getattr(error, 'strerror', None) or error}",
            hint="check that the file exists and is readable",
        ) from error
    if len(content) > MOST_BYTES:
        raise RequestError(f"{path} is larger than {MOST_BYTES >> 20} MiB; expected a kernel's .config")
    return parse_config(content.decode("utf-8", errors="replace"), str(path))


# The sources whose Kconfig files tell why: those that are here, or those that a person names.


_SERIES: Final = re.compile(r"\d+\.\d+")


@dataclass(frozen=True)
class KconfigSource:
    """``tree`` has at least the Kconfig files and what they call; ``named`` if a person named it."""

    title: str
    version: str
    tree: Path
    named: bool = False

    @property
    def series(self) -> str:
        return series_of(self.version)


def series_of(version: str) -> str:
    """``6.1`` of ``6.1.192``; empty for what is no version."""
    found = _SERIES.match(version)
    return found[0] if found else ""


@contextmanager
def kconfig_sources(named: Sequence[str], home: Home, say: Say) -> Iterator[list[KconfigSource]]:
    """Those that are ``named`` (``debian:6.1``, a directory, ``git:DIR@REVISION``), which are fetched if they are not
    here; then all packaged ones that are here. Raises RequestError, RunError.
    """
    with tempfile.TemporaryDirectory(prefix="ajuste-kconfig-") as folder:
        found = [_opened(open_source(text, home, say), Path(folder) / str(number)) for number, text in enumerate(named)]
        cached = [KconfigSource(one.title, source_version(one.tree), one.tree) for one in cached_sources(home)]
        yield [*found, *(one for one in cached if one.tree not in {other.tree for other in found})]


def source_for(config: NamedConfig, sources: Sequence[KconfigSource]) -> KconfigSource | None:
    """The source that a configuration was made for: exactly that one, or else one of the same series. One that does
    not say what it was made for is taken to be for the source that was named.
    """
    for source in sources:
        if config.source and config.source == source.title:
            return source
    version = config.config.kernel
    if not version:
        return next((source for source in sources if source.named), None)
    for source in sources:
        if source.version == version:
            return source
    return next((source for source in sources if source.series and source.series == series_of(version)), None)


def _opened(origin: SourceOrigin, folder: Path) -> KconfigSource:
    version = version_of(origin)
    if isinstance(origin, PackagedSource):
        return KconfigSource(origin.title, version, origin.tree, named=True)
    if isinstance(origin, DirectorySource):
        return KconfigSource(origin.title, version, origin.directory, named=True)
    paths = [path for path in origin.manifest if _is_needed(path)]
    for parent in {path.rpartition("/")[0] for path in paths}:
        (folder / parent).mkdir(parents=True, exist_ok=True)
    origin.write(paths, folder)
    return KconfigSource(origin.title, version, folder, named=True)


def _is_needed(path: str) -> bool:
    return path == "Makefile" or path.startswith("scripts/") or path.rpartition("/")[2].startswith("Kconfig")
