"""The fewest and shortest pauses that still show what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ajuste.model.plan import CpuPause
from ajuste_hunt.chance import SHORTEST_NS, Chance
from ajuste_stats.delta_debugging import minimal_changes

Shows = Callable[[Chance], bool]
"""Carries out a trial with that chance, and says whether it shows the goal; False once there is no budget left."""
_HALVINGS: Final = 6


def minimal(finding: Chance, shows: Shows) -> Chance:
    """Return a chance with a part of the pauses of ``found``, none of which can be left out, none longer than need be
    by more than a factor of two; and with the seed 0, if that is enough.
    """
    for seed in dict.fromkeys((0, finding.seed)):
        without = Chance(seed)
        if shows(without):
            return without
    if finding.seed != 0 and shows(same := Chance(0, finding.pauses, finding.way)):
        finding = same
    pauses = _fewest(finding, shows)
    return Chance(finding.seed, _shortest(finding.seed, pauses, shows), finding.way)


def _fewest(finding: Chance, shows: Shows) -> tuple[CpuPause, ...]:
    def of(places: Sequence[str]) -> tuple[CpuPause, ...]:
        return tuple(finding.pauses[int(place)] for place in places)

    numbers = [str(place) for place in range(len(finding.pauses))]
    left = minimal_changes(numbers, lambda part: "there" if shows(Chance(finding.seed, of(part))) else "absent")
    return of(left)


def _shortest(seed: int, pauses: tuple[CpuPause, ...], shows: Shows) -> tuple[CpuPause, ...]:
    shortest = list(pauses)
    for place in range(len(shortest)):
        for _ in range(_HALVINGS):
            pause = shortest[place]
            half = pause.model_copy(update={"for_ns": pause.for_ns // 2})
            if half.for_ns < SHORTEST_NS:
                break
            attempt = [*shortest[:place], half, *shortest[place + 1 :]]
            if not shows(Chance(seed, tuple(attempt))):
                break
            shortest = attempt
    return tuple(shortest)
