"""What a profile may ask of the machine that it is for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """``cpus`` are the numbers of those online. ``cpuinfo`` is /proc/cpuinfo, ``None`` where it is not known before
    the machine runs; ``architecture`` as ``uname -m`` says it; ``virtual``: it is a guest.
    """

    cpus: tuple[int, ...]
    architecture: str = "x86_64"
    cpuinfo: str | None = None
    virtual: bool = False
