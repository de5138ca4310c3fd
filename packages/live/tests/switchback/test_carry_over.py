"""Effects that a configuration leaves for the next slice withhold the verdict."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.switchback.later import CASES, simulate_later

from ajuste.model.metric import Metric
from ajuste.model.verdict import Verdict
from ajuste_live.judge import judge_slices
from ajuste_stats.switchback.slices import Slice

LATENCY = Metric(name="p99", title="p99", unit="ms", direction="lower")


def judged(seed: int, blocks: int, at_once: float, later: float, noise: float = 0.02) -> Verdict:
    """Verdict on ``b``, which changes its own slice by ``at_once`` and the next by ``later`` (logarithms)."""
    random = np.random.default_rng(seed)
    names = [name for _ in range(blocks) for name in (("a", "b") if random.random() < 0.5 else ("b", "a"))]
    slices = []
    for number, name in enumerate(names):
        log = at_once * (name == "b") + later * (number > 0 and names[number - 1] == "b") + noise * random.normal()
        slices.append(Slice(number, number // 2, name, 60.0 * number, 60.0 * number + 60, 100 * math.exp(log)))
    return judge_slices(slices, LATENCY, baseline="a", configurations=["a", "b"], diagnose_noise=False).verdicts[0]


def test_costs_that_the_next_slice_bears_are_no_improvement() -> None:
    verdicts = [judged(seed, 12, -0.10, 0.15) for seed in range(60)]
    assert sum(verdict.verdict in ("improves", "equivalent") for verdict in verdicts) <= 3
    withheld = [verdict for verdict in verdicts if "slice after its own" in verdict.reason]
    assert len(withheld) >= 40
    assert all("longer slices" in verdict.reason for verdict in withheld)


def test_costs_of_the_next_slice_withhold_verdicts_at_every_look_whatever_the_noise() -> None:
    cells = simulate_later(
        300, 100, [case for case in CASES if "15 %" in case.name or case.name == "saves 10 %, at once"]
    )
    assert max(cell.wrong / cell.runs for cell in cells if "15 %" in cell.case) <= 0.055
    at_once = [cell for cell in cells if cell.case == "saves 10 %, at once"]
    assert min(cell.right / cell.runs for cell in at_once) >= 0.98
    assert max(cell.slices for cell in at_once) < 25


def test_an_effect_that_may_turn_round_when_it_stays_says_so() -> None:
    """Slices of ``b`` save 4 %, and the next ones bear it all."""
    verdicts = [judged(seed, 10, -0.04, 0.04, noise=0.01) for seed in range(20)]
    withheld = [verdict.reason for verdict in verdicts if "next slice its effect is" in verdict.reason]
    assert withheld
    assert all(verdict.verdict == "undecided" for verdict in verdicts if verdict.reason in withheld)


def test_equivalence_says_that_slow_effects_look_like_none() -> None:
    names = [("a", "b"), ("b", "a"), ("b", "a"), ("a", "b")]
    order = [name for block in range(12) for name in names[block % 4]]
    slices = [Slice(n, n // 2, name, 60.0 * n, 60.0 * n + 60, 100.0 + n % 3 / 10) for n, name in enumerate(order)]
    judgement = judge_slices(slices, LATENCY, baseline="a", configurations=["a", "b"], diagnose_noise=False)
    assert judgement.verdicts[0].verdict == "equivalent"
    assert any("settle" in sentence for sentence in judgement.findings)


def test_an_effect_that_takes_more_than_a_slice_is_not_equivalent() -> None:
    verdicts = [judged(seed, 20, -0.02, -0.10, noise=0.01) for seed in range(30)]
    assert sum(verdict.verdict == "equivalent" for verdict in verdicts) <= 1


@pytest.mark.parametrize("effect", [0.0, -0.10])
def test_clean_slices_raise_no_alarm(effect: float) -> None:
    verdicts = [judged(seed, 16, effect, 0.0) for seed in range(80)]
    assert sum("slice after its own" in verdict.reason for verdict in verdicts) <= 4


def test_a_verdict_waits_until_a_carry_over_can_be_seen() -> None:
    names = ["a", "b"] * 8
    values = [100.0 if name == "a" else 80.0 + number / 100 for number, name in enumerate(names)]
    slices = [
        Slice(number, number // 2, name, 60.0 * number, 60.0 * number + 60, value)
        for number, (name, value) in enumerate(zip(names, values, strict=True))
    ]
    verdict = judge_slices(slices, LATENCY, baseline="a", configurations=["a", "b"], diagnose_noise=False).verdicts[0]
    assert verdict.verdict == "undecided"
    assert "too few slices" in verdict.reason


@pytest.mark.parametrize(("blocks", "tested"), [(12, False), (24, True)])
def test_what_could_not_be_tested_is_said(blocks: int, tested: bool) -> None:
    names = [("a", "b"), ("b", "a"), ("b", "a"), ("a", "b")]
    order = [name for block in range(blocks) for name in names[block % 4]]
    slices = [
        Slice(
            number, number // 2, name, 60.0 * number, 60.0 * number + 60, (100.0 if name == "a" else 80.0) + number % 3
        )
        for number, name in enumerate(order)
    ]
    judgement = judge_slices(slices, LATENCY, baseline="a", configurations=["a", "b"], diagnose_noise=False)
    assert judgement.verdicts[0].verdict == "improves"
    assert any("was not tested" in sentence for sentence in judgement.findings) is not tested
