"""From package files to the parts of a kernel."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ajuste.checksum import sha256_of
from ajuste.kernel.bzimage import read_release
from ajuste.kernel.cache import write_record
from ajuste.kernel.candidate import Candidate
from ajuste.kernel.space import out_of_space
from ajuste.model.error import RequestError, RunError
from ajuste.model.kernel import KernelImage


def unpack(packages: Iterable[Path], into: Path) -> None:
    """Extract package files; nothing of them is run. Source: dpkg-deb(1)."""
    if shutil.which("dpkg-deb") is None:
        raise RequestError("dpkg-deb was not found; packages are extracted with it", hint="install dpkg")
    for package in packages:
        extraction = subprocess.run(
            ["dpkg-deb", "-x", package, into], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        if extraction.returncode == 0:
            continue
        if "No space left" in extraction.stderr or "quota" in extraction.stderr:
            raise out_of_space(into, package.name)
        raise RunError(f"could not extract {package.name}: {extraction.stderr.strip()[:300]}")


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
        raise RunError(f"the packages {', '.join(p.name for p in candidate.packages)} have no image or no modules")
    config = _first(tree, f"boot/config-{release}", f"usr/lib/modules/{release}/config")
    into.mkdir()
    image.rename(into / "vmlinuz")
    if config:
        config.rename(into / "config")
    (into / "lib/modules").mkdir(parents=True)
    modules.rename(into / "lib/modules" / release)
    said = read_release(into / "vmlinuz")
    if said != release:
        raise RunError(f"{candidate.packages[0]} has a kernel that calls itself {said}, not {release}")
    described = KernelImage(
        spec=f"{candidate.source}:{release}",
        release=release,
        vmlinuz=Path("vmlinuz"),
        modules=Path("lib/modules") / release,
        config=Path("config") if config else None,
        package=str(candidate.packages[0]),
        sha256=sha256_of(into / "vmlinuz"),
    )
    write_record(into, described)
    return described


def _first(tree: Path, *names: str) -> Path | None:
    return next((tree / name for name in names if (tree / name).is_file()), None)
