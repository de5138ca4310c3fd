"""Sources of kernels that a distribution packages, unpacked once."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Final

from debian.debian_support import Version
from pydantic import ValidationError

from ajuste.kernel.archive.archive import Archive, PackageGone
from ajuste.kernel.archive.lists import Package
from ajuste.kernel.building.built import Manifest, digest_of, list_files
from ajuste.kernel.cache import (
    CHECKSUMS,
    differs,
    keeping_in,
    out_of_space,
    put_in_place,
    read_checksums,
    write_inventory,
)
from ajuste.kernel.candidate import upstream_of
from ajuste.kernel.fetch import package_lists
from ajuste.kernel.source import kernel_sources
from ajuste.kernel.spec import PackagedKernel
from ajuste.kernel.unpack import TREE, unpacked
from ajuste.machine.cache import SOURCES, make_room
from ajuste.machine.files import read_kept
from ajuste.machine.home import Home
from ajuste.machine.lock import hold, locked
from ajuste.model.base import BaseModel
from ajuste.model.error import RequestError, RunError
from ajuste.model.wording import Say

PREFIX: Final = "linux-source-"
_RECORD: Final = "source.json"
_TREE_BYTES: Final = 2_000_000_000  # 1.6 GB on a disk with blocks of 4 KiB, for 6.1 and for 7.3
_MOST_ATTEMPTS: Final = 8


class PackagedSource(BaseModel):
    """An unpacked package. Nothing in its ``tree`` is ever written to: other trees share its files."""

    directory: Path
    package: str

    @property
    def tree(self) -> Path:
        return self.directory / "tree"

    @property
    def version(self) -> str:
        return self.package.split(" ")[1]

    @property
    def title(self) -> str:
        return self.package

    @property
    def place(self) -> str:
        return self.package

    @property
    def digest(self) -> str:
        """Packages are checked against their signed list, and a version of one never changes."""
        return digest_of([self.package])

    @cached_property
    def manifest(self) -> Manifest:
        # Sizes and times do: nobody changes these files.
        return {path: f"{kind}:{status.st_size}:{status.st_mtime_ns}" for path, kind, status in list_files(self.tree)}

    @cached_property
    def checksums(self) -> dict[str, str]:
        return read_checksums(self.directory)

    def read(self, path: str) -> bytes:
        file = self.tree / path
        self._require_intact(path)
        return os.fsencode(file.readlink()) if file.is_symlink() else file.read_bytes()

    def _require_intact(self, path: str) -> None:
        if damage := differs(self.directory, f"tree/{path}", self.checksums):
            (self.directory / CHECKSUMS).unlink(missing_ok=True)
            raise RunError(
                f"the source {self.package} is damaged on the disk: {damage}",
                hint="build again to fetch it again",
            )

    def read_all(self, paths: Iterable[str]) -> Iterator[bytes]:
        return map(self.read, paths)

    def write(self, paths: Iterable[str], into: Path) -> None:
        """With the times that they have in the package; files share their place on the disk."""
        # Eighty thousand files: as strings in half of the time.
        tree, place = str(self.tree), str(into)
        for path in paths:
            self._require_intact(path)
            os.link(f"{tree}/{path}", f"{place}/{path}", follow_symlinks=False)


def packaged_source(wanted: PackagedKernel, home: Home, say: Say, *, refresh: bool = False) -> PackagedSource:
    """The source package for ``wanted``: of a series the newest that the cache has or else the mirror.

    Raises RequestError for one that there is not or a disk that is too full, RunError where fetching fails.
    """
    source = kernel_sources()[wanted.source]
    root = home.cache / "sources"
    with keeping_in(root, "sources of kernels"):
        if not refresh and (found := cached_source(wanted, home)):
            return found
        with locked(root / ".lock", waiting=lambda: say("waiting for another ajuste that is fetching sources")):
            if not refresh and (found := cached_source(wanted, home)):
                return found
            fetched = _fetch(root, wanted, package_lists(source, home, say), say, refresh=refresh)
            hold(fetched.directory)
            make_room(SOURCES, home)
            return fetched


def _is_meant(wanted: PackagedKernel, version: str) -> bool:
    return (upstream_of(version) + ".").startswith(wanted.version + ".")


def cached_sources(home: Home) -> list[PackagedSource]:
    """All that are here, newest first."""
    folders = (home.cache / "sources").glob(f"{PREFIX}*")
    found = [source for folder in folders if (source := _read(folder))]
    return sorted(found, key=lambda source: Version(source.version), reverse=True)


def cached_source(wanted: PackagedKernel, home: Home) -> PackagedSource | None:
    """The newest that is meant and is here."""
    return next((source for source in cached_sources(home) if _is_meant(wanted, source.version)), None)


def _read(folder: Path) -> PackagedSource | None:
    try:
        hold(folder)
        record = PackagedSource.model_validate_json(read_kept(folder / _RECORD))
    except (OSError, ValidationError):
        return None
    return record.model_copy(update={"directory": folder}) if _is_complete(folder) else None


def _is_complete(folder: Path) -> bool:
    return (folder / "tree/Makefile").is_file() and (folder / CHECKSUMS).is_file()


def _fetch(root: Path, wanted: PackagedKernel, archive: Archive, say: Say, *, refresh: bool) -> PackagedSource:
    archive.refresh(force=refresh)
    names = [name for name in archive.names(PREFIX) if name.removeprefix(PREFIX).replace(".", "").isdigit()]
    packages = archive.packages(names)
    meant = sorted((p for p in packages if _is_meant(wanted, p.version)), key=lambda p: Version(p.version))
    if not meant:
        there = sorted({upstream_of(p.version).rpartition(".")[0] for p in packages}, key=Version)
        raise RequestError(
            f"no source of kernel {wanted.version} in the package lists",
            hint=f"use one of {', '.join(f'{wanted.source}:{version}' for version in there)}" if there else None,
        )
    gone = ""
    for package in meant[: -_MOST_ATTEMPTS - 1 : -1]:
        folder = root / f"{package.name}_{package.version.replace(':', '%3a')}"
        if found := _read(folder):
            return found
        try:
            return _unpacked(package, folder, archive, say)
        except PackageGone as error:
            gone = str(error)
            say(f"{error}: trying the next newest")
    raise RunError(f"could not download a source of {wanted}; the last attempt gave: {gone}")


def _unpacked(package: Package, folder: Path, archive: Archive, say: Say) -> PackagedSource:
    """Download and extract beside the cache, then put it there in one step."""
    what = f"the source {package}"
    with unpacked([package], folder.parent, archive, what, say, spare_bytes=_TREE_BYTES) as temporary:
        (temporary / "entry").mkdir()
        _extract(temporary / TREE / "usr/src" / f"{package.name}.tar.xz", temporary / "entry")
        (temporary / "entry" / package.name).rename(temporary / "entry/tree")
        record = PackagedSource(directory=Path(), package=str(package))
        (temporary / "entry" / _RECORD).write_text(record.model_dump_json(include={"directory", "package"}))
        say(f"computing the checksums of {package}")
        write_inventory(temporary / "entry")
        put_in_place(temporary / "entry", folder, aside=temporary / "damaged")
    return PackagedSource(directory=folder, package=str(package))


def _extract(archive: Path, into: Path) -> None:
    extraction = subprocess.run(
        ["tar", "--extract", "--xz", "--no-same-owner", "--file", archive, "--directory", into],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if extraction.returncode:
        if "No space left" in extraction.stderr or "quota" in extraction.stderr:
            raise out_of_space(into, archive.name)
        raise RunError(f"could not extract {archive.name}: {extraction.stderr.strip()[:300]}")
