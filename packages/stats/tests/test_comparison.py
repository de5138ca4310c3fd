"""Verdicts from arrays: what they promise, by simulation with a known truth, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from ajuste_stats import Monitor, Verdict, compare

Floats = NDArray[np.float64]
FEW, MANY = 50, pytest.param(600, marks=pytest.mark.slow)
"""Simulated studies on every change, and of a slow proof."""


def within(studies: int) -> float:
    """The share of wrong verdicts that chance exceeds once in a thousand times if 5 % are wrong."""
    return float(stats.binom.ppf(0.999, studies, 0.05)) / studies


def noise(kind: str, random: np.random.Generator, blocks: int) -> tuple[Floats, Floats]:
    """Log values of two equal treatments, one after the other in each block."""
    values = random.normal(0, 0.05, (2, blocks))
    if kind == "heavy":
        values = 0.03 * random.standard_t(2.5, (2, blocks))
    if kind == "drift":
        values += np.linspace(0, 1, blocks)
    if kind == "bursts":
        values += 0.5 * (random.random(blocks) < 0.1)
    return values[0], values[1]


def looks(
    baseline: Floats, treatment: Floats, first: NDArray[np.bool_] | None, begin: int = 6, **options: Any
) -> list[Verdict]:
    """The verdicts after every third block, from ``begin`` on."""
    return [
        compare(baseline[:n], treatment[:n], baseline_first=None if first is None else first[:n], **options)
        for n in range(begin, len(baseline) + 1, 3)
    ]


@pytest.mark.parametrize("studies", [FEW, MANY])
@pytest.mark.parametrize(
    "kind", ["heavy", "drift", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("normal", "bursts"))]
)
def test_no_effect_is_called_one_in_at_most_5_percent_of_studies_at_any_look(kind: str, studies: int) -> None:
    """The noise of normal values is that of a drift, too, and normal values are those of the next test."""
    wrong = 0
    for study in range(studies):
        random = np.random.default_rng([1, study])
        baseline, treatment = map(np.exp, noise(kind, random, 30))
        first = random.random(30) < 0.5
        words = {verdict.word for verdict in looks(baseline, treatment, first, direction="lower")}
        wrong += bool(words & {"improves", "worsens"})
    assert wrong / studies <= within(studies)


@pytest.mark.parametrize("studies", [FEW, MANY])
def test_independent_draws_keep_the_same_promise(studies: int) -> None:
    wrong = 0
    for study in range(studies):
        baseline, treatment = map(np.exp, noise("normal", np.random.default_rng([2, study]), 30))
        words = {verdict.word for verdict in looks(baseline, treatment, None, direction="higher")}
        wrong += bool(words & {"improves", "worsens"})
    assert wrong / studies <= within(studies)


@pytest.mark.parametrize("studies", [FEW, MANY])
def test_an_effect_at_the_edge_is_called_equivalent_in_at_most_5_percent_of_studies(studies: int) -> None:
    wrong = 0
    for study in range(studies):
        random = np.random.default_rng([3, study])
        baseline, treatment = noise("normal", random, 60)
        verdicts = looks(np.exp(baseline), 1.05 * np.exp(treatment), random.random(60) < 0.5, begin=30)
        wrong += any(verdict.word == "equivalent" for verdict in verdicts)
    assert wrong / studies <= within(studies)


def test_effects_are_found_with_their_side_and_none_is_found_equivalent() -> None:
    random = np.random.default_rng(4)
    baseline, other = np.exp(random.normal(0, 0.02, (2, 80)))
    first = random.random(80) < 0.5
    verdicts = [compare(baseline, times * other, direction="lower", baseline_first=first) for times in (0.8, 1.3, 1.0)]
    assert [verdict.word for verdict in verdicts] == ["improves", "worsens", "equivalent"]
    assert verdicts[0].low is not None
    assert verdicts[0].high is not None
    assert verdicts[0].low < 0.8 < verdicts[0].high
    assert all(verdict.decided and verdict.doubt is None for verdict in verdicts)
    assert compare(baseline, 0.8 * other, direction="higher", baseline_first=first).word == "worsens"
    assert compare(baseline, 0.8 * other, baseline_first=first).word == "differs"


def test_a_monitor_says_after_every_block_what_compare_says_of_all_of_them() -> None:
    random = np.random.default_rng(5)
    baseline, treatment = np.exp(random.normal(0, 0.05, (2, 25)))
    first = random.random(25) < 0.5
    monitor = Monitor(direction="lower", smallest_effect=0.02)
    for block, (before, other, earlier) in enumerate(zip(baseline, 0.7 * treatment, first, strict=True), 1):
        monitor.add(before, other, baseline_first=bool(earlier))
        expected = compare(
            baseline[:block],
            0.7 * treatment[:block],
            baseline_first=first[:block],
            direction="lower",
            smallest_effect=0.02,
        )
        assert monitor.verdict == expected
        assert monitor.decided == expected.decided
    assert len(monitor) == 25
    assert monitor.verdict.word == "improves"


def test_a_monitor_without_blocks_is_undecided() -> None:
    monitor = Monitor()
    assert not monitor.decided
    assert (monitor.verdict.blocks, monitor.verdict.doubt) == (0, "few blocks")


def test_doubts_say_what_is_lacking() -> None:
    random = np.random.default_rng(6)
    baseline, treatment = np.exp(random.normal(0, 0.2, (2, 12)))
    assert compare(baseline[:3], treatment[:3]).doubt == "few blocks"
    assert compare(baseline, treatment, baseline_first=np.ones(12)).doubt == "one order"
    assert compare(baseline, treatment).doubt == "wide"
    assert compare([0.1] * 12, [0.1] * 12, smallest_effect=0.02).doubt == "coarse"
    assert compare(np.full(12, 0.1003), np.full(12, 0.1003)).doubt == "few trials"
    wide = compare(baseline, treatment, smallest_effect=0.1)
    assert wide.more_blocks is not None
    assert wide.more_blocks > 0


def test_samples_are_compared_by_welchs_test() -> None:
    random = np.random.default_rng(7)
    first, other = random.normal(10, 1, 20), random.normal(11, 2, 30)
    verdict = compare(first, other, paired=False, scale="difference", direction="lower", unit="s")
    assert verdict.p_value == pytest.approx(stats.ttest_ind(other, first, equal_var=False).pvalue)
    interval = stats.ttest_ind(other, first, equal_var=False).confidence_interval(0.95)
    assert (verdict.low, verdict.high) == pytest.approx((interval.low, interval.high))
    assert verdict.blocks == 20


def test_quantiles_are_compared_where_they_differ_and_means_hardly_do() -> None:
    random = np.random.default_rng(8)
    baseline, treatment = random.exponential(1.0, 400), random.exponential(1.0, 400)
    treatment[treatment > 1.5] *= 2
    verdict = compare(baseline, treatment, quantile=0.9, direction="lower")
    assert verdict.word == "worsens"
    assert verdict.estimate == pytest.approx(np.quantile(treatment, 0.9) / np.quantile(baseline, 0.9))


def test_several_comparisons_share_the_error_rate() -> None:
    random = np.random.default_rng(9)
    baseline, treatment = np.exp(random.normal(0, 0.05, (2, 20)))
    alone, of_five = (compare(baseline, 0.9 * treatment, comparisons=count) for count in (1, 5))
    assert alone.low is not None
    assert of_five.low is not None
    assert of_five.low < alone.low


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(baseline=[1.0, 2.0], treatment=[1.0]), "2 values of the baseline and 1"),
        (dict(baseline=[], treatment=[]), "at least one number"),
        (dict(baseline=[1.0, np.nan], treatment=[1.0, 2.0]), r"baseline\[1\] is nan"),
        (dict(baseline=[[1.0]], treatment=[[1.0]]), r"shape \(1, 1\)"),
        (dict(confidence=1.0), "confidence is 1.0"),
        (dict(smallest_effect=0.0), "smallest_effect is 0.0"),
        (dict(quantile=2.0), "quantile is 2.0"),
        (dict(baseline_first=[True]), "one for each of 2 pairs"),
        (dict(paired=False, quantile=0.5), "are for pairs"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_value(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        compare(**{"baseline": [1.0, 2.0], "treatment": [1.0, 2.0], **options})


def test_a_monitor_refuses_an_order_that_is_known_of_some_blocks_only() -> None:
    monitor = Monitor()
    monitor.add(1.0, 2.0, baseline_first=True)
    with pytest.raises(ValueError, match="for some blocks only"):
        monitor.add(1.0, 2.0)
    with pytest.raises(ValueError, match="finite"):
        monitor.add(1.0, np.inf, baseline_first=True)
    assert len(monitor) == 1
