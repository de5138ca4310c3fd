"""What the commands of a run leave in shared memory: no process holds it, so nothing ends it with its processes.

It is noticed and said, and not removed: the kernel does not say which process made it, and somebody else's program
may have done so meanwhile. A namespace of the trial's own would contain it, and would change what is measured: programs
could not share memory with a display or a database outside, and the kernel's limits on it would be other ones.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SHARED_FILES: Final = "dev/shm"
_OWN: Final = "ajuste-"
"""Those of agents, which remove them (see ``safety/roll.rs``)."""

_SYSTEM_V: Final = {
    "shm": ("shared memory", "-m"),
    "sem": ("semaphores", "-s"),
    "msg": ("message queue", "-q"),
}
"""Files of /proc/sysvipc (sysvipc(7)): what they list, and the option of ipcrm(1)."""

_MOST_NAMED: Final = 5


@dataclass(frozen=True)
class Remain:
    """One thing that outlives its maker: in words, and the command that removes it."""

    words: str
    removal: str


def remains(root: Path = Path("/")) -> frozenset[Remain]:
    """All there are now, of any owner."""
    found = set()
    with suppress(OSError):
        for path in (root / _SHARED_FILES).iterdir():
            place = _safe(f"/{_SHARED_FILES}/{path.name}")
            if not path.name.startswith(_OWN):
                found.add(Remain(place, f"rm {place}"))
    for name, (words, option) in _SYSTEM_V.items():
        with suppress(OSError):
            for line in (root / "proc/sysvipc" / name).read_text().splitlines()[1:]:
                key, number = line.split()[:2]
                found.add(Remain(f"System V {words} {number} (key {key})", f"ipcrm {option} {number}"))
    return frozenset(found)


def _safe(path: str) -> str:
    """As a shell takes it, and nothing that a terminal would act upon: its maker also chose its name."""
    return shlex.quote(path) if path.isprintable() else f"${path!a}"


def note_of(before: frozenset[Remain], after: frozenset[Remain]) -> str:
    """What is new, for the person whose run it was; empty if nothing is."""
    new = sorted(after - before, key=lambda remain: remain.words)
    if not new:
        return ""
    named = ", ".join(remain.words for remain in new[:_MOST_NAMED])
    more = f" and {len(new) - _MOST_NAMED} more" if len(new) > _MOST_NAMED else ""
    removals = "; ".join(remain.removal for remain in new[:_MOST_NAMED])
    return f"left in shared memory since the run began: {named}{more}. If a command of the study made it: {removals}"
