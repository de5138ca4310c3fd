"""Kernel modules of Ajuste's own, built for the kernel of a guest. They are never loaded on this machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from debian.debian_support import Version
from pydantic import ValidationError

from ajuste.kernel.spec import kernel_sources
from ajuste.machine.cache import HEADERS, MODULES, make_room
from ajuste.machine.files import hold, read_kept
from ajuste.machine.home import TREE as SOURCE_TREE
from ajuste.machine.home import Home, how_to_mend, in_tree
from ajuste.model.base import BaseModel
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.kernel import KernelImage
from ajuste.model.wording import Say
from ajuste.outputs.builds import first_error
from ajuste.study.resolved import Machine, ResolvedConfiguration, ResolvedStudy
from ajuste_guest.kernel.archive.archive import Archive, PackageGone
from ajuste_guest.kernel.archive.download import Package
from ajuste_guest.kernel.cache import cached_entry, find_any_damage, find_damage, put_in_place, write_inventory
from ajuste_guest.kernel.candidate import TREE, unpacked
from ajuste_guest.kernel.fetch import package_lists
from ajuste_guest.kernel.toolchain import REPRODUCIBLE, compiler, require_none

# What modules for a distribution's kernel are built with: its headers, from the distribution's archive.


RECORD = "headers.json"
_SPARE_BYTES = 16_000_000
# The compiler is this machine's own.
_PARTS = ("linux-headers-", "linux-kbuild-")
_INSTALLED = "/usr/src/"


class Headers(BaseModel):
    """Headers of a kernel. ``directory`` is what make is called in (``make -C``). ``packages`` are their names and
    versions.
    """

    directory: Path
    packages: tuple[str, ...]


def fetch_headers(image: KernelImage, home: Home, say: Say = lambda _: None, *, to_build: bool = False) -> Headers:
    """Return the headers of exactly this kernel, from the cache or else from the mirror.

    ``to_build`` compares every file with its checksum. Raises RequestError for a kernel that is not a distribution's or
    without headers in the lists, RunError where fetching fails.
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

    def fetched() -> Headers:
        archive = package_lists(source, home, say)
        archive.refresh()
        packages = _packages(f"linux-headers-{image.release}", version, archive)
        if not packages:
            raise RequestError(
                f"package linux-headers-{image.release} {version} not found in the lists of {source.name}; a module "
                "for this kernel requires it",
                hint=f"fetch a newer kernel: ajuste kernel fetch {image.spec} --refresh",
            )
        _fetch(packages, directory, image, archive, say)
        headers = _read(directory, image, to_build=to_build)
        if headers is None:
            raise RunError(f"cannot read back the headers stored in {directory}")
        make_room(HEADERS, home)
        return headers

    def read(_: Say) -> Headers | None:
        return _read(directory, image, to_build=to_build)

    return cached_entry(root, "kernel headers", "fetching headers", say, read=read, make=fetched)


def _read(directory: Path, image: KernelImage, *, to_build: bool) -> Headers | None:
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


def _packages(name: str, version: str, archive: Archive) -> list[Package]:
    packages: dict[str, Package] = {}
    wanted = [name]
    while wanted:
        offered = archive.packages(wanted)
        level = [package for part in wanted if (package := _best(part, version, offered))]
        if len(level) < len(wanted):
            return []
        packages |= {package.name: package for package in level}
        wanted = sorted({part for package in level for part in _parts(package)} - set(packages))
    return list(packages.values())


def _best(name: str, version: str, offered: Iterable[Package]) -> Package | None:
    # Tools may be older than the kernel that they build for.
    alike = sorted((p for p in offered if p.name == name), key=lambda p: Version(p.version), reverse=True)
    same = next((p for p in alike if p.version == version), None)
    return same or (next(iter(alike), None) if name.startswith("linux-kbuild-") else None)


def _parts(package: Package) -> list[str]:
    if not package.depends:
        return []
    from debian.deb822 import PkgRelation  # takes long to load

    relations = PkgRelation.parse_relations(package.depends)
    return [first["name"] for first, *_ in relations if first["name"].startswith(_PARTS)]


def _fetch(packages: list[Package], directory: Path, image: KernelImage, archive: Archive, say: Say) -> None:
    try:
        with unpacked(
            packages, directory.parent, archive, "kernel headers", say, spare_bytes=_SPARE_BYTES
        ) as temporary:
            tree = temporary / TREE
            place = _place(tree, image.release)
            if not (place / "Makefile").is_file():
                raise RunError(f"the package {packages[0]} has no headers of {image.release}")
            # The makefiles name where the packages would be installed.
            for file in sorted((tree / _INSTALLED.strip("/")).glob("linux-headers-*/Makefile")):
                text = file.read_text(encoding="utf-8")
                if _INSTALLED in text:
                    file.write_text(text.replace(_INSTALLED, f"{directory}{_INSTALLED}"), encoding="utf-8")
            record = Headers(directory=_place(directory, image.release), packages=tuple(map(str, packages)))
            (tree / RECORD).write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")
            write_inventory(tree)
            put_in_place(tree, directory, aside=temporary / "damaged")
    except PackageGone as gone:
        raise RunError(
            f"the headers of {image.release} were not found on the mirror: {gone}",
            hint=f"fetch a newer kernel: ajuste kernel fetch {image.spec} --refresh",
        ) from gone


_SOURCES: Final = {"ajuste_linpack": "linpack"}
_PROGRAMS: Final = {"make": "make", "gcc": "gcc", "ld": "binutils", "strip": "binutils", "setpriv": "util-linux"}


def module_source(name: str) -> Path:
    """Return the source directory of a bundled kernel module. Raises RequestError where it is missing."""
    places = [
        parent / _SOURCES[name] for parent in (Path(__file__).parents[1] / "module", SOURCE_TREE / "native" / "module")
    ]
    folder = next((place for place in places if (place / "Kbuild").is_file()), None)
    if folder is None:
        raise RequestError(f"sources of the kernel module {name} not found in {places[in_tree()]}", hint=how_to_mend())
    return folder


def build_module(name: str, image: KernelImage, home: Home, say: Say = lambda _: None) -> Path:
    """Return the module ``name`` for ``image``, ``NAME.ko``, built once for these sources, headers and compiler. Raises
    RequestError where a program or the headers are missing, RunError where it does not build.
    """
    sources = module_source(name)
    lacking = {program: package for program, package in _PROGRAMS.items() if shutil.which(program) is None}
    require_none(lacking, f"the kernel module {name}")
    root = home.cache / "modules"
    module = root / _key(sources, fetch_headers(image, home, say)) / f"{name}.ko"

    def built() -> Path:
        say(f"building the module {name} for {image.release}")
        _build(name, sources, fetch_headers(image, home, say, to_build=True), module)
        hold(module.parent)
        make_room(MODULES, home)
        return module

    def read(_: Say) -> Path | None:
        return module if _is_whole(module.parent) else None

    return cached_entry(root, "kernel modules", "building a module", say, read=read, make=built)


def _is_whole(entry: Path) -> bool:
    try:
        hold(entry)
    except OSError:
        return False
    return find_any_damage(entry) is None


def _key(sources: Path, headers: Headers) -> str:
    digest = hashlib.sha256()
    for part in (*headers.packages, compiler()):
        digest.update(part.encode() + b"\0")
    for file in sorted(sources.iterdir()):
        digest.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _build(name: str, sources: Path, headers: Headers, module: Path) -> None:
    root = module.parent.parent
    for leftover in root.glob(".building-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=root) as directory:
        tree = Path(directory) / "source"
        shutil.copytree(sources, tree)
        command = ["make", "-C", str(headers.directory), f"M={tree}", "CC=gcc", "modules"]
        process = _run(command)
        built = tree / f"{name}.ko"
        if process.returncode or not built.is_file():
            raise _failure(name, headers, process.stdout.replace(f"{tree}/", ""))
        # What is left does not depend on the directory that it was built in.
        stripped = _run(["strip", "--strip-debug", str(built)])
        if stripped.returncode:
            raise RunError(f"could not strip the module {name}: {stripped.stdout.strip()[:300]}")
        entry = Path(directory) / "entry"
        entry.mkdir()
        built.rename(entry / built.name)
        write_inventory(entry)
        put_in_place(entry, module.parent, aside=Path(directory) / "damaged")


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return subprocess.run(
        ["setpriv", "--pdeathsig", "TERM", "--", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        check=False,
        env={**inherited, **REPRODUCIBLE, "LC_ALL": "C"},
    )


def _failure(name: str, headers: Headers, output: str) -> RunError:
    reported = first_error(output.splitlines()) or ["make gave no reason"]
    below = "\n".join(reported[1:])
    if "unrecognized command-line option" in reported[0]:
        below = f"the kernel was built with a newer compiler than this machine's, {compiler().partition(';')[0]}"
    return RunError(
        f"the module {name} does not build with {headers.packages[0]}: {reported[0]}",
        hint=below if below.strip() else None,
    )


# Which kernel modules of Ajuste's own the machines of a study need, and their building before anything is measured.


def built_modules(
    resolved: ResolvedStudy, images: Mapping[str, KernelImage], home: Home, say: Say
) -> dict[Machine, tuple[Path, ...]]:
    """Return the module files by the machine that loads them, without machines that need none. Raises RequestError
    where one cannot be built here, with how to do without, and RunError where it does not build.
    """
    modules: dict[Machine, dict[str, Path]] = {}
    for configuration in resolved.configurations:
        for name in configuration.modules:
            of_machine = modules.setdefault(configuration.machine, {})
            if name in of_machine:
                continue
            try:
                of_machine[name] = build_module(name, images[configuration.kernel], home, say)
            except AjusteError as failure:
                hints = [failure.hint, _without(configuration, resolved)]
                raise type(failure)(failure.message, hint="\n".join(filter(None, hints)) or None) from failure
    return {machine: tuple(files.values()) for machine, files in modules.items()}


def _without(wanting: ResolvedConfiguration, resolved: ResolvedStudy) -> str | None:
    for factor in resolved.factors:
        level = wanting.configuration.levels[factor.name]
        needing = {c.configuration.levels[factor.name] for c in resolved.configurations if c.modules}
        if needing == {level} and level != factor.baseline:
            return f'or leave out the level that needs it: --without "{factor.name}={level}"'
    return None
