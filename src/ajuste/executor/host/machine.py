"""What of this machine decides whether a tunable can be changed: build options, lockdown, rights, files, devices."""

from __future__ import annotations

import gzip
import os
import platform
import re
from dataclasses import replace
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Final

from ajuste.catalogue.loader import Catalogue
from ajuste.catalogue.place import named_parts
from ajuste.machine.inventory.network import Ethtool, KernelEthtool
from ajuste.machine.inventory.source import natural
from ajuste.model.kernel import KernelVersion
from ajuste.model.tunable import DEVICE_KINDS, Tunable

_ROOT = Path("/")
_MOST_BYTES: Final = 4 << 20

CAP_NET_ADMIN: Final = 12
CAP_SYS_ADMIN: Final = 21
"""Numbers of capabilities (include/uapi/linux/capability.h)."""

GROUPS: Final = {
    "tx-checksumming": "tx-checksum-*",
    "scatter-gather": "tx-scatter-gather*",
    "tcp-segmentation-offload": "tx-tcp*-segmentation",
}
"""The features that ethtool(8) shows as one, by a pattern of the kernel's names for them."""


class HostMachine:
    """The machine whose files are below ``root``. Reads only, and never raises: what cannot be read is not known.

    ``ethtool`` and ``release`` (``uname -r``) stand for the kernel's own answers where they are given.
    """

    def __init__(self, root: Path = _ROOT, *, ethtool: Ethtool | None = None, release: str = "") -> None:
        self.root = root
        self._ethtool = ethtool
        self._release = release or platform.release()

    @property
    def version(self) -> KernelVersion:
        return KernelVersion.parse(self._release)

    def path(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def exists(self, path: str) -> bool:
        try:
            return self.path(path).exists()
        except OSError:
            return False

    def names_in(self, pattern: str) -> tuple[str, ...]:
        """The last components of the paths that ``pattern`` matches."""
        try:
            return tuple(sorted(path.name for path in self.root.glob(pattern.lstrip("/"))))
        except OSError:
            return ()

    def has_write_permission(self, path: str) -> bool:
        """Whether the file lets anybody write at all: not even root can write a file that does not."""
        try:
            return bool(self.path(path).stat().st_mode & 0o222)
        except OSError:
            return False

    def is_writable(self, path: str) -> bool:
        """Whether this process may open the file for writing."""
        return os.access(self.path(path), os.W_OK)

    def is_mounted_read_only(self, path: str) -> bool:
        try:
            return bool(os.statvfs(self.path(path)).f_flag & os.ST_RDONLY)
        except OSError:
            return False

    def can(self, capability: int) -> bool:
        """Whether this process has the capability of that number in force."""
        match = re.search(r"^CapEff:\s*([0-9a-f]+)$", self._text("/proc/self/status"), re.MULTILINE)
        return bool(match and int(match[1], 16) >> capability & 1)

    @cached_property
    def options(self) -> frozenset[str] | None:
        """The build options that are on, built in or as modules; ``None`` where nothing says them."""
        places = ("/proc/config.gz", f"/boot/config-{self._release}", f"/lib/modules/{self._release}/config")
        for place in places:
            text = self._text(place)
            if "CONFIG_" in text:
                return frozenset(re.findall(r"^CONFIG_(\w+)=[ym]$", text, re.MULTILINE))
        return None

    @cached_property
    def lockdown(self) -> str:
        """``integrity`` or ``confidentiality``; empty where the kernel is not locked down."""
        match = re.search(r"\[(\w+)\]", self._text("/sys/kernel/security/lockdown"))
        return match[1] if match and match[1] != "none" else ""

    @cached_property
    def has_debugfs(self) -> bool | None:
        """Whether debugfs is mounted where it belongs; ``None`` if the mounts cannot be read."""
        mounts = self._text("/proc/self/mounts")
        return "/sys/kernel/debug debugfs" in mounts if mounts else None

    @cached_property
    def controllers(self) -> frozenset[str] | None:
        """The controllers of cgroup v2 at /sys/fs/cgroup; ``None`` where that is not cgroup v2."""
        if not self.exists("/sys/fs/cgroup/cgroup.controllers"):
            return None
        return frozenset(self._text("/sys/fs/cgroup/cgroup.controllers").split())

    def feature(self, device: str, name: str) -> str | None:
        """``on`` or ``off``, with ``, fixed`` if it cannot be changed; ``None`` if the device has no such feature.

        A group counts as fixed if all of it is.
        """
        features = self._ask(device)
        pattern = GROUPS.get(name, name)
        states = [state for feature, state in features.items() if fnmatch(feature, pattern)]
        return next((state for state in states if not state.endswith("fixed")), states[0] if states else None)

    def has_rings(self, device: str) -> bool:
        with KernelEthtool() as kernel:
            return bool((self._ethtool or kernel).rings(device))

    def has_coalescing(self, device: str) -> bool:
        with KernelEthtool() as kernel:
            return bool((self._ethtool or kernel).coalescing(device))

    def _ask(self, device: str) -> dict[str, str]:
        with KernelEthtool() as kernel:
            return (self._ethtool or kernel).features(device) or {}

    def _text(self, path: str) -> str:
        try:
            with self.path(path).open("rb") as file:
                content = file.read(_MOST_BYTES)
            if path.endswith(".gz"):
                content = gzip.decompress(content)
        except (OSError, EOFError, gzip.BadGzipFile):
            return ""
        return content.decode(errors="replace")


# What a machine has: which of several there are of a tunable, and which files are in a directory of the kernel's.


def instances_here(
    catalogue: Catalogue, tunable: Tunable, version: KernelVersion, root: Path = _ROOT
) -> tuple[str, ...]:
    """The instances of ``tunable`` that the machine below ``root`` has, in natural order: ``cpu2`` before ``cpu10``.

    A device without the file is not among them. Empty where there is only one tunable, or such kernels have none.
    """
    where = tunable.place_in(version)
    if not tunable.parts or where is None:
        return ()
    template = catalogue.parts["interface"].there if where.kind in DEVICE_KINDS else where.path
    found = set()
    for path in _glob(re.sub(r"\{[a-z]+\}", "*", template), root):
        if where.kind in DEVICE_KINDS:
            name = catalogue.parts["interface"].read(path.rpartition("/")[2])
            # bonding_masters is a file among the directories of the interfaces.
            if name and (root / path.lstrip("/")).is_dir():
                found.add(name)
        elif named := named_parts(template, catalogue.parts, path):
            found.add("/".join(named[part] for part in tunable.parts))
    return tuple(sorted(found, key=natural))


def of_this_machine(catalogue: Catalogue) -> Catalogue:
    """The catalogue, naming what this machine has where one of several must be named."""
    return replace(catalogue, there=instances_here)


def files_in(directory: str, root: Path = _ROOT) -> tuple[str, ...]:
    """The paths of the files in a directory of the machine below ``root``, in order; none if it is not there."""
    return tuple(path for path in _glob(f"{directory}/*", root) if (root / path.lstrip("/")).is_file())


def _glob(pattern: str, root: Path) -> list[str]:
    try:
        return sorted(f"/{path.relative_to(root)}" for path in root.glob(pattern.lstrip("/")))
    except OSError:
        return []
