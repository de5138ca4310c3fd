"""Which kernels the package lists offer."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from debian.debian_support import Version

from ajuste.kernel.archive.archive import Archive
from ajuste.kernel.archive.lists import Package
from ajuste.kernel.source import KernelSeries, KernelSource
from ajuste.model.kernel import KernelVersion

_RELEASE = re.compile(r"[0-9]+\.[0-9]+[+~.\-0-9a-zA-Z]*")


@dataclass(frozen=True)
class Candidate:
    """A kernel that the lists offer. ``packages`` are all that it takes, the one of the image first."""

    source: str
    release: str
    flavour: str
    series: KernelSeries
    packages: tuple[Package, ...]

    @property
    def version(self) -> str:
        """The version of its packages, e.g. ``6.12.94-1``."""
        return self.packages[0].version

    @property
    def upstream(self) -> str:
        """The kernel's own version, e.g. ``6.12.94``."""
        return upstream_of(self.version)

    @property
    def size_bytes(self) -> int:
        """To download."""
        return sum(p.size_bytes for p in self.packages)

    @property
    def installed_bytes(self) -> int:
        return sum(p.installed_bytes for p in self.packages)

    @property
    def suites(self) -> tuple[str, ...]:
        return self.packages[0].suites


def upstream_of(version: str) -> str:
    """``6.12.94`` of the package version ``6.12.94-1~bpo12+1``."""
    return Version(version).upstream_version or version


def find_candidates(archive: Archive, source: KernelSource) -> list[Candidate]:
    """All kernels of ``source`` that the package lists have, newest first."""
    names = archive.names("linux-")
    wanted = {name for release in _releases(names, source) for name in _part_names(release, source)}
    return assemble(archive.packages(wanted.intersection(names)), source)


def assemble(packages: list[Package], source: KernelSource) -> list[Candidate]:
    """Put packages together to kernels, newest first by Debian's order of versions.

    A kernel of which a part is missing is left out; one that is packaged in two ways is there twice. Source for the
    order: deb-version(7).
    """
    known = {(p.name, p.version): p for p in packages}
    versions: dict[str, set[str]] = {}
    for package in packages:
        versions.setdefault(package.name, set()).add(package.version)
    found = []
    for release in _releases(list(versions), source):
        flavour = source.flavour_of(release)
        for version in set().union(*(versions.get(name, set()) for name in _part_names(release, source))):
            series = source.series_of(KernelVersion.parse(upstream_of(version)))
            if series and flavour:
                ways = _ways(series, release, version, known)
                found += [Candidate(source.name, release, flavour, series, parts) for parts in ways]
    # Sorting is stable: of one version, the preferred packages stay first.
    return sorted(found, key=lambda c: (Version(c.version), c.release), reverse=True)


def _ways(
    series: KernelSeries, release: str, version: str, known: dict[tuple[str, str], Package]
) -> Iterator[tuple[Package, ...]]:
    """The sets of packages that make up one kernel, best first: signed or, if that is not there, unsigned."""
    parts = [
        [known[key] for pattern in alternatives if (key := (pattern.format(release=release), version)) in known]
        for alternatives in series.parts
    ]
    return itertools.product(*parts)


def _part_names(release: str, source: KernelSource) -> set[str]:
    patterns = {pattern for series in source.series for part in series.parts for pattern in part}
    return {pattern.format(release=release) for pattern in patterns}


def _releases(names: list[str], source: KernelSource) -> set[str]:
    """The releases that the names of packages tell, e.g. ``5.10.0-46-cloud-amd64``."""
    images = {pattern.partition("{release}") for series in source.series for pattern in series.parts[0]}
    found = set()
    for name in names:
        for before, _, after in images:
            if name.startswith(before) and name.endswith(after):
                release = name[len(before) : len(name) - len(after)]
                if _RELEASE.fullmatch(release) and source.flavour_of(release) and release.count(".") >= 2:
                    found.add(release)
    return found
