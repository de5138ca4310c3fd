"""Kernels by their spec: from the cache, or else from the distribution's archive."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from debian.debian_support import Version

from ajuste.kernel.spec import (
    KernelFile,
    KernelSource,
    KernelToBuild,
    OwnKernel,
    PackagedKernel,
    kernel_sources,
    parse_spec,
)
from ajuste.machine.cache import KERNELS, make_room
from ajuste.machine.files import file_sha256, hold
from ajuste.machine.home import Home
from ajuste.model.base import BaseModel
from ajuste.model.caller import require_given
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.kernel import KernelImage, KernelVersion
from ajuste.model.wording import Say
from ajuste_guest.kernel.archive.archive import Archive, PackageGone
from ajuste_guest.kernel.cache import (
    CachedKernel,
    cached_entries,
    cached_entry,
    keeping_in,
    kernel_directory,
    put_in_place,
    read_entry,
)
from ajuste_guest.kernel.candidate import (
    TREE,
    Candidate,
    arrange,
    find_candidates,
    read_release,
    unpacked,
    upstream_version,
)

_LOG: Final = logging.getLogger(__name__)

# An index can name versions whose files are gone; beyond so many of them something else is wrong.
MOST_ATTEMPTS = 24
# For directories, records and rounding up to blocks of the file system.
_SPARE_BYTES = 32_000_000


def fetch_kernel(
    spec: str, home: Home, *, say: Say = lambda _: None, refresh: bool = False, thoroughly: bool = False
) -> KernelImage:
    """Return the kernel that ``spec`` names, on this disk.

    A series such as ``debian:6.1`` is its newest in the cache; with ``refresh``, or if there is none, its newest on the
    mirror. A cached kernel needs no network. Its modules are compared with their checksums when they are loaded or,
    ``thoroughly``, now. Raises RequestError for a missing kernel or a full disk, RunError where fetching fails.
    """
    image = _open_kernel(spec, home, say, refresh, thoroughly)
    _LOG.info(
        "kernel resolved",
        extra={"kernel": spec, "release": image.release, "file": str(image.vmlinuz), "sha256": image.sha256},
    )
    return image


def _open_kernel(spec: str, home: Home, say: Say, refresh: bool, thoroughly: bool) -> KernelImage:
    wanted = parse_spec(spec)
    if isinstance(wanted, KernelFile):
        return _open_file(spec, wanted)
    if isinstance(wanted, OwnKernel):
        from ajuste.kernel.builder import kernel_builder

        return kernel_builder().find_built(wanted.name, home)
    if isinstance(wanted, KernelToBuild):
        raise RequestError(
            f"{spec} names a kernel to build; expected a packaged kernel, such as debian:6.1",
            hint=f"build it with ajuste kernel build --source {wanted.source}, with --set and --patch",
        )
    image = cached_entry(
        home.kernels,
        "kernels",
        "fetching a kernel",
        say,
        read=lambda complain: None if refresh else _from_cache(wanted, home, complain, thoroughly),
        make=lambda: _from_mirror(spec, wanted, home, say, refresh, thoroughly),
    )
    return image.model_copy(update={"spec": spec})


def require_listed(spec: str, home: Home) -> None:
    """Check a packaged kernel against the cache and recent package lists; nothing is fetched, so that may be unknown.

    Raises RequestError for a kernel that neither has.
    """
    wanted = parse_spec(spec)
    if not isinstance(wanted, PackagedKernel) or any(is_meant(wanted, entry) for entry in cached_entries(home)):
        return
    source = kernel_sources()[wanted.source]
    archive = package_lists(source, home, lambda _: None)
    if not archive.is_recent(_wanted_suites(wanted, source)):
        return
    known = find_candidates(archive, source)
    if not any(wanted.names(kernel.release, kernel.upstream, kernel.flavour) for kernel in known):
        raise _missing_kernel(spec, wanted, source, archive, known)


def package_lists(source: KernelSource, home: Home, say: Say) -> Archive:
    """Return the packages of a source."""
    return Archive(home.cache / "lists" / source.name, source, say)


def is_meant(wanted: PackagedKernel, entry: CachedKernel) -> bool:
    """Return whether a cached kernel is meant."""
    source = kernel_sources()[wanted.source]
    if not entry.image.spec.startswith(source.name + ":"):
        return False
    release = entry.image.release
    return wanted.names(release, upstream_version(entry.package_version), source.find_flavour(release) or "")


def _from_cache(wanted: PackagedKernel, home: Home, say: Say, thoroughly: bool) -> KernelImage | None:
    entry = next((e for e in cached_entries(home) if is_meant(wanted, e)), None)
    if entry is None:
        return None
    try:
        hold(entry.directory)
    except FileNotFoundError:  # It was removed just now.
        return None
    damage = entry.damage(thoroughly=thoroughly)
    if damage:
        say(f"the cached kernel {entry.image.release} is damaged ({damage}): fetching it again")
    return None if damage else entry.image


def _from_mirror(
    spec: str, wanted: PackagedKernel, home: Home, say: Say, refresh: bool, thoroughly: bool
) -> KernelImage:
    source = kernel_sources()[wanted.source]
    archive = package_lists(source, home, say)
    archive.refresh(_wanted_suites(wanted, source), force=refresh)
    known = find_candidates(archive, source)
    candidates = [c for c in known if wanted.names(c.release, c.upstream, c.flavour)]
    if not candidates:
        raise _missing_kernel(spec, wanted, source, archive, known)
    gone = ""
    for candidate in candidates[:MOST_ATTEMPTS]:
        directory = kernel_directory(home, candidate.release, candidate.version)
        entry = read_entry(directory)
        if entry and entry.damage(thoroughly=thoroughly) is None:
            return entry.image
        try:
            return _fetch(candidate, directory, archive, home, say)
        except PackageGone as error:
            gone = str(error)
            say(f"{error}: trying the next newest")
    raise RunError(
        f"could not download {spec}: tried {len(candidates)} listed kernels; the last gave: {gone}",
        hint="try again with --refresh, or choose another kernel from ajuste kernel list --all",
        of_candidate=True,
    )


def _fetch(candidate: Candidate, directory: Path, archive: Archive, home: Home, say: Say) -> KernelImage:
    what = f"the kernel {candidate.release}"
    with unpacked(candidate.packages, directory.parent, archive, what, say, spare_bytes=_SPARE_BYTES) as temporary:
        arrange(temporary / TREE, candidate, temporary / "kernel")
        put_in_place(temporary / "kernel", directory, aside=temporary / "damaged")
    entry = read_entry(directory)
    if entry is None:
        raise RunError(f"cannot read back the kernel stored in {directory}")
    hold(directory)
    make_room(KERNELS, home)
    return entry.image


def _wanted_suites(wanted: PackagedKernel, source: KernelSource) -> set[str]:
    version = wanted.version or wanted.release
    return {suite for series in source.series if series.may_have(version) for suite in series.suites}


def _missing_kernel(
    spec: str, wanted: PackagedKernel, source: KernelSource, archive: Archive, known: list[Candidate]
) -> RequestError:
    version = wanted.version or wanted.release
    lacking = archive.lacking(_wanted_suites(wanted, source))
    text = f"kernel {spec} not found in the package lists of {source.name}"
    if lacking:
        text += f"; could not fetch {lacking}"
    alike = [c.upstream for c in known if c.flavour == wanted.flavour and c.series.may_have(version)]
    listed = ", ".join(f"{source.name}:{upstream}" for upstream in list(dict.fromkeys(alike))[:3])
    if listed:
        text += f"; expected one such as {listed}"
    return RequestError(text, hint="list kernels with ajuste kernel list --all")


def _open_file(spec: str, wanted: KernelFile) -> KernelImage:
    vmlinuz = wanted.vmlinuz.expanduser().absolute()
    if not vmlinuz.is_file():
        raise RequestError(f"{spec!r}: file {vmlinuz} not found", hint="give an existing file as path:VMLINUZ")
    try:
        require_given(vmlinuz)
    except OSError as error:
        raise RequestError(f"{spec!r}: {vmlinuz}: {error.strerror}", hint="give a file that you can read") from None
    release = read_release(vmlinuz)
    config = vmlinuz.parent / f"config-{release}"
    return KernelImage(
        spec=spec,
        release=release,
        vmlinuz=vmlinuz,
        modules=_modules_directory(spec, wanted.modules, release) if wanted.modules else None,
        config=config if _is_given(config) else None,
        sha256=file_sha256(vmlinuz),
    )


def _is_given(file: Path) -> bool:
    try:
        require_given(file)
    except OSError:
        return False
    return True


def _modules_directory(spec: str, chosen: Path, release: str) -> Path:
    directory = chosen.expanduser().absolute()
    for place in (directory / "lib/modules" / release, directory / release):
        if place.is_dir():
            return place
    if directory.is_dir() and (directory.name == release or (directory / "modules.builtin").is_file()):
        return directory
    raise RequestError(
        f"{spec!r}: no modules of {release} in {directory}; expected the directory lib/modules/{release} or a parent",
        hint="install them with make modules_install INSTALL_MOD_PATH=DIR, into DIR/lib/modules",
    )


# The available kernels: what the mirror lists and what the cache has.


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
    """Return the newest kernel of each series and flavour, or ``every`` one, by version. Where no lists are available,
    these are the cached ones, and ``say`` gets a message; without any it raises RequestError or RunError.
    """
    kernels: list[AvailableKernel] = []
    for source in kernel_sources().values():
        with keeping_in(home.kernels, "kernels"):
            entries = [e for e in cached_entries(home) if e.image.spec.startswith(source.name + ":")]
        candidates = _listed(source, home, say, refresh, anyway=bool(entries))
        rows = _rows(source, candidates, entries)
        kernels += rows if every else _newest(source, rows)
    return kernels


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
    flavour = source.find_flavour(entry.image.release)
    version = upstream_version(entry.package_version)
    series = source.find_series(KernelVersion.parse(version))
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
    # Of each major.minor and flavour the last one, and what is cached; named as a series where it is what that gives. A
    # series that is cached gives the newest cached one.
    by_series: dict[str, list[AvailableKernel]] = {}
    for row in rows:
        series = f"{source.name}:{KernelVersion.parse(row.version)}"
        by_series.setdefault(series if row.flavour == source.default_flavour else f"{series}/{row.flavour}", []).append(
            row
        )
    newest = []
    for spec, members in by_series.items():
        preferred = next((r for r in reversed(members) if r.cached), members[-1])
        listed = [r for r in members if r.cached or r is members[-1]]
        newest += [r.model_copy(update={"spec": spec}) if r is preferred else r for r in listed]
    return newest
