"""Names of sources: ``debian:6.1``, a directory, or ``git:DIR@REVISION``."""

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

from debian.debian_support import Version
from pydantic import ValidationError

from ajuste.catalogue.programs import install_command, require_git
from ajuste.kernel.spec import SOURCE_FORMS, PackagedKernel, kernel_sources, parse_source
from ajuste.machine.cache import SOURCES, make_room
from ajuste.machine.files import hold, read_kept, read_sealed, sealed
from ajuste.machine.home import Home
from ajuste.model.base import BaseModel
from ajuste.model.caller import as_caller
from ajuste.model.error import RequestError, RunError, did_you_mean, nearest_names
from ajuste.model.wording import Say
from ajuste_guest.kernel.archive.archive import Archive, PackageGone
from ajuste_guest.kernel.archive.download import Package
from ajuste_guest.kernel.cache import (
    CHECKSUMS,
    cached_entry,
    differs,
    out_of_space,
    put_in_place,
    read_checksums,
    write_inventory,
)
from ajuste_guest.kernel.candidate import TREE, unpacked, upstream_version
from ajuste_guest.kernel.fetch import package_lists
from ajuste_kernels.building.built import (
    LINK,
    PLAIN,
    PROGRAM,
    Manifest,
    SourceOrigin,
    digest_texts,
    list_files,
    manifest_digest,
    put_file,
)
from ajuste_kernels.kconfig import require_sources_of_root

# Sources at a revision of a git repository, whose own files are not looked at.


_KINDS: Final = {b"100644": PLAIN, b"100755": PROGRAM, b"120000": LINK}

# What building in the tree itself leaves at its top.
_BUILT: Final = (".config", "include/config/auto.conf", "include/generated/autoconf.h")

_PACKAGED: Final = re.compile(r"linux-source-\S+ (\S+)")
_AT_REVISION: Final = re.compile(r"(/.+) at (\S+)")
PREFIX: Final = "linux-source-"
_RECORD: Final = "source.json"
_TREE_BYTES: Final = 2_000_000_000  # 1.6 GB on a disk with blocks of 4 KiB, for 6.1 and for 7.3
_MOST_ATTEMPTS: Final = 8


@dataclass(frozen=True)
class RevisionSource:
    """A git commit; ``commit`` and ``tree`` are git's names of what ``revision`` stood for."""

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
        marks = {}
        for line in listing.split(b"\0"):
            about, _, name = line.partition(b"\t")
            mode, _, rest = about.partition(b" ")
            if mode in _KINDS:  # What is left are other repositories' commits.
                marks[os.fsdecode(name)] = f"{_KINDS[mode]}:{rest.rpartition(b' ')[2].decode()}"
        return marks

    def read(self, path: str) -> bytes:
        return _git_in(self.repository, "cat-file", "blob", self._blob(path))

    def read_all(self, paths: Iterable[str]) -> Iterator[bytes]:
        """Read many files by one process of git, which takes a list: it would wait for its reader."""
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
    """Open a revision. Raises RequestError where ``directory`` is no repository or has no such ``revision``."""
    repository = directory.expanduser().absolute()
    require_git()
    if not repository.is_dir():
        raise RequestError(f"directory {repository} not found", hint="write git:DIR or git:DIR@REVISION")
    require_sources_of_root(repository)
    _require_given(repository)
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


@dataclass(frozen=True)
class DirectorySource:
    """A directory; ``known`` is a file that remembers checksums, so that only changed files are read again."""

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
        """Return the files without those that building made: those of ``.gitignore``, if it was built there."""
        remembered: dict[str, list[str]] = read_sealed(self.known)
        now: dict[str, list[str]] = {}
        marks = {}
        ignored = self._ignored()
        for path, kind, status in list_files(self.directory):
            if path in ignored:
                continue
            mark = f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_ino}"
            before = remembered.get(path, [])
            sum_ = before[1] if before and before[0] == mark else hashlib.sha256(self.read(path)).hexdigest()
            now[path] = [mark, sum_]
            marks[path] = f"{kind}:{sum_}"
        self.known.parent.mkdir(parents=True, exist_ok=True)
        self.known.write_text(sealed(json.dumps(now)))
        return marks

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


def _git(*arguments: str, cwd: Path | None = None) -> bytes:
    done = subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RunError(f"git {arguments[0]} failed: {done.stderr.decode(errors='replace').strip()[:300]}")
    return done.stdout


def _require_given(directory: Path) -> None:
    # Root shows its caller no sources that are closed to that user.
    try:
        with as_caller():
            os.scandir(directory).close()
    except OSError as error:
        raise RequestError(f"source {directory}: {error.strerror}", hint="give a directory that you can read") from None


def directory_source(directory: Path, known: Path, say: Say) -> DirectorySource:
    """Open a directory. Raises RequestError if it does not exist."""
    absolute = directory.expanduser().absolute()
    if not absolute.is_dir():
        kind, colon, rest = str(directory).partition(":")
        near = nearest_names(kind, kernel_sources()) if colon else []
        raise RequestError(
            f"source {directory}: directory not found; expected {SOURCE_FORMS}",
            hint=did_you_mean(f"{name}:{rest}" for name in near) or "give the directory with the kernel's Makefile",
        )
    require_sources_of_root(absolute)
    _require_given(absolute)
    return DirectorySource(absolute.resolve(), known, say)


def open_source(text: str, home: Home, say: Say, *, refresh: bool = False) -> SourceOrigin:
    """Open the sources that ``text`` names. Raises RequestError for missing ones, RunError where fetching fails."""
    wanted = parse_source(text)
    if isinstance(wanted, PackagedKernel):
        return packaged_source(wanted, home, say, refresh=refresh)
    kind, colon, rest = wanted.text.partition(":")
    if colon and kind == "git":
        directory, _, revision = (rest, "", "") if Path(rest).expanduser().is_dir() else rest.partition("@")
        return revision_source(Path(directory), revision or "HEAD")
    known = home.cache / "build" / f"known-{digest_texts([str(Path(wanted.text).expanduser().absolute())])[:16]}.json"
    return directory_source(Path(wanted.text), known, say)


def source_option(title: str) -> str:
    """Return what ``--source`` takes for the sources that a kernel's record calls ``title``."""
    if match := _PACKAGED.fullmatch(title):
        return f"debian:{upstream_version(match[1])}"
    if match := _AT_REVISION.fullmatch(title):
        return f"git:{Path(match[1]).parent if match[1].endswith('/.git') else match[1]}@{match[2]}"
    return title


# Sources of kernels that a distribution packages, unpacked once.


class PackagedSource(BaseModel):
    """An unpacked package. Nothing in its ``tree`` is ever written to: other trees share its files."""

    directory: Path
    package: str

    @property
    def tree(self) -> Path:
        return self.directory / "tree"

    @property
    def version(self) -> str:
        return self.package.split(" ")[1]

    @property
    def title(self) -> str:
        return self.package

    @property
    def place(self) -> str:
        return self.package

    @property
    def digest(self) -> str:
        """Return the digest of the package's name and version. Packages are checked against their signed list, and a
        version of one never changes.
        """
        return digest_texts([self.package])

    @cached_property
    def manifest(self) -> Manifest:
        # Sizes and times do: nobody changes these files.
        return {path: f"{kind}:{status.st_size}:{status.st_mtime_ns}" for path, kind, status in list_files(self.tree)}

    @cached_property
    def checksums(self) -> dict[str, str]:
        return read_checksums(self.directory)

    def read(self, path: str) -> bytes:
        file = self.tree / path
        self._require_intact(path)
        return os.fsencode(file.readlink()) if file.is_symlink() else file.read_bytes()

    def _require_intact(self, path: str) -> None:
        if damage := differs(self.directory, f"tree/{path}", self.checksums):
            (self.directory / CHECKSUMS).unlink(missing_ok=True)
            raise RunError(
                f"the source {self.package} is damaged on the disk: {damage}",
                hint="build again to fetch it again",
            )

    def read_all(self, paths: Iterable[str]) -> Iterator[bytes]:
        return map(self.read, paths)

    def write(self, paths: Iterable[str], into: Path) -> None:
        """Write the files with their times in the package; they share their place on the disk."""
        # Eighty thousand files: as strings in half of the time.
        tree, place = str(self.tree), str(into)
        for path in paths:
            self._require_intact(path)
            os.link(f"{tree}/{path}", f"{place}/{path}", follow_symlinks=False)


def packaged_source(wanted: PackagedKernel, home: Home, say: Say, *, refresh: bool = False) -> PackagedSource:
    """Return the source package for ``wanted``: of a series the newest that the cache or else the mirror has. Raises
    RequestError for a missing one or a full disk, RunError where fetching fails.
    """
    source = kernel_sources()[wanted.source]
    root = home.cache / "sources"

    def fetched() -> PackagedSource:
        package = _fetch(root, wanted, package_lists(source, home, say), say, refresh=refresh)
        hold(package.directory)
        make_room(SOURCES, home)
        return package

    def read(_: Say) -> PackagedSource | None:
        return None if refresh else cached_source(wanted, home)

    return cached_entry(root, "sources of kernels", "fetching sources", say, read=read, make=fetched)


def _is_meant(wanted: PackagedKernel, version: str) -> bool:
    return (upstream_version(version) + ".").startswith(wanted.version + ".")


def cached_sources(home: Home) -> list[PackagedSource]:
    """Return all that are here, newest first."""
    folders = (home.cache / "sources").glob(f"{PREFIX}*")
    sources = [source for folder in folders if (source := _read(folder))]
    return sorted(sources, key=lambda source: Version(source.version), reverse=True)


def cached_source(wanted: PackagedKernel, home: Home) -> PackagedSource | None:
    """Return the newest that is meant and is here."""
    return next((source for source in cached_sources(home) if _is_meant(wanted, source.version)), None)


def _read(folder: Path) -> PackagedSource | None:
    try:
        hold(folder)
        record = PackagedSource.model_validate_json(read_kept(folder / _RECORD))
    except (OSError, ValidationError):
        return None
    is_complete = (folder / "tree/Makefile").is_file() and (folder / CHECKSUMS).is_file()
    return record.model_copy(update={"directory": folder}) if is_complete else None


def _fetch(root: Path, wanted: PackagedKernel, archive: Archive, say: Say, *, refresh: bool) -> PackagedSource:
    archive.refresh(force=refresh)
    names = [name for name in archive.names(PREFIX) if name.removeprefix(PREFIX).replace(".", "").isdigit()]
    packages = archive.packages(names)
    meant = sorted((p for p in packages if _is_meant(wanted, p.version)), key=lambda p: Version(p.version))
    if not meant:
        there = sorted({upstream_version(p.version).rpartition(".")[0] for p in packages}, key=Version)
        raise RequestError(
            f"no source of kernel {wanted.version} in the package lists",
            hint=f"use one of {', '.join(f'{wanted.source}:{version}' for version in there)}" if there else None,
        )
    gone = ""
    for package in meant[: -_MOST_ATTEMPTS - 1 : -1]:
        folder = root / f"{package.name}_{package.version.replace(':', '%3a')}"
        if source := _read(folder):
            return source
        try:
            return _unpacked(package, folder, archive, say)
        except PackageGone as error:
            gone = str(error)
            say(f"{error}: trying the next newest")
    raise RunError(f"could not download a source of {wanted}; the last attempt gave: {gone}")


def _unpacked(package: Package, folder: Path, archive: Archive, say: Say) -> PackagedSource:
    what = f"the source {package}"
    with unpacked([package], folder.parent, archive, what, say, spare_bytes=_TREE_BYTES) as temporary:
        (temporary / "entry").mkdir()
        _extract(temporary / TREE / "usr/src" / f"{package.name}.tar.xz", temporary / "entry")
        (temporary / "entry" / package.name).rename(temporary / "entry/tree")
        record = PackagedSource(directory=Path(), package=str(package))
        (temporary / "entry" / _RECORD).write_text(record.model_dump_json(include={"directory", "package"}))
        say(f"computing the checksums of {package}")
        write_inventory(temporary / "entry")
        put_in_place(temporary / "entry", folder, aside=temporary / "damaged")
    return PackagedSource(directory=folder, package=str(package))


def _extract(archive: Path, into: Path) -> None:
    extraction = subprocess.run(
        ["tar", "--extract", "--xz", "--no-same-owner", "--file", archive, "--directory", into],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if extraction.returncode:
        if "No space left" in extraction.stderr or "quota" in extraction.stderr:
            raise out_of_space(into, archive.name)
        raise RunError(f"could not extract {archive.name}: {extraction.stderr.strip()[:300]}")
