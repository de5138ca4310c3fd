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
from types import MappingProxyType
from typing import Final

from ajuste.model.plan import CpuPause
from ajuste_guest.executor.machine import Places

SHORTEST_NS: Final = 500
MOST_PAUSES: Final = 400
# A CPU stands still for no more of the time.
LARGEST_SHARE: Final = 0.25
_NEAR_NS: Final = 2_000
_BETWEEN_NS: Final = 60
_BLOCK_BYTES: Final = 12


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
    pairs of CPU and time; ``shared`` is when they access memory that they share. ``places`` are
    the instructions that do. No pause is longer than ``longest_ns``.
    """

    cpus: int
    length_ns: int
    longest_ns: int
    moments: tuple[tuple[int, int], ...] = ()
    shared: tuple[tuple[int, int], ...] = ()
    places: tuple[int, ...] = ()


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
    return _around(rng, ground, ground.moments, _NEAR_NS)


def between(rng: random.Random, ground: Ground) -> tuple[CpuPause, ...]:
    """Draw pauses between accesses of memory that tasks share: there one task's view of it may become old."""
    return _around(rng, ground, ground.shared, _BETWEEN_NS)


def _around(
    rng: random.Random, ground: Ground, moments: Sequence[tuple[int, int]], spread_ns: float
) -> tuple[CpuPause, ...]:
    if not moments:
        return many(rng, ground)
    drawn = sorted(rng.choice(moments)[::-1] for _ in range(rng.choice((1, 1, 2, 4, 16, 64))))
    # A pause moves what comes after it, on its own CPU and wherever that is waited for.
    moves = rng.random() < 0.5
    pauses: list[CpuPause] = []
    moved_ns = 0
    for at_ns, cpu in drawn:
        for_ns = _length(rng, ground)
        begin_ns = max(0, at_ns + moved_ns + round(rng.gauss(0, spread_ns)))
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


WAYS: Final[Mapping[str, Way]] = MappingProxyType(
    {"between": between, "few": few, "many": many, "near": near, "slow": slow}
)


def blocks_of(places: Sequence[int]) -> list[int]:
    """Return one of each group of instructions that are close to each other: they are mostly in one block."""
    return [
        place for place, before in zip(places, (-_BLOCK_BYTES, *places), strict=False) if place - before > _BLOCK_BYTES
    ]


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
