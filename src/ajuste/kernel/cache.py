"""The kernels on this disk: one directory each under ``Home.kernels``, complete or not there at all."""

from __future__ import annotations

import json
from pathlib import Path

from debian.debian_support import Version
from pydantic import BaseModel, ConfigDict, ValidationError

from ajuste.home import Home
from ajuste.kernel.bzimage import sha256_of
from ajuste.model.kernel import KernelImage

RECORD = "kernel.json"
INVENTORY = "files.json"


class _Record(KernelImage):
    """``kernel.json``: a KernelImage with paths relative to its directory, so that a cache can be moved."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class CachedKernel(BaseModel):
    """An entry of the cache. ``image`` has absolute paths and the spec that names exactly this kernel."""

    model_config = ConfigDict(frozen=True)
    directory: Path
    image: KernelImage

    @property
    def package_version(self) -> str:
        """The version of its packages, e.g. ``6.12.94-1``."""
        return self.image.package.split(" ")[1]

    @property
    def size_bytes(self) -> int:
        return sum(_inventory(self.directory).values())

    def damage(self) -> str | None:
        """What is wrong with the files on disk, or None. Reads the image, and only the sizes of all other files."""
        for name, size_bytes in _inventory(self.directory).items():
            try:
                found = (self.directory / name).lstat().st_size
            except OSError:
                return f"{name} is missing"
            if found != size_bytes:
                return f"{name} has {found} bytes instead of {size_bytes}"
        if sha256_of(self.image.vmlinuz) != self.image.sha256:
            return "vmlinuz is not what was fetched (its SHA-256 differs)"
        return None


def directory_of(home: Home, release: str, package_version: str) -> Path:
    """Where a kernel is kept. A release alone would not do: packages are rebuilt under the same one."""
    return home.kernels / f"{release}_{package_version.replace(':', '%3a')}"


def cached_entries(home: Home) -> list[CachedKernel]:
    """What the cache has, newest first. Directories without a readable record are left out."""
    if not home.kernels.is_dir():
        return []
    found = [entry for d in home.kernels.iterdir() if not d.name.startswith(".") and (entry := read_entry(d))]
    return sorted(found, key=lambda e: (Version(e.package_version), e.image.release), reverse=True)


def cached_kernels(home: Home) -> list[KernelImage]:
    """The fetched kernels, newest first, each with the spec that names exactly it. Works without a network."""
    return [entry.image for entry in cached_entries(home)]


def read_entry(directory: Path) -> CachedKernel | None:
    """The entry in ``directory``, or None where there is no whole one."""
    try:
        record = _Record.model_validate_json((directory / RECORD).read_bytes())
        _inventory(directory)
        Version(record.package.split(" ")[1])
    except (OSError, ValidationError, ValueError, IndexError):
        return None
    if not (directory / record.vmlinuz).is_file():
        return None
    image = KernelImage(
        spec=record.spec,
        release=record.release,
        vmlinuz=directory / record.vmlinuz,
        modules=directory / record.modules if record.modules else None,
        config=directory / record.config if record.config else None,
        package=record.package,
        sha256=record.sha256,
    )
    return CachedKernel(directory=directory, image=image)


def write_record(directory: Path, image: KernelImage) -> None:
    """Describe the kernel in ``directory``; ``image`` has paths relative to it. The inventory comes first: an entry
    without a record does not count.
    """
    sizes = {
        str(file.relative_to(directory)): file.lstat().st_size
        for file in sorted(directory.rglob("*"))
        if (file.is_symlink() or file.is_file()) and file.name not in (RECORD, INVENTORY)
    }
    (directory / INVENTORY).write_text(json.dumps(sizes, indent=0), encoding="utf-8")
    (directory / RECORD).write_text(image.model_dump_json(indent=2), encoding="utf-8")


def _inventory(directory: Path) -> dict[str, int]:
    """The size in bytes of every file. Raises OSError or ValueError where that is not known."""
    sizes = json.loads((directory / INVENTORY).read_text(encoding="utf-8"))
    if not isinstance(sizes, dict) or not all(isinstance(size, int) for size in sizes.values()):
        raise ValueError(f"{directory / INVENTORY} is no inventory")
    return sizes
