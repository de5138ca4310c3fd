"""QEMU 10, fetched for machines whose own is older, and never installed: it lives in the cache like a kernel.

Several CPUs need it: with QEMU 7.2 they never reach user space under the virtual clock, and by the wall clock they hang
now and then.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from debian.debian_support import Version
from pydantic import ValidationError

from ajuste.catalogue.programs import install_command, install_hint
from ajuste.kernel.spec import QemuSource, kernel_sources, qemu_source
from ajuste.machine.cache import QEMU as CACHED
from ajuste.machine.cache import make_room
from ajuste.machine.files import file_sha256, hold, read_kept
from ajuste.machine.home import Home, c_library
from ajuste.model.base import BaseModel
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.wording import Say
from ajuste_guest.kernel.archive.archive import Archive, PackageGone
from ajuste_guest.kernel.archive.deb import unpack
from ajuste_guest.kernel.archive.download import Package
from ajuste_guest.kernel.cache import cached_entry, find_any_damage, put_in_place, write_inventory
from ajuste_guest.kernel.candidate import TREE, unpacked
from ajuste_guest.kernel.fetch import package_lists

RECORD = "qemu.json"
PROGRAM = "qemu-system-x86_64"
# Libraries that the machine may lack, and rounding.
_SPARE_BYTES = 64_000_000


class QemuImage(BaseModel):
    """A QEMU on this disk. Start ``binary`` with ``-L firmware``; if ``libraries`` is not None, with that directory
    first in LD_LIBRARY_PATH. ``version`` is for example ``10.0.2``.
    """

    binary: Path
    firmware: Path
    version: str
    libraries: Path | None = None
    package: str
    sha256: str


def fetch_qemu(home: Home, say: Say = lambda _: None, *, refresh: bool = False) -> QemuImage:
    """Return QEMU ≥ 10 from the cache, which needs no network, or else from the distribution's archive; with
    ``refresh`` the newest that the mirror has. Raises RequestError where there is none for this machine or the disk is
    too full, RunError where fetching fails.
    """
    if platform.machine() != "x86_64":
        raise RequestError(f"fetching QEMU is supported only on x86_64; this machine is {platform.machine()}")
    root = home.cache / "qemu"

    def fetched() -> QemuImage:
        try:
            return _from_mirror(root, home, say, refresh)
        except AjusteError as failure:
            install = f"install QEMU: {install_command(['qemu-system-x86'])}; or set AJUSTE_QEMU to a {PROGRAM}"
            hint = f"{failure.hint}; or {install}" if failure.hint else install
            raise type(failure)(failure.message, hint=hint) from failure

    def read(complain: Say) -> QemuImage | None:
        return None if refresh else _from_cache(root, complain)

    return cached_entry(root, "QEMU", "fetching QEMU", say, read=read, make=fetched)


def cached_qemu(home: Home) -> QemuImage | None:
    """Return the newest intact QEMU of the cache."""
    return _from_cache(home.cache / "qemu", lambda _: None)


def _from_cache(root: Path, say: Say) -> QemuImage | None:
    entries = [(d, image) for d in root.glob("[!.]*") if (image := _read(d))] if root.is_dir() else []
    for directory, image in sorted(entries, key=lambda e: Version(e[1].package.split(" ")[1]), reverse=True):
        try:
            hold(directory)
        except FileNotFoundError:  # It was removed just now.
            continue
        damage = find_any_damage(directory)
        if damage is None:
            return image
        say(f"the cached QEMU {image.version} is damaged ({damage}): fetching it again")
    return None


def _read(directory: Path) -> QemuImage | None:
    try:
        record = QemuImage.model_validate_json(read_kept(directory / RECORD))
    except (OSError, ValidationError):
        return None
    paths = {name: directory / path for name in ("binary", "firmware", "libraries") if (path := getattr(record, name))}
    return record.model_copy(update=paths) if paths["binary"].is_file() else None


def _from_mirror(root: Path, home: Home, say: Say, refresh: bool) -> QemuImage:
    source = qemu_source()
    try:
        codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    except OSError:
        codename = ""
    suites = source.suites.get(codename) or _suites_for_others(source)
    archive = package_lists(kernel_sources()[source.source], home, say)
    archive.refresh(force=refresh)
    choices = _choose(archive, source, suites)
    if not choices:
        lacking = archive.lacking(suites)
        raise RequestError(
            f"found no QEMU of at least {source.minimum} in {', '.join(suites)}"
            + (f"; could not fetch {lacking}" if lacking else "")
        )
    gone = ""
    for packages in choices:
        directory = root / packages[0].version.rpartition(":")[2]
        if (image := _read(directory)) and find_any_damage(directory) is None:
            return image
        try:
            return _fetch(packages, directory, archive, suites, home, say)
        except PackageGone as error:
            gone = str(error)
            say(f"{error}: trying the next newest")
    raise RunError(f"could not download QEMU {source.minimum}: {gone}", hint="try again with --refresh")


def _suites_for_others(source: QemuSource) -> tuple[str, ...]:
    # Those whose QEMU runs with the C library of this machine, which is none of the distribution's own. Raises
    # RequestError where there are none.
    name, _, version = (c_library() or "").partition(" ")
    if name == "glibc" and Version(version) >= Version(source.oldest_libc):
        return source.suites["other"]
    here = f"glibc {version}" if name == "glibc" else "another C library"
    raise RequestError(
        f"the QEMU of {source.source} requires glibc {source.oldest_libc} or later; this machine has {here}"
    )


def _choose(archive: Archive, source: QemuSource, suites: tuple[str, ...]) -> list[list[Package]]:
    # The program's package and its companions, for each version that will do, newest first.
    known = [p for p in archive.packages([source.package, *source.companions]) if set(p.suites).intersection(suites)]
    known.sort(key=lambda p: Version(p.version), reverse=True)
    minimum = Version(source.minimum)
    versions = ((p, Version(p.version).upstream_version or "0") for p in known if p.name == source.package)
    programs = [p for p, upstream in versions if Version(upstream) >= minimum]
    choices = []
    for program in programs:
        packages = [program]
        for name in source.companions:
            # Data of the same build where there is such, else the newest.
            same = [p for p in known if p.name == name and p.version == program.version]
            packages += (same or [p for p in known if p.name == name])[:1]
        if len(packages) == 1 + len(source.companions):
            choices.append(packages)
    return choices


def _fetch(
    packages: list[Package], directory: Path, archive: Archive, suites: tuple[str, ...], home: Home, say: Say
) -> QemuImage:
    with unpacked(packages, directory.parent, archive, "QEMU", say, spare_bytes=_SPARE_BYTES) as temporary:
        entry = temporary / "qemu"
        _arrange(temporary / TREE, entry)
        add_missing_libraries(entry / PROGRAM, entry / "lib", packages[0], archive, suites, temporary, say)
        _describe(entry, packages[0])
        put_in_place(entry, directory, aside=temporary / "damaged")
    image = _read(directory)
    if image is None:
        raise RunError(f"cannot read back the QEMU stored in {directory}")
    hold(directory)
    make_room(CACHED, home)
    return image


def _arrange(tree: Path, entry: Path) -> None:
    (entry / "firmware").mkdir(parents=True)
    program = tree / "usr/bin" / PROGRAM
    if not program.is_file():
        raise RunError(f"the QEMU package lacks {PROGRAM}")
    program.rename(entry / PROGRAM)
    for folder in ("usr/share/qemu", "usr/share/seabios"):
        for file in sorted((tree / folder).glob("*")):
            if file.suffix in (".bin", ".rom") and file.is_file() and not file.is_symlink():
                file.rename(entry / "firmware" / file.name)


def _describe(entry: Path, package: Package) -> None:
    libraries = entry / "lib" if (entry / "lib").is_dir() else None
    process = run_with_libraries([entry / PROGRAM, "--version"], libraries)
    version = process.stdout.partition("version ")[2].split(" ")[0].strip()
    if process.returncode != 0 or not version[:1].isdigit():
        raise RunError(f"the fetched {package} does not start on this machine: {process.stderr.strip()[:300]}")
    record = QemuImage(
        binary=Path(PROGRAM),
        firmware=Path("firmware"),
        version=version,
        libraries=Path("lib") if libraries else None,
        package=str(package),
        sha256=file_sha256(entry / PROGRAM),
    )
    (entry / RECORD).write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")
    write_inventory(entry)


# Shared libraries that a fetched program needs and this machine lacks: they are fetched and kept beside it.


# Never replaced: the program is loaded by the machine's own, which must fit.
_C_LIBRARY = {"libc6", "libc-bin"}


def run_with_libraries(command: Sequence[str | Path], libraries: Path | None) -> subprocess.CompletedProcess[str]:
    """Run a program with ``libraries`` before the machine's own, and capture what it prints."""
    environment = dict(os.environ, LC_ALL="C.UTF-8")
    if libraries:
        environment["LD_LIBRARY_PATH"] = str(libraries)
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env=environment,
        timeout=60,
    )


def missing_libraries(program: Path, libraries: Path | None) -> list[str]:
    """Return the names of shared libraries that are neither on this machine nor in ``libraries``. Source: ldd(1)."""
    if shutil.which("ldd") is None:
        raise RequestError(f"ldd not found; it says what {program.name} requires", hint=install_hint("libc-bin"))
    listing = run_with_libraries(["ldd", program], libraries).stdout
    return sorted(set(re.findall(r"^\s*(\S+) => not found", listing, re.MULTILINE)))


def add_missing_libraries(
    program: Path,
    into: Path,
    package: Package,
    archive: Archive,
    suites: tuple[str, ...],
    temporary: Path,
    say: Say,
) -> None:
    """Put what ``program`` of ``package`` lacks into the directory ``into``, made only if needed, from the libraries
    that the package depends on, then those that these depend on, and so on. Raises RunError where one is still missing.
    """
    missing = missing_libraries(program, None)
    level, seen = [package], {package.name, *_C_LIBRARY}
    tree = temporary / "libraries"
    while missing:
        level = _dependencies(level, seen, archive, suites)
        if not level:
            raise RunError(f"{package} requires libraries not found on this machine: {', '.join(missing)}")
        seen.update(p.name for p in level)
        say(f"downloading libraries of {package.name} ({sum(p.size_bytes for p in level) / 1e6:.0f} MB)")
        into.mkdir(exist_ok=True)
        fetched = temporary / f"packages-{len(seen)}"
        fetched.mkdir()
        unpack(archive.download(level, fetched), tree)
        while libraries := [file for name in missing if (file := _find(tree, name))]:
            for file in libraries:
                shutil.copy(file, into / file.name)
            missing = missing_libraries(program, into)


def _dependencies(
    packages: Iterable[Package], seen: set[str], archive: Archive, suites: tuple[str, ...]
) -> list[Package]:
    from debian.deb822 import PkgRelation  # takes long to load

    names = {
        alternative["name"]
        for package in packages
        for alternatives in PkgRelation.parse_relations(package.depends)
        for alternative in alternatives
        if alternative["name"].startswith("lib")
    }
    newest: dict[str, Package] = {}
    for offered in archive.packages(names - seen):
        known = newest.get(offered.name)
        if set(offered.suites).intersection(suites) and (
            known is None or Version(known.version) < Version(offered.version)
        ):
            newest[offered.name] = offered
    return [newest[name] for name in sorted(newest)]


def _find(tree: Path, soname: str) -> Path | None:
    return next((f for f in sorted(tree.rglob(soname)) if f.is_file()), None)
