"""Against scipy, which is another implementation of the same."""

from __future__ import annotations

import numpy as np
import pytest

from ajuste.model.measurements import Values
from ajuste.model.metric import Metric
from ajuste.model.verdict import Verdict
from ajuste_analyse.comparison import compare_samples, judge_comparison

TIME = Metric(name="time", title="Time", unit="s", direction="lower", resolution=1e-9)


def times_with_far_ones(random: np.random.Generator, count: int) -> np.ndarray:
    """Noise of 1 %, and one in 20 twice to ten times as long."""
    far = random.random(count) < 0.05
    return np.asarray(np.exp(random.normal(0, 0.01, count)) * np.where(far, random.uniform(2, 10, count), 1.0))


def judged_values(baseline: np.ndarray, other: np.ndarray) -> Verdict:
    comparison = compare_samples(Values(tuple(baseline)), Values(tuple(other)), TIME, 0.05)
    return judge_comparison(comparison, "other", TIME, confidence=0.95, alpha=0.05, smallest_effect=0.02, deciding=True)


def test_typical_values_differ_by_their_ranks_where_far_ones_leave_the_mean_open() -> None:
    seen = wrong = 0
    for study in range(100):
        random = np.random.default_rng((4, study))
        base, other, same = (times_with_far_ones(random, 30) for _ in range(3))
        verdict = judged_values(base, 0.95 * other)
        seen += verdict.verdict == "improves" or (verdict.typical is not None and 0.93 < verdict.typical < 0.97)
        wrong += judged_values(base, same).typical is not None
    assert seen >= 99
    assert wrong <= 5


def test_few_values_say_what_they_cannot_show() -> None:
    base = np.random.default_rng(6).normal(1, 0.01, 10)
    verdict = judged_values(base, 0.9 * base)
    assert verdict.verdict == "improves"
    assert verdict.unseen == pytest.approx(1 - 0.05**0.1)
    assert "10 values" in verdict.cannot_see
