"""Package files with members as they should not be."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable


def ar(members: dict[str, bytes]) -> bytes:
    """Source: ar(5)."""
    content = b"!<arch>\n"
    for name, data in members.items():
        content += (
            f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
        )
    return content


def deb(*members: tarfile.TarInfo, content: bytes = b"content", postinst: str = "") -> bytes:
    """A package of ``members``, whose files all have the same ``content``."""
    script = _tar([entry("./postinst")], postinst.encode())
    return ar({"debian-binary": b"2.0\n", "control.tar": script, "data.tar": _tar(members, content)})


def _tar(members: Iterable[tarfile.TarInfo], content: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for member in members:
            if member.isfile():
                member.size = len(content)
            tar.addfile(member, io.BytesIO(content) if member.isfile() else None)
    return packed.getvalue()


def entry(name: str, kind: bytes = tarfile.REGTYPE, to: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.mode, member.mtime = kind, to, mode, 1_600_000_000
    return member
