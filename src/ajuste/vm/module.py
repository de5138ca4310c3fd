"""Kernel modules: which files a name stands for, and in which order they must be loaded.

Source: kmod's modprobe(8) and depmod.d(5). The dependencies are read from the modules themselves (section .modinfo),
because ``modules.dep`` is only written when a kernel is installed.
"""

from __future__ import annotations

import gzip
import io
import lzma
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import zstandard
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from rapidfuzz import process

from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage

_SUFFIXES = (".ko", ".ko.xz", ".ko.zst", ".ko.gz")


@dataclass(frozen=True)
class Module:
    """``path`` is where the guest has it; ``content`` is the module itself, decompressed; ``parameters`` are what it is
    loaded with (``memory_backed=1 gb=1``)."""

    name: str
    path: PurePosixPath
    content: bytes
    parameters: str = ""

    @property
    def line(self) -> str:
        """The path and, after a space, the parameters: how ``/ajuste/boot.json`` has it."""
        return f"{self.path} {self.parameters}".rstrip()


def modules_for(names: tuple[str, ...], kernel: KernelImage) -> tuple[Module, ...]:
    """The modules to load for ``names``, each after those it depends on; what is built in is left out.

    A name may be followed by parameters: ``null_blk memory_backed=1 gb=1``. Raises RequestError for a name that the
    kernel does not have, with the nearest ones, and for parameters of a module that is built in.
    """
    if not names:
        return ()
    if kernel.modules is None:
        raise RequestError(
            f"{kernel.spec} comes without modules, and {', '.join(names)} must be loaded",
            hint="name the directory of its modules: path:VMLINUZ,modules=DIR",
        )
    files = {_canonical(_stem(path)): path for path in kernel.modules.rglob("*.ko*") if _stem(path)}
    built_in = _built_in(kernel.modules)
    ordered: dict[str, Module] = {}
    for text in names:
        name, _, parameters = text.strip().partition(" ")
        name = _canonical(name)
        _add(name, kernel, files, built_in, ordered, ())
        if parameters.strip():
            _check_loadable(name, parameters, kernel, built_in)
            ordered[name] = replace(ordered[name], parameters=parameters.strip())
    return tuple(ordered.values())


def _check_loadable(name: str, parameters: str, kernel: KernelImage, built_in: frozenset[str]) -> None:
    if name in built_in:
        words = " ".join(f"{name}.{parameter}" for parameter in parameters.split())
        raise RequestError(
            f"{name} is built into {kernel.spec}: it is not loaded, and so takes no parameters",
            hint=f"give them to the kernel: kernel_arguments = [{words!r}]",
        )


def _add(
    name: str,
    kernel: KernelImage,
    files: dict[str, Path],
    built_in: frozenset[str],
    ordered: dict[str, Module],
    above: tuple[str, ...],
) -> None:
    if name in ordered or name in built_in or name in above:
        return
    if name not in files:
        nearest = [match[0] for match in process.extract(name, sorted({*files, *built_in}), limit=3, score_cutoff=70)]
        raise RequestError(
            f"{kernel.spec} ({kernel.release}) has no module {name}",
            hint=f"nearest: {', '.join(nearest)}" if nearest else None,
        )
    path = files[name]
    content = _decompressed(path)
    hard, soft = _dependencies(path, content)
    wanted = (_soft(dependency, files) for dependency in soft)
    for dependency in (*hard, *(found for found in wanted if found is not None)):
        _add(_canonical(dependency), kernel, files, built_in, ordered, (*above, name))
    assert kernel.modules is not None
    place = PurePosixPath("/lib/modules") / kernel.release / path.relative_to(kernel.modules).as_posix()
    ordered[name] = Module(name, place.with_name(f"{_stem(path)}.ko"), content)


def _soft(name: str, files: dict[str, Path]) -> str | None:
    """The module that a soft dependency stands for, if it is to be loaded. It may be missing (modprobe.d(5)), or an
    algorithm instead of a module: ``crypto-crc32c`` (crypto/api.c), whose plain implementation is ``crc32c_generic``.
    """
    own = _canonical(name)
    algorithm = own.removeprefix("crypto_")
    candidates = (own, f"{algorithm}_generic", algorithm) if algorithm != own else (own,)
    return next((candidate for candidate in candidates if candidate in files), None)


def _dependencies(path: Path, content: bytes) -> tuple[list[str], list[str]]:
    """``depends``, and the ``pre:`` part of ``softdep``."""
    try:
        section = ELFFile(io.BytesIO(content)).get_section_by_name(".modinfo")
    except ELFError as error:
        raise RequestError(f"{path} is no kernel module: {error}") from error
    hard: list[str] = []
    soft: list[str] = []
    for field in section.data().split(b"\0") if section is not None else ():
        key, _, value = field.decode(errors="replace").partition("=")
        if key == "depends":
            hard += [name for name in value.split(",") if name]
        elif key == "softdep" and "pre:" in value:
            soft += value.split("pre:", 1)[1].split("post:", 1)[0].split()
    return hard, soft


def _decompressed(path: Path) -> bytes:
    content = path.read_bytes()
    match path.suffix:
        case ".xz":
            return lzma.decompress(content)
        case ".zst":
            return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content)).read()
        case ".gz":
            return gzip.decompress(content)
        case _:
            return content


def _built_in(modules: Path) -> frozenset[str]:
    listing = modules / "modules.builtin"
    if not listing.is_file():
        return frozenset()
    return frozenset(_canonical(_stem(Path(line))) for line in listing.read_text().splitlines() if line)


def _stem(path: Path) -> str:
    return next((path.name.removesuffix(suffix) for suffix in _SUFFIXES if path.name.endswith(suffix)), "")


def _canonical(name: str) -> str:
    return name.replace("-", "_")
