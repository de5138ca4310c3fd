"""Kernels in a distribution's packages: which ones the lists offer, and the parts of each."""

from __future__ import annotations

import itertools
import re
import shutil
import struct
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from debian.debian_support import Version

from ajuste.kernel.spec import KernelSeries, KernelSource
from ajuste.machine.files import file_sha256
from ajuste.model.caller import open_found
from ajuste.model.error import RequestError, RunError
from ajuste.model.kernel import KernelImage, KernelVersion
from ajuste.model.wording import Say
from ajuste_guest.kernel.archive.archive import Archive
from ajuste_guest.kernel.archive.download import Package
from ajuste_guest.kernel.cache import require_space, write_record

_RELEASE = re.compile(r"[0-9]+\.[0-9]+[+~.\-0-9a-zA-Z]*")

_SETUP_SECTS = 0x1F1
_BOOT_FLAG = 0x1FE
_MAGIC = 0x202
_KERNEL_VERSION = 0x20E
_LONGEST_VERSION = 512
TREE: Final = "tree"


@dataclass(frozen=True)
class Candidate:
    """A kernel that the lists offer. ``packages`` are all that it takes, the one of the image first."""

    source: str
    release: str
    flavour: str
    series: KernelSeries
    packages: tuple[Package, ...]

    @property
    def version(self) -> str:
        """Return the version of its packages, e.g. ``6.12.94-1``."""
        return self.packages[0].version

    @property
    def upstream(self) -> str:
        """Return the kernel's own version, e.g. ``6.12.94``."""
        return upstream_version(self.version)

    @property
    def size_bytes(self) -> int:
        """Return the bytes to download."""
        return sum(p.size_bytes for p in self.packages)

    @property
    def installed_bytes(self) -> int:
        return sum(p.installed_bytes for p in self.packages)

    @property
    def suites(self) -> tuple[str, ...]:
        return self.packages[0].suites


def upstream_version(version: str) -> str:
    """Return ``6.12.94`` of the package version ``6.12.94-1~bpo12+1``."""
    return Version(version).upstream_version or version


def find_candidates(archive: Archive, source: KernelSource) -> list[Candidate]:
    """Return all kernels of ``source`` that the package lists have, newest first."""
    names = archive.names("linux-")
    wanted = {name for release in _releases(names, source) for name in _part_names(release, source)}
    return assemble(archive.packages(wanted.intersection(names)), source)


def assemble(packages: list[Package], source: KernelSource) -> list[Candidate]:
    """Put packages together to kernels, newest first by Debian's order of versions.

    A kernel of which a part is missing is left out; one that is packaged in two ways is there twice. Source for the
    order: deb-version(7).
    """
    known = {(p.name, p.version): p for p in packages}
    versions: dict[str, set[str]] = {}
    for package in packages:
        versions.setdefault(package.name, set()).add(package.version)
    candidates = []
    for release in _releases(list(versions), source):
        flavour = source.find_flavour(release)
        for version in set().union(*(versions.get(name, set()) for name in _part_names(release, source))):
            series = source.find_series(KernelVersion.parse(upstream_version(version)))
            if series and flavour:
                alternatives = [
                    [known[key] for name in names if (key := (name.format(release=release), version)) in known]
                    for names in series.parts
                ]
                # Best first: signed or, if that is not there, unsigned.
                ways = itertools.product(*alternatives)
                candidates += [Candidate(source.name, release, flavour, series, parts) for parts in ways]
    # Sorting is stable: of one version, the preferred packages stay first.
    return sorted(candidates, key=lambda c: (Version(c.version), c.release), reverse=True)


def _part_names(release: str, source: KernelSource) -> set[str]:
    patterns = {pattern for series in source.series for part in series.parts for pattern in part}
    return {pattern.format(release=release) for pattern in patterns}


def _releases(names: list[str], source: KernelSource) -> set[str]:
    images = {pattern.partition("{release}") for series in source.series for pattern in series.parts[0]}
    releases = set()
    for name in names:
        for before, _, after in images:
            if name.startswith(before) and name.endswith(after):
                release = name[len(before) : len(name) - len(after)]
                if _RELEASE.fullmatch(release) and source.find_flavour(release) and release.count(".") >= 2:
                    releases.add(release)
    return releases


# From package files to the parts of a kernel.


def arrange(tree: Path, candidate: Candidate, into: Path) -> KernelImage:
    """Move the image, the modules and the build options from an extracted ``tree`` to where the cache has them.

    Returns the image with paths relative to ``into``. Raises RunError where the packages are not as expected.
    """
    release = candidate.release
    modules = next(
        (d for d in (tree / "usr/lib/modules" / release, tree / "lib/modules" / release) if d.is_dir()), None
    )
    image = _first(
        tree,
        f"boot/vmlinuz-{release}",
        f"usr/lib/modules/{release}/vmlinuz",
        f"usr/lib/modules/{release}/vmlinuz.unsigned",
    )
    if image is None or modules is None:
        raise RunError(
            f"the packages {', '.join(p.name for p in candidate.packages)} lack an image or modules", of_candidate=True
        )
    config = _first(tree, f"boot/config-{release}", f"usr/lib/modules/{release}/config")
    into.mkdir()
    image.rename(into / "vmlinuz")
    if config:
        config.rename(into / "config")
    (into / "lib/modules").mkdir(parents=True)
    modules.rename(into / "lib/modules" / release)
    actual = read_release(into / "vmlinuz")
    if actual != release:
        raise RunError(f"{candidate.packages[0]} has kernel {actual}; expected {release}", of_candidate=True)
    described = KernelImage(
        spec=f"{candidate.source}:{release}",
        release=release,
        vmlinuz=Path("vmlinuz"),
        modules=Path("lib/modules") / release,
        config=Path("config") if config else None,
        package=str(candidate.packages[0]),
        sha256=file_sha256(into / "vmlinuz"),
    )
    write_record(into, described)
    return described


def _first(tree: Path, *names: str) -> Path | None:
    return next((tree / name for name in names if (tree / name).is_file()), None)


# The header of an x86 kernel image.
#
# Source: Documentation/arch/x86/boot.rst of the Linux kernel, "The Real-Mode Kernel Header".


def read_release(vmlinuz: Path) -> str:
    """Return the release (``uname -r``) that a bzImage says it has. Raises RequestError if it is none."""
    try:
        with open_found(vmlinuz) as file:
            head = file.read(65 * 512 + _LONGEST_VERSION)
    except OSError as error:
        raise RequestError(
            f"cannot read kernel {vmlinuz}: {error.strerror}", hint="check that the file exists and is readable"
        ) from error
    marked = head[_BOOT_FLAG : _BOOT_FLAG + 2] == b"\x55\xaa" and head[_MAGIC : _MAGIC + 4] == b"HdrS"
    if not marked or len(head) < _KERNEL_VERSION + 2:
        raise RequestError(
            f"{vmlinuz} is not an x86 kernel image (bzImage): {_what(head)}",
            hint="use arch/x86/boot/bzImage of a kernel tree, or /boot/vmlinuz-RELEASE of a system",
        )
    (pointer,) = struct.unpack_from("<H", head, _KERNEL_VERSION)
    # The pointer counts from 0x200 and is only valid within the setup sectors (0 means 4, for old boot loaders).
    if pointer == 0 or pointer >= 0x200 * (head[_SETUP_SECTS] or 4):
        raise RequestError(f"{vmlinuz} has no version string in its header; expected a bzImage with its release")
    text = head[pointer + 0x200 :].partition(b"\0")[0]
    release = text[:_LONGEST_VERSION].split(b" ")[0].decode("ascii", "replace")
    if not release[:1].isdigit() or not release.isprintable() or "/" in release:
        raise RequestError(
            f"{vmlinuz} has the version string {release[:60]!r} in its header; expected a kernel release"
        )
    return release


def _what(head: bytes) -> str:
    if head[:4] == b"\x7fELF":
        return "it is an ELF file, such as an uncompressed vmlinux"
    if head[:2] == b"\x1f\x8b":
        return "it is a gzip file"
    if head[0x38:0x3C] == b"ARM\x64":
        return "it is a kernel for arm64"
    return "it is empty" if not head else '"HdrS" is missing at offset 0x202'


# Packages of the mirror, unpacked beside where something of theirs is to be kept.


@contextmanager
def unpacked(
    packages: Sequence[Package], root: Path, archive: Archive, what: str, say: Say, *, spare_bytes: int
) -> Iterator[Path]:
    """Yield a directory in ``root``, gone afterwards, whose ``tree`` has what all ``packages`` unpack to.

    The caller holds the lock of ``root``: what killed processes left there is removed. ``spare_bytes`` must be free
    beside what they take.

    Raises PackageGone where the mirror does not have one, RunError for a lack of space for ``what`` and other failures.
    """
    from ajuste_guest.kernel.archive.deb import unpack

    size_bytes = sum(package.size_bytes for package in packages)
    require_space(root, size_bytes + sum(package.installed_bytes for package in packages) + spare_bytes, what)
    say(f"downloading {packages[0]} ({size_bytes / 1e6:.0f} MB)")
    for leftover in root.glob(".fetching-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=root) as name:
        temporary = Path(name)
        (temporary / "packages").mkdir()
        files = archive.download(packages, temporary / "packages")
        say(f"extracting {packages[0]}")
        unpack(files, temporary / TREE)
        yield temporary
