"""The kernel proper (vmlinux, an ELF file) that a bzImage carries in compressed form.

Source: Documentation/arch/x86/boot.rst of the Linux kernel, "payload_offset"; scripts/Makefile.lib for the formats: all
but gzip's are followed by the size of the content, and LZ4's is the legacy frame format of lz4_Frame_format.md.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from elftools.common.exceptions import ELFError

from ajuste.kernel.unpack import read_release
from ajuste.machine.files import read_kept
from ajuste.model.error import RequestError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NO_ELF: Final = (
    *(ELFError, struct.error, OverflowError, MemoryError),
    *(AssertionError, ValueError, KeyError, AttributeError, TypeError),
)
"""What reading an ELF file that is none comes to, with pyelftools."""

_SETUP_SECTS: Final = 0x1F1
_PAYLOAD: Final = 0x248
_MOST_BYTES: Final = 1 << 30
"""More than any kernel has."""

_LZ4: Final = b"\x02\x21\x4c\x18"
_LZO: Final = b"\x89LZO"
_MALFORMED: Final = (lzma.LZMAError, zstd.ZstdError, zlib.error, OSError, EOFError, ValueError, IndexError)
"""What decompressing comes to of what is damaged."""


def read_vmlinux(vmlinuz: Path) -> bytes:
    """The ELF file that a bzImage carries. Raises RequestError where it is no bzImage, or damaged."""
    read_release(vmlinuz)
    image = read_kept(vmlinuz)
    try:
        offset, length = struct.unpack_from("<II", image, _PAYLOAD)
        start = 512 * ((image[_SETUP_SECTS] or 4) + 1) + offset
        content = _decompressed(image[start : start + length])
    except (*_MALFORMED, struct.error) as error:
        raise RequestError(
            f"cannot decompress the kernel in {vmlinuz}: {error}", hint="fetch or build the kernel again"
        ) from error
    if content[:4] != b"\x7fELF":
        raise RequestError(f"{vmlinuz} does not carry an ELF file", hint="fetch or build the kernel again")
    return content


def _decompressed(payload: bytes) -> bytes:
    found = next((read for magic, read in _FORMATS.items() if payload.startswith(magic)), None)
    if found is None:
        name = "LZO" if payload.startswith(_LZO) else f"a format that begins with {payload[:4].hex() or 'nothing'}"
        raise ValueError(f"{name} is not supported; expected gzip, bzip2, LZMA, XZ, LZ4 or Zstandard")
    return found(payload)


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
    """Blocks of compressed bytes, each after its size; the size of the content comes last."""
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
    """Append what ``block`` stands for: literal bytes and copies of earlier ones, in turns (lz4_Block_format.md)."""
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


_FORMATS: Final[Mapping[bytes, Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": lambda payload: _whole(payload, zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)),
    b"BZh": lambda payload: _whole(payload, bz2.BZ2Decompressor()),
    b"\x5d\x00\x00": lambda payload: _whole(payload, lzma.LZMADecompressor(lzma.FORMAT_ALONE)),
    b"\xfd7zXZ\x00": lambda payload: _whole(payload, lzma.LZMADecompressor(lzma.FORMAT_XZ)),
    b"\x28\xb5\x2f\xfd": lambda payload: _whole(payload, zstd.ZstdDecompressor()),
    _LZ4: _unpacked_lz4,
}
"""By the bytes that a payload begins with. Source: lib/decompress.c of the Linux kernel."""
