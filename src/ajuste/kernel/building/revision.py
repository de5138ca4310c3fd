"""Sources at a revision of a git repository, whose own files are not looked at."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from ajuste.kernel.building.origin import LINK, PLAIN, PROGRAM, Manifest
from ajuste.model.error import RequestError, RunError

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
        listing = _git(self.repository, "ls-tree", "-r", "-z", "--full-tree", self.tree)
        found = {}
        for line in listing.split(b"\0"):
            about, _, name = line.partition(b"\t")
            mode, _, rest = about.partition(b" ")
            if mode in _KINDS:  # What is left are other repositories' commits.
                found[os.fsdecode(name)] = f"{_KINDS[mode]}:{rest.rpartition(b' ')[2].decode()}"
        return found

    def read(self, path: str) -> bytes:
        return _git(self.repository, "cat-file", "blob", self._blob(path))

    def write(self, paths: Iterable[str], into: Path) -> None:
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
                content = process.stdout.read(int(head[2]) + 1)[:-1]
                self._put(into / path, self.manifest[path][0], content)
            process.stdin.close()

    def _blob(self, path: str) -> str:
        return self.manifest[path].partition(":")[2]

    @staticmethod
    def _put(target: Path, kind: str, content: bytes) -> None:
        if kind == LINK:
            target.symlink_to(os.fsdecode(content))
            return
        target.write_bytes(content)
        target.chmod(0o755 if kind == PROGRAM else 0o644)


def revision_source(directory: Path, revision: str) -> RevisionSource:
    """Raises RequestError where ``directory`` is no repository or has no such ``revision``."""
    repository = directory.expanduser().absolute()
    if shutil.which("git") is None:
        raise RequestError("git was not found", hint="install it: apt install git")
    if not repository.is_dir():
        raise RequestError(f"directory {repository} not found", hint="write git:DIR or git:DIR@REVISION")
    try:
        top = Path(os.fsdecode(_git(repository, "rev-parse", "--absolute-git-dir")).rstrip("\n"))
    except RunError as error:
        raise RequestError(
            f"{repository} is not a readable git repository; expected git:DIR: {error.message}"
        ) from None
    commit = _named(repository, f"{revision}^{{commit}}", revision)
    return RevisionSource(top, revision, commit, _named(repository, f"{commit}^{{tree}}", revision))


def _named(repository: Path, expression: str, revision: str) -> str:
    try:
        return _git(repository, "rev-parse", "--verify", "--end-of-options", expression).decode().strip()
    except RunError:
        raise RequestError(
            f"revision {revision} not found in {repository}",
            hint=f"list revisions with git -C {repository} log --oneline",
        ) from None


def _git(repository: Path, *arguments: str) -> bytes:
    done = subprocess.run(
        ["git", "-C", repository, *arguments], capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        raise RunError(done.stderr.decode(errors="replace").strip()[:300])
    return done.stdout
