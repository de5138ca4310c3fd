"""Results for each simulated service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from ajuste_stats.switchback.plan import noise_of_pilot, plan_slices
from benchmarks.switchback.experiments import (
    A_BLOCK,
    ALPHA,
    SMALLEST_EFFECT,
    Looks,
    Run,
    ajuste,
    before_and_after,
    by_turns,
    paired_with_looks,
    switched,
    welch,
)
from benchmarks.switchback.services import SERVICES, SimulatedService

RUNS: Final = 2_000
SLICES: Final = 240
"""Four hours of slices of a minute."""
BEFORE_AND_AFTER: Final = 120
"""Slices of an hour before a change and an hour after it."""
LONGEST: Final = 1_600
"""Slices after which an effect that was not found counts as missed."""
PILOT: Final = 144
"""Slices that the plan knows from before: one day."""
EFFECT: Final = 0.03
_AT_ONCE: Final = 500
_SEED: Final = 20_263


class SwitchbackCell(BaseModel):
    """Counts of ``runs`` experiments on one service.

    ``false`` are verdicts of a difference where there is none, at any look; ``false_at_load`` the same with the load as
    control; ``false_equivalent`` where the effect is just not equivalent. ``before_after`` (an hour each) and
    ``by_turns`` are those of a t test. Of an effect of 3 %: ``before_after_right`` finds it in its direction; ``found``
    is found by Ajuste within twice the slices that were planned for it; ``plan`` are the slices of the median plan,
    ``typical`` and ``most`` those after which half and 95 % were found.
    """

    service: str
    runs: int
    false: int
    false_at_load: int
    false_equivalent: int
    before_after: int
    by_turns: int
    before_after_right: int
    found: int
    plan: float
    typical: float
    most: float
    typical_at_load: float
    most_at_load: float


def simulate(services: Sequence[SimulatedService] = SERVICES, runs: int = RUNS) -> tuple[SwitchbackCell, ...]:
    """Simulate every service, each with random numbers of its own."""
    return tuple(_cell(service, runs) for service in services)


def _cell(service: SimulatedService, runs: int) -> SwitchbackCell:
    place = SERVICES.index(service)

    def random(*key: int) -> np.random.Generator:
        return np.random.default_rng((_SEED, place, *key))

    none = switched(service, random(0), runs, SLICES, 0.0)
    edge = switched(service, random(1), runs, SLICES, SMALLEST_EFFECT)
    batches = [
        before_and_after(service, random(2 + number), runs, BEFORE_AND_AFTER, effect)
        for number, effect in enumerate((0.0, EFFECT))
    ]
    turns = by_turns(service, random(4), runs, SLICES, 0.0)
    plans, until_found, at_load = (
        np.concatenate(column) for column in zip(*_planned(service, runs, random(5)), strict=True)
    )
    return SwitchbackCell(
        service=service.name,
        runs=runs,
        false=_ever_different(ajuste(none, at_equal_load=False)),
        false_at_load=_ever_different(ajuste(none, at_equal_load=True)),
        false_equivalent=int(ajuste(edge, at_equal_load=False).equivalent.any(axis=1).sum()),
        before_after=_either(welch(batches[0])),
        by_turns=_either(paired_with_looks(turns)),
        before_after_right=int(welch(batches[1])[0].sum()),
        found=int(np.sum(until_found <= 2 * plans)),
        plan=float(np.median(plans)),
        typical=float(np.median(until_found)),
        most=float(np.quantile(until_found, 0.95)),
        typical_at_load=float(np.median(at_load)),
        most_at_load=float(np.quantile(at_load, 0.95)),
    )


def _planned(
    service: SimulatedService, runs: int, random: np.random.Generator
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]]:
    """Yield for each run the slices planned, and those after which the effect was found; infinite if never."""
    for begin in range(0, runs, _AT_ONCE):
        count = min(_AT_ONCE, runs - begin)
        run = switched(service, random, count, PILOT + LONGEST, EFFECT)
        # The day before belongs to the same course of events, and to the baseline.
        pilot = run.values[:, :PILOT] - service.response(run.other, np.log1p(EFFECT))[:, :PILOT]
        plans = [_planned_slices(np.exp(values)) for values in pilot]
        following = run.since(PILOT)
        yield (
            np.array([np.nan if plan is None else plan for plan in plans]),
            _slices_until_found(following, at_equal_load=False),
            _slices_until_found(following, at_equal_load=True),
        )


def _planned_slices(pilot: NDArray[np.float64]) -> int | None:
    noise = noise_of_pilot(pilot, 2, "random", ratio=True)
    return None if noise is None else plan_slices(noise, float(np.log1p(EFFECT)), ALPHA, 2, "random").slices


def _slices_until_found(run: Run, *, at_equal_load: bool) -> NDArray[np.float64]:
    """After how many slices it is said that the other is higher; infinite where something else is said before.

    Most are decided early: only those that are not need all slices.
    """
    slices, decided = _first(ajuste(run.until(SLICES), at_equal_load=at_equal_load))
    if not decided.all():
        slices[~decided], _ = _first(ajuste(run.only(~decided), at_equal_load=at_equal_load))
    return slices


def _first(looks: Looks) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    any_word = looks.higher | looks.lower | looks.equivalent
    at = np.argmax(any_word, axis=1)
    right = looks.higher[np.arange(len(at)), at]
    return np.where(right, (at + 1.0) * A_BLOCK, np.inf), np.asarray(any_word.any(axis=1))


def _ever_different(looks: Looks) -> int:
    return int((looks.higher | looks.lower).any(axis=1).sum())


def _either(flags: tuple[NDArray[np.bool_], NDArray[np.bool_]]) -> int:
    return int((flags[0] | flags[1]).sum())
