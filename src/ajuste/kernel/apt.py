"""A private apt: the machine's programs, proxies and keys with sources, lists and cache of its own.

Nothing of the machine's own apt state is read or changed. Source: apt-get(8), apt.conf(5).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from debian.deb822 import Deb822
from pydantic import BaseModel, ValidationError

from ajuste.kernel.cache import keeping_in, out_of_space, require_space
from ajuste.kernel.source import KernelSource, Repository
from ajuste.machine.files import make_directory, read_kept
from ajuste.machine.lock import locked
from ajuste.model.error import RequestError, RunError
from ajuste.model.wording import Say

# The package mirror of this machine, as its own apt configuration names it.


@dataclass(frozen=True)
class MirrorOrigin:
    """One suite of an archive, as a line of a sources.list. Source: sources.list(5)."""

    uri: str
    suite: str
    keyring: Path | None = None
    component: str = "main"

    @property
    def line(self) -> str:
        # Only the package lists: no translations, sources, icons.
        options = "arch=amd64 lang=none target=Packages"
        if self.keyring:
            options += f" signed-by={self.keyring}"
        return f"deb [{options}] {self.uri} {self.suite} {self.component}"


def machine_mirrors(source: KernelSource) -> dict[str, str]:
    """The URI of each suite of ``source`` that this machine's apt is configured for. Empty where it has none.

    Archives of others can have suites of the same names. The Origin in their release files distinguishes them or, on
    a machine that never fetched these, by the path: mirrors of Debian have "debian" in it.
    """
    if shutil.which("apt-get") is None:
        raise RequestError(
            "apt-get not found; it is required to fetch a distribution's kernels",
            hint="install apt and dpkg, or use your kernel as path:VMLINUZ",
        )
    known = [target for target in _targets() if target.origin == source.origin]
    if not known:
        configured = _targets("--no-release-info")
        known = [target for target in configured if source.name in target.uri.lower()]
    mirrors: dict[str, str] = {}
    for target in known:
        mirrors.setdefault(target.suite, target.uri)
    return mirrors


@dataclass(frozen=True)
class _Target:
    """Package lists that the machine's apt is configured to fetch."""

    suite: str
    origin: str
    uri: str


def _targets(*options: str) -> list[_Target]:
    """Source: apt-get(8), "indextargets"."""
    layout = "$(IDENTIFIER)|$(COMPONENT)|$(RELEASE)|$(ORIGIN)|$(REPO_URI)"
    listing = subprocess.run(
        ["apt-get", "indextargets", *options, "--format", layout],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    found = []
    for line in listing.stdout.splitlines():
        match line.split("|", 4):
            case ["Packages", "main", suite, origin, uri]:
                found.append(_Target(suite, origin, uri.rstrip("/")))
    return found


def origins(source: KernelSource, mirrors: dict[str, str]) -> tuple[MirrorOrigin, ...]:
    """All suites of ``source``, from the machine's mirror where it has one, else from the catalogue's address."""
    keyring = next((k for k in source.keyrings if k.is_file()), None)
    return tuple(
        MirrorOrigin(_uri(repository, suite, mirrors), suite, keyring)
        for repository in source.repositories
        for suite in repository.suites
    )


def _uri(repository: Repository, suite: str, mirrors: dict[str, str]) -> str:
    known = next((mirrors[s] for s in (suite, *repository.known_by) if s in mirrors), None)
    return known or repository.uri


LISTS_VALID_S = 24 * 3600
INCOMPLETE_LISTS_VALID_S = 600
# Lists and apt's own cache of all suites took 175 MB in 2026.
LISTS_BYTES = 350_000_000

_GONE = re.compile(r"404|not found|no such file|hash sum mismatch|unexpected size", re.IGNORECASE)
_FULL = re.compile(r"no space left|disk quota exceeded|don't have enough free space", re.IGNORECASE)


class PackageGone(Exception):
    """The index names a package file that the mirror does not have."""


@dataclass(frozen=True)
class Package:
    """One version of a package, and the suites that have it."""

    name: str
    version: str
    size_bytes: int
    installed_bytes: int
    depends: str
    suites: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class _Stamp(BaseModel):
    """When lists of which sources (a hash) were fetched, in seconds since the epoch, and whether all were there."""

    sources: str
    time_s: float
    complete: bool


class Apt:
    """Package lists of ``sources`` in ``directory``, and downloads from them."""

    def __init__(self, directory: Path, sources: tuple[MirrorOrigin, ...], keyring_package: str, say: Say) -> None:
        self.directory = directory
        self.sources = sources
        self._keyring_package = keyring_package
        self._say = say
        self._stamp = directory / "refreshed.json"

    def refresh(self, *, force: bool = False) -> None:
        """Fetch the package lists unless they are recent. A suite that is missing is told, and does no harm.

        Raises RunError where no list could be fetched and there is no older one.
        """
        with keeping_in(self.directory, "package lists"), self._lock(shared=False):
            if not force and self._recent():
                return
            require_space(self.directory, LISTS_BYTES, "package lists")
            self._write_configuration()
            self._say("fetching package lists")
            update = self._run("apt-get", "update", "-q")
            missing = self.missing_suites()
            if len(missing) == len({s.suite for s in self.sources}):
                self._raise_unless_full(update.stderr)
                raise RunError(
                    f"could not fetch any package list: {_first_error(update.stderr)}", hint=self._hint(update.stderr)
                )
            failed = update.returncode != 0 or "failed to fetch" in update.stderr.lower()
            if failed:
                self._say(f"could not fetch all package lists: {_first_error(update.stderr)}")
            stamp = _Stamp(sources=self._fingerprint(), time_s=time.time(), complete=not failed and not missing)
            self._stamp.write_text(stamp.model_dump_json(), encoding="utf-8")

    def missing_suites(self) -> list[str]:
        """The suites of which there is no list."""
        listing = self._run("apt-get", "indextargets", "--format", "$(IDENTIFIER) $(RELEASE) $(FILENAME)")
        have = set()
        for line in listing.stdout.splitlines():
            match line.split(" ", 2):
                case ["Packages", suite, file] if Path(file).exists():
                    have.add(suite)
        return sorted({s.suite for s in self.sources} - have)

    def names(self, prefix: str) -> list[str]:
        """All package names that begin with ``prefix``."""
        with self._lock(shared=True):
            return sorted(self._query("apt-cache", "pkgnames", prefix).split())

    def packages(self, names: Iterable[str]) -> list[Package]:
        """All versions of the packages that have one of ``names``."""
        wanted = sorted(set(names))
        if not wanted:
            return []
        with self._lock(shared=True):
            suites = self._suites(wanted)
            shown = self._query("apt-cache", "show", *wanted)
        found: dict[tuple[str, str], Package] = {}
        for stanza in Deb822.iter_paragraphs(shown, use_apt_pkg=False):
            key = (stanza["Package"], stanza["Version"])
            found[key] = Package(
                name=key[0],
                version=key[1],
                size_bytes=int(stanza.get("Size", 0)),
                installed_bytes=int(stanza.get("Installed-Size", 0)) * 1024,
                depends=", ".join(filter(None, (stanza.get("Pre-Depends", ""), stanza.get("Depends", "")))),
                suites=suites.get(key, ()),
            )
        return list(found.values())

    def download(self, packages: Iterable[Package], into: Path) -> list[Path]:
        """Fetch the package files into a directory. apt verifies them against the signed lists.

        Raises PackageGone where one of them is not (or not as listed) on the mirror; RunError for other failures.
        """
        wanted = [f"{p.name}={p.version}" for p in packages]
        before = set(into.iterdir())
        with self._lock(shared=True):
            download = self._run("apt-get", "-q", "download", *wanted, cwd=into)
        if download.returncode == 0:
            return sorted(set(into.iterdir()) - before)
        self._raise_unless_full(download.stderr, into)
        if _GONE.search(download.stderr):
            raise PackageGone(_first_error(download.stderr))
        raise RunError(
            f"could not download {' '.join(wanted)}: {_first_error(download.stderr)}", hint=self._hint(download.stderr)
        )

    def _hint(self, stderr: str) -> str:
        if "NO_PUBKEY" in stderr or "not signed" in stderr:
            return f"install the package {self._keyring_package}, which has the archive's keys"
        return "check the network, and that apt-get update works on this machine"

    def _suites(self, names: list[str]) -> dict[tuple[str, str], tuple[str, ...]]:
        found: dict[tuple[str, str], tuple[str, ...]] = {}
        for line in self._query("apt-cache", "madison", *names).splitlines():
            match [part.strip() for part in line.split(" | ")]:
                case [name, version, origin]:
                    # "URI SUITE/main amd64 Packages"
                    suite = origin.split()[1].rpartition("/")[0]
                    found[name, version] = (*found.get((name, version), ()), suite)
        return found

    def _lock(self, *, shared: bool) -> AbstractContextManager[None]:
        return locked(
            self.directory / "lock",
            shared=shared,
            waiting=lambda: self._say("waiting for another ajuste that is fetching package lists"),
        )

    def _recent(self) -> bool:
        try:
            stamp = _Stamp.model_validate_json(read_kept(self._stamp))
        except (OSError, ValidationError):
            return False
        valid_s = LISTS_VALID_S if stamp.complete else INCOMPLETE_LISTS_VALID_S
        return stamp.sources == self._fingerprint() and 0 <= time.time() - stamp.time_s < valid_s

    def _sources_list(self) -> str:
        return "".join(f"{source.line}\n" for source in self.sources)

    def _fingerprint(self) -> str:
        return hashlib.sha256(self._sources_list().encode()).hexdigest()

    def _write_configuration(self) -> None:
        for folder in ("lists/partial", "archives/partial"):
            make_directory(self.directory / folder)
        (self.directory / "sources.list").write_text(self._sources_list(), encoding="utf-8")
        (self.directory / "apt.conf").write_text(_CONFIGURATION, encoding="utf-8")

    def _query(self, *command: str) -> str:
        answer = self._run(*command)
        # apt-cache also fails where it knows none of several names; that is an answer here.
        if answer.returncode != 0 and "E: No packages found" not in answer.stderr:
            raise RunError(f"{command[0]} {command[1]} failed: {_first_error(answer.stderr)}")
        return answer.stdout

    def _run(self, program: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, "-c", str(self.directory / "apt.conf"), *_options(self.directory), *arguments],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd=cwd or self.directory,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )

    def _raise_unless_full(self, stderr: str, where: Path | None = None) -> None:
        if _FULL.search(stderr):
            raise out_of_space(where or self.directory, "packages")


def _options(directory: Path) -> list[str]:
    """Where this apt keeps its things instead of the machine's own. Source: apt.conf(5), "Directories"."""
    settings = {
        "Dir::State": directory,
        "Dir::State::lists": directory / "lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": directory,
        "Dir::Cache::archives": directory / "archives",
        "Dir::Cache::pkgcache": directory / "pkgcache.bin",
        "Dir::Cache::srcpkgcache": "",
        "Dir::Etc::sourcelist": directory / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
    }
    return [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]


# Read after the machine's own apt.conf, so that its proxies and the like hold.
_CONFIGURATION = """\
APT::Architecture "amd64";
#clear APT::Architectures;
APT::Architectures { "amd64"; };
// The files are the person's own, in directories that apt's own user may not enter.
APT::Sandbox::User "root";
// Ajuste has a lock of its own.
Debug::NoLocking "true";
Acquire::Retries "2";
// The machine's hooks are about its own state.
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"""


def _first_error(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    chosen = next((x for x in lines if x.startswith("E:")), None) or next(iter(lines), "apt gave no reason")
    return re.sub(r"^[EW]: ", "", chosen)
