"""The sources whose Kconfig files tell why: those that are here, or those that a person names."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ajuste.home import Home
from ajuste.kernel.build.directory import DirectorySource
from ajuste.kernel.build.origin import Origin, version_of
from ajuste.kernel.build.packaged import PackagedSource, cached_sources
from ajuste.kernel.build.sources import open_source
from ajuste.kernel.diff.named import NamedConfig
from ajuste.kernel.kconfig.tree import source_version

Say = Callable[[str], None]

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


def _opened(origin: Origin, folder: Path) -> KconfigSource:
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
