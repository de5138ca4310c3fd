"""The files that a guest was begun with: they stay in the cache, and do not change."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from ajuste.machine.files import sha256_of
from ajuste.machine.home import Home
from ajuste.machine.lock import holding
from ajuste.model.error import RunError

_AGAIN: Final = "run the same command again; it replaces damaged files of the cache"


def hold(stack: ExitStack, home: Home, *files: Path) -> None:
    """What the cache has of ``files`` stays there until ``stack`` is left. Raises RunError for what is gone."""
    for file in files:
        for used in (file, file.parent) if file.is_relative_to(home.cache) else ():
            try:
                stack.enter_context(holding(used))
            except OSError as error:
                raise RunError(f"cannot use {used}: {error.strerror}", hint=_AGAIN) from error


def require_intact(checksums: Mapping[Path, str]) -> None:
    """Raises RunError where QEMU would read something else than what the run was begun with."""
    for file, sha256 in checksums.items():
        try:
            intact = sha256_of(file) == sha256
        except OSError as error:
            raise RunError(f"cannot read {file}: {error.strerror}", hint=_AGAIN) from error
        if not intact:
            raise RunError(f"{file} changed during the run", hint=_AGAIN)
