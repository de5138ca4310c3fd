"""Files of sysctl.d: ``net.core.somaxconn = 4096`` a line. Source: sysctl.d(5), sysctl.conf(5)."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from ajuste.catalogue.place import FOLDER, sysctl_path
from ajuste.model.error import Place, RequestError
from ajuste.profile.ini import read_text
from ajuste.profile.profile import Profile, ProfileLine

FOLDERS: Final = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d")
"""A file of an earlier folder takes the place of those of the same name in later ones."""

_GLOB: Final = "*?["


def read_sysctls(files: Sequence[Path], known: Sequence[str], *, name: str, spec: str, origin: str) -> Profile:
    """What ``files`` come to, read one after the other: what is said last holds, but a pattern never overrides a name.

    ``known`` are the sysctls that patterns can mean. Raises RequestError with file and line for what is no line.
    """
    said: dict[str, ProfileLine] = {}
    patterns: list[ProfileLine] = []
    excluded: set[str] = set()
    for line in (line for file in files for line in _lines(file)):
        if line.value == "" and line.may_fail:
            excluded.add(line.option)
        elif any(c in line.option for c in _GLOB):
            patterns.append(line)
        else:
            said.pop(line.option, None)
            said[line.option] = line
    named: dict[str, ProfileLine] = {}
    for pattern in patterns:
        meant = [one for one in known if fnmatchcase(one.replace(".", "/"), pattern.option.replace(".", "/"))]
        for one in meant:
            if one not in said and one not in excluded:
                named[one] = ProfileLine("sysctl", one, pattern.value, pattern.file, pattern.number, may_fail=True)
        if not meant:
            named[pattern.option] = pattern
    return Profile(name, spec, origin, (*named.values(), *said.values()))


def files_of(folders: Sequence[Path]) -> list[Path]:
    """The files ``*.conf`` of all folders in the order of their names; of several with one name that of the first."""
    found: dict[str, Path] = {}
    for folder in folders:
        for path in folder.glob("*.conf"):
            found.setdefault(path.name, path)
    return [found[name] for name in sorted(found)]


def _lines(path: Path) -> list[ProfileLine]:
    found = []
    for number, text in enumerate(read_text(path).splitlines(), 1):
        bare = text.strip()
        if not bare or bare[0] in "#;":
            continue
        may_fail = bare.startswith("-")
        option, equals, value = bare.removeprefix("-").partition("=")
        if not option.strip() or not (equals or may_fail):
            raise RequestError("expected NAME = VALUE", hint="see sysctl.d(5)", place=Place(path, number))
        found.append(_line(option.strip(), " ".join(value.split()), path, number, may_fail))
    return found


def _line(option: str, value: str, path: Path, number: int, may_fail: bool) -> ProfileLine:
    return ProfileLine("sysctl", _dotted(option), value, path, number, may_fail=may_fail)


def _dotted(option: str) -> str:
    """One spelling for each: with dots, but where a part has a dot of its own."""
    file = sysctl_path(option)
    dotted = file.removeprefix(FOLDER).replace("/", ".")
    return dotted if sysctl_path(dotted) == file else file.removeprefix(FOLDER)
