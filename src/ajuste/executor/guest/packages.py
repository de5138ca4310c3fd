"""Debian packages of a guest: fetched and laid out once, then kept as they are until the cache is cleared."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ajuste.executor.guest.root import GuestRoot, build_root
from ajuste.kernel.archive.archive import PackageGone
from ajuste.kernel.cache import find_any_damage, keeping_in, put_in_place, write_inventory
from ajuste.kernel.packages import (
    PackageRequest,
    PackageVersion,
    choose_packages,
    described,
    download_packages,
    packages_directory,
    read_request,
)
from ajuste.machine.cache import PACKAGES, make_room
from ajuste.machine.files import read_kept
from ajuste.machine.home import Home
from ajuste.machine.lock import hold, holding, locked
from ajuste.model.error import RunError
from ajuste.model.wording import Say

_LAYOUT: Final = 1
"""Of an entry, and of what is made of packages: with another it is made anew."""
_RECORD: Final = "root.json"
_ARCHIVE: Final = "root.cpio"


def fetch_root(asked: Sequence[str], home: Home, say: Say) -> GuestRoot:
    """The packages ``asked`` for, as a guest has them: from the cache, which needs no network, or else from the
    distribution's archive.

    Raises RequestError for packages that there are not and for a disk that is too full, RunError where fetching fails.
    """
    request = read_request(asked)
    directory = packages_directory(home)
    with keeping_in(directory, "packages"):
        if root := _kept(request, home, say):
            return root
        with locked(directory / ".lock", waiting=lambda: say("waiting for another ajuste that is fetching packages")):
            # The other process may just have made it.
            return _kept(request, home, lambda _: None) or _made(request, home, say)


@dataclass(frozen=True)
class PlannedPackages:
    """What a request comes to before anything is fetched. ``download_bytes`` are still to be fetched. ``root`` is there
    if all of it is.
    """

    release: str
    asked: tuple[str, ...]
    packages: tuple[PackageVersion, ...]
    download_bytes: int
    root: GuestRoot | None


def plan_packages(asked: Sequence[str], home: Home, say: Say) -> PlannedPackages:
    """What ``fetch_root`` would give, without fetching a package. Raises as that does."""
    request = read_request(asked)
    with keeping_in(packages_directory(home), "packages"):
        if root := _kept(request, home, say):
            return PlannedPackages(root.release, request.names, root.packages, 0, root)
        chosen = choose_packages(request, home, say)
        missing = sum(package.size_bytes for package in chosen.missing(home))
    return PlannedPackages(request.release, request.names, described(chosen.packages), missing, None)


def _kept(request: PackageRequest, home: Home, say: Say) -> GuestRoot | None:
    directory = _directory(request, home)
    try:
        root = GuestRoot.model_validate_json(read_kept(directory / _RECORD))
        hold(directory)
        status = (directory / _ARCHIVE).stat()
    except (OSError, ValidationError):
        return None
    if damage := _damage(directory, status.st_ino, status.st_mtime_ns):
        say(f"the cached packages are damaged ({damage}): making them again")
        return None
    return root.model_copy(update={"path": directory / _ARCHIVE})


@cache
def _damage(directory: Path, _inode: int, _changed_ns: int) -> str | None:
    """Read once by a process, unless the archive changes: it can have hundreds of MB."""
    return find_any_damage(directory)


def _directory(request: PackageRequest, home: Home) -> Path:
    name = hashlib.sha256(f"{_LAYOUT} {request.model_dump_json()}".encode()).hexdigest()
    return packages_directory(home) / name


def _made(request: PackageRequest, home: Home, say: Say) -> GuestRoot:
    chosen = choose_packages(request, home, say)
    try:
        files = download_packages(chosen, home, say)
    except PackageGone:
        # The mirror has newer ones than the lists of today.
        chosen = choose_packages(request, home, say, refresh=True)
        try:
            files = download_packages(chosen, home, say)
        except PackageGone as error:
            raise RunError(f"could not download packages: {error}", hint="try again later") from None
    say(f"laying out {len(files)} Debian packages")
    place = _directory(request, home)
    with ExitStack() as held, tempfile.TemporaryDirectory(prefix=".building-", dir=place.parent) as name:
        for file in files:
            held.enter_context(holding(file))
        entry = Path(name) / "entry"
        entry.mkdir()
        root = build_root(files, described(chosen.packages), request.release, entry / _ARCHIVE)
        relative = root.model_copy(update={"path": Path(_ARCHIVE)})
        (entry / _RECORD).write_text(relative.model_dump_json(), encoding="utf-8")
        write_inventory(entry)
        put_in_place(entry, place, aside=Path(name) / "damaged")
    hold(place)
    make_room(PACKAGES, home)
    return root.model_copy(update={"path": place / _ARCHIVE})
