"""Defects are found where they are, and hardly any where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ajuste.analysis.diagnostics.diagnose import diagnose
from ajuste.model.metric import Metric

SD = 0.01


def clean(random: Any, configuration: Any, block: Any, position: Any) -> Any:
    return random.normal(0, SD, len(block))


def drifting(random: Any, configuration: Any, block: Any, position: Any) -> Any:
    return clean(random, configuration, block, position) + 0.004 * block


def cold(random: Any, configuration: Any, block: Any, position: Any) -> Any:
    return clean(random, configuration, block, position) + 0.05 * (block < 2)


def placed(random: Any, configuration: Any, block: Any, position: Any) -> Any:
    return clean(random, configuration, block, position) + 0.02 * position


def carried(random: Any, configuration: Any, block: Any, position: Any) -> Any:
    after_last = np.r_[False, configuration[:-1] == 2]
    return clean(random, configuration, block, position) + 0.15 * after_last


def following(random: Any, configuration: Any, block: Any, position: Any) -> Any:
    noise = clean(random, configuration, block, position)
    for place in range(1, len(noise)):
        noise[place] += 0.7 * noise[place - 1]
    return noise


def in_two_groups(random: Any, configuration: Any, block: Any, position: Any) -> Any:
    return clean(random, configuration, block, position) + 0.1 * (random.random(len(block)) < 0.4)


def disturbed(random: Any, configuration: Any, block: Any, position: Any) -> Any:
    return clean(random, configuration, block, position) + 0.5 * ((block % 17 == 4) & (position == 1))


def uneven(random: Any, configuration: Any, block: Any, position: Any) -> Any:
    return clean(random, configuration, block, position) * (1 + 4 * (configuration == 1))


DEFECTS = {
    "drift": drifting,
    "warm-up": cold,
    "order": placed,
    "carry-over": carried,
    "autocorrelation": following,
    "bimodality": in_two_groups,
    "outliers": disturbed,
    "unequal variance": uneven,
}


@pytest.mark.parametrize("kind", DEFECTS)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_defect_is_found_and_told(study: Any, metric: Metric, kind: Any, seed: int) -> None:
    findings = {
        finding.kind: finding for finding in diagnose(study(DEFECTS[kind], seed, blocks=60), [metric], "wall").found
    }
    assert findings[kind].matters, findings[kind]
    assert findings[kind].says.endswith(".")
    assert findings[kind].why
    assert findings[kind].verdict_affected == (kind == "carry-over")


def test_alarms_are_rare_on_clean_data(study: Any, metric: Metric) -> None:
    alarms = [
        any(finding.present for finding in diagnose(study(clean, seed, configurations, blocks), [metric], "wall").found)
        for seed in range(50)
        for configurations, blocks in ((2, 24), (5, 12))
    ]
    # With a true rate of 5 % more than 11 of 100 come about once in 200 times.
    assert sum(alarms) <= 11


def test_under_the_virtual_clock_nothing_is_said_of_time(study: Any, metric: Metric) -> None:
    diagnosis = diagnose(study(drifting, 1), [metric], "virtual")
    assert {finding.kind for finding in diagnosis.found} == {"bimodality", "outliers", "unequal variance"}
    assert diagnosis.naive == ()
    assert diagnosis.courses == ()


def test_one_far_value_is_told_as_one(study: Any, metric: Metric) -> None:
    def once(random: Any, configuration: Any, block: Any, position: Any) -> Any:
        return clean(random, configuration, block, position) + 0.5 * ((block == 4) & (position == 1))

    outliers = {finding.kind: finding for finding in diagnose(study(once, 1, blocks=60), [metric], "wall").found}[
        "outliers"
    ]
    assert outliers.says.startswith("1 outlier in 180 values, under ")
    assert "where it makes the standard deviation" in outliers.says


def test_what_batches_would_have_said_is_counted(study: Any, metric: Metric) -> None:
    (quiet,) = diagnose(study(clean, 1, 4, 200), [metric], "wall").naive
    (noisy,) = diagnose(study(following, 1, 4, 200), [metric], "wall").naive
    assert 0.02 < quiet.error < 0.08
    assert noisy.error > 0.2
    assert f"in {100 * noisy.error:.1f}".rstrip("0").rstrip(".") in noisy.says
    assert noisy.narrowing is not None
    assert noisy.narrowing > 1


def test_a_drift_is_told_as_large_as_it_is(study: Any, metric: Metric) -> None:
    report = diagnose(study(drifting, 3, blocks=50), [metric], "wall")
    drift = next(finding for finding in report.found if finding.kind == "drift")
    assert drift.value == pytest.approx(np.expm1(0.004 * 49), rel=0.05)
    (course,) = report.courses
    assert len(course.blocks) == 50
    assert course.values[-1] / course.values[0] == pytest.approx(np.exp(0.004 * 49), rel=0.05)


@pytest.mark.parametrize("blocks", [0, 1, 2, 5])
def test_too_little_to_tell_is_no_finding(study: Any, metric: Metric, blocks: int) -> None:
    assert not any(finding.present for finding in diagnose(study(clean, 1, 2, blocks), [metric], "wall").found)


def test_figures_that_never_change_are_left_alone(study: Any, metric: Metric) -> None:
    def constant(random: Any, configuration: Any, block: Any, position: Any) -> Any:
        return np.zeros(len(block))

    assert diagnose(study(constant, 1), [metric], "wall").found == ()
