"""What sysctl(8) calls the files below /proc/sys, and back.

Source: sysctl.d(5): dots stand for slashes, and in a part that has a dot of its own it is the other way round.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

FOLDER: Final = "/proc/sys/"
_SWAPPED: Final = str.maketrans("./", "/.")


@lru_cache(4096)
def sysctl_name(path: str) -> str | None:
    """``vm.swappiness``, ``net.ipv4.conf.eth0/100.rp_filter``; ``None`` for what is no sysctl."""
    return path.removeprefix(FOLDER).translate(_SWAPPED) if path.startswith(FOLDER) else None


def sysctl_path(name: str) -> str:
    """The file of a sysctl. A name whose first separator is a slash has dots that mean dots."""
    dot, slash = name.find("."), name.find("/")
    if slash >= 0 and (dot < 0 or slash < dot):
        return FOLDER + name
    return FOLDER + name.translate(_SWAPPED)
