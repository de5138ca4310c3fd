"""Kernel modules: which files a name stands for, and in which order they must be loaded.

Source: kmod's modprobe(8) and depmod.d(5). The dependencies are read from the modules themselves (section .modinfo),
because ``modules.dep`` is only written when a kernel is installed.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from elftools.elf.elffile import ELFFile

from ajuste.kernel.spec import BUILT
from ajuste.model.caller import open_found
from ajuste.model.error import RequestError, RunError, nearest_names
from ajuste.model.kernel import KernelImage
from ajuste_guest.kernel.cache import CHECKSUMS, read_checksums
from ajuste_guest.kernel.symbols import NO_ELF

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_SUFFIXES = (".ko", ".ko.xz", ".ko.zst", ".ko.gz")

# The exceptions of readers of compressed files.
_MALFORMED = (lzma.LZMAError, zstd.ZstdError, OSError, EOFError, ValueError, struct.error)


@dataclass(frozen=True)
class Module:
    """``path`` is where the guest has it; ``content`` is the module itself, decompressed; ``parameters`` are what it is
    loaded with (``memory_backed=1 gb=1``).
    """

    name: str
    path: PurePosixPath
    content: bytes
    parameters: str = ""

    @property
    def line(self) -> str:
        """Return the path and, after a space, the parameters: how ``/ajuste/boot.json`` has it."""
        return f"{self.path} {self.parameters}".rstrip()


def modules_for(names: tuple[str, ...], kernel: KernelImage) -> tuple[Module, ...]:
    """Return the modules to load for ``names``, each after those it depends on; what is built in is left out.

    A name may be followed by parameters: ``null_blk memory_backed=1 gb=1``. Raises RequestError for a name that the
    kernel does not have, with the nearest ones, and for parameters of a module that is built in; RunError for a file of
    the cache that is not what was kept.
    """
    if not names:
        return ()
    if kernel.modules is None:
        raise RequestError(
            f"{kernel.spec} has no modules, but the study requires {', '.join(names)}",
            hint="name the directory of its modules: path:VMLINUZ,modules=DIR",
        )
    files = {_canonical(_stem(path)): path for path in kernel.modules.rglob("*.ko*") if _stem(path)}
    files_of_kernel = _Kept(kernel, kernel.vmlinuz.parent, read_checksums(kernel.vmlinuz.parent))
    built_in: frozenset[str] = frozenset()
    listing = kernel.modules / "modules.builtin"
    if listing.is_file():
        lines = files_of_kernel.read(listing).decode(errors="replace").splitlines()
        built_in = frozenset(_canonical(_stem(Path(line))) for line in lines if line)
    ordered: dict[str, Module] = {}
    for text in names:
        name, _, parameters = text.strip().partition(" ")
        name = _canonical(name)
        _add(name, files_of_kernel, files, built_in, ordered, ())
        if parameters.strip():
            _check_loadable(name, parameters, kernel, built_in)
            ordered[name] = replace(ordered[name], parameters=parameters.strip())
    return tuple(ordered.values())


def _check_loadable(name: str, parameters: str, kernel: KernelImage, built_in: frozenset[str]) -> None:
    if name in built_in:
        words = " ".join(f"{name}.{parameter}" for parameter in parameters.split())
        raise RequestError(
            f"{name} is built into {kernel.spec}: it takes no parameters as a module",
            hint=f"give them to the kernel: kernel_arguments = [{words!r}]",
        )


@dataclass(frozen=True)
class _Kept:
    # The files of a kernel with their SHA-256 by name. Ajuste has no checksums of a user's own kernel and modules.
    kernel: KernelImage
    directory: Path
    digests: Mapping[str, str]

    def read(self, path: Path) -> bytes:
        try:
            with open_found(path) as file:
                content = file.read()
        except OSError as error:
            raise RequestError(f"cannot read {path}: {error.strerror}", hint=self._hint()) from error
        if not self.digests or not path.is_relative_to(self.directory):
            return content
        if self.digests.get(str(path.relative_to(self.directory))) != hashlib.sha256(content).hexdigest():
            raise RunError(
                f"{path.name} of {self.kernel.spec} is damaged on the disk: its SHA-256 is not the one in {CHECKSUMS}",
                hint=self._hint(),
            )
        return content

    def _hint(self) -> str | None:
        if not self.digests:
            return None
        if self.kernel.spec.startswith(f"{BUILT}:"):
            return f"remove it and build it again: ajuste kernel remove {self.kernel.spec}"
        return f"fetch it again: ajuste kernel fetch {self.kernel.spec}"


def _add(
    name: str,
    files_of_kernel: _Kept,
    files: dict[str, Path],
    built_in: frozenset[str],
    ordered: dict[str, Module],
    above: tuple[str, ...],
) -> None:
    if name in ordered or name in built_in or name in above:
        return
    kernel = files_of_kernel.kernel
    if name not in files:
        nearest = nearest_names(name, sorted({*files, *built_in}), most=3, likeness=70)
        raise RequestError(
            f"{kernel.spec} ({kernel.release}) has no module {name}",
            hint=f"nearest: {', '.join(nearest)}" if nearest else None,
        )
    path = files[name]
    content = _decompressed(path, files_of_kernel.read(path))
    hard, soft = _dependencies(path, content)
    wanted = list(hard)
    for dependency in soft:
        # It is loaded if it is there. It may be missing (modprobe.d(5)), or an algorithm instead of a module:
        # `crypto-crc32c` (crypto/api.c), whose plain implementation is `crc32c_generic`.
        canonical = _canonical(dependency)
        algorithm = canonical.removeprefix("crypto_")
        candidates = (canonical, f"{algorithm}_generic", algorithm) if algorithm != canonical else (canonical,)
        wanted += [candidate for candidate in candidates if candidate in files][:1]
    for dependency in wanted:
        _add(_canonical(dependency), files_of_kernel, files, built_in, ordered, (*above, name))
    assert kernel.modules is not None
    place = PurePosixPath("/lib/modules") / kernel.release / path.relative_to(kernel.modules).as_posix()
    ordered[name] = Module(name, place.with_name(f"{_stem(path)}.ko"), content)


def _dependencies(path: Path, content: bytes) -> tuple[list[str], list[str]]:
    try:
        section = ELFFile(io.BytesIO(content)).get_section_by_name(".modinfo")
        fields = section.data().split(b"\0") if section is not None else []
    except NO_ELF as error:
        raise RequestError(f"{path} is not a kernel module: {error}", hint="fetch or build the kernel again") from error
    hard: list[str] = []
    soft: list[str] = []
    for field in fields:
        key, _, value = field.decode(errors="replace").partition("=")
        if key == "depends":
            hard += [name for name in value.split(",") if name]
        elif key == "softdep" and "pre:" in value:
            soft += value.split("pre:", 1)[1].split("post:", 1)[0].split()
    return hard, soft


def _decompressed(path: Path, content: bytes) -> bytes:
    try:
        match path.suffix:
            case ".xz":
                return lzma.decompress(content)
            case ".zst":
                return zstd.decompress(content)
            case ".gz":
                return gzip.decompress(content)
            case _:
                return content
    except _MALFORMED as error:
        raise RequestError(f"cannot decompress {path}: {error}", hint="fetch or build the kernel again") from error


def _stem(path: Path) -> str:
    return next((path.name.removesuffix(suffix) for suffix in _SUFFIXES if path.name.endswith(suffix)), "")


def _canonical(name: str) -> str:
    return name.replace("-", "_")
