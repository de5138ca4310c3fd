"""Effects of a configuration on slices after its own: costs that the next one bears, and effects that settle slowly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from pydantic import BaseModel

from benchmarks.switchback.experiments import A_BLOCK, Flags, Run, ajuste
from benchmarks.switchback.services import SERVICES, SLICE_S, WASH_OUT_S, Array

RUNS: Final = 1_000
SLICES: Final = 240
_SEED: Final = 20_264
_SERVICES: Final = ("steady", "autocorrelation", "bursts", "together")

Response = Callable[[Flags], Array]


@dataclass(frozen=True)
class LaterCase:
    """``response`` is what each slice shows, from which slices have the other configuration; ``right`` are the words
    that are right of the other configuration when it stays.
    """

    name: str
    response: Response
    right: tuple[str, ...]
    deferred: bool = False


class LaterCell(BaseModel):
    """Result of ``runs`` experiments: how many end with a ``wrong`` verdict, with a ``right`` one, and after how many
    slices (the mean; all of them where nothing is said).
    """

    case: str
    service: str
    deferred: bool
    runs: int
    wrong: int
    right: int
    slices: float


def deferred(immediate: float, following: float) -> Response:
    """Return a response in which its own slice changes by ``immediate`` and the one after it by ``following``."""

    def response(other: Flags) -> Array:
        before = np.concatenate([np.zeros((len(other), 1), bool), other[:, :-1]], axis=1)
        return math.log1p(immediate) * other + math.log1p(following) * before

    return response


def settling(effect: float, slices: float) -> Response:
    """Return a response that comes and goes with a time constant of so many ``slices``."""
    remaining = math.exp(-1 / slices)
    left = float(np.mean(np.exp(-np.linspace(WASH_OUT_S / SLICE_S, 1, 100) / slices)))

    def response(other: Flags) -> Array:
        state, effects = np.zeros(len(other)), np.empty(other.shape)
        for at in range(other.shape[1]):
            target = np.where(other[:, at], math.log1p(effect), 0.0)
            effects[:, at] = target + (state - target) * left
            state = target + (state - target) * remaining
        return effects

    return response


CASES: Final = (
    LaterCase("saves 10 %, costs 15 % in the next slice", deferred(-0.1, 0.15), ("higher",), deferred=True),
    LaterCase("saves 5 %, costs 5 % in the next slice", deferred(-0.05, 0.05), ("equivalent",), deferred=True),
    LaterCase("saves 10 %, at once", deferred(-0.1, 0.0), ("lower",)),
    LaterCase("saves 3 %, at once", deferred(-0.03, 0.0), ("lower",)),
    *(
        LaterCase(
            f"saves 10 %, settles in {slices:g} slice{'s' if slices > 1 else ''}", settling(-0.1, slices), ("lower",)
        )
        for slices in (0.5, 1, 2, 5)
    ),
)


def simulate_later(runs: int = RUNS, slices: int = SLICES, cases: Sequence[LaterCase] = CASES) -> tuple[LaterCell, ...]:
    """Simulate every case on some of the services."""
    return tuple(_cell(case, service, runs, slices) for case in cases for service in _SERVICES)


def _cell(case: LaterCase, name: str, runs: int, slices: int) -> LaterCell:
    service = next(service for service in SERVICES if service.name == name)
    random = np.random.default_rng((_SEED, CASES.index(case), SERVICES.index(service)))
    first = random.random((runs, slices // A_BLOCK, 1)) < 0.5
    other = np.concatenate([first, ~first], axis=2).reshape(runs, -1)
    disturbance, control = service.draw(random, runs, slices)
    looks = ajuste(Run(disturbance + case.response(other), control, other), at_equal_load=False)
    words = {"higher": looks.higher, "lower": looks.lower, "equivalent": looks.equivalent}
    decided = np.any(list(words.values()), axis=0)
    at = np.where(decided.any(axis=1), decided.argmax(axis=1), decided.shape[1] - 1)
    right = np.any([words[word][np.arange(runs), at] for word in case.right], axis=0)
    return LaterCell(
        case=case.name,
        service=service.title,
        deferred=case.deferred,
        runs=runs,
        wrong=int(np.sum(decided.any(axis=1) & ~right)),
        right=int(right.sum()),
        slices=float(np.mean(A_BLOCK * (at + 1))),
    )


def later_table(cells: Sequence[LaterCell]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Head and rows."""
    head = ("setting", "service", "wrong", "right", "withheld", "slices")
    rows = (
        (
            cell.case,
            cell.service,
            *(
                f"{100 * count / cell.runs:.1f}"
                for count in (cell.wrong, cell.right, cell.runs - cell.wrong - cell.right)
            ),
            f"{cell.slices:.0f}",
        )
        for cell in cells
    )
    return head, tuple(rows)
