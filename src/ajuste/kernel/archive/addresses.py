"""Where the suites of a source are, and by which proxies: what the person says, else as this machine's apt is
configured, if it has one, else as the catalogue says. Source: sources.list(5), apt.conf(5).
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, ConfigDict

from ajuste.kernel.archive.download import SCHEMES, shown
from ajuste.kernel.source import KernelSource, Repository
from ajuste.model.error import RequestError

_PROXIES: Final = {"http": "Acquire::http::Proxy", "https": "Acquire::https::Proxy"}
_CHECKED: Final = "Acquire::Check-Valid-Until"


class Addresses(BaseModel):
    """The address of the archive that has each suite, and ``proxies`` by scheme where the environment names none.
    ``expires`` is whether suites that their Valid-Until calls outdated are refused.
    """

    model_config = ConfigDict(frozen=True)
    suites: dict[str, str]
    proxies: dict[str, str]
    expires: bool


def suites_of(source: KernelSource) -> tuple[str, ...]:
    """All that its repositories have, each once."""
    return tuple(dict.fromkeys(suite for repository in source.repositories for suite in repository.suites))


def find_addresses(source: KernelSource, environment: Mapping[str, str] = os.environ) -> Addresses:
    """Of all suites of ``source``. Raises RequestError for a mirror that a setting names and that can be none."""
    settings = chosen_mirrors(source, environment)
    has_apt = shutil.which("apt-get") is not None and shutil.which("apt-config") is not None
    configured = {} if not has_apt or len(settings) == len(source.repositories) else _apt_mirrors(source)
    suites = {
        suite: settings.get(repository.name) or _configured(repository, suite, configured) or repository.uri
        for repository in source.repositories
        for suite in repository.suites
    }
    said = _apt_settings() if has_apt else {}
    proxies = {scheme: proxy for scheme, name in _PROXIES.items() if (proxy := said.get(name, ""))}
    # https takes the proxy of http where it has none. Source: apt-transport-https(1).
    proxies = {**({"https": proxies["http"]} if "http" in proxies else {}), **proxies}
    proxies = {scheme: proxy for scheme, proxy in proxies.items() if proxy not in ("DIRECT", "false")}
    expires = said.get(_CHECKED, "").lower() not in ("false", "no", "without", "off", "disable", "0")
    return Addresses(suites=suites, proxies=proxies, expires=expires)


def chosen_mirrors(source: KernelSource, environment: Mapping[str, str]) -> dict[str, str]:
    """The mirrors that settings name, by the repository. Raises RequestError for one that can be none."""
    chosen = {}
    for repository in source.repositories:
        if mirror := environment.get(repository.setting, ""):
            scheme, _, place = mirror.partition("://")
            if scheme not in SCHEMES or not place.strip("/"):
                raise RequestError(
                    f"{repository.setting} = {shown(mirror)!r} is not a mirror; expected an address such as "
                    f"{repository.uri}",
                    hint=f"set {repository.setting} to an address that begins with https://, http:// or file:///",
                )
            chosen[repository.name] = mirror.rstrip("/")
    return chosen


def _configured(repository: Repository, suite: str, mirrors: Mapping[str, str]) -> str:
    return next((mirrors[one] for one in (suite, *repository.known_by) if one in mirrors), "")


def _apt_mirrors(source: KernelSource) -> dict[str, str]:
    """The address of each suite of ``source`` that apt is configured for.

    Archives of others can have suites of the same names. The Origin in their release files distinguishes them or, on
    a machine that never fetched these, by the path: mirrors of Debian have "debian" in it.
    """
    known = [uri for uri in _targets() if uri[1] == source.origin]
    if not known:
        known = [uri for uri in _targets("--no-release-info") if source.name in uri[2].lower()]
    mirrors: dict[str, str] = {}
    for suite, _, uri in known:
        mirrors.setdefault(suite, uri)
    return mirrors


def _targets(*options: str) -> list[tuple[str, str, str]]:
    """Suite, origin and address of the package lists that apt fetches. Source: apt-get(8), "indextargets"."""
    layout = "$(IDENTIFIER)|$(COMPONENT)|$(RELEASE)|$(ORIGIN)|$(REPO_URI)"
    found = []
    for line in _said("apt-get", "indextargets", *options, "--format", layout).splitlines():
        match line.split("|", 4):
            case ["Packages", "main", suite, origin, uri]:
                uri = uri.rstrip("/").replace("copy:", "file:", 1) if uri.startswith("copy:") else uri.rstrip("/")
                if uri.partition(":")[0] in SCHEMES:
                    found.append((suite, origin, uri))
    return found


def _apt_settings() -> dict[str, str]:
    """Those that say something of how files are fetched. Source: apt-config(8), "shell"."""
    names = [*_PROXIES.values(), _CHECKED]
    asked = [part for number, name in enumerate(names) for part in (f"v{number}", name)]
    lines = (line.partition("=") for line in _said("apt-config", "shell", *asked).splitlines())
    return {names[int(variable[1:])]: "".join(shlex.split(value)) for variable, _, value in lines if variable}


def _said(*command: str) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    return done.stdout
