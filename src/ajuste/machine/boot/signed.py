"""Secure Boot: whether the firmware demands a signature, and whether a kernel has one.

Source: UEFI Specification 2.10, 3.3 (SecureBoot); PE format, "The Attribute Certificate Table".
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from ajuste.model.error import RequestError

_VARIABLE: Final = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_OPTIONAL_PE32_PLUS: Final = 0x20B
_SECURITY: Final = 4  # the directory of certificates


def is_secure_boot(root: Path = Path("/")) -> bool:
    """Whether the firmware starts only what is signed. The value follows four bytes of attributes."""
    try:
        return (root / _VARIABLE).read_bytes()[4:5] == b"\x01"
    except OSError:
        return False


def is_signed(kernel: Path) -> bool:
    """Whether a kernel, an EFI program, has a signature; by whom is the firmware's to judge."""
    with kernel.open("rb") as file:
        head = file.read(4096)
    try:
        (at,) = struct.unpack_from("<I", head, 0x3C)
        if head[at : at + 4] != b"PE\0\0":
            return False
        (magic,) = struct.unpack_from("<H", head, at + 24)
        directories = at + 24 + (112 if magic == _OPTIONAL_PE32_PLUS else 96)
        _, size = struct.unpack_from("<II", head, directories + 8 * _SECURITY)
    except struct.error:
        return False
    return bool(size)


def require_signed(kernel: Path, release: str, root: Path = Path("/")) -> None:
    """Raises RequestError for a kernel that the firmware would refuse."""
    if is_secure_boot(root) and not is_signed(kernel):
        raise RequestError(
            f"Secure Boot is on, and the kernel {release} is not signed, so the firmware refuses it",
            hint="choose a signed kernel, or turn Secure Boot off in the firmware",
        )
