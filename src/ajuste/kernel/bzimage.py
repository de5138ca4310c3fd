"""The header of an x86 kernel image.

Source: Documentation/arch/x86/boot.rst of the Linux kernel, "The Real-Mode Kernel Header".
"""

from __future__ import annotations

import struct
from pathlib import Path

from ajuste.model.error import RequestError

_SETUP_SECTS = 0x1F1
_BOOT_FLAG = 0x1FE
_MAGIC = 0x202
_KERNEL_VERSION = 0x20E
_LONGEST_VERSION = 512


def read_release(vmlinuz: Path) -> str:
    """The release (``uname -r``) that a bzImage says it has. Raises RequestError if it is none."""
    try:
        with vmlinuz.open("rb") as file:
            head = file.read(65 * 512 + _LONGEST_VERSION)
    except OSError as error:
        raise RequestError(f"cannot read the kernel {vmlinuz}: {error.strerror}") from error
    marked = head[_BOOT_FLAG : _BOOT_FLAG + 2] == b"\x55\xaa" and head[_MAGIC : _MAGIC + 4] == b"HdrS"
    if not marked or len(head) < _KERNEL_VERSION + 2:
        raise RequestError(
            f"{vmlinuz} is no x86 kernel image (bzImage): {_what(head)}",
            hint="a kernel tree has it as arch/x86/boot/bzImage, a system as /boot/vmlinuz-RELEASE",
        )
    (pointer,) = struct.unpack_from("<H", head, _KERNEL_VERSION)
    # The pointer counts from 0x200 and is only valid within the setup sectors (0 means 4, for old boot loaders).
    if pointer == 0 or pointer >= 0x200 * (head[_SETUP_SECTS] or 4):
        raise RequestError(f"{vmlinuz} does not say which release it is (no version string in its header)")
    text = head[pointer + 0x200 :].partition(b"\0")[0]
    release = text[:_LONGEST_VERSION].split(b" ")[0].decode("ascii", "replace")
    if not release[:1].isdigit() or not release.isprintable() or "/" in release:
        raise RequestError(f"{vmlinuz} has no sensible version string in its header: {release[:60]!r}")
    return release


def _what(head: bytes) -> str:
    if head[:4] == b"\x7fELF":
        return "it is an ELF file, such as an uncompressed vmlinux"
    if head[:2] == b"\x1f\x8b":
        return "it is a gzip file"
    if head[0x38:0x3C] == b"ARM\x64":
        return "it is a kernel for arm64"
    return "it is empty" if not head else 'there is no "HdrS" at offset 0x202'
