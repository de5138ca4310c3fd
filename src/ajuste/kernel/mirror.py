"""The package mirror of this machine, as its own apt configuration names it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ajuste.kernel.source import KernelSource, Repository
from ajuste.model.error import RequestError


@dataclass(frozen=True)
class Origin:
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

    Archives of others can have suites of the same names. They are told apart by the Origin in their release files or,
    on a machine that never fetched these, by the path: mirrors of Debian have "debian" in it.
    """
    if shutil.which("apt-get") is None:
        raise RequestError(
            "apt-get was not found; kernels of a distribution are fetched with it",
            hint="install apt and dpkg, or give a kernel of your own as path:VMLINUZ",
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


def origins(source: KernelSource, mirrors: dict[str, str]) -> tuple[Origin, ...]:
    """All suites of ``source``, from the machine's mirror where it has one, else from the catalogue's address."""
    keyring = next((k for k in source.keyrings if k.is_file()), None)
    return tuple(
        Origin(_uri(repository, suite, mirrors), suite, keyring)
        for repository in source.repositories
        for suite in repository.suites
    )


def _uri(repository: Repository, suite: str, mirrors: dict[str, str]) -> str:
    known = next((mirrors[s] for s in (suite, *repository.known_by) if s in mirrors), None)
    return known or repository.uri
