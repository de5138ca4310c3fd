"""Costs that come more than a slice later: only what also improves when it stays is proved to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.switchback.experiments import Run, switched
from benchmarks.switchback.services import SERVICES
from benchmarks.switchback.stays import CASES, StayCase, adopted, lagged, simulate_stays, with_stays

from ajuste.model.metric import Metric
from ajuste_live.judge import SwitchbackJudgement, judge_slices
from ajuste_stats.switchback.design import STAY, order_of_block
from ajuste_stats.switchback.slices import Slice
from tiers import slow

LATENCY = Metric(name="p99", title="p99", unit="ms", direction="lower")
CASE = {case.name: case for case in CASES}
COSTS = [case.name for case in CASES if case.costs and case.seen]


def experiment(case: StayCase, seed: int, blocks: int = 40, of_stays: int = 12, noise: float = 0.02) -> list[Slice]:
    """Slices of ``b`` against ``a``, with blocks of stays at the end."""
    plan = [
        (block, name, place % STAY + 1 if stay > 1 else 0)
        for block in range(blocks + of_stays)
        for stay in [STAY if block >= blocks else 1]
        for place, name in enumerate(order_of_block(block, ["a", "b"], seed, stay=stay))
    ]
    other = np.array([[name == "b" for _, name, _ in plan]])
    logs = case.response(other)[0] + np.random.default_rng(seed).normal(0, noise, len(plan))
    return [
        Slice(n, block, name, 60.0 * n + 15, 60.0 * n + 60, 100 * math.exp(log), stay=stay)
        for n, ((block, name, stay), log) in enumerate(zip(plan, logs, strict=True))
    ]


def judged(slices: Sequence[Slice], *, stays: bool = True) -> SwitchbackJudgement:
    return judge_slices(
        slices,
        LATENCY,
        baseline="a",
        configurations=["a", "b"],
        diagnose_noise=False,
        stays=stays,
        smallest_effect=0.02,
    )


@pytest.mark.parametrize("name", COSTS)
def test_a_cost_that_comes_later_is_no_improvement(name: str) -> None:
    studies = [experiment(CASE[name], seed) for seed in range(20)]
    assert sum(judged(study).verdicts[0].verdict == "improves" for study in studies) <= 1


def test_costs_in_the_slices_after_the_next_one_look_like_an_improvement_without_stays() -> None:
    for name in COSTS:
        if name not in ("−5 %, then +5 % in the next", "no effect"):
            study = experiment(CASE[name], 1, blocks=60, of_stays=0)
            words = [judged(study[:end], stays=False).verdicts[0] for end in range(14, 121, 6)]
            assert any(verdict.verdict == "improves" for verdict in words), name
            assert all("not tested" in verdict.reason for verdict in words if verdict.verdict == "improves")


def test_an_improvement_that_stays_says_its_effect_and_what_was_not_tested() -> None:
    judgement = judged(experiment(CASE["−10 %"], 3))
    (verdict,) = judgement.verdicts
    assert verdict.verdict == "improves"
    assert "beyond 5 slices, and slow leaks: not tested" in verdict.reason
    assert any("stays for 6 slices" in text and "not tested" in text for text in judgement.findings)


def test_what_improves_at_once_waits_for_stays_and_says_how_many() -> None:
    judgement = judged(experiment(CASE["−10 %"], 3, of_stays=0))
    assert (judgement.verdicts[0].verdict, judgement.awaiting) == ("undecided", ("b",))
    assert judgement.more_slices == 5 * 2 * STAY
    later = judged(experiment(CASE["−10 %"], 3, of_stays=3))
    assert (later.awaiting, later.more_slices) == (("b",), 2 * 2 * STAY)


def test_a_cost_that_is_proved_by_stays_is_undecided_for_good() -> None:
    (verdict,) = judged(experiment(CASE["−10 %, then +3 % in each of the next five"], 3)).verdicts
    assert (verdict.verdict, verdict.reverses, verdict.is_open) == ("undecided", True, False)
    assert "6 slices" in verdict.reason


def test_interrupted_stays_show_nothing() -> None:
    slices = experiment(CASE["−10 %"], 3, of_stays=5, noise=0.005)
    stay = next(at for at, part in enumerate(slices) if part.stay == 3)
    flagged = [replace(part, flags=("guard",)) if at == stay else part for at, part in enumerate(slices)]
    paused = [
        replace(part, begin_s=part.begin_s + 600, end_s=part.end_s + 600) if at >= stay else part
        for at, part in enumerate(slices)
    ]
    assert judged(slices).verdicts[0].verdict == "improves"
    for spoilt in (flagged, paused, slices[:-1]):
        assert judged(spoilt).awaiting == ("b",)


def test_the_simulation_says_what_the_judge_says() -> None:
    service = next(service for service in SERVICES if service.name == "together")
    random = np.random.default_rng(5)
    run = switched(service, random, 12, 240, 0.0)
    begin = np.full(12, 60)
    other, first = with_stays(run, begin, random)
    run = Run(run.values + lagged(-0.1)(other), run.control, other)
    compared = 0
    for at_equal_load in (False, True):
        proved, refuted = adopted(run, begin, first, at_equal_load=at_equal_load)
        for study in range(12):
            slices = [
                Slice(
                    n,
                    n // 2 if n < 60 else 30 + (n - 60) // (2 * STAY),
                    "b" if run.other[study, n] else "a",
                    60.0 * n + 15,
                    60.0 * n + 60,
                    math.exp(run.values[study, n]),
                    control=math.exp(run.control[study, n]) if at_equal_load else None,
                    stay=0 if n < 60 else (n - 60) % STAY + 1,
                )
                for n in range(240)
            ]
            judgement = judged(slices)
            if judgement.awaiting or judgement.verdicts[0].verdict == "improves" or judgement.verdicts[0].reverses:
                compared += 1
                assert (judgement.verdicts[0].verdict == "improves") == proved[study, 14]
                assert judgement.verdicts[0].reverses == (refuted[study, 14] and not proved[study, 14])
    assert compared >= 12


@pytest.mark.parametrize("service", ["together", *slow("steady", "autocorrelation", "bursts")])
def test_at_most_one_in_twenty_costs_is_adopted_whatever_the_noise(service: str) -> None:
    runs = 60 if service == "together" else 200
    cells = simulate_stays(runs, [case for case in CASES if case.costs and case.seen], [service])
    assert max(cell.adopted / cell.runs for cell in cells) <= 0.05
    assert max(cell.adopted_at_load / cell.runs for cell in cells) <= 0.05
    assert max(cell.improves / cell.runs for cell in cells) >= 0.9


@pytest.mark.parametrize("service", ["steady", *slow("autocorrelation", "together")])
def test_gains_that_stay_are_adopted(service: str) -> None:
    (cell,) = simulate_stays(100, [CASE["−10 %"]], [service])
    assert cell.adopted >= 90
    assert cell.slices_with_stays <= 150
