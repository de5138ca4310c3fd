"""The packages of a source: their lists, kept for a day, and their files."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shlex
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote, urlsplit

from pydantic import ValidationError

from ajuste.catalogue.programs import install_command
from ajuste.kernel.spec import KernelSource
from ajuste.machine.files import locked, make_directory, read_kept
from ajuste.model.base import BaseModel
from ajuste.model.error import RequestError, RunError
from ajuste.model.wording import Say
from ajuste_guest.kernel.archive.download import (
    LAYOUT,
    MOST_BYTES,
    SCHEMES,
    Differs,
    Downloader,
    DownloadError,
    DownloadProgress,
    Gone,
    Listed,
    ListedFile,
    Package,
    RejectedRelease,
    Release,
    UnknownIssuer,
    Unreachable,
    find_essential,
    find_names,
    find_packages,
    find_providers,
    read_keys,
    read_listed,
    read_packages,
    read_release,
    redact_password,
    require_valid,
    unpack_list,
    write_list,
)
from ajuste_guest.kernel.cache import keeping_in, out_of_space, require_space

# Where the suites of a source are, and by which proxies: what the person says, else as this machine's apt is
# configured, if it has one, else as the catalogue says. Source: sources.list(5), apt.conf(5).


_PROXIES: Final = {"http": "Acquire::http::Proxy", "https": "Acquire::https::Proxy"}
_CHECKED: Final = "Acquire::Check-Valid-Until"

T = TypeVar("T")
LISTS_VALID_S: Final = 24 * 3600
INCOMPLETE_LISTS_VALID_S: Final = 600

LISTS_BYTES: Final = 150_000_000
"""Size of the lists of all suites. They took 81 MB in 2026, and 11 MB more while they were fetched."""

_LARGEST_LIST_BYTES: Final = 1 << 30
KEYS: Final = "AJUSTE_MIRROR_KEYS"


class Addresses(BaseModel):
    """The address of the archive that has each suite, and ``proxies`` by scheme where the environment names none.
    ``expires`` is whether suites that their Valid-Until calls outdated are refused.
    """

    suites: dict[str, str]
    proxies: dict[str, str]
    expires: bool


def all_suites(source: KernelSource) -> tuple[str, ...]:
    """Return all suites that the source's repositories have, each once."""
    return tuple(dict.fromkeys(suite for repository in source.repositories for suite in repository.suites))


def find_addresses(source: KernelSource, environment: Mapping[str, str] = os.environ) -> Addresses:
    """Return the addresses of all suites of ``source``. Raises RequestError for an invalid mirror in a setting."""
    settings = chosen_mirrors(source, environment)
    has_apt = shutil.which("apt-get") is not None and shutil.which("apt-config") is not None
    configured = {} if not has_apt or len(settings) == len(source.repositories) else _apt_mirrors(source)
    suites = {
        suite: settings.get(repository.name)
        or next(
            (configured[known_name] for known_name in (suite, *repository.known_by) if known_name in configured), ""
        )
        or repository.uri
        for repository in source.repositories
        for suite in repository.suites
    }
    options: dict[str, str] = {}
    if has_apt:
        # Only settings of how files are fetched. Source: apt-config(8), "shell".
        names = [*_PROXIES.values(), _CHECKED]
        arguments = [part for number, name in enumerate(names) for part in (f"v{number}", name)]
        lines = (line.partition("=") for line in _output("apt-config", "shell", *arguments).splitlines())
        options = {names[int(variable[1:])]: "".join(shlex.split(value)) for variable, _, value in lines if variable}
    proxies = {scheme: proxy for scheme, name in _PROXIES.items() if (proxy := options.get(name, ""))}
    # https takes the proxy of http where it has none. Source: apt-transport-https(1).
    proxies = {**({"https": proxies["http"]} if "http" in proxies else {}), **proxies}
    proxies = {scheme: proxy for scheme, proxy in proxies.items() if proxy not in ("DIRECT", "false")}
    expires = options.get(_CHECKED, "").lower() not in ("false", "no", "without", "off", "disable", "0")
    return Addresses(suites=suites, proxies=proxies, expires=expires)


def chosen_mirrors(source: KernelSource, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the mirrors that settings name, by repository. Raises RequestError for an invalid one."""
    chosen = {}
    for repository in source.repositories:
        if mirror := environment.get(repository.setting, ""):
            scheme, _, place = mirror.partition("://")
            if scheme not in SCHEMES or not place.strip("/"):
                raise RequestError(
                    f"{repository.setting} = {redact_password(mirror)!r} is not a mirror; expected an address such as "
                    f"{repository.uri}",
                    hint=f"set {repository.setting} to an address that begins with https://, http:// or file:///",
                )
            chosen[repository.name] = mirror.rstrip("/")
    return chosen


def _apt_mirrors(source: KernelSource) -> dict[str, str]:
    # The address of each suite of `source` that apt is configured for. Archives of others can have suites of the same
    # names. The Origin in their release files distinguishes them or, on a machine that never fetched these, by the
    # path: mirrors of Debian have "debian" in it.
    known = [uri for uri in _targets() if uri[1] == source.origin]
    if not known:
        known = [uri for uri in _targets("--no-release-info") if source.name in uri[2].lower()]
    mirrors: dict[str, str] = {}
    for suite, _, uri in known:
        mirrors.setdefault(suite, uri)
    return mirrors


def _targets(*options: str) -> list[tuple[str, str, str]]:
    # Suite, origin and address of the package lists that apt fetches. Source: apt-get(8), "indextargets".
    layout = "$(IDENTIFIER)|$(COMPONENT)|$(RELEASE)|$(ORIGIN)|$(REPO_URI)"
    targets = []
    for line in _output("apt-get", "indextargets", *options, "--format", layout).splitlines():
        match line.split("|", 4):
            case ["Packages", "main", suite, origin, uri]:
                uri = uri.rstrip("/").replace("copy:", "file:", 1) if uri.startswith("copy:") else uri.rstrip("/")
                if uri.partition(":")[0] in SCHEMES:
                    targets.append((suite, origin, uri))
    return targets


def _output(*command: str) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    return done.stdout


class PackageGone(Exception):
    """A package file of the lists that the mirror does not have, or not as listed."""


class _Stamp(BaseModel):
    # By which settings (a hash) lists were fetched, when each was last asked for, in seconds since the epoch, and why
    # some could not be fetched.
    settings: str
    addresses: Addresses
    asked_s: dict[str, float]
    failures: dict[str, str]

    def is_recent(self, suite: str) -> bool:
        valid_s = INCOMPLETE_LISTS_VALID_S if suite in self.failures else LISTS_VALID_S
        return 0 <= time.time() - self.asked_s.get(suite, -math.inf) < valid_s


class Archive:
    """Package lists of a ``source`` in ``directory``, and downloads from its mirrors."""

    def __init__(self, directory: Path, source: KernelSource, say: Say) -> None:
        self.directory = directory
        self.suites = all_suites(source)
        self._source = source
        self._say = say
        self._stamp = directory / "refreshed.json"

    def refresh(self, suites: Iterable[str] = (), *, force: bool = False) -> None:
        """Fetch the package lists of ``suites`` (default: all) unless they are recent, and name suites that are
        missing. Raises RunError where no list could be fetched and no older one exists.
        """
        wanted = [suite for suite in self.suites if suite in set(suites)] or list(self.suites)
        with keeping_in(self.directory, "package lists"), self._lock(shared=False):
            before = self._read_stamp()
            due = [suite for suite in wanted if force or before is None or not before.is_recent(suite)]
            if not due:
                return
            require_space(self.directory, LISTS_BYTES, "package lists")
            make_directory(self.directory)
            self._say("fetching package lists")
            addresses = find_addresses(self._source)
            failures = self._fetch_lists(due, addresses)
            first = next(iter(failures.values()), None)
            missing = self._missing(wanted)
            if first and len(missing) == len(wanted):
                raise RunError(f"could not fetch any package list: {first}", hint=_hint(first))
            if failures:
                older = ""
                if usable := [suite for suite in failures if suite not in missing]:
                    oldest = min(self._file(suite).stat().st_mtime for suite in usable)
                    older = f"; using those fetched on {datetime.fromtimestamp(oldest, UTC):%Y-%m-%d}"
                self._say(f"could not fetch all package lists: {first}{older}")
            stamp = _Stamp(
                settings=self._settings(),
                addresses=addresses,
                asked_s=(before.asked_s if before else {}) | dict.fromkeys(due, time.time()),
                failures={suite: why for suite, why in before.failures.items() if suite not in due} if before else {},
            )
            stamp.failures.update({suite: str(error) for suite, error in failures.items()})
            self._stamp.write_text(stamp.model_dump_json(), encoding="utf-8")

    def is_recent(self, suites: Iterable[str]) -> bool:
        """Return whether the lists of all of ``suites`` are there, and none would be fetched again now."""
        stamp = self._read_stamp()
        return stamp is not None and not self._missing(suites) and all(stamp.is_recent(suite) for suite in suites)

    def lacking(self, suites: Iterable[str]) -> str:
        """Return which of ``suites`` have no list, and why, to follow "could not fetch"; empty if none."""
        missing, stamp = self._missing(suites), self._read_stamp()
        why = [stamp.failures[suite] for suite in missing if suite in stamp.failures] if stamp else []
        return f"the lists of {', '.join(missing)}" + (f": {why[0]}" if why else "") if missing else ""

    def _missing(self, suites: Iterable[str]) -> list[str]:
        return sorted(suite for suite in set(suites).intersection(self.suites) if not self._file(suite).is_file())

    def names(self, prefix: str) -> list[str]:
        """Return all package names that begin with ``prefix``."""
        names = self._ask(lambda file, _: find_names(file, prefix))
        return sorted(set().union(*names))

    def providers(self, name: str) -> set[str]:
        """Return the names of packages that provide ``name``."""
        return set().union(*self._ask(lambda file, _: find_providers(file, name)))

    def essential(self, suite: str) -> list[str]:
        """Return the names of packages that every system of ``suite`` has."""
        return sorted(set().union(*self._ask(lambda file, other: find_essential(file) if other == suite else set())))

    def packages(self, names: Iterable[str]) -> list[Package]:
        """Return all versions of packages called one of ``names``, each once, with all suites that have it."""
        wanted = sorted(set(names))
        merged: dict[tuple[str, str, str], Package] = {}
        for packages in self._ask(lambda file, suite: find_packages(file, wanted, suite)):
            for package in packages:
                key = (package.name, package.version, package.sha256)
                before = merged[key].suites if key in merged else ()
                merged[key] = replace(package, suites=tuple(dict.fromkeys((*before, *package.suites))))
        return list(merged.values())

    def download(self, packages: Iterable[Package], into: Path) -> list[Path]:
        """Fetch package files into a directory, exactly as the signed lists name them. Raises PackageGone where the
        mirror has one not, or not as listed; RunError for other failures.
        """
        wanted = list(packages)
        known = self._read_stamp()
        addresses = known.addresses if known else find_addresses(self._source)  # Asking apt takes a second.
        downloader = Downloader(addresses.proxies)
        what = f"downloading {wanted[0].name if len(wanted) == 1 else f'{len(wanted)} packages'}"
        transfer = DownloadProgress(what, sum(package.size_bytes for package in wanted), self._say)
        return [self._download(package, into, addresses, downloader, transfer) for package in wanted]

    def _download(
        self, package: Package, into: Path, addresses: Addresses, downloader: Downloader, transfer: DownloadProgress
    ) -> Path:
        file = into / f"{package.name}_{package.version.replace(':', '%3a')}.deb"
        expected = ListedFile(package.size_bytes, package.sha256)
        refused = ""
        for uri in dict.fromkeys(addresses.suites[suite] for suite in package.suites):
            try:
                downloader.save(f"{uri}/{quote(package.path)}", file, expected, transfer.arrived)
            except Gone:
                refused = f"{package} not found on the mirror"
            except Differs as error:
                refused = f"{package}: {error}"
            except DownloadError as error:
                raise RunError(f"could not download {package}: {error}", hint=_hint(error)) from None
            else:
                return file
        raise PackageGone(refused)

    def _fetch_lists(self, suites: Sequence[str], addresses: Addresses) -> dict[str, DownloadError]:
        keys = read_keys(self._source.keyring, self._source.keyrings, os.environ.get(KEYS, ""))
        downloader = Downloader(addresses.proxies)
        failures: dict[str, DownloadError] = {}
        silent: dict[str, Unreachable] = {}
        releases: dict[str, Release] = {}

        def described(suite: str, uri: str) -> None:
            content = downloader.read(f"{uri}/dists/{suite}/InRelease", MOST_BYTES)
            release = read_release(content, suite, keys)
            if addresses.expires:
                require_valid(release, suite, datetime.now(UTC))
            if self._is_new(release, suite):
                releases[suite] = release

        def listed(suite: str, uri: str) -> None:
            self._fetch_list(suite, uri, releases[suite], downloader, transfer)

        def each(suites: Iterable[str], fetch: Callable[[str, str], None]) -> None:
            for suite in suites:
                uri = addresses.suites[suite]
                host = urlsplit(uri).netloc
                try:
                    if host in silent:
                        raise silent[host]
                    fetch(suite, uri)
                except DownloadError as error:
                    failures[suite] = error
                    if isinstance(error, Unreachable):
                        silent[host] = error

        each(suites, described)
        size_bytes = sum(_packed(release)[1].size_bytes for release in releases.values())
        transfer = DownloadProgress("fetching package lists", size_bytes, self._say, is_read=True)
        each(releases, listed)
        return {suite: failures[suite] for suite in suites if suite in failures}

    def _is_new(self, release: Release, suite: str) -> bool:
        before = read_listed(self._file(suite))
        if before and release.date < before.date:
            raise RejectedRelease(
                f"the lists of {suite} on the mirror are of {release.date:%Y-%m-%d}, older than those already here"
            )
        if before and before.sha256 == release.plain.sha256:
            os.utime(self._file(suite))
            return False
        if release.plain.size_bytes > _LARGEST_LIST_BYTES:
            raise RejectedRelease(
                f"the lists of {suite} have {release.plain.size_bytes} bytes; at most {_LARGEST_LIST_BYTES}"
            )
        return True

    def _fetch_list(
        self, suite: str, uri: str, release: Release, downloader: Downloader, transfer: DownloadProgress
    ) -> None:
        ending, packed = _packed(release)
        file = self.directory / f".{suite}{ending}"
        file.unlink(missing_ok=True)
        try:
            downloader.save(f"{uri}/dists/{suite}/{release.path(ending)}", file, packed, transfer.arrived)
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
        transfer.read(packed.size_bytes)

    def _file(self, suite: str) -> Path:
        return self.directory / f"{suite}.sqlite"

    def _ask(self, question: Callable[[Path, str], T]) -> list[T]:
        answers = []
        with self._lock(shared=True):
            for suite, file in ((suite, self._file(suite)) for suite in self.suites):
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

    def _lock(self, *, shared: bool) -> AbstractContextManager[None]:
        return locked(
            self.directory / "lock",
            shared=shared,
            waiting=lambda: self._say("waiting for another ajuste that is fetching package lists"),
        )

    def _read_stamp(self) -> _Stamp | None:
        with suppress(OSError, ValidationError):
            stamp = _Stamp.model_validate_json(read_kept(self._stamp))
            return stamp if stamp.settings == self._settings() else None
        return None

    def _settings(self) -> str:
        settings = [chosen_mirrors(self._source, os.environ), os.environ.get(KEYS, ""), self.suites, LAYOUT]
        return hashlib.sha256(json.dumps(settings).encode()).hexdigest()


def _packed(release: Release) -> tuple[str, ListedFile]:
    return next(iter(release.lists.items()))


def _hint(error: DownloadError) -> str:
    if isinstance(error, UnknownIssuer):
        command = install_command(["ca-certificates"])
        return f"install the certificates of the web ({command}), or set SSL_CERT_FILE to a file that has the mirror's"
    return "check the network, or set AJUSTE_MIRROR to the address of another mirror"
