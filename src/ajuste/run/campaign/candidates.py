"""Candidates: copies of a file or directory that an optimiser changes, so that one is measured beside another."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from ajuste.machine.files import file_sha256, give_to_caller, open_directory, remove_tree
from ajuste.model.caller import open_given
from ajuste.model.error import RequestError, RunError

PLACE: Final = "{candidate}"
"""What a command has in place of the candidate's path."""

MOST_FILES: Final = 1000
MOST_BYTES: Final = 256 << 20

_FOLDER: Final = "candidates"
# Of a digest in the name of a directory.
_DIGITS: Final = 16


class Candidates:
    """Those beside the study file in ``directory``, each by the SHA-256 of all its files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def take(self, path: Path) -> str:
        """Copy what is at ``path`` now; returns its digest. Raises RequestError for what cannot be a candidate."""
        with open_directory(self._directory / _FOLDER, make=0o700) as folder:
            name = Path(tempfile.mkdtemp(dir=folder, prefix="new-")).name
            try:
                with open_directory(folder / name) as copy:
                    return self._copied(path, copy, folder / name)
            except OSError as failure:
                raise RequestError(f"--candidate {path}: {failure.strerror}", hint="build it first") from None
            finally:
                shutil.rmtree(folder / name, ignore_errors=True)

    def _copied(self, path: Path, copy: Path, called: Path) -> str:
        for name, file in _contained(path):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            with open_given(file) as content, (copy / name).open("xb") as out:
                shutil.copyfileobj(content, out)
            (copy / name).chmod(0o755 if os.access(file, os.X_OK) else 0o644)
        digest = _digest(copy)
        if not self._own(digest).exists():
            copy.chmod(0o755)
            for one in (called, *sorted(copy.rglob("*"))):
                give_to_caller(one)
            called.rename(called.with_name(self._own(digest).name))
        return digest

    def place(self, digest: str) -> str:
        """Where that candidate is, relative to the study file. Raises RunError if it is not what was taken."""
        return "/".join(Path(self.files(digest)[0]).parts[:3])

    def files(self, digest: str) -> list[str]:
        """All its files, relative to the study file. Raises RunError if they are not what was taken."""
        own = self._own(digest)
        if not own.is_dir() or _digest(own) != digest:
            raise RunError(
                f"the candidate {digest[:12]} in {own} is gone or was changed",
                hint="begin a new campaign under another name",
            )
        return [str(one.relative_to(self._directory)) for one in sorted(own.rglob("*")) if one.is_file()]

    def keep_only(self, digests: Collection[str]) -> None:
        """Remove all others."""
        names = {self._own(one).name for one in digests}
        for one in (self._directory / _FOLDER).iterdir():
            if one.name not in names:
                remove_tree(one)

    def _own(self, digest: str) -> Path:
        return self._directory / _FOLDER / digest[:_DIGITS]


def _contained(path: Path) -> Iterator[tuple[Path, Path]]:
    # Each file at or below `path`, with its name beside `path`. Raises RequestError.
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if not one.is_dir() or one.is_symlink())
    if not files:
        why = "is an empty directory" if path.is_dir() else "not found"
        raise RequestError(f"--candidate {path}: {why}", hint="name the file or directory that the optimiser changes")
    odd = next((one for one in files if not one.is_file()), None)
    if odd is not None:
        raise RequestError(
            f"--candidate {path}: {odd} is not a regular file", hint="name a smaller directory, or one file of it"
        )
    if len(files) > MOST_FILES or sum(one.stat().st_size for one in files) > MOST_BYTES:
        raise RequestError(
            f"--candidate {path}: has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB",
            hint="name a smaller directory, or one file of it",
        )
    for one in files:
        yield one.relative_to(path.parent), one


def _digest(directory: Path) -> str:
    found = hashlib.sha256()
    for file in sorted(one for one in directory.rglob("*") if one.is_file()):
        line = f"{file_sha256(file)} {os.access(file, os.X_OK):d} {file.relative_to(directory)}\n"
        found.update(line.encode(errors="surrogateescape"))
    return found.hexdigest()
