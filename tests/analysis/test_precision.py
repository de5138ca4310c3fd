from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ajuste.analysis.diagnostics.diagnose import diagnose
from ajuste.analysis.diagnostics.residuals import outlier_notes
from ajuste.analysis.pairs import clean_trials
from ajuste.analysis.summary import precisions
from ajuste.model.metric import Metric


def values(count: int, spread: float, seed: int = 1) -> list[float]:
    return [float(v) for v in np.random.default_rng(seed).normal(2.0, spread, count)]


def test_a_mean_is_known_when_its_interval_is_narrow_enough(trials: Any, elapsed: Metric) -> None:
    drawn = values(40, 0.1)
    data = trials({"only": drawn})
    (precision,) = precisions(data, [elapsed], confidence=0.95, smallest_effect=0.05)
    assert precision.interval is not None
    assert precision.interval.mean == pytest.approx(np.mean(drawn))
    assert precision.wanted == pytest.approx(0.05 * np.mean(drawn))
    assert precision.known
    (strict,) = precisions(data, [elapsed], confidence=0.95, smallest_effect=0.005)
    assert not strict.known
    assert strict.more_runs is not None
    assert strict.more_runs > 100
    (nothing,) = precisions([], [elapsed], confidence=0.95, smallest_effect=0.05)
    assert (nothing.known, nothing.interval, nothing.more_runs) == (False, None, None)


def test_the_interval_holds_the_true_mean_at_all_numbers_of_runs_together(trials: Any, elapsed: Metric) -> None:
    missed = 0
    for seed in range(100):
        drawn = values(30, 0.3, seed)
        looks = (
            precisions(trials({"only": drawn[:n]}), [elapsed], confidence=0.9, smallest_effect=0.01)[0].interval
            for n in range(2, 31)
        )
        missed += any(look is not None and not look.low <= 2.0 <= look.high for look in looks)
    assert missed <= 10 + 9  # 10 of 100 are allowed; 9 is three standard deviations of such a count


def test_the_mean_of_runs_that_resemble_each_other_is_not_known_too_early(trials: Any, elapsed: Metric) -> None:
    """A first-order autoregression of 0.9, looked at until the mean is said to be known to 1 %."""
    random, missed = np.random.default_rng(1), 0
    for _ in range(60):
        noise = random.normal(0, 0.03, 400)
        for run in range(1, 400):
            noise[run] = 0.9 * noise[run - 1] + np.sqrt(1 - 0.81) * noise[run]
        for n in (5, 6, 7, 8, 10, 15, 30, 60, 100, 200, 400):
            (mean,) = precisions(trials({"only": 1 + noise[:n]}), [elapsed], confidence=0.95, smallest_effect=0.01)
            if mean.known and mean.interval is not None:
                missed += not mean.interval.low <= 1 <= mean.interval.high
                break
    assert missed <= 6  # 5 % are 3, half of 60 without the correlation


def test_few_runs_are_enough_for_a_mean_only_if_they_hardly_vary(trials: Any, elapsed: Metric) -> None:
    """A few runs also predict how many more would be enough."""

    def known(spread: float, runs: int) -> Any:
        (mean,) = precisions(trials({"only": values(runs, spread)}), [elapsed], confidence=0.95, smallest_effect=0.02)
        return mean

    assert known(0.002, 12).known
    few = known(0.02, 12)
    assert few.interval.half_width < few.wanted
    assert not few.known
    assert 0 < few.more_runs < 40
    assert known(0.02, 40).known


def test_outliers_are_named_with_their_block(trials: Any, elapsed: Metric) -> None:
    drawn = values(20, 0.01)
    assert outlier_notes(clean_trials(trials({"only": drawn})), [elapsed]) == []
    drawn[3] = 9.0
    (note,) = outlier_notes(clean_trials(trials({"only": drawn})), [elapsed])
    assert note.startswith("elapsed under only: 1 outlier in 20 values (in block 3)")


@pytest.mark.parametrize("alike", [[1.0, 1.0, 9.0], [1.0] * 20, [1.0] * 20 + [5.0]])
def test_few_or_equal_values_have_no_outliers(alike: list[float], trials: Any, elapsed: Metric) -> None:
    assert outlier_notes(clean_trials(trials({"only": alike})), [elapsed]) == []


def test_notes_and_diagnostics_count_the_same_outliers(trials: Any, elapsed: Metric) -> None:
    drawn = {name: values(12, 0.0001 if name == "quiet" else 0.05) for name in ("quiet", "noisy", "other", "third")}
    drawn["quiet"][3] *= 1.02  # Far from the others of its configuration, but not by what is usual.
    drawn["noisy"][5] *= 9.0
    measured = trials(drawn)
    notes = outlier_notes(clean_trials(measured), [elapsed])
    (outliers,) = (finding for finding in diagnose(measured, [elapsed], "wall").found if finding.kind == "outliers")
    assert (len(notes), outliers.value) == (1, 1.0)
