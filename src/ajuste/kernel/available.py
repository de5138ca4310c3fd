"""The available kernels: what the mirror lists and what the cache has."""

from __future__ import annotations

from collections.abc import Iterable

from debian.debian_support import Version

from ajuste.kernel.cache import CachedKernel, cached_entries, keeping_in
from ajuste.kernel.candidate import Candidate, find_candidates, upstream_of
from ajuste.kernel.fetch import package_lists
from ajuste.kernel.source import KernelSource, kernel_sources
from ajuste.machine.home import Home
from ajuste.model.base import BaseModel
from ajuste.model.error import AjusteError
from ajuste.model.kernel import KernelVersion
from ajuste.model.wording import Say


class AvailableKernel(BaseModel):
    """A kernel that can be fetched or is cached. ``spec`` is what to type for it.

    ``version`` is the kernel's own (``6.12.94``), ``package`` the package of its image with its version, ``suite`` the
    suites that have it (empty: only the cache does), ``granularity`` the file of its scheduler's granularity,
    ``download_bytes`` what fetching takes, ``disk_bytes`` what it takes in the cache.
    """

    spec: str
    release: str
    version: str
    flavour: str
    package: str
    scheduler: str
    granularity: str
    suite: str
    download_bytes: int
    disk_bytes: int
    cached: bool


def available_kernels(home: Home, say: Say, *, every: bool = False, refresh: bool = False) -> list[AvailableKernel]:
    """The newest kernel of each series and flavour, or ``every`` one, in the order of versions.

    Where no lists are available, these are the cached ones, and ``say`` is told; if there are none either, that raises
    RequestError or RunError.
    """
    found: list[AvailableKernel] = []
    for source in kernel_sources().values():
        with keeping_in(home.kernels, "kernels"):
            entries = [e for e in cached_entries(home) if e.image.spec.startswith(source.name + ":")]
        candidates = _listed(source, home, say, refresh, anyway=bool(entries))
        rows = _rows(source, candidates, entries)
        found += rows if every else _newest(source, rows)
    return found


def _listed(source: KernelSource, home: Home, say: Say, refresh: bool, anyway: bool) -> list[Candidate]:
    try:
        archive = package_lists(source, home, say)
        archive.refresh(force=refresh)
        return find_candidates(archive, source)
    except AjusteError as error:
        if refresh or not anyway:
            raise
        say(f"listing only cached kernels of {source.name}: {error.message}")
        return []


def _rows(
    source: KernelSource, candidates: Iterable[Candidate], entries: Iterable[CachedKernel]
) -> list[AvailableKernel]:
    """Every kernel once, the oldest version first."""
    cached = {(e.image.release, e.package_version): e for e in entries}
    rows: dict[tuple[str, str], AvailableKernel] = {}
    for candidate in candidates:
        key = (candidate.release, candidate.version)
        rows.setdefault(key, _row(candidate, cached=key in cached))
    for key, entry in cached.items():
        if key not in rows and (row := _cached_row(source, entry)):
            rows[key] = row
    order = list(source.flavours)
    return sorted(rows.values(), key=lambda r: (Version(r.package.split(" ")[1]), order.index(r.flavour)))


def _row(candidate: Candidate, cached: bool) -> AvailableKernel:
    return AvailableKernel(
        spec=f"{candidate.source}:{candidate.release}",
        release=candidate.release,
        version=candidate.upstream,
        flavour=candidate.flavour,
        package=str(candidate.packages[0]),
        scheduler=candidate.series.scheduler,
        granularity=candidate.series.granularity,
        suite=", ".join(candidate.suites),
        download_bytes=candidate.size_bytes,
        disk_bytes=candidate.installed_bytes,
        cached=cached,
    )


def _cached_row(source: KernelSource, entry: CachedKernel) -> AvailableKernel | None:
    flavour = source.flavour_of(entry.image.release)
    version = upstream_of(entry.package_version)
    series = source.series_of(KernelVersion.parse(version))
    if flavour is None or series is None:
        return None
    return AvailableKernel(
        spec=entry.image.spec,
        release=entry.image.release,
        version=version,
        flavour=flavour,
        package=entry.image.package,
        scheduler=series.scheduler,
        granularity=series.granularity,
        suite="",
        download_bytes=0,
        disk_bytes=entry.size_bytes,
        cached=True,
    )


def _newest(source: KernelSource, rows: list[AvailableKernel]) -> list[AvailableKernel]:
    """Of each major.minor and flavour the last one, and what is cached; named as a series where it is what that gives.

    A series that is cached gives the newest cached one.
    """
    by_series: dict[str, list[AvailableKernel]] = {}
    for row in rows:
        by_series.setdefault(_series_spec(source, row), []).append(row)
    found = []
    for spec, members in by_series.items():
        given = next((r for r in reversed(members) if r.cached), members[-1])
        shown = [r for r in members if r.cached or r is members[-1]]
        found += [r.model_copy(update={"spec": spec}) if r is given else r for r in shown]
    return found


def _series_spec(source: KernelSource, row: AvailableKernel) -> str:
    series = f"{source.name}:{KernelVersion.parse(row.version)}"
    return series if row.flavour == source.default_flavour else f"{series}/{row.flavour}"
