"""Where kernels, QEMU and packages come from, as data: ``catalogue/kernels/*.toml``."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from ajuste.model.base import BaseModel, ClosedModel
from ajuste.model.error import AjusteError, Place
from ajuste.model.kernel import KernelVersion

T = TypeVar("T", bound=BaseModel)


class Flavour(ClosedModel):
    """A way in which a distribution configures its kernels. ``suffix`` ends their release."""

    suffix: str
    title: str


class Repository(ClosedModel):
    """An archive with several suites. ``setting`` is the environment variable that names another mirror of it,
    ``known_by`` are suites by which the mirror that a machine's apt has is recognised.
    """

    name: str
    uri: str
    setting: str
    suites: tuple[str, ...] = Field(min_length=1)
    known_by: tuple[str, ...] = ()


class KernelSeries(ClosedModel):
    """Kernels ``since`` ≤ major.minor < ``before``, which are packaged and scheduled alike.

    ``parts``: for each package that is needed, the names it may have, best first. ``granularity`` is the file of the
    scheduler's granularity.
    """

    name: str
    since: str
    before: str | None = None
    suites: tuple[str, ...] = Field(min_length=1)
    scheduler: Literal["CFS", "EEVDF"]
    granularity: str
    parts: tuple[tuple[str, ...], ...] = Field(min_length=1)

    def holds_for(self, version: KernelVersion) -> bool:
        if version < KernelVersion.parse(self.since):
            return False
        return self.before is None or version < KernelVersion.parse(self.before)

    def may_have(self, version: str) -> bool:
        """Whether a kernel of ``version`` can be in it: ``7``, ``6.12``, ``6.12.94`` or a release."""
        if not version.isdigit():
            return self.holds_for(KernelVersion.parse(version))
        first = KernelVersion.parse(self.since).major
        if self.before is None:
            return int(version) >= first
        end = KernelVersion.parse(self.before)
        return first <= int(version) <= (end.major if end.minor else end.major - 1)


class KernelSource(ClosedModel):
    """A distribution whose kernels can be fetched. ``origin`` is what its release files have as Origin, ``keyring`` the
    file of the catalogue with the keys that sign them, ``keyrings`` where a machine may have newer ones.
    """

    name: str
    title: str
    origin: str
    default_flavour: str
    keyring: str
    keyrings: tuple[Path, ...]
    flavours: dict[str, Flavour]
    repositories: tuple[Repository, ...]
    series: tuple[KernelSeries, ...]

    def series_of(self, version: KernelVersion) -> KernelSeries | None:
        return next((s for s in self.series if s.holds_for(version)), None)

    def flavour_of(self, release: str) -> str | None:
        """Return the name of the flavour of a release such as ``5.10.0-46-cloud-amd64``."""
        by_length = sorted(self.flavours.items(), key=lambda item: -len(item[1].suffix))
        return next((name for name, flavour in by_length if release.endswith("-" + flavour.suffix)), None)

    def series_names(self) -> str:
        return ", ".join(s.name for s in self.series)


class QemuSource(ClosedModel):
    """Packages of QEMU. ``suites`` by the code name of the machine's own distribution, or ``other``, whose programs
    require glibc ``oldest_libc``.
    """

    source: str
    minimum: str
    package: str
    companions: tuple[str, ...]
    oldest_libc: str
    suites: dict[str, tuple[str, ...]]


class ReleaseTable(ClosedModel):
    """A release whose packages guests can have: its ``suites``, and the ``base`` of a new system beside what is
    essential.
    """

    suites: tuple[str, ...] = Field(min_length=1)
    base: tuple[str, ...]


class PackageSource(ClosedModel):
    """Where packages of guests come from, by the code name of the release."""

    source: str
    default: str
    releases: dict[str, ReleaseTable]


def _tables() -> list[Traversable]:
    folder = files("ajuste.catalogue") / "kernels"
    return sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)


def _load(model: type[T], table: object, file: Traversable) -> T:
    try:
        return model.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise AjusteError(first["msg"], place=Place(file.name, field=field)) from error


@cache
def kernel_sources() -> dict[str, KernelSource]:
    """Return all sources by name. Raises AjusteError that names the file and the field of a mistake."""
    sources = [
        _load(KernelSource, table, file)
        for file in _tables()
        if "series" in (table := tomllib.loads(file.read_text(encoding="utf-8")))
    ]
    return {source.name: source for source in sources}


@cache
def qemu_source() -> QemuSource:
    """Return where sources of QEMU come from."""
    file = next(f for f in _tables() if f.name == "qemu.toml")
    return _load(QemuSource, tomllib.loads(file.read_text(encoding="utf-8"))["qemu"], file)


@cache
def package_source() -> PackageSource:
    """Return where packages of guests come from."""
    file = next(f for f in _tables() if f.name == "releases.toml")
    return _load(PackageSource, tomllib.loads(file.read_text(encoding="utf-8"))["packages"], file)
