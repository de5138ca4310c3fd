"""The file tree of a guest, before it is written as an archive, and the files that its programs need to be loaded."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import InterpSegment

from ajuste.model.caller import open_found
from ajuste.model.error import RequestError

# Archives in the ``newc`` format, the same to the byte for the same content.
#
# Source: Documentation/driver-api/early-userspace/buffer-format.rst of the Linux kernel.


_TRAILER = "TRAILER!!!"
_LARGEST_FILE = 0xFFFF_FFFF


@dataclass(frozen=True)
class Directory:
    """A directory of the archive, root's."""

    mode: int = 0o755


@dataclass(frozen=True)
class Link:
    """A symbolic link to ``target``."""

    target: str


@dataclass(frozen=True)
class Regular:
    """A file: its content, or the file of this machine to copy it from."""

    content: bytes | Path
    mode: int = 0o644


@dataclass(frozen=True)
class CharacterDevice:
    """A character device, such as the console."""

    major: int
    minor: int
    mode: int = 0o600


Entry = Directory | Link | Regular | CharacterDevice


def write_archive(entries: Iterable[tuple[str, Entry]], out: BinaryIO) -> None:
    """Write ``entries`` (path without leading slash, entry) to ``out``, sorted, all of root's and of time 0.

    Parents come before their children because the order is that of the path's components. Raises RequestError for a
    file that changes its size while it is copied, or is 4 GiB or more.
    """
    write_in_order(sorted(entries, key=lambda item: PurePosixPath(item[0]).parts), out)


def write_in_order(entries: Iterable[tuple[str, Entry]], out: BinaryIO) -> None:
    """Write ``entries`` as ``write_archive``, but in their own order: parents have to precede their children."""
    for inode, (path, entry) in enumerate(entries, start=1):
        _write_entry(out, inode, path, entry)
    _header(out, 0, _TRAILER, mode=0, size=0)
    # Linux finds the end without padding; other readers expect whole blocks of 512 bytes.
    out.write(b"\0" * (-out.tell() % 512))


def _write_entry(out: BinaryIO, inode: int, path: str, entry: Entry) -> None:
    match entry:
        case Directory(mode):
            _header(out, inode, path, mode=stat.S_IFDIR | mode, size=0, links=2)
        case CharacterDevice(major, minor, mode):
            _header(out, inode, path, mode=stat.S_IFCHR | mode, size=0, device=(major, minor))
        case Link(target):
            _write_bytes(out, inode, path, stat.S_IFLNK | 0o777, os.fsencode(target))
        case Regular(bytes() as content, mode):
            _write_bytes(out, inode, path, stat.S_IFREG | mode, content)
        case Regular(Path() as source, mode):
            _write_file(out, inode, path, stat.S_IFREG | mode, source)


def _write_bytes(out: BinaryIO, inode: int, path: str, mode: int, content: bytes) -> None:
    _header(out, inode, path, mode=mode, size=len(content))
    out.write(content)
    _pad(out)


def _write_file(out: BinaryIO, inode: int, path: str, mode: int, source: Path) -> None:
    with open_found(source) as content:
        size = os.fstat(content.fileno()).st_size
        if size > _LARGEST_FILE:
            raise RequestError(f"{source} has {size} bytes; a guest supports only files smaller than 4 GiB")
        _header(out, inode, path, mode=mode, size=size)
        start = out.tell()
        shutil.copyfileobj(content, out)
    if out.tell() - start != size:
        raise RequestError(
            f"{source} changed while it was copied into the guest", hint="try again when no program writes to it"
        )
    _pad(out)


def _header(
    out: BinaryIO, inode: int, path: str, *, mode: int, size: int, links: int = 1, device: tuple[int, int] = (0, 0)
) -> None:
    name = os.fsencode(path) + b"\0"
    owner = group = modified = checksum = 0
    fields = (inode, mode, owner, group, links, modified, size, 0, 0, *device, len(name), checksum)
    out.write(b"070701" + b"".join(b"%08X" % field for field in fields) + name)
    _pad(out)


def _pad(out: BinaryIO) -> None:
    out.write(b"\0" * (-out.tell() % 4))


_HEAD: Final = 110
_MAGIC: Final = b"070701"
_KINDS: Final = 0o170000


def read_archive(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each regular file, in archives that follow too. Raises ValueError for other bytes."""
    at = 0
    while True:
        fields = archive[at : at + _HEAD]
        if len(fields) < _HEAD or not fields.startswith(_MAGIC):
            raise ValueError("it is not an archive in the format newc")
        mode, size, length = (int(fields[place : place + 8], 16) for place in (14, 54, 94))
        path = archive[at + _HEAD : at + _HEAD + length - 1].decode(errors="replace")
        start = at + _HEAD + length + 3 & ~3
        if path == _TRAILER:
            following = archive.find(_MAGIC, start)
            if following < 0 or archive[start:following].strip(b"\0"):
                return
            at = following
            continue
        if mode & _KINDS == stat.S_IFREG:
            yield path, archive[start : start + size]
        at = start + size + 3 & ~3


MERGED = ("bin", "sbin", "lib", "lib64", "lib32")
"""Directories that are links into /usr, as on every current distribution (the UsrMerge)."""

HIDDEN = ("proc", "sys", "dev", "ajuste", "study")
"""Directories in which the guest mounts its own file systems or has its own files: no file of the host goes there."""

TEXTS = {
    "etc/passwd": (
        "root:x:0:0:root:/root:/bin/sh\n"
        "ajuste:x:1000:1000:ajuste:/tmp:/bin/sh\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    ),
    "etc/group": "root:x:0:\najuste:x:1000:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
}


class FileTree:
    """Entries by path, with the parents of each. Adding the same entry twice is harmless, another one an error.

    Of this machine it takes nothing to a path that is ``there`` already.
    """

    def __init__(self, there: Callable[[str], bool] = lambda _: False) -> None:
        self._entries: dict[str, Entry] = {}
        self._there = there
        for name in MERGED:
            self.add_directory(f"/usr/{name}")
            self._entries[name] = Link(f"usr/{name}")
        for name in ("dev", "proc", "sys", "run", "etc", "study", "ajuste/bin", "var/tmp"):
            self.add_directory(f"/{name}")
        self._entries["tmp"] = Directory(0o1777)
        self._entries["root"] = Directory(0o700)
        self._entries["dev/console"] = CharacterDevice(5, 1)
        self._entries["dev/null"] = CharacterDevice(1, 3, 0o666)
        for path, text in TEXTS.items():
            self._entries[path] = Regular(text.encode())

    def __iter__(self) -> Iterator[tuple[str, Entry]]:
        return iter(self._entries.items())

    def add_directory(self, path: str) -> None:
        for part in reversed((PurePosixPath(place_in_tree(path)), *PurePosixPath(place_in_tree(path)).parents)):
            if str(part) != ".":
                self._entries.setdefault(str(part), Directory())

    def add(self, path: str, entry: Entry) -> None:
        """Put ``entry`` at the absolute ``path``. Raises RequestError where something else is there already."""
        place = place_in_tree(path)
        self.add_directory(str(PurePosixPath("/") / place.rpartition("/")[0]))
        there = self._entries.setdefault(place, entry)
        if there != entry:
            raise RequestError(
                f"two different files have the path /{place} in the guest", hint="rename or remove one of them"
            )

    def add_link(self, path: Path, target: Path) -> None:
        """Put a symbolic link to ``target``, unless something is at ``path`` already."""
        if place_in_tree(str(path)) not in self._entries and not self._there(str(path)):
            self.add(str(path), Link(str(target)))

    def add_from_host(self, path: Path) -> None:
        """Put a file of this machine at its own absolute path: where that is a symbolic link, a link to the file."""
        if self._there(str(path)):
            return
        real = path.resolve(strict=True)
        for place in (path, real):
            if place_in_tree(str(place)).partition("/")[0] in HIDDEN:
                raise RequestError(
                    f"{path} cannot be brought into the guest: /{place_in_tree(str(place)).partition('/')[0]} is the "
                    "guest's own there",
                    hint="copy the program elsewhere (your home directory, for example), or list it as a file of the "
                    "study and run it from /study",
                )
        mode = 0o755 if os.access(real, os.X_OK) else 0o644
        self.add(str(real), Regular(real, mode))
        if place_in_tree(str(path)) != place_in_tree(str(real)):
            self.add(str(path), Link(str(real)))


def place_in_tree(path: str) -> str:
    """Return the path in the archive: without leading slash, and through the links into /usr."""
    normal = os.path.normpath(path).lstrip("/")
    return f"usr/{normal}" if normal.partition("/")[0] in MERGED else normal


# Scripts, and the interpreters that their first lines name.
#
# Source: execve(2), section "Interpreter scripts"; env(1) of GNU coreutils for ``-S``.


SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The path on which ``env`` looks for a program in the guest."""

FindThere = Callable[[str], str | None]
"""A function from the name or path of a program to the path at which every guest has it, or None."""

_LONGEST_LINE = 256
_NEEDS_A_TREE = re.compile(
    r"(python|pypy|perl|ruby|irb|node|nodejs|deno|bun|php|java|Rscript|R|julia|octave|tclsh|wish|expect|guile|racket|erl|"
    r"escript|elixir|ghci|runghc|pwsh|dotnet|mono)[0-9.]*"
)


def is_script(program: Path) -> bool:
    """Return whether its first line names an interpreter."""
    with program.open("rb") as file:
        return file.read(2) == b"#!"


def find_interpreters(script: Path, find_there: FindThere = lambda _: None) -> tuple[Path, ...]:
    """Return the missing programs that the first line of ``script`` names (two with ``env``); none without ``#!``.

    Those that ``find_there`` finds are not missing. Raises RequestError where one does not exist.
    """
    with script.open("rb") as file:
        line = file.read(_LONGEST_LINE).split(b"\n", 1)[0]
    if not line.startswith(b"#!"):
        return ()
    words = line[2:].decode(errors="replace").split()
    if not words or not words[0].startswith("/"):
        raise RequestError(
            f"the first line of {script}: expected #! and the absolute path of an interpreter, such as #!/bin/sh"
        )
    interpreter = Path(words[0])
    there = find_there(words[0]) is not None
    if not there and not interpreter.is_file():
        raise RequestError(
            f"{script}: interpreter {interpreter} not found", hint="install it, or change the script's first line"
        )
    needed = () if there else (interpreter,)
    if interpreter.name != "env":
        return needed
    name = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), None)
    if name and find_there(name):
        return needed
    program = shutil.which(name, path=SEARCH_PATH) if name else None
    if program is None:
        raise RequestError(
            f"{script}: interpreter {name or 'of env'} not found in {SEARCH_PATH}",
            hint="install it, or change the script's first line",
        )
    return (*needed, Path(program))


def check_self_contained(program: Path, wanted_by: str) -> None:
    """Raise RequestError for the interpreters that cannot work without a library tree of their own."""
    for name in (program.name, program.resolve().name):
        if _NEEDS_A_TREE.fullmatch(name):
            raise RequestError(
                f"{wanted_by} needs {program}, which cannot work without its own tree of library files; a guest is "
                "given single programs only",
                hint="use a compiled program, or a shell script (bash, dash) and the programs that it calls",
            )


# The files that a program needs to be loaded, found as the dynamic linker would, without running the program.
#
# Source: ld.so(8), and System V ABI, chapter 5, for the search order; glibc's nptl and debug directories for what
# loads libgcc_s at run time.


_SYSTEM = tuple(
    Path(name)
    for name in ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib")
)
_UNWINDER = "libgcc_s.so.1"
# Functions of libc that load the unwinder by name when they are called: no header says so.
_UNWINDING = (b"\0pthread_exit\0", b"\0pthread_cancel\0", b"\0backtrace\0")


@dataclass(frozen=True)
class NeededFiles:
    """``files``: the interpreter and libraries, each at the path by which it is found. ``links``: further paths (link →
    file) for libraries that only the cache of this machine's linker knows.
    """

    files: tuple[Path, ...]
    links: tuple[tuple[Path, Path], ...] = ()


@dataclass(frozen=True)
class _Object:
    path: Path
    interpreter: Path | None
    needed: tuple[str, ...]
    rpath: tuple[Path, ...]
    runpath: tuple[Path, ...]
    unwinds: bool
    loader: _Object | None = None


def needed_by(program: Path, known: Mapping[str, Path] | None = None) -> NeededFiles:
    """Return the files that loading ``program`` needs besides itself; none for a static one.

    ``known`` is the linker's cache (library name → path), by default this machine's. Raises RequestError for a file
    that is no x86-64 ELF program, and for a library that is not found.
    """
    known = linker_cache() if known is None else known
    first = _read(program, None)
    if first is None:
        raise RequestError(f"{program}: expected an x86-64 program, or a script with #! in its first line")
    libraries: dict[str, Path] = {}
    links: list[tuple[Path, Path]] = []
    queue = deque([first])
    while queue:
        current = queue.popleft()
        for name in (*current.needed, *([_UNWINDER] if current.unwinds else [])):
            if name in libraries:
                continue
            library, cached = _find(name, current, known)
            if library is None:
                if name == _UNWINDER and name not in current.needed:
                    continue
                raise RequestError(
                    f"the library {name}, which {current.path} needs, was not found",
                    hint=f"see what is missing with: readelf -d {current.path}",
                )
            libraries[name] = library.path
            queue.append(library)
            if cached and library.path.parent not in _SYSTEM:
                links.append((Path("/usr/lib") / name, library.path))
    interpreter = () if first.interpreter is None else (first.interpreter,)
    return NeededFiles(tuple(dict.fromkeys((*interpreter, *libraries.values()))), tuple(links))


@cache
def linker_cache() -> Mapping[str, Path]:
    """Return the libraries (name → path) that this machine's linker knows: ``ldconfig -p``, x86-64 only."""
    for program in ("/sbin/ldconfig", "/usr/sbin/ldconfig"):
        if Path(program).exists():
            listing = subprocess.run([program, "-p"], capture_output=True, text=True, check=False).stdout
            break
    else:
        return {}
    libraries: dict[str, Path] = {}
    for line in listing.splitlines():
        name, arrow, path = line.strip().partition(" => ")
        if arrow and "x86-64" in name:
            libraries.setdefault(name.split(" ", 1)[0], Path(path))
    return libraries


def _find(name: str, wanted_by: _Object, known: Mapping[str, Path]) -> tuple[_Object | None, bool]:
    if "/" in name:
        candidates = [_expand(name, wanted_by.path)]
        return next(iter(_loadable(candidates, wanted_by)), None), False
    for directory in _search_path(wanted_by):
        for library in _loadable([directory / name], wanted_by):
            return library, False
    cached = known.get(name)
    if cached is not None:
        for library in _loadable([cached], wanted_by):
            return library, True
    return next(iter(_loadable([place / name for place in _SYSTEM], wanted_by)), None), False


def _search_path(wanted_by: _Object) -> tuple[Path, ...]:
    # RUNPATH of the object itself, or else RPATH of it and of all that led to it.
    if wanted_by.runpath:
        return wanted_by.runpath
    directories: list[Path] = []
    current: _Object | None = wanted_by
    while current is not None:
        if not current.runpath:
            directories += current.rpath
        current = current.loader
    return tuple(directories)


def _loadable(candidates: list[Path], loader: _Object) -> Iterator[_Object]:
    for path in candidates:
        if path.is_file():
            library = _read(path, loader)
            if library is not None:
                yield library


def _read(path: Path, loader: _Object | None) -> _Object | None:
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            if elf.elfclass != 64 or elf["e_machine"] != "EM_X86_64":
                return None
            return _describe(elf, path, loader)
    except OSError as error:
        raise RequestError(f"cannot read {path}: {error.strerror}", hint="check its permissions") from error
    except (ELFError, AssertionError, UnicodeDecodeError, ValueError, KeyError, AttributeError):
        return None


def _describe(elf: ELFFile, path: Path, loader: _Object | None) -> _Object:
    interpreter: Path | None = None
    needed: list[str] = []
    rpath: list[Path] = []
    runpath: list[Path] = []
    for segment in elf.iter_segments():
        if isinstance(segment, InterpSegment):
            interpreter = Path(segment.get_interp_name())
        elif isinstance(segment, DynamicSegment):
            tag: Any  # its attributes are named after what it is
            for tag in segment.iter_tags():
                match tag.entry.d_tag:
                    case "DT_NEEDED":
                        needed.append(str(tag.needed))
                    case "DT_RPATH":
                        rpath += _directories(tag.rpath, path)
                    case "DT_RUNPATH":
                        runpath += _directories(tag.runpath, path)
    strings = elf.get_section_by_name(".dynstr")
    names = strings.data() if strings is not None else b""
    # libc defines these functions; only who calls them counts.
    unwinds = not path.name.startswith("libc.so") and any(name in names for name in _UNWINDING)
    return _Object(path, interpreter, tuple(needed), tuple(rpath), tuple(runpath), unwinds, loader)


def _directories(text: str, path: Path) -> list[Path]:
    expanded = (_expand(part, path) for part in text.split(":") if part)
    return [directory for directory in expanded if directory.is_absolute()]


def _expand(text: str, path: Path) -> Path:
    values = {"ORIGIN": str(path.resolve().parent), "LIB": "lib/x86_64-linux-gnu", "PLATFORM": "x86_64"}
    for name, value in values.items():
        text = text.replace(f"${{{name}}}", value).replace(f"${name}", value)
    return Path(text)
