"""Where a profile comes from: ``tuned:NAME``, ``tuned@SUITE:NAME``, ``sysctl:PATH`` or a path."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ajuste.model.error import RequestError, did_you_mean, nearest_names
from ajuste.profile import sysctld, tuned
from ajuste.profile.ini import read_text
from ajuste.profile.profile import MachineFacts, Profile

FORMS: Final = "tuned:NAME, tuned@SUITE:NAME, sysctl:FILE, sysctl:FOLDER, sysctl:system or a path"

_TUNED: Final = re.compile(r"tuned(?:@([a-z][a-z-]*))?:(.*)")


@dataclass(frozen=True)
class TunedTree:
    """tuned as a package has it, unpacked below ``root``; ``package`` with its version, ``suite`` it is from."""

    root: Path
    package: str
    suite: str = ""

    @property
    def folders(self) -> tuned.Folders:
        """Where its profiles are."""
        return tuned.Folders([self.root / folder.relative_to("/") for folder in tuned.FOLDERS], self.root)


FetchTuned = Callable[[str], TunedTree]
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
    """The profile that ``spec`` names. Raises RequestError for one that is not there or is not right, and what
    ``sources.fetch`` raises.
    """
    if match := _TUNED.fullmatch(spec):
        return _of_tuned(spec, match[1] or "", match[2], sources, facts)
    if spec.startswith("sysctl:"):
        return _of_sysctl(spec, spec.removeprefix("sysctl:"), sources)
    path = Path(spec)
    if not path.exists():
        raise RequestError(f"there is no profile {spec!r}; expected {FORMS}", hint=_guess(spec, sources))
    if path.is_dir() and not (path / tuned.FILE).is_file():
        return _of_sysctl(spec, spec, sources)
    file = path / tuned.FILE if path.is_dir() else path
    if file.name == tuned.FILE or re.search(r"^[ \t]*\[", read_text(file), re.MULTILINE):
        around = tuned.Folders([file.absolute().parent.parent, *sources.installed.folders])
        return tuned.read_tuned(file.absolute(), around, facts, spec=spec, origin=str(file))
    return _of_sysctl(spec, spec, sources)


def _guess(spec: str, sources: Sources) -> str | None:
    if spec in sources.installed.names() or re.fullmatch(r"[a-z]+-[a-z-]+", spec):
        return f"a profile of tuned is tuned:{spec}"
    return None


def _of_tuned(spec: str, suite: str, name: str, sources: Sources, facts: MachineFacts) -> Profile:
    folders, of = sources.installed, "this machine's tuned"
    if suite or sources.elsewhere or not folders.names():
        tree = sources.fetch(suite)
        if suite or tree.folders.candidates(name) or not folders.candidates(name):
            folders, of = tree.folders, tree.package + (f" of {tree.suite}" if tree.suite else "")
    found = folders.candidates(name)
    if not found or not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        near = nearest_names(name, folders.names(), likeness=55)
        raise RequestError(
            f"{of} has no profile {name!r}; it has {', '.join(folders.names()) or 'none'}",
            hint=did_you_mean(f"tuned:{one}" for one in near),
        )
    return tuned.read_tuned(found[0], folders, facts, spec=spec, origin=of)


def _of_sysctl(spec: str, text: str, sources: Sources) -> Profile:
    if text == "system":
        files = sysctld.files_of([sources.root / folder.lstrip("/") for folder in sysctld.FOLDERS])
        last = sources.root / "etc/sysctl.conf"
        files += [last] if last.is_file() else []
        name, origin = "sysctl.d", "this machine's sysctl.d"
    else:
        path = Path(text)
        if not path.exists():
            raise RequestError(f"{spec}: there is no {text}", hint=f"expected {FORMS}")
        files = sysctld.files_of([path]) if path.is_dir() else [path]
        name, origin = path.name.removesuffix(".conf") or str(path), str(path)
    if not files:
        raise RequestError(f"{spec}: there is no file *.conf in it")
    return sysctld.read_sysctls(files, sources.known, name=name, spec=spec, origin=origin)
