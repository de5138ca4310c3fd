"""What modules for a distribution's kernel are built with: its headers, from the machine's package mirror."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from debian.deb822 import PkgRelation
from debian.debian_support import Version
from pydantic import BaseModel, ConfigDict, ValidationError

from ajuste.kernel.apt import Apt, Package, PackageGone
from ajuste.kernel.cache import find_any_damage, find_damage, keeping_in, put_in_place, write_inventory
from ajuste.kernel.fetch import package_lists
from ajuste.kernel.source import kernel_sources
from ajuste.kernel.unpack import TREE, unpacked
from ajuste.machine.cache import HEADERS, make_room
from ajuste.machine.files import read_kept
from ajuste.machine.home import Home
from ajuste.machine.lock import hold, locked
from ajuste.model.error import RequestError, RunError
from ajuste.model.kernel import KernelImage
from ajuste.model.wording import Say

RECORD = "headers.json"
_SPARE_BYTES = 16_000_000
# The compiler is this machine's own.
_PARTS = ("linux-headers-", "linux-kbuild-")
_INSTALLED = "/usr/src/"


class Headers(BaseModel):
    """``directory`` is what make is called in (``make -C``). ``packages`` are their names and versions."""

    model_config = ConfigDict(frozen=True)
    directory: Path
    packages: tuple[str, ...]


def fetch_headers(image: KernelImage, home: Home, say: Say = lambda _: None, *, to_build: bool = False) -> Headers:
    """The headers of exactly this kernel, from the cache or else from the mirror. Nothing is installed. Where they are
    ``to_build`` with, every file is compared with its checksum; else only what says which headers they are.

    Raises RequestError for a kernel that is not a distribution's or whose headers no package list has any more,
    RunError where fetching fails.
    """
    source = kernel_sources().get(image.spec.partition(":")[0])
    if source is None or not image.package:
        raise RequestError(
            f"{image.spec}: building a module requires a distribution's kernel, such as debian:5.10",
            hint="use --kernel debian:5.10",
        )
    version = image.package.split(" ")[1]
    # The makefiles name their place: by one name, whatever links lead to the cache.
    root = (home.cache / "headers").resolve()
    directory = root / f"{image.release}_{version.replace(':', '%3a')}"
    with keeping_in(root, "kernel headers"):
        if headers := _read(directory, image, to_build=to_build):
            return headers
        with locked(root / ".lock", waiting=lambda: say("waiting for another ajuste that is fetching headers")):
            if headers := _read(directory, image, to_build=to_build):
                return headers
            apt = package_lists(source, home, say)
            apt.refresh()
            packages = _packages(f"linux-headers-{image.release}", version, apt)
            if not packages:
                raise RequestError(
                    f"package linux-headers-{image.release} {version} not found in the lists of "
                    f"{source.name}; a module "
                    "for this kernel requires it",
                    hint=f"fetch a newer kernel: ajuste kernel fetch {image.spec} --refresh",
                )
            _fetch(packages, directory, image, apt, say)
    headers = _read(directory, image, to_build=to_build)
    if headers is None:
        raise RunError(f"cannot read back the headers stored in {directory}")
    make_room(HEADERS, home)
    return headers


def _read(directory: Path, image: KernelImage, *, to_build: bool) -> Headers | None:
    """Those of ``directory``, if they are whole and were made for this place: they name it in themselves."""
    try:
        hold(directory)
        record = Headers.model_validate_json(read_kept(directory / RECORD))
    except (OSError, ValidationError):
        return None
    damage = find_any_damage(directory) if to_build else find_damage(directory, [RECORD])
    if record.directory != _place(directory, image.release) or damage:
        return None
    return record


def _place(directory: Path, release: str) -> Path:
    return directory / "usr/src" / f"linux-headers-{release}"


def _packages(name: str, version: str, apt: Apt) -> list[Package]:
    """``name`` in that version, with the headers and tools it depends on; nothing if a part is missing."""
    found: dict[str, Package] = {}
    wanted = [name]
    while wanted:
        offered = apt.packages(wanted)
        level = [package for part in wanted if (package := _best(part, version, offered))]
        if len(level) < len(wanted):
            return []
        found |= {package.name: package for package in level}
        wanted = sorted({part for package in level for part in _parts(package)} - set(found))
    return list(found.values())


def _best(name: str, version: str, offered: Iterable[Package]) -> Package | None:
    """Of the same version, or else the newest: tools may be older than the kernel that they build for."""
    alike = sorted((p for p in offered if p.name == name), key=lambda p: Version(p.version), reverse=True)
    same = next((p for p in alike if p.version == version), None)
    return same or (next(iter(alike), None) if name.startswith("linux-kbuild-") else None)


def _parts(package: Package) -> list[str]:
    if not package.depends:
        return []
    relations = PkgRelation.parse_relations(package.depends)
    return [first["name"] for first, *_ in relations if first["name"].startswith(_PARTS)]


def _fetch(packages: list[Package], directory: Path, image: KernelImage, apt: Apt, say: Say) -> None:
    """Download and unpack beside the cache, then put it there in one step."""
    try:
        with unpacked(packages, directory.parent, apt, "kernel headers", say, spare_bytes=_SPARE_BYTES) as temporary:
            tree = temporary / TREE
            place = _place(tree, image.release)
            if not (place / "Makefile").is_file():
                raise RunError(f"the package {packages[0]} has no headers of {image.release}")
            _relocate(tree, directory)
            record = Headers(directory=_place(directory, image.release), packages=tuple(map(str, packages)))
            (tree / RECORD).write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")
            write_inventory(tree)
            put_in_place(tree, directory, aside=temporary / "damaged")
    except PackageGone as gone:
        raise RunError(
            f"the headers of {image.release} were not found on the mirror: {gone}",
            hint=f"fetch a newer kernel: ajuste kernel fetch {image.spec} --refresh",
        ) from gone


def _relocate(tree: Path, directory: Path) -> None:
    """Have the makefiles that name where the packages would be installed name where they will be instead."""
    for file in sorted((tree / _INSTALLED.strip("/")).glob("linux-headers-*/Makefile")):
        text = file.read_text(encoding="utf-8")
        if _INSTALLED in text:
            file.write_text(text.replace(_INSTALLED, f"{directory}{_INSTALLED}"), encoding="utf-8")
