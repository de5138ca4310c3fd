"""Lists of CPUs as the kernel writes them: ``0-3,8``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_MOST: Final = 65_536


def cpus_in(text: str) -> list[int]:
    """The CPUs of a list, in order, each once; what is no list has none (cpuset(7), "List format")."""
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,6})(?:-([0-9]{1,6}))?\s*", part)
        if match is None:
            continue
        first, last = int(match[1]), int(match[2] or match[1])
        found.update(range(first, min(last + 1, _MOST)))
    return sorted(found)


def list_of(cpus: Iterable[int]) -> str:
    """``0-3,8`` for 0, 1, 2, 3, 8."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
