"""Costs that come more than a slice later: verdicts without stays, and with the blocks of stays of ``live --adopt``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from ajuste_stats.sign_intervals import SHORT, log_evidence
from ajuste_stats.switchback.design import STAY
from ajuste_stats.switchback.evidence import adjusted
from ajuste_stats.switchback.stays import StayDifferences, stay_differences
from benchmarks.switchback.experiments import A_BLOCK, ALPHA, ALPHA_LEFT, Flags, Run, ajuste
from benchmarks.switchback.later import Response, settling
from benchmarks.switchback.services import SERVICES, Array

Counts = NDArray[np.int64]

RUNS: Final = 1_000
SLICES: Final = 240
"""Slices without stays: four hours."""
MOST: Final = 480
"""Slices with stays: eight hours."""
_SEED: Final = 20_265
_SERVICES: Final = ("steady", "autocorrelation", "bursts", "together")
_LONG_BLOCK: Final = 2 * STAY


@dataclass(frozen=True)
class StayCase:
    """``costs`` says that the other configuration is no gain once it stays; ``seen`` that stays can show it."""

    name: str
    response: Response
    costs: bool = True
    seen: bool = True


class StayCell(BaseModel):
    """Counts of ``runs`` experiments: in how many the other configuration ``improves`` without stays, may be
    ``adopted`` after stays, also with the load as control (``adopted_at_load``), or certainly ``reverses``; after how
    many slices in half of those that improve, or are adopted (``NaN`` for none).
    """

    case: str
    service: str
    costs: bool
    seen: bool
    runs: int
    improves: int
    adopted: int
    adopted_at_load: int
    reverses: int
    slices: float
    slices_with_stays: float
    slices_at_load: float


def lagged(*changes: float) -> Response:
    """Return a response that changes the own slice by the first of ``changes``, and those after it by the others."""

    def response(other: Flags) -> Array:
        effects = np.zeros(other.shape)
        for lag, share in enumerate(changes):
            effects[:, lag:] += math.log1p(share) * other[:, : other.shape[1] - lag]
        return effects

    return response


def leaking(immediate: float, each: float, *, freed: bool) -> Response:
    """Return a response with a cost that grows by ``each`` per slice, and is ``freed`` with the setting or never."""

    def response(other: Flags) -> Array:
        leaked, effects = np.zeros(len(other)), np.empty(other.shape)
        for at in range(other.shape[1]):
            leaked = np.where(other[:, at], leaked + each, 0.0 if freed else leaked)
            effects[:, at] = math.log1p(immediate) * other[:, at] + leaked
        return effects

    return response


CASES: Final = (
    StayCase("−10 %, then +7.5 % in each of the next two", lagged(-0.1, 0.075, 0.075)),
    StayCase("−10 %, then +3 % in each of the next five", lagged(-0.1, *[0.03] * 5)),
    StayCase("−10 %, then +15 % four slices later", lagged(-0.1, 0, 0, 0, 0.15)),
    StayCase("−5 %, then +2 % in each of the next four", lagged(-0.05, *[0.02] * 4)),
    StayCase("−5 %, then +5 % in the next", lagged(-0.05, 0.05)),
    StayCase("−5 %, leaks 1 % a slice until it goes", leaking(-0.05, 0.01, freed=True)),
    StayCase("−5 %, leaks 1 % a slice for ever", leaking(-0.05, 0.01, freed=False)),
    StayCase("−5 %, leaks 0.5 % a slice until it goes", leaking(-0.05, 0.005, freed=True)),
    StayCase("−5 %, leaks 0.5 % a slice for ever", leaking(-0.05, 0.005, freed=False), seen=False),
    StayCase("−10 %, then +15 % eight slices later", lagged(-0.1, *[0] * 7, 0.15), seen=False),
    StayCase("no effect", lagged(0.0)),
    StayCase("−10 %", lagged(-0.1), costs=False),
    StayCase("−5 %", lagged(-0.05), costs=False),
    StayCase("−3 %", lagged(-0.03), costs=False),
    StayCase("−10 %, settles in two slices", settling(-0.1, 2), costs=False),
)


def simulate_stays(
    runs: int = RUNS, cases: Sequence[StayCase] = CASES, services: Sequence[str] = _SERVICES
) -> tuple[StayCell, ...]:
    """Simulate every case on some of the services."""
    return tuple(_cell(case, service, runs) for case in cases for service in services)


def with_stays(run: Run, begin: Counts, random: np.random.Generator) -> tuple[Flags, Flags]:
    """Return which slices have the other configuration if blocks of stays follow from slice ``begin`` of each run on,
    and in which of these blocks it comes first.
    """
    runs, slices = run.other.shape
    first = random.random((runs, slices // _LONG_BLOCK)) < 0.5
    stays = np.repeat(np.stack([first, ~first], axis=2).reshape(runs, -1), STAY, axis=1)
    since = np.arange(slices) - begin[:, None]
    at = np.clip(since, 0, stays.shape[1] - 1)
    return np.where(since < 0, run.other, np.take_along_axis(stays, at, axis=1)), first


def differences_of_stays(values: Array, begin: Counts, first: Flags) -> StayDifferences:
    """Return the differences of whole blocks of stays from slice ``begin`` on; later ones repeat the last slice."""
    runs, blocks = first.shape
    at = np.minimum(begin[:, None] + np.arange(blocks * _LONG_BLOCK), values.shape[1] - 1)
    stays = np.take_along_axis(values, at, axis=1).reshape(runs, blocks, 2, STAY)
    other = np.where(first[..., None], stays[:, :, 0], stays[:, :, 1])
    baseline = np.where(first[..., None], stays[:, :, 1], stays[:, :, 0])
    return stay_differences(baseline, other)


def _sides(values: Array, control: Array | None) -> tuple[Flags, Flags]:
    """Return after which blocks an effect of stays is certainly lower, and certainly higher."""
    evidence, mean = log_evidence(values, mixture=SHORT), np.cumsum(values, axis=1)
    alpha = ALPHA
    if control is not None:
        alpha *= ALPHA_LEFT
        also = log_evidence(adjusted(values, control), mixture=SHORT)
        evidence = np.logaddexp(evidence, also) - math.log(2)
        squares = np.maximum(np.cumsum(control**2, axis=1), 1e-300)
        mean = mean - np.cumsum(values * control, axis=1) / squares * np.cumsum(control, axis=1)
    certain = evidence >= -math.log(2 * alpha)
    return certain & (mean < 0), certain & (mean > 0)


def adopted(run: Run, begin: Counts, first: Flags, *, at_equal_load: bool) -> tuple[Flags, Flags]:
    """Return after which blocks of stays a gain is proved, and certainly none."""
    values = differences_of_stays(run.values, begin, first)
    control = differences_of_stays(run.control, begin, first) if at_equal_load else None
    settled = _sides(values.settled, None if control is None else control.settled)
    projected = _sides(values.projected, None if control is None else control.projected)
    whole = begin[:, None] + _LONG_BLOCK * np.arange(1, first.shape[1] + 1) <= run.values.shape[1]
    return settled[0] & projected[0] & whole, (settled[1] | projected[1]) & whole


def _cell(case: StayCase, name: str, runs: int) -> StayCell:
    service = next(service for service in SERVICES if service.name == name)
    random = np.random.default_rng((_SEED, CASES.index(case), SERVICES.index(service)))
    first = random.random((runs, MOST // A_BLOCK, 1)) < 0.5
    other = np.concatenate([first, ~first], axis=2).reshape(runs, -1)
    disturbance, control = service.draw(random, runs, MOST)
    single = Run(disturbance + case.response(other), control, other)
    counts, half = {}, {}
    for key, at_equal_load in (("adopted", False), ("adopted_at_load", True)):
        improves, begin = _improves(single.until(SLICES), at_equal_load=at_equal_load)
        staying, order = with_stays(single, begin, random)
        run = Run(disturbance + case.response(staying), control, staying)
        proved, refuted = adopted(run, begin, order, at_equal_load=at_equal_load)
        stayed = improves & _is_first(proved, refuted)
        counts[key] = int(stayed.sum())
        half[key] = _median(begin + _LONG_BLOCK * (proved.argmax(axis=1) + 1), stayed)
        if not at_equal_load:
            counts["improves"] = int(improves.sum())
            counts["reverses"] = int((improves & _is_first(refuted, proved)).sum())
            half["improves"] = _median(begin, improves)
    return StayCell(
        case=case.name,
        service=service.title,
        costs=case.costs,
        seen=case.seen,
        runs=runs,
        slices=half["improves"],
        slices_with_stays=half["adopted"],
        slices_at_load=half["adopted_at_load"],
        **counts,
    )


def _improves(run: Run, *, at_equal_load: bool) -> tuple[Flags, Counts]:
    """Return which runs say first that the other configuration is lower, and after how many slices they say a word."""
    looks = ajuste(run, at_equal_load=at_equal_load)
    decided = looks.lower | looks.higher | looks.equivalent
    at = np.where(decided.any(axis=1), decided.argmax(axis=1), decided.shape[1] - 1)
    return looks.lower[np.arange(len(at)), at], A_BLOCK * (at + 1)


def _is_first(these: Flags, those: Flags) -> Flags:
    at = np.where(these.any(axis=1), these.argmax(axis=1), these.shape[1])
    return np.asarray(at < np.where(those.any(axis=1), those.argmax(axis=1), those.shape[1]))


def _median(slices: Counts, of: Flags) -> float:
    return float(np.median(slices[of])) if of.any() else math.nan


def stays_table(cells: Sequence[StayCell]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Head and rows: without stays beside with them."""
    head = (
        "setting",
        "service",
        "improves, without stays",
        "slices",
        "may be adopted",
        "slices",
        "with control",
        "slices",
        "reversed",
    )
    rows = tuple(
        (
            cell.case,
            cell.service,
            _share(cell, cell.improves),
            _slices(cell.slices),
            _share(cell, cell.adopted),
            _slices(cell.slices_with_stays),
            _share(cell, cell.adopted_at_load),
            _slices(cell.slices_at_load),
            _share(cell, cell.reverses),
        )
        for cell in cells
    )
    return head, rows


def _share(cell: StayCell, count: int) -> str:
    return f"{100 * count / cell.runs:.1f}"


def _slices(slices: float) -> str:
    return "–" if math.isnan(slices) else f"{slices:.0f}"
