"""The names of a kernel's functions, from its image alone: the tables of kallsyms that it carries.

Source: scripts/kallsyms.c (``write_src``) and kernel/kallsyms.c of the Linux kernel. All tables stand in ``.rodata``::

    5.10 … 6.3   offsets, relative_base, num_syms, names, markers, (6.2, and stable 6.1: seqs_of_names,) token_table,
                 token_index
    6.4 …        num_syms, names, markers, token_table, token_index, offsets, relative_base, seqs_of_names
    7.x          the same without relative_base: an offset counts from its own place

A name is its length (in two bytes if it is 128 or more, since 6.1) and so many tokens, the first character being the
symbol's type; ``markers`` has the place of every 256th name. An offset counts from ``relative_base``; with
CONFIG_KALLSYMS_ABSOLUTE_PERCPU one that is not negative is the value itself, and others are ``base - 1 - offset``.
Addresses are those of ``nokaslr``.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from numpy.typing import NDArray

from ajuste.machine.cache import SYMBOLS, make_room
from ajuste.machine.files import make_directory, read_kept, replace_file
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage
from ajuste_guest.kernel.cache import keeping_in
from ajuste_guest.kernel.candidate import read_release

# The kernel proper (vmlinux, an ELF file) that a bzImage carries in compressed form.
#
# Source: Documentation/arch/x86/boot.rst of the Linux kernel, "payload_offset"; scripts/Makefile.lib for the formats:
# all but gzip's are followed by the size of the content, and LZ4's is the legacy frame format of lz4_Frame_format.md.


if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NO_ELF: Final = (
    *(ELFError, struct.error, OverflowError, MemoryError),
    *(AssertionError, ValueError, KeyError, AttributeError, TypeError),
)
"""Exceptions of pyelftools when a file is no ELF file."""

_SETUP_SECTS: Final = 0x1F1
_PAYLOAD: Final = 0x248
# More than any kernel has.
_MOST_BYTES: Final = 1 << 30

_LZ4: Final = b"\x02\x21\x4c\x18"
_LZO: Final = b"\x89LZO"
# What decompressing comes to of what is damaged.
_MALFORMED: Final = (lzma.LZMAError, zstd.ZstdError, zlib.error, OSError, EOFError, ValueError, IndexError)

_TEXT: Final = "tTwW"

# So many names stand between two markers.
_STEP: Final = 256

# Every digit is a token of its own, at its own place.
_DIGITS: Final = b"".join(b"%d\0" % digit for digit in range(10))

_ZERO: Final = ord("0")
_LONGEST_TOKEN: Final = 512
_LONGEST_NAME: Final = 2 * 128
_MOST_TRIED: Final = 20

# The tables stand so near to each other.
_TABLES_BYTES: Final = 64 << 20

# Where the kernel is mapped (Documentation/arch/x86/x86_64/mm.rst).
_LOWEST: Final = 0xFFFFFFFF80000000

_MARKS: Final = frozenset({"_text", "_stext", "_etext", "_sinittext", "_einittext"})

# Address, type and name, as nm(1) has them.
_Symbol = tuple[int, str, str]


def read_vmlinux(vmlinuz: Path) -> bytes:
    """Return the ELF file in a bzImage. Raises RequestError where it is none, or damaged."""
    read_release(vmlinuz)
    image = read_kept(vmlinuz)
    try:
        offset, length = struct.unpack_from("<II", image, _PAYLOAD)
        start = 512 * ((image[_SETUP_SECTS] or 4) + 1) + offset
        payload = image[start : start + length]
        read_format = next((read for magic, read in _FORMATS.items() if payload.startswith(magic)), None)
        if read_format is None:
            name = "LZO" if payload.startswith(_LZO) else f"a format that begins with {payload[:4].hex() or 'nothing'}"
            raise ValueError(f"{name} is not supported; expected gzip, bzip2, LZMA, XZ, LZ4 or Zstandard")
        content = read_format(payload)
    except (*_MALFORMED, struct.error) as error:
        raise RequestError(
            f"cannot decompress the kernel in {vmlinuz}: {error}", hint="fetch or build the kernel again"
        ) from error
    if content[:4] != b"\x7fELF":
        raise RequestError(f"{vmlinuz} does not carry an ELF file", hint="fetch or build the kernel again")
    return content


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _whole(payload: bytes, decompressor: _Decompressor) -> bytes:
    content = decompressor.decompress(payload, _MOST_BYTES)
    if not decompressor.eof:
        raise EOFError("it is cut short")
    return content


def _unpacked_lz4(payload: bytes) -> bytes:
    # Blocks of compressed bytes, each after its size; the size of the content comes last.
    content = bytearray()
    at = len(_LZ4)
    while at + 4 < len(payload):
        (size,) = struct.unpack_from("<I", payload, at)
        if at + 4 + size > len(payload):
            raise EOFError("it is cut short")
        _add_lz4_block(payload[at + 4 : at + 4 + size], content)
        at += 4 + size
    if len(content) != int.from_bytes(payload[-4:], "little"):
        raise ValueError("it does not have its own size")
    return bytes(content)


def _add_lz4_block(block: bytes, content: bytearray) -> None:
    at = 0
    while True:
        token = block[at]
        at += 1
        literals = token >> 4
        if literals == 15:
            literals, at = _longer(literals, block, at)
        content += block[at : at + literals]
        at += literals
        if at >= len(block):
            return
        distance = block[at] | block[at + 1] << 8
        at += 2
        length = token & 15
        if length == 15:
            length, at = _longer(length, block, at)
        length += 4
        if not 0 < distance <= len(content) or len(content) > _MOST_BYTES:
            raise ValueError("a copy begins before the content")
        copied = content[-distance:] if distance <= length else content[-distance : length - distance]
        content += (copied * (length // distance + 1))[:length] if distance < length else copied


def _longer(length: int, block: bytes, at: int) -> tuple[int, int]:
    while block[at] == 255:
        length += 255
        at += 1
    return length + block[at], at + 1


# By the bytes that a payload begins with. Source: lib/decompress.c of the Linux kernel.
_FORMATS: Final[Mapping[bytes, Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": lambda payload: _whole(payload, zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)),
    b"BZh": lambda payload: _whole(payload, bz2.BZ2Decompressor()),
    b"\x5d\x00\x00": lambda payload: _whole(payload, lzma.LZMADecompressor(lzma.FORMAT_ALONE)),
    b"\xfd7zXZ\x00": lambda payload: _whole(payload, lzma.LZMADecompressor(lzma.FORMAT_XZ)),
    b"\x28\xb5\x2f\xfd": lambda payload: _whole(payload, zstd.ZstdDecompressor()),
    _LZ4: _unpacked_lz4,
}


class KernelSymbol(NamedTuple):
    """A symbol. ``size`` is up to the next one, in bytes; 0 if there is none. ``is_text``: it is a function."""

    address: int
    size: int
    name: str
    is_text: bool


def kernel_symbols(image: KernelImage, home: Home) -> tuple[KernelSymbol, ...]:
    """Return all symbols of a kernel by address, cached on disk. Raises RequestError where it has none."""
    cached = home.cache / SYMBOLS / f"{image.sha256}.gz"
    with suppress(OSError, EOFError, ValueError, zlib.error):
        return read_system_map(gzip.decompress(read_kept(cached)).decode())
    symbols = _read_kallsyms(read_vmlinux(image.vmlinuz), image.spec)
    with keeping_in(cached.parent, "symbols of kernels"):
        make_directory(cached.parent)
        text = "".join(f"{address:016x} {kind} {name}\n" for address, kind, name in symbols)
        replace_file(cached, gzip.compress(text.encode(), 1), mode=0o600)
        make_room(SYMBOLS, home)
    return _symbols(symbols)


def read_system_map(text: str) -> tuple[KernelSymbol, ...]:
    """Parse a System.map, or /proc/kallsyms. Raises ValueError for anything else."""
    words = (line.split() for line in text.splitlines())
    return _symbols([(int(address, 16), kind, name) for address, kind, name, *_ in words])


def read_symbols(vmlinux: bytes, kernel: str) -> tuple[KernelSymbol, ...]:
    """Return the symbols in an ELF file of a ``kernel``, by address. Raises RequestError where it has none."""
    return _symbols(_read_kallsyms(vmlinux, kernel))


def function_names(symbols: Iterable[KernelSymbol]) -> dict[int, str]:
    """Return the name of every function by its address: of several the system call's, or else the one with the fewest
    leading underscores.
    """
    names: dict[int, str] = {}
    for symbol in symbols:
        if symbol.is_text:
            before = names.get(symbol.address)
            names[symbol.address] = symbol.name if before is None else min(before, symbol.name, key=_plainness)
    return names


def _plainness(name: str) -> tuple[bool, bool, int, int, str]:
    return name in _MARKS, not name.startswith("__x64_sys_"), len(name) - len(name.lstrip("_")), len(name), name


def _symbols(symbols: list[_Symbol]) -> tuple[KernelSymbol, ...]:
    symbols.sort(key=lambda symbol: symbol[0])
    addresses = np.array([address for address, _, _ in symbols], dtype=np.uint64)
    following = np.append(np.unique(addresses), addresses[-1:])
    nexts = following[np.searchsorted(following, addresses, side="right").clip(max=max(len(following) - 1, 0))]
    sizes = (nexts - addresses).tolist()
    return tuple(
        KernelSymbol(address, size, name, kind in _TEXT)
        for (address, kind, name), size in zip(symbols, sizes, strict=True)
    )


# The tables in the image.


@dataclass(frozen=True)
class _Tokens:
    # What each byte of a name stands for; the table begins at `start`, its index ends at `end`.
    texts: tuple[bytes, ...]
    start: int
    end: int


def _read_kallsyms(vmlinux: bytes, kernel: str) -> list[_Symbol]:
    # Raises RequestError where there are no tables.
    for tokens in _token_tables(vmlinux):
        for markers, start in _marker_tables(vmlinux, tokens.start):
            names = _read_names(vmlinux, tokens, markers, start)
            addresses = names and _read_addresses(vmlinux, tokens, names[0], len(names[1]))
            if names and addresses:
                return [(address, name[0], name[1:]) for address, name in zip(addresses, names[1], strict=True)]
    raise RequestError(
        f"the kernel {kernel} has no table of its symbols (kallsyms)",
        hint="use a kernel built with CONFIG_KALLSYMS=y",
    )


def _token_tables(image: bytes) -> Iterator[_Tokens]:
    # 256 texts, and where each of them begins: the index behind them holds that.
    digits = image.find(_DIGITS)
    while digits >= 0:
        following = image[digits : digits + 256 * _LONGEST_TOKEN].split(b"\0", 256 - _ZERO)
        behind = digits + sum(len(text) + 1 for text in following[:-1])
        for place in range(behind, min(behind + 8, len(image) - 2 * 256 + 1)):
            index = struct.unpack_from("<256H", image, place)
            start = digits - index[_ZERO]
            texts = image[max(start, 0) : behind].split(b"\0")[:-1]
            if index == tuple(accumulate((len(text) + 1 for text in texts[:-1]), initial=0)):
                yield _Tokens(tuple(texts), start, place + 2 * 256)
        digits = image.find(_DIGITS, digits + 1)


def _marker_tables(image: bytes, end: int) -> Iterator[tuple[list[int], int]]:
    # Numbers before `end` that begin at 0 and rise by what 256 names take; the most numbers first.
    begin = max(0, end - _TABLES_BYTES) & ~3
    words = np.frombuffer(image, "<u4", (end - begin) // 4, begin).astype(np.int64)
    steps = np.diff(words)
    rising = np.concatenate(([0], ((steps >= 2 * _STEP) & (steps <= _LONGEST_NAME * _STEP)).view(np.int8), [0]))
    edges = np.flatnonzero(np.diff(rising))
    runs = [(first, last) for first, last in zip(edges[::2], edges[1::2], strict=True) if words[first] == 0]
    for first, last in sorted(runs, key=lambda run: run[0] - run[1])[:_MOST_TRIED]:
        yield words[first : last + 1].tolist(), begin + 4 * int(first)


def _read_names(image: bytes, tokens: _Tokens, markers: list[int], end: int) -> tuple[int, list[str]] | None:
    least = _STEP * (len(markers) - 1)
    for place in range((end - markers[-1] - 8) & ~3, max(0, end - markers[-1] - _STEP * _LONGEST_NAME), -4):
        (count,) = struct.unpack_from("<I", image, place)
        if least < count <= least + _STEP:
            for start in {place + 4, place + 8 & ~7}:
                names = _expanded(image[start:end], tokens.texts, markers, count)
                if names is not None:
                    return place, names
    return None


def _expanded(table: bytes, texts: Sequence[bytes], markers: list[int], count: int) -> list[str] | None:
    names: list[str] = []
    at = 0
    for number in range(count):
        if at + 1 >= len(table) or (number % _STEP == 0 and at != markers[number // _STEP]):
            return None
        length = table[at]
        at += 1
        if length > 127:
            length = length & 127 | table[at] << 7
            at += 1
        names.append(b"".join([texts[token] for token in table[at : at + length]]).decode("ascii", "replace"))
        at += length
    return names if at <= len(table) and all(len(name) > 1 for name in names) else None


def _read_addresses(image: bytes, tokens: _Tokens, num_syms: int, count: int) -> list[int] | None:
    # By the one of the layouts in which they rise.
    base = num_syms - 8
    old = (base - 4 * count) & ~7
    if old > 0 and (addresses := _from_base(image, old, base, count)):
        return addresses
    base = (tokens.end + 4 * count + 7) & ~7
    return _from_base(image, tokens.end, base, count) or _from_relative(image, tokens.end, count)


def _from_base(image: bytes, place: int, base: int, count: int) -> list[int] | None:
    if base + 8 > len(image):
        return None
    (start,) = struct.unpack_from("<Q", image, base)
    offsets = np.frombuffer(image, "<i4", count, place)
    with_absolute = bool((offsets < 0).any())  # CONFIG_KALLSYMS_ABSOLUTE_PERCPU
    from_start = np.uint64(start) + (-1 - offsets.astype(np.int64) if with_absolute else offsets).astype(np.uint64)
    return _risen(np.where(with_absolute & (offsets >= 0), offsets.astype(np.uint64), from_start))


def _from_relative(image: bytes, place: int, count: int) -> list[int] | None:
    if place + 4 * count > len(image):
        return None
    offsets = np.frombuffer(image, "<i4", count, place).astype(np.int64) + 4 * np.arange(count)
    start = _address_at(image, place)
    return _risen(np.uint64(start) + offsets.astype(np.uint64)) if start else None


def _risen(addresses: NDArray[np.uint64]) -> list[int] | None:
    # Only rising addresses can be those of a kernel.
    is_sorted = bool((addresses[1:] >= addresses[:-1]).all())
    return addresses.tolist() if is_sorted and addresses[-1] >= _LOWEST else None


def _address_at(image: bytes, place: int) -> int:
    try:
        loaded = list(ELFFile(io.BytesIO(image)).iter_segments("PT_LOAD"))
    except NO_ELF:
        return 0
    here = (part for part in loaded if part["p_offset"] <= place < part["p_offset"] + part["p_filesz"])
    return next((part["p_vaddr"] + place - part["p_offset"] for part in here), 0)
