"""The files of Debian packages as a guest has them: an archive beside its own, made once and kept.

Maintainer scripts are never run. Of what they do, a guest has the alternatives that they name in plain words (``awk``,
``php``), the users of a new system and the links in /var. What a package has is data: names that lead out of the tree,
devices and the like are errors, setuid is left out, and nothing is unpacked on this machine.

Sources: update-alternatives(1); Debian Policy 6; Debian's "slim" images for what does not come along.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import ValidationError

from ajuste.machine.cache import PACKAGES, make_room
from ajuste.machine.files import file_sha256, hold, holding, locked, read_kept
from ajuste.machine.home import Home
from ajuste.model.base import BaseModel
from ajuste.model.error import RunError
from ajuste.model.wording import Say
from ajuste_guest.executor.tree import (
    HIDDEN,
    MERGED,
    SEARCH_PATH,
    TEXTS,
    Directory,
    Entry,
    Link,
    Regular,
    place_in_tree,
    write_in_order,
)
from ajuste_guest.kernel.archive.archive import PackageGone
from ajuste_guest.kernel.archive.deb import PackedFile, postinst, read_package
from ajuste_guest.kernel.cache import find_any_damage, keeping_in, put_in_place, write_inventory
from ajuste_guest.kernel.packages import (
    PackageRequest,
    PackageVersion,
    choose_packages,
    described,
    download_packages,
    packages_directory,
    read_request,
)

LEFT_OUT: Final = tuple(f"usr/share/{name}" for name in ("doc", "man", "info", "locale", "lintian", "bug"))
"""Documentation and translations, which no program needs to work."""


_MOST_LINKS: Final = 40
_GAMES: Final = "/usr/games"
_DIRECTORY, _FILE, _PROGRAM, _LINK = "d", "f", "x", "l"


class GuestRoot(BaseModel):
    """An archive with the files of ``packages`` of a ``release``. ``entries`` says of each place what it is: ``d``, a
    directory, ``f``, a file, ``x``, one that can be executed, or ``l`` and where a link leads.
    """

    path: Path
    sha256: str
    size_bytes: int
    release: str
    packages: tuple[PackageVersion, ...]
    entries: dict[str, str]

    @property
    def about(self) -> dict[str, str]:
        """Return what a run keeps of it."""
        versions = {package.name: f"{package.version} sha256:{package.sha256}" for package in self.packages}
        return {"release": f"Debian {self.release}", **versions}

    def has(self, path: str) -> bool:
        """Return whether something is at that absolute path."""
        return place_in_tree(path) in self.entries or _resolved(place_in_tree(path), self.entries) in self.entries

    def find(self, program: str) -> str | None:
        """Return the absolute path of a program of the packages, by its name or path, as ``shutil.which``."""
        if "/" in program:
            return program if program.startswith("/") and self._is_program(program) else None
        places = (f"{directory}/{program}" for directory in (*SEARCH_PATH.split(":"), _GAMES))
        return next((place for place in places if self._is_program(place)), None)

    def _is_program(self, path: str) -> bool:
        return self.entries.get(_resolved(place_in_tree(path), self.entries)) == _PROGRAM


def root_arguments(root: GuestRoot | None) -> tuple[str, ...]:
    """Return words for the command line of a kernel that has ``root``, if any.

    A file system of the kind tmpfs would take half of the memory at most
    (Documentation/filesystems/ramfs-rootfs-initramfs.rst).
    """
    return ("rootfstype=ramfs",) if root else ()


def build_root(files: Sequence[Path], packages: tuple[PackageVersion, ...], release: str, out: Path) -> GuestRoot:
    """Write the archive of the package ``files`` to ``out``, the same to the byte for the same files. Of two packages
    that have the same file the first one's counts. Raises RunError for a package that is damaged or hostile.
    """
    made = _Root()
    with out.open("wb") as archive:
        write_in_order(made.entries(files), archive)
    return GuestRoot(
        path=out,
        sha256=file_sha256(out),
        size_bytes=out.stat().st_size,
        release=release,
        packages=packages,
        entries=made.places,
    )


@dataclass
class _Root:
    # `places` are the paths written so far, `texts` the contents of a few that are needed later.
    places: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    alternatives: list[Alternative] = field(default_factory=list)

    def entries(self, files: Sequence[Path]) -> Iterator[tuple[str, Entry]]:
        for package in files:
            for packed in read_package(package, _is_wanted):
                yield from self._entry(packed)
            self.alternatives += read_alternatives(postinst(package))
        yield from self._made()

    def _entry(self, packed: PackedFile) -> Iterator[tuple[str, Entry]]:
        place = self._place(str(packed.path))
        if place is None or (place in self.places and not packed.directory):
            return
        if packed.directory:
            yield from self._directory(place, packed.mode | 0o700)
        elif packed.same:
            # A link to the other name does as well, and takes no memory.
            if (other := self._place(packed.target)) is not None:
                yield from self.add(place, Link(f"/{other}"))
        elif packed.target:
            yield from self.add(place, Link(packed.target))
        else:
            if place == _MASTER.format("passwd") or place == _MASTER.format("group"):
                self.texts[place] = packed.content.decode("utf-8", "replace")
            if place.startswith("usr/lib/jvm/.") and place.endswith(".jinfo"):
                self.alternatives += _of_java(packed.content.decode("utf-8", "replace"))
            yield from self.add(place, Regular(packed.content, packed.mode | 0o600))

    def add(self, place: str, entry: Entry) -> Iterator[tuple[str, Entry]]:
        if place in self.places:
            return
        above = place.rpartition("/")[0]
        if above:
            yield from self._directory(above, 0o755)
        self.places[place] = _kind(entry)
        yield place, entry

    def _directory(self, place: str, mode: int) -> Iterator[tuple[str, Entry]]:
        for part in reversed((PurePosixPath(place), *PurePosixPath(place).parents)):
            name = str(part)
            if name == "." or name in self.places:
                continue
            self.places[name] = _DIRECTORY
            yield name, Directory(mode if name == place else 0o755)

    def _place(self, name: str) -> str | None:
        place = place_in_tree(name)
        above, _, last = place.rpartition("/")
        above = _resolved(above, self.places)
        if above and self.places.get(above, _DIRECTORY) != _DIRECTORY:
            raise RunError(f"a package has {name[:100]!a} below something that is not a directory")
        target = f"{above}/{last}" if above else last
        return None if _is_reserved(target) else target

    def _made(self) -> Iterator[tuple[str, Entry]]:
        for link in sorted(
            self.alternatives, key=lambda alternative: (-alternative.priority, alternative.link, alternative.path)
        ):
            target = _resolved(place_in_tree(link.path), self.places)
            place = self._place(link.link)
            if place is None or place in self.places or target not in self.places:
                continue
            yield from self.add(f"etc/alternatives/{link.name}", Link(link.path))
            yield from self.add(place, Link(f"/etc/alternatives/{link.name}"))
        for place, target in _LINKS.items():
            yield from self.add(place, Link(target))
        yield from self._directory("run/lock", 0o1777)
        for name in ("passwd", "group"):
            text = with_users(self.texts.get(_MASTER.format(name), ""), TEXTS[f"etc/{name}"])
            yield from self.add(f"etc/{name}", Regular(text.encode()))
        yield from self.add("etc/hosts", Regular(TEXTS["etc/hosts"].encode()))
        yield from self.add("etc/nsswitch.conf", Regular(_NAMES.encode()))


_MASTER: Final = "usr/share/base-passwd/{}.master"
_LINKS: Final = {"var/run": "/run", "var/lock": "/run/lock"}
_NAMES: Final = "".join(f"{name}: files\n" for name in ("passwd", "group", "shadow", "hosts", "services", "protocols"))


def _kind(entry: Entry) -> str:
    match entry:
        case Link(target):
            return _LINK + target
        case Regular(_, mode):
            return _PROGRAM if mode & 0o111 else _FILE
    return _DIRECTORY


def _is_wanted(path: PurePosixPath) -> bool:
    name = place_in_tree(str(path))
    return not (_is_reserved(name) or any(name == out or name.startswith(f"{out}/") for out in LEFT_OUT))


def _is_reserved(place: str) -> bool:
    # The guest's own files: the directories that it mounts, the agent, the links into /usr.
    first, slash, _ = place.partition("/")
    return (
        place in ("", ".")
        or first in (*HIDDEN, "init")
        or (not slash and first in MERGED)
        or place in {f"usr/{name}" for name in MERGED}
    )


def _resolved(place: str, places: Mapping[str, str]) -> str:
    # `place` without links, never above the tree. A link that leads in circles leads nowhere.
    done: list[str] = []
    rest = [part for part in place.split("/") if part]
    rest.reverse()
    links = 0
    while rest:
        part = rest.pop()
        if part == "..":
            del done[-1:]
            continue
        name = "/".join((*done, part))
        entry = places.get(name, "")
        if not entry.startswith(_LINK):
            done.append(part)
            continue
        links += 1
        if links > _MOST_LINKS:
            return ""
        target = entry[1:]
        if target.startswith("/"):
            done, target = [], place_in_tree(target)
        rest += [step for step in reversed(target.split("/")) if step not in ("", ".")]
    return "/".join(done)


# Alternatives: which program answers to a name that several packages have.


@dataclass(frozen=True)
class Alternative:
    """``link`` is to be a link to ``path``, through ``name`` in /etc/alternatives, where no other has a higher
    ``priority``.
    """

    link: str
    name: str
    path: str
    priority: int


_PLAIN: Final = re.compile(r"[A-Za-z0-9_./+-]+")


def read_alternatives(script: str) -> list[Alternative]:
    """Return those that a maintainer script installs in plain words; what has to be run to be known is left out."""
    alternatives: list[Alternative] = []
    for line in script.replace("\\\n", " ").splitlines():
        if "update-alternatives" in line and "--install" in line:
            try:
                words = shlex.split(line, comments=True)
            except ValueError:
                continue
            alternatives += _installed(words)
    return alternatives


def _installed(words: list[str]) -> Iterator[Alternative]:
    if "--install" not in words:
        return
    start = words.index("--install") + 1
    match words[start : start + 4]:
        case [link, name, path, priority] if priority.isdecimal() and len(priority) < 7:
            pass
        case _:
            return
    yield from _alternative(link, name, path, int(priority))
    rest = words[start + 4 :]
    for at, word in enumerate(rest):
        if word == "--slave" and len(rest) > at + 3:
            link, name, path = rest[at + 1 : at + 4]
            yield from _alternative(link, name, path, int(priority))


def _alternative(link: str, name: str, path: str, priority: int) -> Iterator[Alternative]:
    plain = all(_PLAIN.fullmatch(text) and ".." not in text for text in (link, name, path))
    if plain and link.startswith("/") and path.startswith("/") and "/" not in name:
        yield Alternative(link, name, path, priority)


def _of_java(text: str) -> Iterator[Alternative]:
    # Lists for update-java-alternatives(8) have lines such as `hl java /usr/lib/jvm/…/bin/java`.
    priority = re.search(r"^priority=([0-9]{1,6})$", text, re.MULTILINE)
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and PurePosixPath(words[2]).parent.name == "bin":
            yield from _alternative(f"/usr/bin/{words[1]}", words[1], words[2], int(priority[1]) if priority else 0)


def with_users(master: str, guest_users: str) -> str:
    """Return the users (or groups) of a new system, with those of every guest, whose lines count."""
    names = {line.partition(":")[0] for line in guest_users.splitlines()}
    others = [line for line in master.splitlines() if line and line.partition(":")[0] not in names]
    return guest_users + "".join(f"{line}\n" for line in others)


# Debian packages of a guest: fetched and laid out once, then kept as they are until the cache is cleared.


# Version of a cache entry and of its layout: an entry with another version is made anew.
_LAYOUT: Final = 1
_RECORD: Final = "root.json"
_ARCHIVE: Final = "root.cpio"


def fetch_root(names: Sequence[str], home: Home, say: Say) -> GuestRoot:
    """Return the packages ``names`` laid out for a guest, from the cache or else from the distribution's archive.

    Cached packages need no network.

    Raises:
        RequestError: A package is not found, or the disk is too full.
        RunError: Fetching failed.
    """
    request = read_request(names)
    directory = packages_directory(home)
    with keeping_in(directory, "packages"):
        if root := _cached(request, home, say):
            return root
        with locked(directory / ".lock", waiting=lambda: say("waiting for another ajuste that is fetching packages")):
            # The other process may just have made it.
            return _cached(request, home, lambda _: None) or _made(request, home, say)


@dataclass(frozen=True)
class PlannedPackages:
    """The packages of a request before anything is fetched.

    ``names`` are those of the request, ``download_bytes`` the size still to fetch. ``root`` is set if all are cached.
    """

    release: str
    names: tuple[str, ...]
    packages: tuple[PackageVersion, ...]
    download_bytes: int
    root: GuestRoot | None


def plan_packages(names: Sequence[str], home: Home, say: Say) -> PlannedPackages:
    """Return what ``fetch_root`` would give, without fetching a package. Raises as that does."""
    request = read_request(names)
    with keeping_in(packages_directory(home), "packages"):
        if root := _cached(request, home, say):
            return PlannedPackages(root.release, request.names, root.packages, 0, root)
        chosen = choose_packages(request, home, say)
        missing = sum(package.size_bytes for package in chosen.missing(home))
    return PlannedPackages(request.release, request.names, described(chosen.packages), missing, None)


def _cached(request: PackageRequest, home: Home, say: Say) -> GuestRoot | None:
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
    # Cached for the process: the archive can have hundreds of MB. The arguments change with the file.
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
