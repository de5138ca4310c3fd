"""Shares by weight, against figures worked out by hand and the kernel's own documentation of its table."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from ajuste.analysis.prediction import WEIGHTS, Forecast, group_weight, nice_weight, nice_weights
from ajuste.catalogue.loader import catalogue
from ajuste.model.kernel import KernelVersion
from ajuste.study.resolve import resolve
from ajuste.study.schema import Study


def forecasts(
    attributes: dict[str, Any], *loads: dict[str, Any], cpus: int = 1, metric: str = "cpu-share"
) -> list[Forecast]:
    background = [{"kind": "spin", "attributes": load} for load in loads]
    study = Study.model_validate(
        {
            "name": "shares",
            "factor": [],
            "workload": {"kind": "hog", "attributes": attributes, "background": background},
            "target": {"kernel": "debian:5.10", "cpus": cpus},
            "analysis": {"metrics": [metric], "describe": [], "prediction": "nice-weights"},
        }
    )
    kernels = {"debian:5.10": KernelVersion(major=5, minor=10)}
    return list(nice_weights(resolve(study, catalogue(), kernels, lambda name: None)))


def share(attributes: dict[str, Any], *loads: dict[str, Any]) -> float:
    (forecast,) = forecasts(attributes, *loads)
    assert forecast.low == forecast.high
    return forecast.low


def test_each_step_of_nice_is_about_a_quarter_more() -> None:
    assert len(WEIGHTS) == 40
    assert (nice_weight(-20), nice_weight(0), nice_weight(19)) == (88761, 1024, 15)
    # "the multiplier is 1.25" (kernel/sched/core.c); rounding to whole weights tells most where they are small.
    assert all(1.18 < high / low < 1.28 for high, low in itertools.pairwise(WEIGHTS))


def test_the_shares_of_three_tasks_together() -> None:
    nice = [{"nice": 0}, {"nice": 4}, {"nice": -15}]
    total = 1024 + 423 + 29154
    assert share(nice[0], nice[1], nice[2]) == pytest.approx(100 * 1024 / total)
    assert share(nice[1], nice[0], nice[2]) == pytest.approx(100 * 423 / total)
    assert share(nice[2], nice[0], nice[1]) == pytest.approx(100 * 29154 / total)


def test_policies_and_groups_have_weights_of_their_own() -> None:
    assert share({"policy": "batch", "nice": 4}, {}) == pytest.approx(100 * 423 / 1447)
    assert share({"policy": "idle", "nice": -20}, {}) == pytest.approx(100 * 3 / 1027)
    assert share({"cgroup_weight": 200, "nice": 19}, {}) == pytest.approx(100 * 2 / 3)
    assert group_weight(1) == 10  # 10.24, rounded
    assert group_weight(25) == 256


def test_a_real_time_task_leaves_five_per_cent() -> None:
    (first,) = forecasts({"policy": "fifo"}, {})
    assert (first.low, first.high) == (95, 100)
    (behind,) = forecasts({}, {"policy": "rr"}, {})
    assert (behind.low, behind.high) == (0, 2.5)
    (alone,) = forecasts({"policy": "fifo"})
    assert (alone.low, alone.high) == (100, 100)


def test_no_forecast_where_the_weights_do_not_say_it() -> None:
    assert forecasts({"policy": "fifo"}, {"policy": "fifo"}) == []
    assert forecasts({}, {}, cpus=2) == []
    assert forecasts({"affinity": "0"}, {"affinity": "1"}, cpus=2) == []
    assert forecasts({}, {}, metric="elapsed") == []
    assert len(forecasts({"affinity": "1"}, {"affinity": "1"}, cpus=2)) == 1
