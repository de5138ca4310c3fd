"""Chance: what differs from trial to trial although nothing was changed, and how a hunt draws it.

A chance is a seed, which decides memory layouts and the start against the timer tick, and pauses: moments at which a
CPU stands still. Real machines have both: firmware (SMIs) takes CPUs away for 10 to some 100 µs, a hypervisor for ms.
To the scheduler and to programs a pause is also an interrupt that comes late, an IPI that arrives late, a timer that
fires late, and a CPU that is slow for a while.

Few pauses at random moments find a bug that needs ``d`` of them as PCT finds one of depth ``d`` with random priority
changes (Burckhardt, Kothari, Musuvathi and Nagarakatte 2010, "A randomized scheduler with probabilistic guarantees of
finding bugs", ASPLOS XV): if each of the ``d`` windows is a share ``w`` of the run, a trial with ``n`` pauses meets one
with a chance of about ``n·w``, and all of them with ``(n·w)^d``, whatever the program does.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final

from ajuste.model.plan import CpuPause
from ajuste_guest.executor.machine import Places

SHORTEST_NS: Final = 500
MOST_PAUSES: Final = 400
# A CPU stands still for no more of the time.
LARGEST_SHARE: Final = 0.25
_NEAR_NS: Final = 2_000
_BLOCK_BYTES: Final = 12
# Between the longest and the shortest pause after an access.
_RANGE: Final = 300
_MOST_AGAIN: Final = 8


@dataclass(frozen=True)
class Chance:
    """The chance of one trial: the number of its ``seed``, and its ``pauses`` in the order of their time, or the
    ``places`` of a program after which CPUs stand still.
    """

    seed: int
    pauses: tuple[CpuPause, ...] = ()
    way: str = "plain"
    places: Places | None = None


@dataclass(frozen=True)
class Ground:
    """Facts on the workload: its CPUs, for how long it runs, and when its tasks switch or wake each other, as
    pairs of CPU and time. ``shared`` is when they have accessed memory that they share: the CPU, the time and the
    instruction, in the order of time. No pause is longer than ``longest_ns``.
    """

    cpus: int
    length_ns: int
    longest_ns: int
    moments: tuple[tuple[int, int], ...] = ()
    shared: tuple[tuple[int, int, int], ...] = ()

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Return the instructions that access memory which tasks share."""
        return tuple(sorted({place for _, _, place in self.shared}))

    @cached_property
    def sites(self) -> Mapping[tuple[int, int, int], tuple[int, ...]]:
        """Return when each instruction did, by the CPU, the instruction that did so before on that CPU, and itself:
        what is alike in them is mostly alike in what a pause does there.
        """
        before: dict[int, int] = {}
        sites: dict[tuple[int, int, int], list[int]] = {}
        for cpu, at_ns, place in self.shared:
            sites.setdefault((cpu, before.get(cpu, 0), place), []).append(at_ns)
            before[cpu] = place
        return {site: tuple(times) for site, times in sorted(sites.items())}


Way = Callable[[random.Random, Ground], tuple[CpuPause, ...]]


def _length(rng: random.Random, ground: Ground) -> int:
    low, high = math.log(SHORTEST_NS), math.log(max(ground.longest_ns, SHORTEST_NS))
    return round(math.exp(rng.uniform(low, high)))


def _anywhere(rng: random.Random, ground: Ground, count: int) -> list[CpuPause]:
    return [
        CpuPause(cpu=rng.randrange(ground.cpus), at_ns=rng.randrange(ground.length_ns), for_ns=_length(rng, ground))
        for _ in range(count)
    ]


def few(rng: random.Random, ground: Ground) -> tuple[CpuPause, ...]:
    """Draw one to four pauses anywhere: a bug of that depth needs no more."""
    return within_bounds(_anywhere(rng, ground, rng.randint(1, 4)), ground)


def many(rng: random.Random, ground: Ground) -> tuple[CpuPause, ...]:
    """Draw many pauses anywhere: each is one more attempt in the same trial."""
    count = round(math.exp(rng.uniform(math.log(8), math.log(MOST_PAUSES))))
    return within_bounds(_anywhere(rng, ground, count), ground)


def near(rng: random.Random, ground: Ground) -> tuple[CpuPause, ...]:
    """Draw pauses around moments at which tasks switch or wake each other: there many races are."""
    if not ground.moments:
        return many(rng, ground)
    drawn = sorted(rng.choice(ground.moments)[::-1] for _ in range(rng.choice((1, 1, 2, 4, 16, 64))))
    # A pause moves what comes after it, on its own CPU and wherever that is waited for.
    moves = rng.random() < 0.5
    pauses: list[CpuPause] = []
    moved_ns = 0
    for at_ns, cpu in drawn:
        for_ns = _length(rng, ground)
        begin_ns = max(0, at_ns + moved_ns + round(rng.gauss(0, _NEAR_NS)))
        pauses.append(CpuPause(cpu=cpu, at_ns=begin_ns, for_ns=for_ns))
        moved_ns += for_ns if moves else 0
    return within_bounds(pauses, ground)


def slow(rng: random.Random, ground: Ground) -> tuple[CpuPause, ...]:
    """Draw a CPU that is slow for a while: short pauses at a nearly regular distance."""
    cpu, for_ns = rng.randrange(ground.cpus), _length(rng, replace(ground, longest_ns=min(20_000, ground.longest_ns)))
    every_ns = max(4 * for_ns, 2_000)
    span_ns = ground.length_ns * rng.choice((0.1, 0.3, 1.0))
    begin_ns = rng.uniform(0, max(1.0, ground.length_ns - span_ns))
    count = min(MOST_PAUSES, max(1, int(span_ns / every_ns)))
    pauses = [
        CpuPause(cpu=cpu, at_ns=round(begin_ns + span_ns * place / count + rng.uniform(0, every_ns / 2)), for_ns=for_ns)
        for place in range(count)
    ]
    return within_bounds(pauses, ground)


WAYS: Final[Mapping[str, Way]] = MappingProxyType({"few": few, "many": many, "near": near, "slow": slow})


def after_access(rng: random.Random, ground: Ground, site: tuple[int, int, int]) -> tuple[CpuPause, ...]:
    """Draw pauses between an access of shared memory at ``site`` and the next instruction, for the seed 0: what the
    task has read there may be old when it goes on.
    """
    cpu, times = site[0], ground.sites[site]
    at_ns = rng.choice(times)
    longest_ns = max(SHORTEST_NS, ground.longest_ns)
    for_ns = round(longest_ns * math.exp(rng.uniform(-math.log(_RANGE), 0)))
    pauses = [CpuPause(cpu=cpu, at_ns=at_ns, for_ns=for_ns)]
    match rng.randrange(3):
        case 0:  # The task comes there again, later by what it has stood still.
            again = [when for when in times if when > at_ns][:_MOST_AGAIN]
            pauses += [
                CpuPause(cpu=cpu, at_ns=when + number * for_ns, for_ns=for_ns) for number, when in enumerate(again, 1)
            ]
        case 1:  # Meanwhile others come to places of their own: all of them, in turn, are in the middle of something.
            meanwhile_of: dict[int, dict[int, int]] = {}
            for of, when, place in ground.shared:
                if of != cpu and at_ns <= when < at_ns + for_ns:
                    meanwhile_of.setdefault(of, {})[place] = when
            for other in rng.sample(range(ground.cpus), ground.cpus):
                if meanwhile := meanwhile_of.get(other):
                    pauses.append(CpuPause(cpu=other, at_ns=rng.choice(list(meanwhile.values())), for_ns=for_ns))
        case _:
            pass
    return within_bounds(pauses, ground)


def blocks_of(places: Sequence[int]) -> list[int]:
    """Return the first of each group of ``places`` in order that are close to each other: mostly they are one block."""
    firsts: list[int] = []
    for place in places:
        if not firsts or place - firsts[-1] > _BLOCK_BYTES:
            firsts.append(place)
    return firsts


def at_places(rng: random.Random, ground: Ground, addresses: Sequence[int]) -> Places:
    """Return pauses after these instructions, which access shared memory: so all times that a task comes there
    are tried in one trial.
    """
    longest_ns = max(SHORTEST_NS, round(ground.longest_ns * rng.choice((0.3, 0.1, 0.1, 0.02))))
    return Places(
        addresses=tuple(sorted(addresses)),
        seed=rng.randrange(1, 2**32),
        of_thousand=rng.choice((1000, 300)),
        shortest_ns=max(SHORTEST_NS, longest_ns // 3),
        longest_ns=longest_ns,
        most_ns=max(2 * ground.length_ns, 4 * longest_ns),
    )


def changed(rng: random.Random, parent: Chance, ground: Ground) -> tuple[CpuPause, ...]:
    """Return the pauses of ``parent`` with some moved, left out, lengthened or added."""
    pauses = [pause for pause in parent.pauses if rng.random() < 0.9]
    for place, pause in enumerate(pauses):
        match rng.randrange(6):
            case 0:
                at_ns = max(0, pause.at_ns + round(rng.gauss(0, 2_000)))
                pauses[place] = pause.model_copy(update={"at_ns": at_ns})
            case 1:
                for_ns = min(ground.longest_ns, max(SHORTEST_NS, round(pause.for_ns * rng.choice((0.5, 2.0)))))
                pauses[place] = pause.model_copy(update={"for_ns": for_ns})
            case _:
                pass
    pauses += _anywhere(rng, ground, rng.randint(0, 1 + len(pauses) // 4))
    return within_bounds(pauses, ground)


def within_bounds(pauses: Sequence[CpuPause], ground: Ground) -> tuple[CpuPause, ...]:
    """Return the pauses in the order of their time, without those for which a CPU would stand still for too long."""
    left = [max(LARGEST_SHARE * ground.length_ns, float(ground.longest_ns))] * ground.cpus
    stored: list[CpuPause] = []
    for pause in pauses[:MOST_PAUSES]:
        if pause.for_ns <= left[pause.cpu]:
            left[pause.cpu] -= pause.for_ns
            stored.append(pause)
    return tuple(sorted(stored, key=lambda pause: (pause.at_ns, pause.cpu, pause.for_ns)))
