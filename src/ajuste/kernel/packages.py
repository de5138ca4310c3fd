"""Debian packages for guests: which ones a request comes to, and their files, kept by their content."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import ConfigDict

from ajuste.kernel.archive.archive import Archive
from ajuste.kernel.archive.closure import closure
from ajuste.kernel.archive.lists import Package
from ajuste.kernel.cache import require_space
from ajuste.kernel.fetch import package_lists
from ajuste.kernel.source import kernel_sources, package_source
from ajuste.machine.files import make_directory, sha256_of
from ajuste.machine.home import Home
from ajuste.model.base import BaseModel
from ajuste.model.error import RequestError, RunError, did_you_mean, nearest_names
from ajuste.model.wording import Say

_LOG: Final = logging.getLogger(__name__)
_SPARE_BYTES: Final = 32_000_000


class PackageRequest(BaseModel):
    """The packages ``names`` of the release of that code name."""

    model_config = ConfigDict(frozen=True)
    release: str
    names: tuple[str, ...]


class PackageVersion(BaseModel):
    """A package that a guest has, by the SHA-256 of its file."""

    model_config = ConfigDict(frozen=True)
    name: str
    version: str
    sha256: str
    size_bytes: int


def read_request(asked: Sequence[str]) -> PackageRequest:
    """What a study asks for: names, of which one can say the release of all, as ``redis-server/trixie``. Raises
    RequestError.
    """
    source = package_source()
    releases = list(dict.fromkeys(release for text in asked if (release := text.partition("/")[2])))
    if len(releases) > 1:
        raise RequestError(
            f"packages of {' and '.join(releases)}: a guest has those of one release", hint="name one release only"
        )
    release = releases[0] if releases else source.default
    if release not in source.releases:
        raise RequestError(
            f"release {release!r} is not supported; expected one of {', '.join(source.releases)}",
            hint=f"name the packages without a release for those of {source.default}",
        )
    return PackageRequest(release=release, names=tuple(dict.fromkeys(text.partition("/")[0] for text in asked)))


@dataclass(frozen=True)
class ChosenPackages:
    """What a request comes to by the lists of now, what was asked for first; ``archive`` has it."""

    archive: Archive
    packages: tuple[Package, ...]

    def missing(self, home: Home) -> list[Package]:
        """Those whose files are still to be fetched."""
        return [package for package in self.packages if not place_of(home, package.sha256).is_file()]


def choose_packages(request: PackageRequest, home: Home, say: Say, *, refresh: bool = False) -> ChosenPackages:
    """All that ``request`` requires, with what every system of its release has. Raises RequestError for what there is
    not, RunError where the lists cannot be fetched.
    """
    source = package_source()
    archive = package_lists(kernel_sources()[source.source], home, say)
    archive.refresh(force=refresh)
    table = source.releases[request.release]
    if (main := table.suites[0]) in archive.missing_suites():
        raise RunError(f"could not fetch the package lists of {main}", hint="check the network, and run it again")
    pool = _Release(archive, table.suites)
    for name in request.names:
        if not pool.find(name):
            raise _unknown(name, request.release, archive, table.suites)
    names = (*request.names, *table.base, *archive.essential(main))
    return ChosenPackages(archive, tuple(closure(names, pool, request.release)))


def _unknown(name: str, release: str, archive: Archive, suites: tuple[str, ...]) -> RequestError:
    # What begins alike is enough of 60,000 names to look for what was meant.
    alike = {one.name for one in archive.packages(archive.names(name[:2])) if set(suites).intersection(one.suites)}
    return RequestError(
        f"package {name} not found in Debian {release}",
        hint=did_you_mean(nearest_names(name, sorted(alike), parts=False))
        or f"search for it: https://packages.debian.org/search?suite={release}&keywords={name}",
    )


@dataclass
class _Release:
    """The packages of some suites, each looked up once."""

    archive: Archive
    suites: tuple[str, ...]
    known: dict[str, list[Package]] = field(default_factory=dict)

    def find(self, name: str) -> list[Package]:
        if name not in self.known:
            found = self.archive.packages({name, *self.archive.providers(name)})
            self.known[name] = [package for package in found if set(self.suites).intersection(package.suites)]
        return self.known[name]


def place_of(home: Home, sha256: str) -> Path:
    """Where the cache has the file of a package."""
    return packages_directory(home) / f"{sha256}.deb"


def packages_directory(home: Home) -> Path:
    """What the cache has of packages."""
    return home.cache / "packages"


def download_packages(chosen: ChosenPackages, home: Home, say: Say) -> list[Path]:
    """The files of all packages, in their order. Those that the cache has are compared with their checksums. The
    caller holds the lock of the cache's packages. Raises PackageGone, RequestError for a lack of space, RunError.
    """
    root = packages_directory(home)
    make_directory(root)
    for package in chosen.packages:
        file = place_of(home, package.sha256)
        if file.is_file() and sha256_of(file) != package.sha256:
            say(f"the cached package {package} is damaged: fetching it again")
            file.unlink()
    missing = chosen.missing(home)
    installed = sum(package.installed_bytes for package in chosen.packages)
    require_space(root, _size_bytes(missing) + installed + _SPARE_BYTES, "packages")
    if missing:
        say(f"downloading {len(missing)} Debian packages ({_size_bytes(missing) / 1e6:.0f} MB)")
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=root) as directory:
            for package, file in zip(missing, chosen.archive.download(missing, Path(directory)), strict=True):
                file.rename(place_of(home, package.sha256))
        _LOG.info("packages fetched", extra={"packages": len(missing), "bytes": _size_bytes(missing)})
    return [place_of(home, package.sha256) for package in chosen.packages]


def _size_bytes(packages: Iterable[Package]) -> int:
    return sum(package.size_bytes for package in packages)


def described(packages: Iterable[Package]) -> tuple[PackageVersion, ...]:
    """What a run keeps of its packages."""
    return tuple(
        PackageVersion(name=one.name, version=one.version, sha256=one.sha256, size_bytes=one.size_bytes)
        for one in packages
    )
