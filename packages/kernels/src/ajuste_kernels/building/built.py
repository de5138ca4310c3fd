"""The kernels that were built here: kept by their content, found by names."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from pydantic import ValidationError

from ajuste.kernel.spec import BUILT, check_name
from ajuste.machine.files import hold, locked, make_directory, read_kept, replace_file
from ajuste.machine.home import Home
from ajuste.model.base import BaseModel
from ajuste.model.error import RequestError, nearest_names
from ajuste.model.kernel import KernelImage
from ajuste_guest.kernel.cache import RECORD, find_damage, read_checksums, read_inventory

# Where the sources of a kernel come from: what files there are, and their content.


Manifest = Mapping[str, str]
"""Files by their paths within the tree: what each is, in a word that changes with its content. Symbolic links begin
with ``l``, programs with ``x``, other files with ``f``."""

LINK: Final = "l"
PROGRAM: Final = "x"
PLAIN: Final = "f"

_NUMBERS: Final = re.compile(rb"^(VERSION|PATCHLEVEL|SUBLEVEL)[ \t]*=[ \t]*(\d+)[ \t]*$", re.MULTILINE)
_PARTS: Final = ("Makefile", "Kconfig", "arch/x86/Makefile")


class SourceOrigin(Protocol):
    """Sources: ``title`` for people, ``place`` for all their versions, ``digest`` for exactly this content."""

    @property
    def title(self) -> str: ...

    @property
    def place(self) -> str: ...

    @property
    def digest(self) -> str: ...

    @property
    def manifest(self) -> Manifest: ...

    def read(self, path: str) -> bytes:
        """Return the content of a file of the manifest, the target of a link."""

    def read_all(self, paths: Iterable[str]) -> Iterator[bytes]:
        """Return the contents of many files, in their order."""

    def write(self, paths: Iterable[str], into: Path) -> None:
        """Write files of the manifest below ``into``, where their directories exist and they do not."""


def read_version(origin: SourceOrigin) -> str:
    """Return the kernel's version, such as ``6.1.192``. Raises RequestError for what is no kernel source."""
    for part in _PARTS:
        if part not in origin.manifest:
            raise RequestError(
                f"{origin.title} is not a Linux kernel source: {part} not found",
                hint="give the directory with the kernel's Makefile and Kconfig",
            )
    numbers = {name.decode(): value.decode() for name, value in _NUMBERS.findall(origin.read("Makefile"))}
    if not {"VERSION", "PATCHLEVEL"} <= numbers.keys():
        raise RequestError(
            f"{origin.title} is not a Linux kernel source: its Makefile has no VERSION",
            hint="give the directory with the kernel's Makefile and Kconfig",
        )
    return ".".join(numbers[name] for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL") if name in numbers)


def digest_texts(parts: Iterable[str]) -> str:
    """Return the SHA-256 of several texts, different for each way to split them."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogateescape")
        total.update(b"%d:" % len(data) + data)
    return total.hexdigest()


def manifest_digest(manifest: Manifest) -> str:
    """Return the SHA-256 of the names and digests of all files."""
    return digest_texts(text for item in sorted(manifest.items()) for text in item)


PROVENANCE: Final = "provenance.json"

_KEY: Final = re.compile(r"[0-9a-f]{64}")


class UsedFile(BaseModel):
    """A patch or a scheduler's program, by its file's name."""

    name: str
    sha256: str


class Provenance(BaseModel):
    """The origin of a kernel. ``settings`` are the options asked for by name, ``config`` is what they were added
    to; ``schedulers`` are programs that were built elsewhere. ``seconds`` and ``compiled`` (objects) are of the build
    itself.
    """

    source: str
    source_digest: str
    config: str
    settings: dict[str, str] = {}
    patches: tuple[UsedFile, ...] = ()
    schedulers: tuple[UsedFile, ...] = ()
    notes: tuple[str, ...] = ()
    compiler: str
    workspace: str = ""
    seconds: float = 0.0
    compiled: int = 0


class BuiltKernel(BaseModel):
    """A kernel that was built here. ``image`` has absolute paths; its spec is ``mine:NAME``. ``key`` stands for its
    content.
    """

    name: str
    key: str
    directory: Path
    image: KernelImage
    provenance: Provenance

    @property
    def patches(self) -> tuple[bytes, ...]:
        """Return the contents of its patches, in their order. Raises RequestError where one was not kept."""
        contents = []
        for number, patch in enumerate(self.provenance.patches):
            try:
                content = read_kept(patch_file(self.directory, number))
            except OSError:
                content = b""
            if hashlib.sha256(content).hexdigest() != patch.sha256:
                raise RequestError(
                    f"the patch {patch.name} of {BUILT}:{self.name} was not stored with the kernel",
                    hint=f"build it again: ajuste kernel remove {self.name}, then ajuste kernel build",
                )
            contents.append(content)
        return tuple(contents)

    @property
    def size_bytes(self) -> int:
        return sum(read_inventory(self.directory).values())


def patch_file(directory: Path, number: int) -> Path:
    """Return where a kernel in ``directory`` has that patch of it."""
    return directory / "patches" / str(number)


def kept_by(home: Home) -> Path:
    """Return the directory of all built kernels."""
    return home.cache / "built"


def find_built(name: str, home: Home) -> BuiltKernel:
    """Return the kernel of that name. Raises RequestError, with the nearest names, if it is missing or damaged."""
    key = _read_key(name, home)
    if key is None:
        names = built_names(home)
        near = nearest_names(name, names, most=3)
        hint = f"nearest: {', '.join(f'{BUILT}:{text}' for text in near)}" if near else None
        raise RequestError(
            f"built kernel {name!r} not found",
            hint=hint or f"list kernels with ajuste kernel list, or build it: ajuste kernel build --name {name}",
        )
    kernel = read_built(key, home)
    if kernel is None and not (kept_by(home) / key).is_dir():
        raise RequestError(f"the kernel {BUILT}:{name} was removed from the cache", hint="build it again")
    if kernel is None:
        raise RequestError(f"the kernel {BUILT}:{name} is damaged on the disk", hint="build it again")
    return _named(kernel, name)


def built_names(home: Home) -> list[str]:
    """Return the names of built kernels, sorted."""
    folder = kept_by(home) / "names"
    return sorted(file.name for file in folder.iterdir() if not file.name.startswith(".")) if folder.is_dir() else []


def built_kernels(home: Home) -> list[BuiltKernel]:
    """Return all intact kernels, by their names."""
    entries = ((name, key) for name in built_names(home) if (key := _read_key(name, home)))
    return [_named(kernel, name) for name, key in entries if (kernel := read_built(key, home))]


def read_built(key: str, home: Home) -> BuiltKernel | None:
    """Return the kernel of that content without a name, None if it is missing or damaged."""
    directory = kept_by(home) / key
    try:
        hold(directory)
        record = KernelImage.model_validate_json(read_kept(directory / RECORD))
        provenance = Provenance.model_validate_json(read_kept(directory / PROVENANCE))
    except (OSError, ValidationError):
        return None
    # The modules are read when they are loaded, and the kernel with its symbols by nobody.
    used = (name for name in read_checksums(directory) if not name.startswith(("lib/", "vmlinux", "System.map")))
    if find_damage(directory, (str(record.vmlinuz), *used)):
        return None
    parts = ("vmlinuz", "modules", "config", "schedulers")
    paths = {part: directory / path for part in parts if (path := getattr(record, part))}
    image = record.model_copy(update=paths)
    return BuiltKernel(name="", key=key, directory=directory, image=image, provenance=provenance)


def give_name(kernel: BuiltKernel, name: str, home: Home) -> BuiltKernel:
    """Let ``name`` mean this kernel from now on."""
    folder = kept_by(home) / "names"
    make_directory(folder)
    replace_file(folder / check_name(name), f"{kernel.key}\n".encode("ascii"), mode=0o600)
    return _named(kernel, name)


def remove_built(name: str, home: Home) -> None:
    """Forget a name, and with the last one the kernel. Raises RequestError for an unknown name."""
    with locked(kept_by(home) / ".lock"):
        key = _read_key(name, home)
        if key is None:
            find_built(name, home)
        (kept_by(home) / "names" / name).unlink()
        if key is None or key in {_read_key(other, home) for other in built_names(home)}:
            return
        for request in (kept_by(home) / "requests").glob("*"):
            with suppress(OSError):
                if read_kept(request).strip() == key.encode():
                    request.unlink()
        shutil.rmtree(kept_by(home) / key, ignore_errors=True)


def _named(kernel: BuiltKernel, name: str) -> BuiltKernel:
    image = kernel.image.model_copy(update={"spec": f"{BUILT}:{name}"})
    return kernel.model_copy(update={"name": name, "image": image})


def _read_key(name: str, home: Home) -> str | None:
    try:
        key = read_kept(kept_by(home) / "names" / check_name(name)).decode("ascii").strip()
    except (OSError, ValueError):
        return None
    return key if _KEY.fullmatch(key) else None


# The files of a directory tree.


def put_file(place: Path, kind: str, content: bytes) -> None:
    """Create what a manifest's entry describes, where nothing is yet."""
    if kind == LINK:
        place.symlink_to(os.fsdecode(content))
        return
    place.write_bytes(content)
    place.chmod(0o755 if kind == PROGRAM else 0o644)


_NOT_SOURCE = frozenset({".git", ".hg", ".svn"})


def list_files(directory: Path) -> Iterator[tuple[str, str, os.stat_result]]:
    """Return path within ``directory``, kind and status of all files and symbolic links (not followed), without those
    of version control.
    """
    folders = [""]
    while folders:
        prefix = folders.pop()
        with os.scandir(directory / prefix) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode) and entry.name not in _NOT_SOURCE:
                    folders.append(f"{prefix}{entry.name}/")
                elif stat.S_ISLNK(status.st_mode):
                    yield prefix + entry.name, LINK, status
                elif stat.S_ISREG(status.st_mode) and entry.name not in _NOT_SOURCE:
                    yield prefix + entry.name, PROGRAM if status.st_mode & stat.S_IXUSR else PLAIN, status
