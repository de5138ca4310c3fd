"""Debian packages for guests: what a request comes to with all that it requires, and files, kept by their content.

Source: Debian Policy, chapter 7 (relations between packages), section 3.8 (essential packages); deb-version(7).
"""

from __future__ import annotations

import logging
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final, Protocol

from debian.debian_support import Version

from ajuste.kernel.spec import kernel_sources, package_source
from ajuste.machine.files import file_sha256, make_directory
from ajuste.machine.home import Home
from ajuste.model.base import BaseModel
from ajuste.model.error import RequestError, RunError, did_you_mean, nearest_names
from ajuste.model.wording import Say
from ajuste_guest.kernel.archive.archive import Archive
from ajuste_guest.kernel.archive.download import Package
from ajuste_guest.kernel.cache import require_space
from ajuste_guest.kernel.fetch import package_lists

_HOLDS: Final[Mapping[str, Callable[[int], bool]]] = {
    "<<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    "=": lambda order: order == 0,
    ">=": lambda order: order >= 0,
    ">>": lambda order: order > 0,
}
_ARCHITECTURES: Final = (None, "any", "native", "amd64", "all")


@dataclass(frozen=True)
class Relation:
    """A package by its ``name``, or what another provides, in some versions: ``(">=", "1.2")``, or all."""

    name: str
    version: tuple[str, str] | None = None

    def __str__(self) -> str:
        return f"{self.name} ({' '.join(self.version)})" if self.version else self.name

    def holds_for(self, version: str) -> bool:
        """Return whether that version will do."""
        if self.version is None:
            return True
        order, wanted = self.version
        return _HOLDS[order](_compared(version, wanted))

    def is_met_by(self, package: Package) -> bool:
        """Return whether ``package`` is it or provides it. What is provided without a version has none."""
        if package.name == self.name and self.holds_for(package.version):
            return True
        return any(
            provision.name == self.name
            and (self.version is None or (provision.version is not None and self.holds_for(provision.version[1])))
            for provision in provided_by(package)
        )


def provided_by(package: Package) -> Iterator[Relation]:
    """Return what ``package`` can stand for."""
    return chain.from_iterable(relations(package.provides))


@cache
def _compared(version: str, other: str) -> int:
    first, second = Version(version), Version(other)
    return (first > second) - (first < second)


@cache
def relations(text: str) -> tuple[tuple[Relation, ...], ...]:
    """Parse all that a field requires, each as its alternatives, without those of other architectures."""
    from debian.deb822 import PkgRelation  # takes long to load

    groups = []
    for alternatives in PkgRelation.parse_relations(text) if text else ():
        here = [
            Relation(entry["name"], _version(entry["version"]))
            for entry in alternatives
            if entry["archqual"] in _ARCHITECTURES
        ]
        groups.append(tuple(here))
    return tuple(groups)


def _version(provided: tuple[str, str] | None) -> tuple[str, str] | None:
    if provided is None:
        return None
    order, version = provided
    return ({"<": "<=", ">": ">="}.get(order, order), version)


class Pool(Protocol):
    """The packages that there are to choose from."""

    def find(self, name: str) -> Sequence[Package]:
        """Return packages of that name and those that provide it, in any order."""
        ...


def closure(wanted: Iterable[str], pool: Pool, release: str) -> list[Package]:
    """Return the packages ``wanted`` with all that they require, in the order of choice.

    Of each it takes the newest version that will do, of alternatives one that is chosen already or else the first that
    fits; never what is only recommended. Raises RequestError for one that the ``release`` does not have, and for those
    that conflict.
    """
    made = _Closure(pool, release)
    names = list(dict.fromkeys(wanted))
    for name in names:
        made.require(((Relation(name),),), "")
    made.complete()
    return list(made.chosen.values())


@dataclass
class _Closure:
    pool: Pool
    release: str
    chosen: dict[str, Package] = field(default_factory=dict)
    provided: dict[str, list[Package]] = field(default_factory=dict)
    conflicts: dict[str, list[tuple[Package, Relation]]] = field(default_factory=dict)
    open: deque[Package] = field(default_factory=deque)

    def complete(self) -> None:
        while self.open:
            package = self.open.popleft()
            self.require(relations(package.depends), str(package))

    def require(self, relations: Iterable[tuple[Relation, ...]], by: str) -> None:
        for alternatives in relations:
            provided = ((relation, self.provided.get(relation.name, ())) for relation in alternatives)
            if not any(relation.is_met_by(package) for relation, packages in provided for package in packages):
                self._choose(alternatives, by)

    def _choose(self, alternatives: tuple[Relation, ...], by: str) -> None:
        refused = ""
        for relation in alternatives:
            for package in self._candidates(relation):
                if problem := self._problem_with(package):
                    refused = refused or problem
                    continue
                self._add(package)
                return
        text = " or ".join(map(str, alternatives)) or "a package of another architecture"
        demand = f"{by} requires {text}" if by else text
        raise RequestError(f"{demand}: {refused or f'Debian {self.release} does not have it'}")

    def _candidates(self, relation: Relation) -> list[Package]:
        packages = [package for package in self.pool.find(relation.name) if relation.is_met_by(package)]
        packages.sort(key=lambda package: package.name)
        packages.sort(key=lambda package: Version(package.version), reverse=True)
        return sorted(packages, key=lambda package: (package.name != relation.name, package.name))

    def _problem_with(self, package: Package) -> str:
        if (other := self.chosen.get(package.name)) is not None:
            return f"{other} is required as well"
        for by, relation in self.conflicts.get(package.name, ()):
            if relation.holds_for(package.version):
                return f"{by} conflicts with {package}"
        for virtual in provided_by(package):
            for by, relation in self.conflicts.get(virtual.name, ()):
                if relation.is_met_by(package) and by.name != package.name:
                    return f"{by} conflicts with {package}"
        for relation in chain.from_iterable(relations(package.conflicts)):
            for other in self.provided.get(relation.name, ()):
                if relation.is_met_by(other) and other.name != package.name:
                    return f"{package} conflicts with {other}"
        return ""

    def _add(self, package: Package) -> None:
        self.chosen[package.name] = package
        self.open.append(package)
        for name in dict.fromkeys((package.name, *(provision.name for provision in provided_by(package)))):
            self.provided.setdefault(name, []).append(package)
        for relation in chain.from_iterable(relations(package.conflicts)):
            self.conflicts.setdefault(relation.name, []).append((package, relation))


_LOG: Final = logging.getLogger(__name__)
_SPARE_BYTES: Final = 32_000_000


class PackageRequest(BaseModel):
    """The packages ``names`` of the release of that code name."""

    release: str
    names: tuple[str, ...]


class PackageVersion(BaseModel):
    """A package that a guest has, by the SHA-256 of its file."""

    name: str
    version: str
    sha256: str
    size_bytes: int


def read_request(words: Sequence[str]) -> PackageRequest:
    """Parse what a study asks for: names, of which one can give the release of all, as ``redis-server/trixie``. Raises
    RequestError.
    """
    source = package_source()
    releases = list(dict.fromkeys(release for text in words if (release := text.partition("/")[2])))
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
    return PackageRequest(release=release, names=tuple(dict.fromkeys(text.partition("/")[0] for text in words)))


@dataclass(frozen=True)
class ChosenPackages:
    """The packages of a request by the lists of now, what was asked for first; ``archive`` has it."""

    archive: Archive
    packages: tuple[Package, ...]

    def missing(self, home: Home) -> list[Package]:
        """Return the packages still to be fetched."""
        return [package for package in self.packages if not package_file(home, package.sha256).is_file()]


def choose_packages(request: PackageRequest, home: Home, say: Say, *, refresh: bool = False) -> ChosenPackages:
    """Return all that ``request`` requires, with what every system of its release has. Raises RequestError for a
    missing package, RunError where the lists cannot be fetched.
    """
    source = package_source()
    archive = package_lists(kernel_sources()[source.source], home, say)
    archive.refresh(force=refresh)
    table = source.releases[request.release]
    if lacking := archive.lacking((main := table.suites[0],)):
        raise RunError(f"could not fetch {lacking}", hint="check the network, and run it again")
    pool = _Release(archive, table.suites)
    for name in request.names:
        if not pool.find(name):
            raise _unknown(name, request.release, archive, table.suites)
    names = (*request.names, *table.base, *archive.essential(main))
    return ChosenPackages(archive, tuple(closure(names, pool, request.release)))


def _unknown(name: str, release: str, archive: Archive, suites: tuple[str, ...]) -> RequestError:
    # What begins alike is enough of 60,000 names to look for what was meant.
    alike = {
        package.name
        for package in archive.packages(archive.names(name[:2]))
        if set(suites).intersection(package.suites)
    }
    return RequestError(
        f"package {name} not found in Debian {release}",
        hint=did_you_mean(nearest_names(name, sorted(alike), likeness=80, parts=False))
        or f"search for it: https://packages.debian.org/search?suite={release}&keywords={name}",
    )


@dataclass
class _Release:
    archive: Archive
    suites: tuple[str, ...]
    known: dict[str, list[Package]] = field(default_factory=dict)

    def find(self, name: str) -> list[Package]:
        if name not in self.known:
            packages = self.archive.packages({name, *self.archive.providers(name)})
            self.known[name] = [package for package in packages if set(self.suites).intersection(package.suites)]
        return self.known[name]


def package_file(home: Home, sha256: str) -> Path:
    """Return where the cache has the file of a package."""
    return packages_directory(home) / f"{sha256}.deb"


def packages_directory(home: Home) -> Path:
    """Return the directory of packages in the cache."""
    return home.cache / "packages"


def download_packages(chosen: ChosenPackages, home: Home, say: Say) -> list[Path]:
    """Return the files of all packages, in their order, comparing cached ones with their checksums. The caller holds
    the lock of the cache's packages. Raises PackageGone, RequestError for a lack of space, RunError.
    """
    root = packages_directory(home)
    make_directory(root)
    for package in chosen.packages:
        file = package_file(home, package.sha256)
        if file.is_file() and file_sha256(file) != package.sha256:
            say(f"the cached package {package} is damaged: fetching it again")
            file.unlink()
    missing = chosen.missing(home)
    installed = sum(package.installed_bytes for package in chosen.packages)
    require_space(root, _size_bytes(missing) + installed + _SPARE_BYTES, "packages")
    if missing:
        say(f"downloading {len(missing)} Debian packages ({_size_bytes(missing) / 1e6:.0f} MB)")
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=root) as directory:
            for package, file in zip(missing, chosen.archive.download(missing, Path(directory)), strict=True):
                file.rename(package_file(home, package.sha256))
        _LOG.info("packages fetched", extra={"packages": len(missing), "bytes": _size_bytes(missing)})
    return [package_file(home, package.sha256) for package in chosen.packages]


def _size_bytes(packages: Iterable[Package]) -> int:
    return sum(package.size_bytes for package in packages)


def described(packages: Iterable[Package]) -> tuple[PackageVersion, ...]:
    """Return what a run records of its packages."""
    return tuple(
        PackageVersion(name=package.name, version=package.version, sha256=package.sha256, size_bytes=package.size_bytes)
        for package in packages
    )
