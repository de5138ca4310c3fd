"""tuned's own profiles, from the distribution's archive where tuned is not installed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from debian.debian_support import Version
from pydantic import ValidationError

from ajuste.catalogue.programs import install_hint
from ajuste.kernel.spec import kernel_sources
from ajuste.machine.files import hold, read_kept
from ajuste.machine.home import Home
from ajuste.model.base import BaseModel
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.wording import Say
from ajuste.run.testbed import UnpackedPackage
from ajuste_guest.kernel.archive.archive import PackageGone
from ajuste_guest.kernel.cache import cached_entry, find_any_damage, put_in_place, write_inventory
from ajuste_guest.kernel.candidate import TREE, unpacked
from ajuste_guest.kernel.fetch import package_lists

_SOURCE: Final = "debian"
_RECORD: Final = "package.json"
_SPARE_BYTES: Final = 4_000_000


class _Record(BaseModel):
    package: str
    suite: str


def fetch_tuned(suite: str, home: Home, say: Say) -> UnpackedPackage:
    """Return tuned of ``suite``, or the newest if empty, from the cache or the distribution's archive.

    Raises RequestError if there is none or the disk is full, RunError if fetching fails.
    """
    root = home.cache / "tuned"
    folder = root / (suite or "newest")

    def fetched() -> UnpackedPackage:
        try:
            _fetch(folder, suite, home, say)
        except AjusteError as failure:
            raise type(failure)(f"tuned is not installed, and {failure.message}", hint=install_hint("tuned")) from None
        if tree := _read_package(folder):
            return tree
        raise RunError(f"cannot read back the tuned stored in {folder}", hint=install_hint("tuned"))

    return cached_entry(root, "tuned", "fetching tuned", say, read=lambda _: _read_package(folder), make=fetched)


def _read_package(folder: Path) -> UnpackedPackage | None:
    try:
        record = _Record.model_validate_json(read_kept(folder / _RECORD))
        hold(folder)
    except (OSError, ValidationError):
        return None
    if find_any_damage(folder) is not None:
        return None
    return UnpackedPackage(folder / "tree", record.package, record.suite)


def _fetch(folder: Path, suite: str, home: Home, say: Say) -> None:
    archive = package_lists(kernel_sources()[_SOURCE], home, say)
    archive.refresh()
    known = [package for package in archive.packages(["tuned"]) if not suite or suite in package.suites]
    if not known:
        raise RequestError(f"tuned not found in {suite or ', '.join(archive.suites)}", hint=install_hint("tuned"))
    package = max(known, key=lambda candidate: Version(candidate.version))
    record = _Record(package=str(package), suite=suite or (package.suites[0] if package.suites else ""))
    try:
        with unpacked([package], folder.parent, archive, "tuned", say, spare_bytes=_SPARE_BYTES) as temporary:
            entry = temporary / "entry"
            entry.mkdir()
            (temporary / TREE).rename(entry / "tree")
            (entry / _RECORD).write_text(record.model_dump_json(), encoding="utf-8")
            write_inventory(entry)
            put_in_place(entry, folder, aside=temporary / "damaged")
    except PackageGone as gone:
        raise RunError(str(gone)) from None
