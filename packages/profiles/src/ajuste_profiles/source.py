"""Source of a profile: ``tuned:NAME``, ``tuned@SUITE:NAME``, ``sysctl:PATH`` or a path."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from ajuste.catalogue.place import FOLDER, sysctl_path
from ajuste.model.error import Place, RequestError, did_you_mean, nearest_names
from ajuste.run.testbed import UnpackedPackage
from ajuste.study.profile import Profile, ProfileLine
from ajuste_profiles import tuned
from ajuste_profiles.tuned import MachineFacts, read_text

FORMS: Final = "tuned:NAME, tuned@SUITE:NAME, sysctl:FILE, sysctl:FOLDER, sysctl:system or a path"

_TUNED: Final = re.compile(r"tuned(?:@([a-z][a-z-]*))?:(.*)")


FetchTuned = Callable[[str], UnpackedPackage]
"""tuned of a suite of the distribution; of an empty suite the one that suits what is measured."""


@dataclass(frozen=True)
class Sources:
    """``installed`` are the folders of this machine's own tuned, ``fetch`` gets one where none is installed, ``known``
    are the sysctls of the catalogue. ``elsewhere``: what is measured is not this machine, so that profiles are those
    that come with its distribution, if there is one of that name.
    """

    fetch: FetchTuned
    known: Sequence[str]
    elsewhere: bool = False
    installed: tuned.Folders = field(default_factory=lambda: tuned.Folders(tuned.FOLDERS))
    root: Path = Path("/")


def read_profile(spec: str, sources: Sources, facts: MachineFacts) -> Profile:
    """Read the profile that ``spec`` names. Raises RequestError for a missing or invalid one, and what
    ``sources.fetch`` raises.
    """
    if match := _TUNED.fullmatch(spec):
        return _of_tuned(spec, match[1] or "", match[2], sources, facts)
    if spec.startswith("sysctl:"):
        return _of_sysctl(spec, spec.removeprefix("sysctl:"), sources)
    path = Path(spec)
    if not path.exists():
        is_tuned = spec in sources.installed.names() or re.fullmatch(r"[a-z]+-[a-z-]+", spec)
        hint = f"write tuned:{spec} for a tuned profile" if is_tuned else None
        raise RequestError(f"profile {spec!r} not found; expected {FORMS}", hint=hint)
    if path.is_dir() and not (path / tuned.FILE).is_file():
        return _of_sysctl(spec, spec, sources)
    file = path / tuned.FILE if path.is_dir() else path
    if file.name == tuned.FILE or re.search(r"^[ \t]*\[", read_text(file), re.MULTILINE):
        around = tuned.Folders([file.absolute().parent.parent, *sources.installed.folders])
        return tuned.read_tuned(file.absolute(), around, facts, spec=spec, origin=str(file))
    return _of_sysctl(spec, spec, sources)


def unpacked_folders(tree: UnpackedPackage) -> tuned.Folders:
    """Return where the profiles of an unpacked tuned are."""
    return tuned.Folders([tree.root / folder.relative_to("/") for folder in tuned.FOLDERS], tree.root)


def _of_tuned(spec: str, suite: str, name: str, sources: Sources, facts: MachineFacts) -> Profile:
    folders, of = sources.installed, "this machine's tuned"
    if suite or sources.elsewhere or not folders.names():
        tree = sources.fetch(suite)
        fetched = unpacked_folders(tree)
        if suite or fetched.candidates(name) or not folders.candidates(name):
            folders, of = fetched, tree.package + (f" of {tree.suite}" if tree.suite else "")
    paths = folders.candidates(name)
    if not paths or not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        near = nearest_names(name, folders.names(), likeness=55)
        raise RequestError(
            f"profile {name!r} not found in {of}; expected one of {', '.join(folders.names()) or 'none'}",
            hint=did_you_mean(f"tuned:{name_nearby}" for name_nearby in near),
        )
    return tuned.read_tuned(paths[0], folders, facts, spec=spec, origin=of)


def _of_sysctl(spec: str, text: str, sources: Sources) -> Profile:
    if text == "system":
        files = profile_files([sources.root / folder.lstrip("/") for folder in FOLDERS])
        last = sources.root / "etc/sysctl.conf"
        files += [last] if last.is_file() else []
        name, origin = "sysctl.d", "this machine's sysctl.d"
    else:
        path = Path(text)
        if not path.exists():
            raise RequestError(f"{spec}: {text} not found", hint=f"give {FORMS}")
        files = profile_files([path]) if path.is_dir() else [path]
        name, origin = path.name.removesuffix(".conf") or str(path), str(path)
    if not files:
        raise RequestError(f"{spec}: file *.conf not found; expected a folder with *.conf files")
    return read_sysctls(files, sources.known, name=name, spec=spec, origin=origin)


# Files of sysctl.d: ``net.core.somaxconn = 4096`` a line. Source: sysctl.d(5), sysctl.conf(5).


FOLDERS: Final = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d")
"""A file of an earlier folder takes the place of those of the same name in later ones."""

_GLOB: Final = "*?["


def read_sysctls(files: Sequence[Path], known: Sequence[str], *, name: str, spec: str, origin: str) -> Profile:
    """Read ``files`` one after the other: the last value holds, but a pattern never overrides a name. ``known`` are the
    sysctls that patterns can mean. Raises RequestError with file and line of a mistake.
    """
    last: dict[str, ProfileLine] = {}
    patterns: list[ProfileLine] = []
    excluded: set[str] = set()
    for line in (line for file in files for line in _lines(file)):
        if line.value == "" and line.may_fail:
            excluded.add(line.option)
        elif any(c in line.option for c in _GLOB):
            patterns.append(line)
        else:
            last.pop(line.option, None)
            last[line.option] = line
    named: dict[str, ProfileLine] = {}
    for pattern in patterns:
        meant = [option for option in known if fnmatchcase(option.replace(".", "/"), pattern.option.replace(".", "/"))]
        for option in meant:
            if option not in last and option not in excluded:
                named[option] = ProfileLine(
                    "sysctl", option, pattern.value, pattern.file, pattern.number, may_fail=True
                )
        if not meant:
            named[pattern.option] = pattern
    return Profile(name, spec, origin, (*named.values(), *last.values()))


def profile_files(folders: Sequence[Path]) -> list[Path]:
    """Return the files ``*.conf`` of all folders by name; of several with one name that of the first."""
    by_name: dict[str, Path] = {}
    for folder in folders:
        for path in folder.glob("*.conf"):
            by_name.setdefault(path.name, path)
    return [by_name[name] for name in sorted(by_name)]


def _lines(path: Path) -> list[ProfileLine]:
    lines = []
    for number, text in enumerate(read_text(path).splitlines(), 1):
        bare = text.strip()
        if not bare or bare[0] in "#;":
            continue
        may_fail = bare.startswith("-")
        option, equals, value = bare.removeprefix("-").partition("=")
        if not option.strip() or not (equals or may_fail):
            raise RequestError("expected NAME = VALUE", hint="see sysctl.d(5)", place=Place(path, number))
        file = sysctl_path(option.strip())
        name = file.removeprefix(FOLDER)
        dotted = name.replace("/", ".")
        if sysctl_path(dotted) != file:  # a part has a dot of its own
            dotted = name
        lines.append(ProfileLine("sysctl", dotted, " ".join(value.split()), path, number, may_fail=may_fail))
    return lines
