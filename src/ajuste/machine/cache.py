"""Cache of what is needed again: how much there is of each kind, since when unused, and what goes first.

The user of an entry holds it (see ``machine.files.holding``), and what is held is never removed.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ajuste.machine.files import open_directory, unused
from ajuste.machine.home import Home
from ajuste.machine.session import stale
from ajuste.model.base import BaseModel

SNAPSHOTS: Final = "snapshots"
KERNELS: Final = "kernels"
BUILT: Final = "built"
OBJECTS: Final = "objects"
MODULES: Final = "modules"
HEADERS: Final = "headers"
SYMBOLS: Final = "symbols"
SOURCES: Final = "sources"
QEMU: Final = "qemu"
PACKAGES: Final = "packages"
TUNED: Final = "tuned"
LISTS: Final = "lists"
COMPILER: Final = "compiler"
CLUSTER: Final = "cluster"
CONTAINED: Final = "contained"
LAB: Final = "lab"
REPORTS: Final = "reports"
LEFTOVERS: Final = "leftovers"

_GIB: Final = 1 << 30
_REMOVING: Final = ".removing-"
# So long a file may be there before its maker holds it.
_JUST_MADE_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Kind:
    """Entries are what ``pattern`` finds in ``place``. Beyond ``limit_bytes`` those unused for longest go. ``locks``
    are what the users of an entry lock.
    """

    name: str
    what: str
    place: Callable[[Home], Path]
    pattern: str = "[!.]*"
    limit_bytes: int | None = None
    locks: Callable[[Path, Home], tuple[Path, ...]] = lambda path, _: (path,)


def _in_cache(folder: str) -> Callable[[Home], Path]:
    return lambda home: home.cache / folder


def _lock_inside(path: Path, _: Home) -> tuple[Path, ...]:
    return (path / "lock",)


def _build_locks(_: Path, home: Home) -> tuple[Path, ...]:
    return tuple((home.cache / "build").glob("*/lock"))


KINDS: Final = {
    kind.name: kind
    for kind in (
        Kind(KERNELS, "fetched kernels", lambda home: home.kernels, limit_bytes=8 * _GIB),
        Kind(BUILT, "built kernels", _in_cache("built"), "?" * 64, 20 * _GIB),
        Kind(OBJECTS, "kernel build trees", _in_cache("build"), "?" * 16, 60 * _GIB, _lock_inside),
        Kind(SNAPSHOTS, "booted machines (snapshots)", lambda home: home.booted, "*.snapshot", 8 * _GIB),
        Kind(MODULES, "kernel modules", _in_cache("modules"), limit_bytes=_GIB // 4),
        Kind(HEADERS, "kernel headers", _in_cache("headers"), limit_bytes=4 * _GIB),
        Kind(SYMBOLS, "names of kernels' functions", _in_cache("symbols"), limit_bytes=_GIB // 4),
        Kind(SOURCES, "kernel sources", _in_cache("sources"), limit_bytes=16 * _GIB),
        Kind(QEMU, "fetched QEMU", _in_cache("qemu"), limit_bytes=_GIB),
        Kind(PACKAGES, "Debian packages of guests", _in_cache("packages"), limit_bytes=4 * _GIB),
        Kind(TUNED, "fetched tuned profiles", _in_cache("tuned"), limit_bytes=_GIB // 4),
        Kind(LISTS, "package lists", _in_cache("lists"), limit_bytes=2 * _GIB, locks=_lock_inside),
        Kind(COMPILER, "ccache, with its own limit", lambda home: home.cache, "ccache", locks=_build_locks),
        Kind(CLUSTER, "files sent to workers", _in_cache("cluster"), limit_bytes=2 * _GIB),
        Kind(CONTAINED, "patches and schedulers of study files", _in_cache("contained"), limit_bytes=_GIB),
        Kind(LAB, "what the lab page remembers of runs", _in_cache("lab"), limit_bytes=_GIB // 4),
        Kind(REPORTS, "HTML reports; `ajuste report` writes them again", lambda home: home.reports, "*.html", _GIB),
    )
}
"""The kinds of cache entries, with their limits."""

ASKED_FOR: Final = frozenset({BUILT, REPORTS})
"""The kinds that a person had made: cleared only by name, and not along with all the rest."""

_HALF_MADE: Final = (".fetching-*", ".building-*", f"{_REMOVING}*")


@dataclass(frozen=True)
class Entry:
    """Something that is kept. ``used_s``: when it was last used, in seconds since 1970. Who uses it locks one of
    ``locks``.
    """

    path: Path
    locks: tuple[Path, ...]
    size_bytes: int
    used_s: float


class Kept(BaseModel):
    """The amount of a kind in the cache. ``last_used`` is of what was used last, in seconds since 1970; ``in_use``
    counts the entries that somebody uses now.
    """

    kind: str
    what: str
    place: str
    count: int
    size_bytes: int
    limit_bytes: int | None
    last_used: float | None
    in_use: int


class Cleared(BaseModel):
    """The amount removed of a kind, or to be removed; ``in_use`` are left."""

    kind: str
    count: int
    size_bytes: int
    in_use: int


def survey(home: Home) -> list[Kept]:
    """Return all kinds, as they are shown; what killed commands left half made comes last."""
    kinds = [
        _amount(kind.name, kind.what, str(kind.place(home)), kind.limit_bytes, _entries(kind, home))
        for kind in KINDS.values()
    ]
    return [*kinds, _amount(LEFTOVERS, "remains of killed commands", "", None, _leftovers(home))]


def clear(names: Iterable[str], home: Home, *, dry_run: bool = False) -> list[Cleared]:
    """Remove all unused entries of the kinds ``names``, least recently used first."""
    return [_cleared(name, home, dry_run=dry_run) for name in names]


def make_room(name: str, home: Home) -> None:
    """Keep a kind within its limit: the least recently used goes first, never the last used."""
    kind = KINDS[name]
    entries = _entries(kind, home)
    total = sum(entry.size_bytes for entry in entries)
    for entry in entries[:-1]:
        if kind.limit_bytes is None or total <= kind.limit_bytes:
            return
        if _remove(entry):
            total -= entry.size_bytes


def remove_leftovers(home: Home) -> None:
    """Remove what killed commands left half made. Costs nothing where there is nothing."""
    _cleared(LEFTOVERS, home, dry_run=False)


def _cleared(name: str, home: Home, *, dry_run: bool) -> Cleared:
    entries = _leftovers(home) if name == LEFTOVERS else _entries(KINDS[name], home)
    gone = [entry for entry in entries if (_is_unused(entry) if dry_run else _remove(entry))]
    size_bytes = sum(entry.size_bytes for entry in gone)
    return Cleared(kind=name, count=len(gone), size_bytes=size_bytes, in_use=len(entries) - len(gone))


def _amount(name: str, what: str, place: str, limit_bytes: int | None, entries: Sequence[Entry]) -> Kept:
    return Kept(
        kind=name,
        what=what,
        place=place,
        count=len(entries),
        size_bytes=sum(entry.size_bytes for entry in entries),
        limit_bytes=limit_bytes,
        last_used=max((entry.used_s for entry in entries), default=None),
        in_use=sum(not _is_unused(entry) for entry in entries),
    )


def _entries(kind: Kind, home: Home) -> list[Entry]:
    entries = (_entry(path, kind.locks(path, home)) for path in sorted(kind.place(home).glob(kind.pattern)))
    return sorted((entry for entry in entries if entry), key=lambda entry: entry.used_s)


def _leftovers(home: Home) -> list[Entry]:
    entries: list[Entry | None] = [_entry(path, ()) for path in stale(home.sessions)]
    for name in (KERNELS, BUILT, MODULES, HEADERS, SOURCES, QEMU, PACKAGES, TUNED, OBJECTS, LISTS):
        root = KINDS[name].place(home)
        # Kernels are collected under the lock of what they were built in.
        locks = _build_locks(root, home) if name == BUILT else (root / ".lock",)
        entries += [_entry(path, (path, *locks)) for pattern in _HALF_MADE for path in root.glob(pattern)]
    entries += [_entry(path, (path,)) for path in home.booted.glob("*.new")]
    # Where package lists were before Ajuste read them itself.
    entries += [_entry(path, (path / "lock",)) for path in (home.cache / "apt").glob("[!.]*")]
    before_s = time.time() - _JUST_MADE_SECONDS
    return [entry for entry in entries if entry and (entry.used_s < before_s or not entry.locks)]


def _entry(path: Path, locks: tuple[Path, ...]) -> Entry | None:
    try:
        lock = locks[0] if locks and locks[0].parent == path else path
        return Entry(path, locks, _size_bytes(path), (lock if lock.exists() else path).lstat().st_mtime)
    except OSError:  # It was removed just now.
        return None


def _size_bytes(path: Path) -> int:
    total = path.lstat().st_blocks * 512
    if path.is_symlink() or not path.is_dir():
        return total
    folders = [path]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as items:
            for item in items:
                with suppress(OSError):
                    total += item.stat(follow_symlinks=False).st_blocks * 512
                    if item.is_dir(follow_symlinks=False):
                        folders.append(Path(item.path))
    return total


def _is_unused(entry: Entry) -> bool:
    with unused(entry.locks) as free:
        return free


def _remove(entry: Entry) -> bool:
    try:
        with open_directory(entry.path.parent) as directory:
            aside = directory / f"{_REMOVING}{entry.path.name}"
            with unused(entry.locks) as free:
                if not free:
                    return False
                (directory / entry.path.name).rename(aside)
            if aside.is_dir() and not aside.is_symlink():
                shutil.rmtree(aside, ignore_errors=True)
            else:
                aside.unlink(missing_ok=True)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
