"""Mounted file systems with their options."""

from __future__ import annotations

import re
from typing import Final

from pydantic import Field

from ajuste.inventory.published import LEFT_OUT, free_name, published_mount_point, published_value
from ajuste.inventory.section import Section
from ajuste.inventory.source import Source

_KEPT_WITHOUT_DEVICE: Final = frozenset(
    {"tmpfs", "overlay", "nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "glusterfs", "zfs", "btrfs", "ramfs"}
    | {"hugetlbfs", "bcachefs", "fuse", "lustre", "gpfs", "ocfs2", "afs", "ecryptfs", "squashfs"}
)
"""File systems without a block device that hold files of people. The rest of them (proc, sysfs …) are the kernel's."""
_NETWORK: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "lustre", "afs"})
_MOST: Final = 200


class Mount(Section):
    """``device`` is the kernel's name of the block device, ``network`` or ``none``; ``options`` map names to values."""

    type: str = ""
    device: str = "none"
    options: dict[str, str] = Field(default_factory=dict)


def take_mounts(source: Source) -> dict[str, Mount]:
    """By mount point, as far as such points are on every machine. From /proc/self/mountinfo (proc_pid_mountinfo(5)).

    What is mounted on top of another hides it, and only that is named.
    """
    last: dict[str, Mount] = {}
    for line in source.lines("/proc/self/mountinfo", 1 << 20):
        found = _parsed(source, line)
        if found is not None:
            last.pop(found[0], None)
            last[found[0]] = found[1]
    mounts: dict[str, Mount] = {}
    for point, mount in sorted(last.items())[:_MOST]:
        mounts[free_name(published_mount_point(point), mounts)] = mount
    return mounts


def _parsed(source: Source, line: str) -> tuple[str, Mount] | None:
    fields, dash, rest = line.partition(" - ")
    before, after = fields.split(" "), rest.split(" ")
    if not dash or len(before) < 6 or len(after) < 3:
        return None
    kind, (point, own) = _unescaped(after[0]), (_unescaped(before[4]), before[5])
    number = before[2]
    has_device = re.fullmatch(r"[1-9][0-9]{0,5}:[0-9]{1,9}", number) is not None
    if not has_device and kind not in _KEPT_WITHOUT_DEVICE and not kind.startswith("fuse."):
        return None
    device = source.link(f"/sys/dev/block/{number}") if has_device else ""
    if kind in _NETWORK:
        device = "network"
    return point, Mount(
        type=kind,
        device=device or "none",
        options=_options(f"{own},{after[2]}"),
    )


def _options(text: str) -> dict[str, str]:
    """Those of the mount and of the file system, each once."""
    found: dict[str, str] = {}
    for option in text.split(","):
        name, equals, value = _unescaped(option).partition("=")
        if re.fullmatch(r"[A-Za-z0-9_.-]{1,40}", name):
            found[name] = published_value("mount_options", name, value) if equals else ""
        elif name:
            found[LEFT_OUT] = ""
    return dict(sorted(found.items()))


def _unescaped(text: str) -> str:
    """Blanks in names are written \\040 (octal), as in /proc/mounts."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8) & 0xFF), text)
