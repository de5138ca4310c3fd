"""How a person names sources: ``debian:6.1``, a directory, or ``git:DIR@REVISION``."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from ajuste.catalogue.programs import install_command, install_hint
from ajuste.kernel.building.built import (
    LINK,
    PLAIN,
    PROGRAM,
    Manifest,
    SourceOrigin,
    digest_of,
    list_files,
    manifest_digest,
    put_file,
)
from ajuste.kernel.building.packaged import packaged_source
from ajuste.kernel.candidate import upstream_of
from ajuste.kernel.source import kernel_sources
from ajuste.kernel.spec import SOURCES, PackagedKernel, parse_source
from ajuste.machine.files import read_kept, sealed, unsealed
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError, did_you_mean, nearest_names
from ajuste.model.wording import Say

# Sources at a revision of a git repository, whose own files are not looked at.


_KINDS: Final = {b"100644": PLAIN, b"100755": PROGRAM, b"120000": LINK}


@dataclass(frozen=True)
class RevisionSource:
    """``commit`` and ``tree`` are git's names of what ``revision`` stood for."""

    repository: Path
    revision: str
    commit: str
    tree: str

    @property
    def title(self) -> str:
        return f"{self.repository} at {self.revision}"

    @property
    def place(self) -> str:
        return f"git:{self.repository}"

    @property
    def digest(self) -> str:
        return f"git:{self.tree}"

    @cached_property
    def manifest(self) -> Manifest:
        listing = _git_in(self.repository, "ls-tree", "-r", "-z", "--full-tree", self.tree)
        found = {}
        for line in listing.split(b"\0"):
            about, _, name = line.partition(b"\t")
            mode, _, rest = about.partition(b" ")
            if mode in _KINDS:  # What is left are other repositories' commits.
                found[os.fsdecode(name)] = f"{_KINDS[mode]}:{rest.rpartition(b' ')[2].decode()}"
        return found

    def read(self, path: str) -> bytes:
        return _git_in(self.repository, "cat-file", "blob", self._blob(path))

    def read_all(self, paths: Iterable[str]) -> Iterator[bytes]:
        """By one process of git, which takes a list: it would wait for its reader."""
        wanted = list(paths)
        with subprocess.Popen(
            ["git", "-C", self.repository, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdin
            assert process.stdout
            for path in wanted:
                process.stdin.write(self._blob(path).encode() + b"\n")
                process.stdin.flush()
                head = process.stdout.readline().split()
                if len(head) != 3:
                    raise RunError(f"{self.repository} lacks {path} of {self.revision}")
                yield process.stdout.read(int(head[2]) + 1)[:-1]
            process.stdin.close()

    def write(self, paths: Iterable[str], into: Path) -> None:
        wanted = list(paths)
        for path, content in zip(wanted, self.read_all(wanted), strict=True):
            put_file(into / path, self.manifest[path][0], content)

    def _blob(self, path: str) -> str:
        return self.manifest[path].partition(":")[2]


def revision_source(directory: Path, revision: str) -> RevisionSource:
    """Raises RequestError where ``directory`` is no repository or has no such ``revision``."""
    repository = directory.expanduser().absolute()
    if shutil.which("git") is None:
        raise RequestError("git was not found", hint=install_hint("git"))
    if not repository.is_dir():
        raise RequestError(f"directory {repository} not found", hint="write git:DIR or git:DIR@REVISION")
    try:
        top = Path(os.fsdecode(_git_in(repository, "rev-parse", "--absolute-git-dir")).rstrip("\n"))
    except RunError as error:
        raise RequestError(
            f"{repository} is not a readable git repository; expected git:DIR: {error.message}"
        ) from None
    commit = _named(repository, f"{revision}^{{commit}}", revision)
    return RevisionSource(top, revision, commit, _named(repository, f"{commit}^{{tree}}", revision))


def _named(repository: Path, expression: str, revision: str) -> str:
    try:
        return _git_in(repository, "rev-parse", "--verify", "--end-of-options", expression).decode().strip()
    except RunError:
        raise RequestError(
            f"revision {revision} not found in {repository}",
            hint=f"list revisions with git -C {repository} log --oneline",
        ) from None


def _git_in(repository: Path, *arguments: str) -> bytes:
    done = subprocess.run(
        ["git", "-C", repository, *arguments], capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        raise RunError(done.stderr.decode(errors="replace").strip()[:300])
    return done.stdout


# Sources in a directory of somebody's own, which is only read.


# What building in the tree itself leaves at its top.
_BUILT: Final = (".config", "include/config/auto.conf", "include/generated/autoconf.h")


@dataclass(frozen=True)
class DirectorySource:
    """``known`` is a file that remembers the sums of files, so that only what changed is read again."""

    directory: Path
    known: Path
    say: Say

    @property
    def title(self) -> str:
        return str(self.directory)

    @property
    def place(self) -> str:
        return str(self.directory)

    @property
    def digest(self) -> str:
        return manifest_digest(self.manifest)

    @cached_property
    def manifest(self) -> Manifest:
        """What building in the directory made is left out: what its ``.gitignore`` names, if it was built there."""
        remembered = _remembered(self.known)
        now: dict[str, list[str]] = {}
        found = {}
        ignored = self._ignored()
        for path, kind, status in list_files(self.directory):
            if path in ignored:
                continue
            mark = f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_ino}"
            before = remembered.get(path, [])
            sum_ = before[1] if before and before[0] == mark else hashlib.sha256(self.read(path)).hexdigest()
            now[path] = [mark, sum_]
            found[path] = f"{kind}:{sum_}"
        self.known.parent.mkdir(parents=True, exist_ok=True)
        self.known.write_text(sealed(json.dumps(now)))
        return found

    def read(self, path: str) -> bytes:
        file = self.directory / path
        try:
            return os.fsencode(file.readlink()) if file.is_symlink() else file.read_bytes()
        except OSError as error:
            raise RequestError(
                f"cannot read {file}: {error.strerror}", hint="check that the file exists and is readable"
            ) from error

    def read_all(self, paths: Iterable[str]) -> Iterator[bytes]:
        return map(self.read, paths)

    def write(self, paths: Iterable[str], into: Path) -> None:
        for path in paths:
            kind, _, sum_ = self.manifest[path].partition(":")
            content = self.read(path)
            if hashlib.sha256(content).hexdigest() != sum_:
                raise RunError(f"{self.directory / path} changed while it was read", hint="build again")
            put_file(into / path, kind, content)

    def _ignored(self) -> frozenset[str]:
        if not any((self.directory / name).exists() for name in _BUILT):
            return frozenset()
        if shutil.which("git") is None:
            raise RequestError(
                f"{self.directory} contains build output, and git was not found",
                hint=f"install git ({install_command(['git'])}), or run make mrproper in the directory",
            )
        self.say(f"{self.directory} contains build output, which is ignored")
        # An empty repository of our own: only the .gitignore files of the tree decide.
        repository = self.known.with_suffix(".git")
        if not repository.exists():
            _git("init", "--quiet", "--bare", str(repository))
        command = (f"--git-dir={repository}", f"--work-tree={self.directory}", "ls-files", "-z")
        listing = _git(*command, "--others", "--ignored", "--exclude-standard", cwd=self.directory)
        return frozenset(os.fsdecode(name) for name in listing.split(b"\0") if name)


def _remembered(file: Path) -> dict[str, list[str]]:
    try:
        known = json.loads(unsealed(read_kept(file)))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _git(*arguments: str, cwd: Path | None = None) -> bytes:
    done = subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RunError(f"git {arguments[0]} failed: {done.stderr.decode(errors='replace').strip()[:300]}")
    return done.stdout


def directory_source(directory: Path, known: Path, say: Say) -> DirectorySource:
    """Raises RequestError where directory not found."""
    absolute = directory.expanduser().absolute()
    if not absolute.is_dir():
        kind, colon, rest = str(directory).partition(":")
        near = nearest_names(kind, kernel_sources()) if colon else []
        raise RequestError(
            f"source {directory}: directory not found; expected {SOURCES}",
            hint=did_you_mean(f"{name}:{rest}" for name in near) or "give the directory with the kernel's Makefile",
        )
    return DirectorySource(absolute.resolve(), known, say)


def open_source(text: str, home: Home, say: Say, *, refresh: bool = False) -> SourceOrigin:
    """Raises RequestError for sources that there are not, RunError where fetching fails."""
    wanted = parse_source(text)
    if isinstance(wanted, PackagedKernel):
        return packaged_source(wanted, home, say, refresh=refresh)
    kind, colon, rest = wanted.text.partition(":")
    if colon and kind == "git":
        directory, _, revision = (rest, "", "") if Path(rest).expanduser().is_dir() else rest.partition("@")
        return revision_source(Path(directory), revision or "HEAD")
    known = home.cache / "build" / f"known-{digest_of([str(Path(wanted.text).expanduser().absolute())])[:16]}.json"
    return directory_source(Path(wanted.text), known, say)


_PACKAGED: Final = re.compile(r"linux-source-\S+ (\S+)")
_AT_REVISION: Final = re.compile(r"(/.+) at (\S+)")


def source_of(title: str) -> str:
    """What ``--source`` takes for the sources that a kernel's record calls ``title``."""
    if match := _PACKAGED.fullmatch(title):
        return f"debian:{upstream_of(match[1])}"
    if match := _AT_REVISION.fullmatch(title):
        return f"git:{Path(match[1]).parent if match[1].endswith('/.git') else match[1]}@{match[2]}"
    return title
