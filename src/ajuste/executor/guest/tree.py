"""The file tree of a guest, before it is written as an archive."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ajuste.executor.guest.cpio import CharacterDevice, Directory, Entry, Link, Regular
from ajuste.model.error import RequestError

_MERGED = ("bin", "sbin", "lib", "lib64", "lib32")
"""Directories that are links into /usr, as on every current distribution (the UsrMerge)."""

_HIDDEN = ("proc", "sys", "dev", "ajuste", "study")
"""Where the guest mounts its own file systems or keeps its own files: nothing of this machine can be put there."""

_TEXTS = {
    "etc/passwd": (
        "root:x:0:0:root:/root:/bin/sh\n"
        "ajuste:x:1000:1000:ajuste:/tmp:/bin/sh\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    ),
    "etc/group": "root:x:0:\najuste:x:1000:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
}


class FileTree:
    """Entries by path, with the parents of each. Adding the same entry twice is harmless, another one an error."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        for name in _MERGED:
            self.add_directory(f"/usr/{name}")
            self._entries[name] = Link(f"usr/{name}")
        for name in ("dev", "proc", "sys", "run", "etc", "study", "ajuste/bin", "var/tmp"):
            self.add_directory(f"/{name}")
        self._entries["tmp"] = Directory(0o1777)
        self._entries["root"] = Directory(0o700)
        self._entries["dev/console"] = CharacterDevice(5, 1)
        self._entries["dev/null"] = CharacterDevice(1, 3, 0o666)
        for path, text in _TEXTS.items():
            self._entries[path] = Regular(text.encode())

    def __iter__(self) -> Iterator[tuple[str, Entry]]:
        return iter(self._entries.items())

    def add_directory(self, path: str) -> None:
        for part in reversed((PurePosixPath(_place(path)), *PurePosixPath(_place(path)).parents)):
            if str(part) != ".":
                self._entries.setdefault(str(part), Directory())

    def add(self, path: str, entry: Entry) -> None:
        """Put ``entry`` at the absolute ``path``. Raises RequestError where something else is there already."""
        place = _place(path)
        self.add_directory(str(PurePosixPath("/") / place.rpartition("/")[0]))
        there = self._entries.setdefault(place, entry)
        if there != entry:
            raise RequestError(
                f"two different files have the path /{place} in the guest", hint="rename or remove one of them"
            )

    def add_link(self, path: Path, target: Path) -> None:
        """Put a symbolic link to ``target``, unless something is at ``path`` already."""
        if _place(str(path)) not in self._entries:
            self.add(str(path), Link(str(target)))

    def add_from_host(self, path: Path) -> None:
        """Put a file of this machine at its own absolute path: where that is a symbolic link, a link to the file."""
        real = path.resolve(strict=True)
        for place in (path, real):
            if _place(str(place)).partition("/")[0] in _HIDDEN:
                raise RequestError(
                    f"{path} cannot be brought into the guest: /{_place(str(place)).partition('/')[0]} is the "
                    "guest's own there",
                    hint="copy the program elsewhere (your home directory, for example), or list it as a file of the "
                    "study and run it from /study",
                )
        mode = 0o755 if os.access(real, os.X_OK) else 0o644
        self.add(str(real), Regular(real, mode))
        if _place(str(path)) != _place(str(real)):
            self.add(str(path), Link(str(real)))


def _place(path: str) -> str:
    """The path in the archive: without leading slash, and through the links into /usr."""
    normal = os.path.normpath(path).lstrip("/")
    return f"usr/{normal}" if normal.partition("/")[0] in _MERGED else normal


# Scripts: which interpreter their first line asks for.
#
# Source: execve(2), section "Interpreter scripts"; env(1) of GNU coreutils for ``-S``.


SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where ``env`` looks for a program in the guest."""

_LONGEST_LINE = 256
_NEEDS_A_TREE = re.compile(
    r"(python|pypy|perl|ruby|irb|node|nodejs|deno|bun|php|java|Rscript|R|julia|octave|tclsh|wish|expect|guile|racket|erl|"
    r"escript|elixir|ghci|runghc|pwsh|dotnet|mono)[0-9.]*"
)


def interpreters_of(script: Path) -> tuple[Path, ...]:
    """The programs that the first line of ``script`` names (two with ``env``); none if it has no ``#!``.

    Raises RequestError where one does not exist.
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
    if not interpreter.is_file():
        raise RequestError(
            f"{script}: interpreter {interpreter} not found", hint="install it, or change the script's first line"
        )
    if interpreter.name != "env":
        return (interpreter,)
    name = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), None)
    program = shutil.which(name, path=SEARCH_PATH) if name else None
    if program is None:
        raise RequestError(
            f"{script}: interpreter {name or 'of env'} not found in {SEARCH_PATH}",
            hint="install it, or change the script's first line",
        )
    return (interpreter, Path(program))


def check_self_contained(program: Path, wanted_by: str) -> None:
    """Raise RequestError for the interpreters that cannot work without a library tree of their own."""
    for name in (program.name, program.resolve().name):
        if _NEEDS_A_TREE.fullmatch(name):
            raise RequestError(
                f"{wanted_by} needs {program}, which cannot work without its own tree of library files; a guest is "
                "given single programs only",
                hint="use a compiled program, or a shell script (bash, dash) and the programs that it calls",
            )
