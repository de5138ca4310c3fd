"""The packages of a source: their lists, kept for a day, and their files."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote, urlsplit

from pydantic import BaseModel, ValidationError

from ajuste.catalogue.programs import install_command
from ajuste.kernel.archive.addresses import Addresses, chosen_mirrors, find_addresses, suites_of
from ajuste.kernel.archive.download import Differs, Downloader, DownloadError, Expected, Gone, Unreachable, Untrusted
from ajuste.kernel.archive.lists import (
    Listed,
    Package,
    find_names,
    find_packages,
    read_listed,
    read_packages,
    unpack_list,
    write_list,
)
from ajuste.kernel.archive.release import MOST_BYTES, Refused, Release, read_keys, read_release, require_valid
from ajuste.kernel.cache import keeping_in, out_of_space, require_space
from ajuste.kernel.source import KernelSource
from ajuste.machine.files import make_directory, read_kept
from ajuste.machine.lock import locked
from ajuste.model.error import RunError
from ajuste.model.wording import Say

T = TypeVar("T")

LISTS_VALID_S: Final = 24 * 3600
INCOMPLETE_LISTS_VALID_S: Final = 600
LISTS_BYTES: Final = 150_000_000
"""What the lists of all suites take. They took 81 MB in 2026, and 11 MB more while they were fetched."""
_LARGEST_LIST_BYTES: Final = 1 << 30
KEYS: Final = "AJUSTE_MIRROR_KEYS"


class PackageGone(Exception):
    """The lists name a package file that the mirror does not have, or not as listed."""


class _Stamp(BaseModel):
    """When lists by which settings (a hash) were fetched, in seconds since the epoch, and whether all were there."""

    settings: str
    addresses: Addresses
    time_s: float
    complete: bool


class Archive:
    """Package lists of a ``source`` in ``directory``, and downloads from its mirrors."""

    def __init__(
        self, directory: Path, source: KernelSource, say: Say, environment: Mapping[str, str] = os.environ
    ) -> None:
        self.directory = directory
        self.suites = suites_of(source)
        self._source = source
        self._say = say
        self._environment = environment
        self._stamp = directory / "refreshed.json"

    def refresh(self, *, force: bool = False) -> None:
        """Fetch the package lists unless they are recent. A suite that is missing is told, and does no harm.

        Raises RunError where no list could be fetched and there is no older one.
        """
        with keeping_in(self.directory, "package lists"), self._lock(shared=False):
            before = self._read_stamp()
            if not force and before and _is_recent(before):
                return
            require_space(self.directory, LISTS_BYTES, "package lists")
            make_directory(self.directory)
            self._say("fetching package lists")
            addresses = find_addresses(self._source, self._environment)
            failures = self._fetch_lists(addresses)
            first = next(iter(failures.values()), None)
            missing = self.missing_suites()
            if first and len(missing) == len(self.suites):
                raise RunError(f"could not fetch any package list: {first}", hint=_hint(first))
            if failures:
                kept = [suite for suite in failures if suite not in missing]
                self._say(f"could not fetch all package lists: {first}" + (f"; {self._fetched(kept)}" if kept else ""))
            stamp = _Stamp(settings=self._settings(), addresses=addresses, time_s=time.time(), complete=not failures)
            self._stamp.write_text(stamp.model_dump_json(), encoding="utf-8")

    def missing_suites(self) -> list[str]:
        """The suites of which there is no list."""
        return sorted(suite for suite in self.suites if not self._file(suite).is_file())

    def names(self, prefix: str) -> list[str]:
        """All package names that begin with ``prefix``."""
        found = self._ask(lambda file, _: find_names(file, prefix))
        return sorted(set().union(*found))

    def packages(self, names: Iterable[str]) -> list[Package]:
        """All versions of the packages that have one of ``names``, each once, with all the suites that have it."""
        wanted = sorted(set(names))
        found: dict[tuple[str, str, str], Package] = {}
        for packages in self._ask(lambda file, suite: find_packages(file, wanted, suite)):
            for package in packages:
                key = (package.name, package.version, package.sha256)
                before = found[key].suites if key in found else ()
                found[key] = replace(package, suites=tuple(dict.fromkeys((*before, *package.suites))))
        return list(found.values())

    def download(self, packages: Iterable[Package], into: Path) -> list[Path]:
        """Fetch the package files into a directory: exactly those that the signed lists name.

        Raises PackageGone where one of them is not, or not as listed, on the mirror; RunError for other failures.
        """
        # Asking apt takes a second.
        known = self._read_stamp()
        addresses = known.addresses if known else find_addresses(self._source, self._environment)
        downloader = Downloader(addresses.proxies)
        return [self._download(package, into, addresses, downloader) for package in packages]

    def _download(self, package: Package, into: Path, addresses: Addresses, downloader: Downloader) -> Path:
        file = into / f"{package.name}_{package.version.replace(':', '%3a')}.deb"
        expected = Expected(package.size_bytes, package.sha256)
        refused = ""
        for uri in dict.fromkeys(addresses.suites[suite] for suite in package.suites):
            try:
                downloader.save(f"{uri}/{quote(package.path)}", file, expected)
            except Gone:
                refused = f"{package} not found on the mirror"
            except Differs as error:
                refused = f"{package}: {error}"
            except DownloadError as error:
                raise RunError(f"could not download {package}: {error}", hint=_hint(error)) from None
            else:
                return file
        raise PackageGone(refused)

    def _fetch_lists(self, addresses: Addresses) -> dict[str, DownloadError]:
        """Fetch what is new; gives the suites whose lists could not be fetched, with the reasons."""
        keys = read_keys(self._source.keyring, self._source.keyrings, self._environment.get(KEYS, ""))
        downloader = Downloader(addresses.proxies)
        failures: dict[str, DownloadError] = {}
        silent: dict[str, Unreachable] = {}
        for suite in self.suites:
            uri = addresses.suites[suite]
            host = urlsplit(uri).netloc
            if host in silent:
                failures[suite] = silent[host]
                continue
            try:
                content = downloader.read(f"{uri}/dists/{suite}/InRelease", MOST_BYTES)
                release = read_release(content, suite, keys)
                if addresses.expires:
                    require_valid(release, suite, datetime.now(UTC))
                self._fetch_list(suite, uri, release, downloader)
            except DownloadError as error:
                failures[suite] = error
                if isinstance(error, Unreachable):
                    silent[host] = error
        return failures

    def _fetch_list(self, suite: str, uri: str, release: Release, downloader: Downloader) -> None:
        before = read_listed(self._file(suite))
        if before and release.date < before.date:
            raise Refused(
                f"the lists of {suite} on the mirror are of {release.date:%Y-%m-%d}, older than those already here"
            )
        if before and before.sha256 == release.plain.sha256:
            os.utime(self._file(suite))
            return
        ending, packed = next(iter(release.lists.items()))
        if release.plain.size_bytes > _LARGEST_LIST_BYTES:
            raise Refused(f"the lists of {suite} have {release.plain.size_bytes} bytes; at most {_LARGEST_LIST_BYTES}")
        file = self.directory / f".{suite}{ending}"
        file.unlink(missing_ok=True)
        try:
            downloader.save(f"{uri}/dists/{suite}/{release.path(ending)}", file, packed)
            text = unpack_list(file, ending, release.plain)
        finally:
            file.unlink(missing_ok=True)
        listed = Listed(date=release.date, sha256=release.plain.sha256)
        try:
            write_list(self._file(suite), listed, read_packages(text))
        except sqlite3.Error as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
                raise out_of_space(self.directory, "package lists") from None
            raise RunError(f"cannot write the package lists of {suite} in {self.directory}: {error}") from None

    def _file(self, suite: str) -> Path:
        return self.directory / f"{suite}.sqlite"

    def _ask(self, question: Callable[[Path, str], T]) -> list[T]:
        """The answers of the lists of all suites that there are."""
        answers = []
        with self._lock(shared=True):
            for suite in self.suites:
                file = self._file(suite)
                if not file.is_file():
                    continue
                try:
                    answers.append(question(file, suite))
                except sqlite3.Error as error:
                    for damaged in (file, self._stamp):
                        damaged.unlink(missing_ok=True)
                    raise RunError(
                        f"the package lists of {suite} are damaged on the disk: {error}",
                        hint="run the command again to fetch them again",
                    ) from None
        return answers

    def _fetched(self, suites: Iterable[str]) -> str:
        """When the lists that are here were last the mirror's."""
        oldest = min(self._file(suite).stat().st_mtime for suite in suites)
        return f"using those fetched on {datetime.fromtimestamp(oldest, UTC):%Y-%m-%d}"

    def _lock(self, *, shared: bool) -> AbstractContextManager[None]:
        return locked(
            self.directory / "lock",
            shared=shared,
            waiting=lambda: self._say("waiting for another ajuste that is fetching package lists"),
        )

    def _read_stamp(self) -> _Stamp | None:
        """None also where it was made by other settings."""
        with suppress(OSError, ValidationError):
            stamp = _Stamp.model_validate_json(read_kept(self._stamp))
            return stamp if stamp.settings == self._settings() else None
        return None

    def _settings(self) -> str:
        """Stands for all that the lists depend on."""
        settings = [chosen_mirrors(self._source, self._environment), self._environment.get(KEYS, ""), self.suites]
        return hashlib.sha256(json.dumps(settings).encode()).hexdigest()


def _hint(error: DownloadError) -> str:
    if isinstance(error, Untrusted):
        command = install_command(["ca-certificates"])
        return f"install the certificates of the web ({command}), or set SSL_CERT_FILE to a file that has the mirror's"
    return "check the network, or set AJUSTE_MIRROR to the address of another mirror"


def _is_recent(stamp: _Stamp) -> bool:
    valid_s = LISTS_VALID_S if stamp.complete else INCOMPLETE_LISTS_VALID_S
    return 0 <= time.time() - stamp.time_s < valid_s
