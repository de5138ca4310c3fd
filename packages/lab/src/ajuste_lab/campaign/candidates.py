"""Candidates: copies of a file or directory that an optimiser changes, measured side by side."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from ajuste.machine.files import file_sha256, give_to_caller, open_directory, remove_tree
from ajuste.model.caller import as_caller, open_given
from ajuste.model.error import RequestError, RunError

PLACE: Final = "{candidate}"
"""The placeholder for the candidate's path in a command."""

MOST_FILES: Final = 1000
MOST_BYTES: Final = 256 << 20

_FOLDER: Final = "candidates"
# Length of the digest in the name of a directory.
_DIGITS: Final = 16


class Candidates:
    """The candidates beside the study file in ``directory``, by the SHA-256 of all their files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def take(self, path: Path) -> str:
        """Copy the file or directory ``path`` and return its digest. Raises RequestError for an unfit one."""
        # By descriptors: another user could replace a directory on the way by a link.
        with open_directory(self._directory / _FOLDER, make=0o700) as folder:
            name = Path(tempfile.mkdtemp(dir=folder, prefix="new-")).name
            try:
                with as_caller():
                    files = _contained(path)
                with open_directory(folder / name) as copy:
                    return self._copied(files, copy, folder / name)
            except OSError as failure:
                raise RequestError(f"--candidate {path}: {failure.strerror}", hint="build it first") from None
            finally:
                shutil.rmtree(folder / name, ignore_errors=True)

    def _copied(self, files: Mapping[Path, Path], copy: Path, called: Path) -> str:
        for name, file in files.items():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            with open_given(file) as content, (copy / name).open("xb") as out:
                shutil.copyfileobj(content, out)
                is_program = os.fstat(content.fileno()).st_mode & 0o111
            (copy / name).chmod(0o755 if is_program else 0o644)
        digest = _digest(copy)
        if not self._folder(digest).exists():
            # mkdtemp made it 0700, and the workload may run as another user.
            copy.chmod(0o755)
            for entry in (called, *sorted(copy.rglob("*"))):
                give_to_caller(entry)
            called.rename(called.with_name(self._folder(digest).name))
        return digest

    def place(self, digest: str) -> str:
        """Return the path of a candidate, relative to the study file. Raises RunError if it has changed."""
        return "/".join(Path(self.files(digest)[0]).parts[:3])

    def files(self, digest: str) -> list[str]:
        """Return all files of a candidate, relative to the study file. Raises RunError if they were changed since."""
        folder = self._folder(digest)
        if not folder.is_dir() or _digest(folder) != digest:
            raise RunError(
                f"the candidate {digest[:12]} in {folder} is gone or was changed",
                hint="begin a new campaign under another name",
            )
        return [str(file.relative_to(self._directory)) for file in sorted(folder.rglob("*")) if file.is_file()]

    def keep_only(self, digests: Collection[str]) -> None:
        """Remove all candidates but ``digests``."""
        names = {self._folder(digest).name for digest in digests}
        for folder in (self._directory / _FOLDER).iterdir():
            if folder.name not in names:
                remove_tree(folder)

    def _folder(self, digest: str) -> Path:
        return self._directory / _FOLDER / digest[:_DIGITS]


def _contained(path: Path) -> dict[Path, Path]:
    # Files by their names relative to the parent of `path`.
    files = (
        [path]
        if path.is_file()
        else sorted(entry for entry in path.rglob("*") if not entry.is_dir() or entry.is_symlink())
    )
    if not files:
        why = "is an empty directory" if path.is_dir() else "not found"
        raise RequestError(f"--candidate {path}: {why}", hint="name the file or directory that the optimiser changes")
    irregular = next((file for file in files if not file.is_file()), None)
    if irregular is not None:
        raise RequestError(
            f"--candidate {path}: {irregular} is not a regular file", hint="name a smaller directory, or one file of it"
        )
    if len(files) > MOST_FILES or sum(file.stat().st_size for file in files) > MOST_BYTES:
        raise RequestError(
            f"--candidate {path}: has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB",
            hint="name a smaller directory, or one file of it",
        )
    return {file.relative_to(path.parent): file for file in files}


def _digest(directory: Path) -> str:
    # A name may have any character, so JSON delimits them.
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    lines = [(file_sha256(file), os.access(file, os.X_OK), str(file.relative_to(directory))) for file in files]
    return hashlib.sha256(json.dumps(lines).encode()).hexdigest()
