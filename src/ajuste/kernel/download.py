"""Packages of the mirror, unpacked beside where something of theirs is to be kept."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ajuste.kernel.apt import Apt, Package
from ajuste.kernel.space import require_space
from ajuste.kernel.unpack import unpack

TREE: Final = "tree"


@contextmanager
def unpacked(
    packages: Sequence[Package], root: Path, apt: Apt, what: str, say: Callable[[str], None], *, spare_bytes: int
) -> Iterator[Path]:
    """A directory in ``root``, gone afterwards, whose ``tree`` has what all ``packages`` unpack to.

    The caller holds the lock of ``root``: what killed processes left there is removed. ``spare_bytes`` must be free
    beside what they take.

    Raises PackageGone where the mirror does not have one, RunError for a lack of space for ``what`` and other failures.
    """
    size_bytes = sum(package.size_bytes for package in packages)
    require_space(root, size_bytes + sum(package.installed_bytes for package in packages) + spare_bytes, what)
    say(f"downloading {packages[0]} ({size_bytes / 1e6:.0f} MB)")
    for leftover in root.glob(".fetching-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=root) as name:
        temporary = Path(name)
        (temporary / "packages").mkdir()
        files = apt.download(packages, temporary / "packages")
        say(f"extracting {packages[0]}")
        unpack(files, temporary / TREE)
        yield temporary
