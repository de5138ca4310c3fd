"""Which files a program needs to be loaded, found as the dynamic linker would, without running the program.

Source: ld.so(8), and System V ABI, chapter 5, for the search order; glibc's nptl and debug directories for what loads
libgcc_s at run time.
"""

from __future__ import annotations

import subprocess
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import InterpSegment

from ajuste.model.error import RequestError

_SYSTEM = tuple(
    Path(name)
    for name in ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib")
)
_UNWINDER = "libgcc_s.so.1"
_UNWINDING = (b"\0pthread_exit\0", b"\0pthread_cancel\0", b"\0backtrace\0")
"""Functions of libc that load the unwinder by name when they are called: no header says so."""


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
    """The files that loading ``program`` needs besides itself; none for a static one.

    ``known`` is the linker's cache (library name → path), by default this machine's. Raises RequestError for a file
    that is no x86-64 ELF program, and for a library that is not found.
    """
    known = linker_cache() if known is None else known
    first = _read(program, None)
    if first is None:
        raise RequestError(f"{program}: expected an x86-64 program, or a script with #! in its first line")
    found: dict[str, Path] = {}
    links: list[tuple[Path, Path]] = []
    queue = deque([first])
    while queue:
        current = queue.popleft()
        for name in _names(current):
            if name in found:
                continue
            library, cached = _find(name, current, known)
            if library is None:
                if name == _UNWINDER and name not in current.needed:
                    continue
                raise RequestError(
                    f"the library {name}, which {current.path} needs, was not found",
                    hint=f"see what is missing with: readelf -d {current.path}",
                )
            found[name] = library.path
            queue.append(library)
            if cached and library.path.parent not in _SYSTEM:
                links.append((Path("/usr/lib") / name, library.path))
    interpreter = () if first.interpreter is None else (first.interpreter,)
    return NeededFiles(tuple(dict.fromkeys((*interpreter, *found.values()))), tuple(links))


def _names(current: _Object) -> Iterator[str]:
    yield from current.needed
    if current.unwinds:
        yield _UNWINDER


@cache
def linker_cache() -> Mapping[str, Path]:
    """The libraries (name → path) that this machine's linker knows: ``ldconfig -p``, x86-64 only."""
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
    """The library, and whether it was found in the linker's cache."""
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
    """RUNPATH of the object itself, or else RPATH of it and of all that led to it."""
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
    """The object, or ``None`` if the file is no x86-64 ELF object (which the linker passes over)."""
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
