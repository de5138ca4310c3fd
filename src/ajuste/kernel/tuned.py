"""tuned's package, fetched for its profiles where it is not installed. Nothing of it is run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from debian.debian_support import Version
from pydantic import ConfigDict, ValidationError

from ajuste.catalogue.programs import install_hint
from ajuste.kernel.archive.archive import PackageGone
from ajuste.kernel.archive.deb import unpack
from ajuste.kernel.cache import find_any_damage, keeping_in, put_in_place, require_space, write_inventory
from ajuste.kernel.fetch import package_lists
from ajuste.kernel.source import kernel_sources
from ajuste.kernel.spec import PackagedKernel, parse_spec
from ajuste.machine.files import read_kept
from ajuste.machine.home import Home
from ajuste.machine.lock import hold, locked
from ajuste.model.base import BaseModel
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.kernel import KernelVersion
from ajuste.model.wording import Say
from ajuste.profile.source import TunedTree

_SOURCE: Final = "debian"
_RECORD: Final = "package.json"
_BYTES: Final = 4_000_000


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)
    package: str
    suite: str


def suite_of_kernel(kernel: str) -> str:
    """The suite that a kernel's series is from, so that its profiles are of the same time; empty for other kernels."""
    spec = parse_spec(kernel)
    if not isinstance(spec, PackagedKernel):
        return ""
    text = spec.release or spec.version
    series = kernel_sources()[spec.source].series_of(KernelVersion.parse(text if "." in text else f"{text}.0"))
    return series.suites[0].partition("-")[0] if series else ""


def fetch_tuned(suite: str, home: Home, say: Say) -> TunedTree:
    """tuned of that suite (of an empty one: the newest), from the cache or else from the distribution's archive.

    Raises RequestError where there is none or the disk is too full, RunError where fetching fails.
    """
    root = home.cache / "tuned"
    with keeping_in(root, "tuned"):
        folder = root / (suite or "newest")
        if tree := _read(folder):
            return tree
        with locked(root / ".lock", waiting=lambda: say("waiting for another ajuste that is fetching tuned")):
            if tree := _read(folder):
                return tree
            try:
                _fetch(folder, suite, home, say)
            except AjusteError as failure:
                raise type(failure)(
                    f"tuned is not installed, and {failure.message}", hint=install_hint("tuned")
                ) from None
        if tree := _read(folder):
            return tree
    raise RunError(f"cannot read back the tuned stored in {folder}", hint=install_hint("tuned"))


def _read(folder: Path) -> TunedTree | None:
    try:
        record = _Record.model_validate_json(read_kept(folder / _RECORD))
    except (OSError, ValidationError):
        return None
    if _gone_or_damaged(folder):
        return None
    return TunedTree(folder / "tree", record.package, record.suite)


def _gone_or_damaged(folder: Path) -> bool:
    try:
        hold(folder)
    except OSError:
        return True
    return find_any_damage(folder) is not None


def _fetch(folder: Path, suite: str, home: Home, say: Say) -> None:
    archive = package_lists(kernel_sources()[_SOURCE], home, say)
    archive.refresh()
    known = [package for package in archive.packages(["tuned"]) if not suite or suite in package.suites]
    if not known:
        raise RequestError(f"tuned not found in {suite or ', '.join(archive.suites)}", hint=install_hint("tuned"))
    package = max(known, key=lambda one: Version(one.version))
    require_space(folder.parent, _BYTES + package.installed_bytes, "tuned")
    say(f"downloading {package}")
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder.parent) as name:
        temporary = Path(name)
        (temporary / "packages").mkdir()
        try:
            (temporary / "entry" / "tree").mkdir(parents=True)
            unpack(archive.download([package], temporary / "packages"), temporary / "entry" / "tree")
        except PackageGone as gone:
            raise RunError(str(gone)) from None
        record = _Record(package=str(package), suite=suite or (package.suites[0] if package.suites else ""))
        (temporary / "entry" / _RECORD).write_text(record.model_dump_json(), encoding="utf-8")
        write_inventory(temporary / "entry")
        put_in_place(temporary / "entry", folder, aside=temporary / "damaged")
