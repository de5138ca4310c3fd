"""Rankings and diagnoses from arrays."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from ajuste_stats import diagnose, rank

Floats = NDArray[np.float64]


@pytest.mark.parametrize("studies", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_the_best_is_left_out_in_at_most_5_percent_of_studies(studies: int) -> None:
    lost = 0
    for study in range(studies):
        random = np.random.default_rng([1, study])
        values = {
            name: np.exp(0.05 * random.normal(size=30) + at) for name, at in zip("abcd", (0.02, 0, 0, 0.1), strict=True)
        }
        rankings = [rank({k: v[:n] for k, v in values.items()}, direction="lower") for n in (10, 20, 30)]
        lost += any(ranking is not None and not {"b", "c"} & set(ranking.contenders) for ranking in rankings)
    assert lost / studies <= stats.binom.ppf(0.999, studies, 0.05) / studies


def test_the_winner_and_all_that_may_be_as_good_come_first() -> None:
    random = np.random.default_rng(2)
    values = {
        name: np.exp(0.01 * random.normal(size=40)) * level
        for name, level in (("a", 1.0), ("b", 0.8), ("c", 0.801), ("d", 2.0))
    }
    ranking = rank(values, direction="lower", positions={name: random.permuted(np.arange(40)) for name in values})
    assert ranking is not None
    assert set(ranking.contenders) == {"b", "c"}
    assert [other.name for other in ranking.others][-1] == "d"
    assert {other.name: other.word for other in ranking.others}["d"] == "worsens"
    higher = rank(values, direction="higher")
    assert higher is not None
    assert higher.contenders == ("d",)


def test_missing_values_leave_out_their_blocks_only() -> None:
    random = np.random.default_rng(3)
    values = {
        name: np.exp(0.01 * random.normal(size=20)) * level for name, level in (("a", 1.0), ("b", 0.8), ("c", 0.5))
    }
    values["b"][:6] = np.nan
    ranking = rank(values, direction="lower")
    assert ranking is not None
    assert ranking.winner == "c"
    assert {other.name: other.effect.interval.n for other in ranking.others} == {"a": 20, "b": 14}


def test_what_cannot_be_ranked_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 3"):
        rank({"a": [1.0], "b": [1.0]}, direction="lower")
    with pytest.raises(ValueError, match="unequal numbers"):
        rank({"a": [1.0], "b": [1.0], "c": [1.0, 2.0]}, direction="lower")
    with pytest.raises(ValueError, match="direction is none"):
        rank({"a": [1.0], "b": [1.0], "c": [1.0]}, direction="none")
    with pytest.raises(ValueError, match="baseline is 'x'"):
        rank({"a": [1.0], "b": [1.0], "c": [1.0]}, direction="lower", baseline="x")


def blocks(random: np.random.Generator, count: int = 60) -> tuple[Floats, list[str], NDArray[np.int64]]:
    """Values of two treatments in random order within each block, and what makes them differ."""
    treatments = [str(name) for _ in range(count) for name in random.permutation(["a", "b"])]
    return np.exp(0.02 * random.normal(size=2 * count)), treatments, np.repeat(np.arange(count), 2)


def test_alarms_on_clean_data_are_rare() -> None:
    alarms = [bool(diagnose(*blocks(np.random.default_rng([4, study]))).present) for study in range(100)]
    assert np.mean(alarms) <= stats.binom.ppf(0.999, 100, 0.05) / 100


def test_a_drift_is_found_and_a_naive_comparison_would_have_erred() -> None:
    values, treatments, numbers = blocks(np.random.default_rng(5))
    diagnosis = diagnose(values * np.exp(np.linspace(0, 1, len(values))), treatments, numbers)
    drift = next(diagnosed for diagnosed in diagnosis.findings if diagnosed.finding.kind == "drift")
    assert drift.present
    assert drift.matters
    assert drift.finding.value == pytest.approx(np.expm1(1), rel=0.1)
    assert diagnosis.naive is not None
    assert diagnosis.naive.error > 0.5
    shape_only = diagnose(values, treatments, numbers, in_time=False)
    assert {diagnosed.finding.kind for diagnosed in shape_only.findings} <= {
        "outliers",
        "unequal variance",
        "bimodality",
    }


def test_two_groups_are_found_by_the_optional_package() -> None:
    pytest.importorskip("diptest")
    random = np.random.default_rng(6)
    values, treatments, numbers = blocks(random)
    diagnosis = diagnose(values * np.where(random.random(len(values)) < 0.5, 1.0, 1.3), treatments, numbers)
    assert "bimodality" in {finding.kind for finding in diagnosis.present}


def test_values_without_noise_have_nothing_to_diagnose() -> None:
    diagnosis = diagnose([1.0, 2.0, 1.0, 2.0], ["a", "b", "a", "b"], [0, 0, 1, 1])
    assert diagnosis.findings == ()
    assert diagnosis.naive is None


def test_sequences_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match="2 values, 1 treatments"):
        diagnose([1.0, 2.0], ["a"], [0, 1])
    with pytest.raises(ValueError, match="never fall"):
        diagnose([1.0, 2.0], ["a", "b"], [1, 0])


def test_what_is_drawn_follows_from_the_seed() -> None:
    values, treatments, numbers = blocks(np.random.default_rng(7))
    values[::40] *= 3

    def error(seed: int) -> float | None:
        every = diagnose(values, treatments, numbers, seed=seed).findings
        return next(each.finding.naive_error for each in every if each.finding.kind == "outliers")

    assert error(1) == error(1) != error(2)
