"""The simulation of verdicts: a quick version with the same goals, and that it simulates what it says."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.verdicts import judged, page
from benchmarks.verdicts.cases import case_tables, efficiency, fixed_pairs, simulate_cases
from benchmarks.verdicts.cells import simulate, wilson
from benchmarks.verdicts.counts import counts, log_binomial
from benchmarks.verdicts.methods import (
    EQUIVALENT,
    HIGHER,
    LOWER,
    METHODS,
    MIN_BLOCKS,
    NOTHING,
    PAIRS,
    SMALLEST_EFFECT,
    ajuste,
    mann_whitney_p,
    paired_t,
    welch_p,
)
from benchmarks.verdicts.noise import NOISES
from benchmarks.verdicts.picture import picture
from benchmarks.verdicts.planning import plans
from benchmarks.verdicts.studies import Studies
from scipy import stats

from ajuste.analysis.verdict import judge
from ajuste.design.stopping import StoppingLimits, stop
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, Slot, Trial

NAMED = {noise.name: noise for noise in NOISES}
CONFIGURATIONS = [Configuration(name=name, levels={"knob": name}, baseline=name == "a") for name in ("a", "b")]
ELAPSED = Metric(name="elapsed", title="elapsed time", unit="s", direction="lower")
WORDS = {"worsens": HIGHER, "improves": LOWER, "equivalent": EQUIVALENT, "undecided": NOTHING}

Cells = dict[tuple[str, float, str], Any]


@pytest.fixture(scope="module")
def cells() -> Cells:
    simulated = simulate(effects=(0.0, 0.02, 0.1), studies=400, most=40)
    return {(cell.noise, cell.effect, cell.method): cell for cell in simulated}


@pytest.mark.parametrize("noise", NAMED)
def test_ajuste_finds_no_more_than_5_percent_of_what_is_not_there(cells: Cells, noise: str) -> None:
    assert cells[noise, 0.0, "ajuste"].wrong <= 0.05 * 400


@pytest.mark.parametrize("noise", NAMED)
@pytest.mark.parametrize("effect", [0.0, 0.02, 0.1])
def test_the_interval_has_the_truth_in_it_at_every_look(cells: Cells, noise: str, effect: float) -> None:
    cell = cells[noise, effect, "ajuste"]
    assert cell.held >= cell.always >= 0.95 * 400


def test_a_small_effect_takes_hardly_more_trials_than_a_fixed_test_and_a_large_one_less(
    cells: Cells,
) -> None:
    assert cells["gaussian", 0.02, "ajuste"].trials <= 1.3 * 2 * PAIRS
    assert cells["gaussian", 0.02, "ajuste"].seen >= 0.99 * 400
    assert cells["gaussian", 0.1, "ajuste"].trials < 2 * PAIRS
    assert all(comparison.reached for comparison in judged(tuple(cells.values())))


def test_the_simulation_sees_what_is_wrong_with_the_others(cells: Cells) -> None:
    assert cells["linear", 0.0, "welch"].wrong > 0.9 * 400
    assert cells["ar1", 0.0, "mann-whitney"].wrong > 0.2 * 400
    assert cells["gaussian", 0.0, "paired-t-peeking"].wrong > 0.2 * 400
    assert cells["gaussian", 0.0, "welch"].wrong < 0.08 * 400
    assert cells["gaussian", 0.02, "three-sigma-values"].seen < 0.2 * 400


def test_a_goal_that_is_missed_is_told(cells: Cells) -> None:
    worse = [c.model_copy(update={"wrong": 400}) if c.method == "ajuste" else c for c in cells.values()]
    assert not judged(worse)[0].reached


def as_trials(baseline: np.ndarray, other: np.ndarray, first: np.ndarray) -> list[Trial]:
    return [
        Trial(
            slot=Slot(block=block, position=int(first[block] != (name == "a")), configuration=name, seed=block),
            status="ok",
            metrics={"elapsed": float(math.exp(logs[block]))},
        )
        for name, logs in (("a", baseline), ("b", other))
        for block in range(len(logs))
    ]


@pytest.mark.parametrize(("noise", "effect"), [("gaussian", 0.05), ("bimodal", 0.1), ("resonant", 0.0)])
def test_the_simulated_words_are_those_of_the_product_study_by_study(noise: str, effect: float) -> None:
    drawn = Studies(NAMED[noise], effect, studies=12, most=14, seed=(4,))
    simulated, runs = ajuste(drawn), drawn.in_blocks()
    limits = StoppingLimits(min_blocks=MIN_BLOCKS, max_blocks=drawn.most, max_minutes=1)
    for study in range(drawn.studies):
        trials = as_trials(runs.baseline[study], runs.other[study], runs.baseline_first[study])
        for blocks in range(1, drawn.most + 1):
            seen = [trial for trial in trials if trial.slot.block < blocks]
            verdicts = judge(CONFIGURATIONS, seen, [ELAPSED], smallest_effect=SMALLEST_EFFECT)
            if stop(verdicts, blocks, 0.0, limits):
                break
        assert (WORDS[verdicts[0].verdict], 2 * blocks) == (simulated.word[study], simulated.trials[study])


def test_the_others_are_what_scipy_computes() -> None:
    random = np.random.default_rng(1)
    baseline, other = random.normal(1, 0.1, (3, 15)), random.normal(1.03, 0.2, (3, 15))
    n = np.arange(1.0, 16.0)
    for size in (2, 10, 15):
        left, right = baseline[:, :size], other[:, :size]
        welch = stats.ttest_ind(right, left, axis=1, equal_var=False).pvalue
        assert welch_p(baseline, other, n)[:, size - 1] == pytest.approx(welch, rel=1e-9)
        ranks = stats.mannwhitneyu(right, left, axis=1, method="asymptotic").pvalue
        assert mann_whitney_p(baseline, other, n)[:, size - 1] == pytest.approx(ranks, rel=1e-9)


def test_the_paired_test_is_scipys_and_has_the_pairs_that_it_needs() -> None:
    drawn = Studies(NAMED["gaussian"], 0.02, studies=50, most=PAIRS, seed=(2,))
    runs = drawn.in_blocks()
    p = stats.ttest_rel(runs.other, runs.baseline, axis=1).pvalue
    assert ((paired_t(False)(drawn).word != NOTHING) == (p < 0.05)).all()

    def power(pairs: int) -> float:
        critical, shift = stats.t.ppf(0.975, pairs - 1), math.log(1.02) / (0.01 * math.sqrt(2)) * math.sqrt(pairs)
        return float(stats.nct.sf(critical, pairs - 1, shift) + stats.nct.cdf(-critical, pairs - 1, shift))

    assert power(PAIRS - 1) < 0.9 <= power(PAIRS)


@pytest.mark.parametrize("noise", NAMED)
def test_both_ways_of_running_meet_the_same_disturbances(noise: str) -> None:
    drawn = Studies(NAMED[noise], 0.05, studies=20, most=12, seed=(3,))
    blocks, batches = drawn.in_blocks(), drawn.in_batches(10)
    total = (blocks.baseline + blocks.other).sum(axis=1)
    assert total == pytest.approx((batches.baseline + batches.other).sum(axis=1))
    drift = drawn.noise.draw(np.random.default_rng((3, 0)), 20, 24)
    assert batches.baseline[:, :10] == pytest.approx(drift[:, :10])
    assert batches.other[:, :10] == pytest.approx(drift[:, 10:20] + math.log(1.05))


def test_counts_without_a_difference_are_hardly_ever_called_different_also_in_bursts() -> None:
    by_case = {(c.kind, c.rate, c.factor): c for c in counts(400)}
    assert all(c.found <= 0.05 * 400 for c in by_case.values() if c.factor == 1)
    assert all(c.missed <= 0.05 * 400 for c in by_case.values() if c.kind == "poisson")
    assert by_case["poisson", 5.0, 2.0].found == 400
    assert by_case["poisson", 5.0, 1.0].binomial <= 0.05 * 400 < by_case["overdispersed", 5.0, 1.0].binomial


def test_the_binomial_evidence_is_the_integral_over_all_shares() -> None:
    share = (np.arange(200_000) + 0.5) / 200_000
    weights = stats.beta(0.5, 0.5).pdf(share) / 200_000
    by_hand = (weights * share**7 * (1 - share) ** 2).sum() * 2**9
    evidence = log_binomial(np.array([[2.0]]), np.array([[7.0]]))
    assert math.exp(evidence[0, 0]) == pytest.approx(by_hand, rel=1e-6)


def test_the_tables_and_the_picture_show_every_method_and_noise(cells: Cells, tmp_path: Path) -> None:
    text = page.tables(tuple(cells.values()), plans(20), counts(20))
    drawn = picture(tuple(cells.values()))
    for method in METHODS:
        assert f"| {method.title} |" in text
        assert method.title in drawn
    assert drawn.count("<circle") == 2 * len(METHODS) * len(NOISES)
    document = tmp_path / "page.md"
    begins = page.BEGINS.format(command="verdicts")
    document.write_text(f"before\n{begins}old{page.ENDS}after\n")
    page.write(text, document)
    page.write(text, document)
    assert document.read_text() == f"before\n{begins}\n{text}\n{page.ENDS}after\n"
    document.write_text("no marks")
    with pytest.raises(ValueError, match="no marks"):
        page.write(text, document)


def test_a_range_of_a_rate_is_wilsons() -> None:
    p, n, z = 0.03, 2000, stats.norm.ppf(0.975)
    middle, half = (
        (p + z * z / 2 / n) / (1 + z * z / n),
        z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + (z / 2 / n) ** 2),
    )
    assert wilson(60, 2000) == pytest.approx((middle - half, middle + half), rel=1e-9)


@pytest.fixture(scope="module")
def cased() -> dict[tuple[str, str], Any]:
    return {(cell.case, cell.method): cell for cell in simulate_cases(300, 40)}


@pytest.mark.parametrize("kind", ["order", "seeds", "forks"])
def test_what_breaks_normal_intervals_does_not_break_those_by_signs(
    cased: dict[tuple[str, str], Any], kind: str
) -> None:
    by_signs = [cell for cell in cased.values() if cell.kind == kind and cell.method == "signs"]
    assert by_signs
    assert all(cell.wrong <= 0.07 * 300 for cell in by_signs)  # 5 %, and what 300 studies vary
    assert max(cell.wrong for cell in cased.values() if cell.kind == kind and cell.method == "mixture") > 0.05 * 300


def test_signs_take_as_many_blocks_as_normal_intervals_in_normal_noise() -> None:
    taken = efficiency(300)
    assert sum(cell.blocks for cell in taken) <= 1.1 * sum(cell.mixture for cell in taken)
    assert fixed_pairs(math.log(1.02) / (0.01 * math.sqrt(2))) == PAIRS
    assert "| nice 0,1 on matrix |" in case_tables(simulate_cases(20, 20), taken)
