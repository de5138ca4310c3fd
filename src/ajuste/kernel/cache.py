"""The kernels on this disk: one directory each under ``Home.kernels``, complete or not there at all."""

from __future__ import annotations

from pathlib import Path

from debian.debian_support import Version
from pydantic import BaseModel, ConfigDict, ValidationError

from ajuste.checksum import read_kept
from ajuste.home import Home
from ajuste.kernel.inventory import find_any_damage, find_damage, read_inventory, write_inventory
from ajuste.model.kernel import KernelImage

RECORD = "kernel.json"


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
        return sum(read_inventory(self.directory).values())

    def damage(self, *, thoroughly: bool = False) -> str | None:
        """What is wrong with the files on disk, or None. All are looked at; the modules are read when they are loaded
        (see ``vm.module``) or ``thoroughly``, all others now.
        """
        if thoroughly:
            return find_any_damage(self.directory)
        files = (self.image.vmlinuz, self.image.config)
        names = (str(file.relative_to(self.directory)) for file in files if file is not None)
        return find_damage(self.directory, (RECORD, *names))


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
        record = KernelImage.model_validate_json(read_kept(directory / RECORD))
        Version(record.package.split(" ")[1])
    except (OSError, ValidationError, ValueError, IndexError):
        return None
    if not (directory / record.vmlinuz).is_file():
        return None
    # Paths in the record are relative to its directory, so that a cache can be moved.
    paths = {name: directory / path for name in ("vmlinuz", "modules", "config") if (path := getattr(record, name))}
    return CachedKernel(directory=directory, image=record.model_copy(update=paths))


def write_record(directory: Path, image: KernelImage) -> None:
    """Describe the kernel in ``directory``; ``image`` has paths relative to it. The inventory comes last: an entry
    without one does not count.
    """
    (directory / RECORD).write_text(image.model_dump_json(indent=2) + "\n", encoding="utf-8")
    write_inventory(directory)
