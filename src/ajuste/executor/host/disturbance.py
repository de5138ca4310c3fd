"""Other work of this machine during a trial, and the limit beyond which the trial is flagged.

Every machine does other things, and randomised blocks with enough of them take care of that. A trial is flagged only if
it met with much more of it than the earlier trials of the same configuration: a backup that began, a neighbour who took
the CPU. Only the same configuration is compared, because a configuration may well make the kernel itself work more
(write back, reclaim), which is its effect and no disturbance.
"""

from __future__ import annotations

import shlex
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Final

from ajuste.model.wording import first_few, listed, shell_line

# Leftovers of a run's commands in shared memory: no process holds them, so nothing ends them with the processes.
#
# They are reported, not removed: the kernel does not say which process made them, and it may have been somebody
# else's program. A namespace of the trial's own would contain them, and would change what is measured:
# programs could not share memory with a display or a database outside, and the kernel's limits on it would be other
# ones.


_SHARED_FILES: Final = "dev/shm"
# Prefix of the agents' own files, which they remove (see `safety/roll.rs`).
_AGENT_FILES: Final = "ajuste-"

# Files of /proc/sysvipc (sysvipc(7)): what they list, and the option of ipcrm(1).
_SYSTEM_V: Final = {
    "shm": ("shared memory", "-m"),
    "sem": ("semaphores", "-s"),
    "msg": ("message queue", "-q"),
}

_MOST_NAMED: Final = 5

SHORTEST_SECONDS: Final = 0.1
"""Shorter trials cannot be judged: the kernel counts in ticks of 10 ms (USER_HZ)."""

LEAST_HISTORY: Final = 5
LONGEST_HISTORY: Final = 20
OTHER_FLOOR_CPUS: Final = 0.25
STOLEN_FLOOR_CPUS: Final = 0.05

DEVIATIONS: Final = 5.0
"""A trial is an outlier beyond the median and so many median absolute deviations, and beyond the floor at least."""

THROTTLED_SHARE: Final = 0.2
"""Throttling in more than this share of the trials is the machine's ordinary state."""


@dataclass(frozen=True)
class Remain:
    """A leftover of a run, in words, with the command that removes it."""

    words: str
    removal: str


def remains(root: Path = Path("/")) -> frozenset[Remain]:
    """Return all remains of any owner."""
    left = set()
    with suppress(OSError):
        for path in (root / _SHARED_FILES).iterdir():
            if not path.name.startswith(_AGENT_FILES):
                # A stranger may have chosen the name: it is quoted for a shell, without control characters for the
                # terminal.
                file = f"/{_SHARED_FILES}/{path.name}"
                place = shell_line(shlex.quote(file))
                left.add(Remain(place, f"rm {place}"))
    for name, (words, option) in _SYSTEM_V.items():
        with suppress(OSError):
            for line in (root / "proc/sysvipc" / name).read_text().splitlines()[1:]:
                key, number = line.split()[:2]
                left.add(Remain(f"System V {words} {number} (key {key})", f"ipcrm {option} {number}"))
    return frozenset(left)


def remains_note(before: frozenset[Remain], after: frozenset[Remain]) -> str:
    """Return what is new, for the person whose run it was, or empty."""
    new = sorted(after - before, key=lambda remain: remain.words)
    if not new:
        return ""
    named = listed(first_few([remain.words for remain in new], _MOST_NAMED))
    removals = "; ".join(remain.removal for remain in new[:_MOST_NAMED])
    return f"left in shared memory since the run began: {named}. If a command of the study made it: {removals}"


@dataclass(frozen=True)
class DisturbanceReading:
    """The machine's counters at one moment: seconds of all CPUs since the boot, and throttle events (0 where the
    machine does not say).
    """

    busy_s: float
    stolen_s: float
    throttles: int


@dataclass(frozen=True)
class Surroundings:
    """The other work during a trial: CPUs that other processes used, CPUs that the hypervisor took, throttlings."""

    other_cpus: float
    stolen_cpus: float
    throttles: int

    def __str__(self) -> str:
        text = f"other load {self.other_cpus:.2f} CPUs, stolen {self.stolen_cpus:.2f} CPUs"
        return f"{text}, throttled {self.throttles} times" if self.throttles else text


def reading(stat: str, throttles: Iterable[str], ticks_per_second: int) -> DisturbanceReading:
    """Read the text of /proc/stat (proc_stat(5)) and each CPU's throttle counters."""
    words = stat.split("\n", 1)[0].split()
    user, nice, system, _, _, irq, softirq, stolen = (int(word) for word in words[1:9])
    return DisturbanceReading(
        busy_s=(user + nice + system + irq + softirq) / ticks_per_second,
        stolen_s=stolen / ticks_per_second,
        throttles=sum(int(text) for text in throttles),
    )


def throttle_counters() -> tuple[Path, ...]:
    """Return those of this machine, if it has any (Documentation/admin-guide/thermal, x86)."""
    cpus = Path("/sys/devices/system/cpu")
    names = ("core_throttle_count", "package_throttle_count")
    return tuple(chain.from_iterable(sorted(cpus.glob(f"cpu[0-9]*/thermal_throttle/{name}")) for name in names))


def between(before: DisturbanceReading, after: DisturbanceReading, *, wall_s: float, cpu_s: float) -> Surroundings:
    """Return what happened beside a trial that took ``wall_s`` and whose processes used ``cpu_s`` of CPU time."""
    other_s = max(0.0, after.busy_s - before.busy_s - cpu_s)
    return Surroundings(
        other_cpus=other_s / wall_s,
        stolen_cpus=max(0.0, after.stolen_s - before.stolen_s) / wall_s,
        throttles=max(0, after.throttles - before.throttles),
    )


class DisturbanceWatch:
    """Remembers what was usual for each configuration."""

    def __init__(self) -> None:
        self._history: dict[Hashable, deque[Surroundings]] = defaultdict(lambda: deque(maxlen=LONGEST_HISTORY))

    def judge(self, configuration: Hashable, now: Surroundings) -> tuple[str, ...]:
        """Return why a trial of ``configuration`` was not measured cleanly, usually nothing."""
        history = self._history[configuration]
        reasons = _reasons(list(history), now) if len(history) >= LEAST_HISTORY else ()
        history.append(now)
        return reasons


def _reasons(history: list[Surroundings], now: Surroundings) -> tuple[str, ...]:
    reasons = []
    usual = [reading.other_cpus for reading in history]
    if now.other_cpus > _limit(usual, OTHER_FLOOR_CPUS):
        reasons.append(f"other work took {now.other_cpus:.2f} CPUs, usually {median(usual):.2f}")
    usual = [reading.stolen_cpus for reading in history]
    if now.stolen_cpus > _limit(usual, STOLEN_FLOOR_CPUS):
        reasons.append(f"the hypervisor took {now.stolen_cpus:.2f} CPUs away, usually {median(usual):.2f}")
    if now.throttles and sum(reading.throttles > 0 for reading in history) <= THROTTLED_SHARE * len(history):
        reasons.append(f"a CPU was throttled {now.throttles} times, being too hot")
    return tuple(reasons)


def _limit(usual: list[float], floor: float) -> float:
    middle = median(usual)
    return middle + max(floor, DEVIATIONS * median(abs(value - middle) for value in usual))
