"""``ajuste live`` on the command line: metrics, guards and slices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste.study.command_line.request import Request
from ajuste_live.request import LiveRequest, live_design, live_study

URL = "http://127.0.0.1:1/metrics"
REQUEST = LiveRequest(
    slice="60s",
    metric=(f"latency,s,lower=prometheus:{URL}#took",),
    watch=("errors,1/s,lower=proc:vmstat.pgfault",),
    control="requests=proc:stat.ctxt",
    guard=("latency < 50ms", "errors not worse than 1%"),
    washout="5s",
    for_="6h",
)


def test_a_request_says_what_is_read_and_when() -> None:
    design = live_design(REQUEST)
    assert (design.slice_s, design.washout_s, design.for_s) == (60, 5, 6 * 3600)
    assert [(reading.metric.name, reading.metric.direction, reading.kind) for reading in design.all_metrics] == [
        ("latency", "lower", "prometheus"),
        ("errors", "lower", "proc"),
        ("requests", "none", "proc"),
    ]
    assert design.metrics[0].where == f"{URL}#took"
    assert [(guard.metric, guard.sign, guard.limit) for guard in design.guards] == [
        ("latency", "<", 0.05),
        ("errors", None, 0.01),
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"metric": ()}, "--metric is required"),
        ({"metric": ("latency",)}, "SOURCE:WHERE"),
        ({"watch": ("latency,s=proc:vmstat.pgfault",)}, "two metrics are called latency"),
        ({"guard": ("memory < 5",)}, "metric memory is not read"),
        ({"guard": ("latency around 5",)}, "METRIC < LIMIT"),
        ({"guard": ("latency < 5 apples",)}, "apples"),
        ({"washout": "31s"}, "at most half of a slice"),
        ({"slice": "1s"}, "at least 2 s"),
        ({"max_load": 0.0}, "above 0"),
        ({"max_load": float("nan")}, "above 0"),
        ({"max_pressure": "0"}, "between 0 and 100 %"),
        ({"max_pressure": "400%"}, "between 0 and 100 %"),
        ({"max_pressure": "40"}, "expected a percentage"),
        ({"guard": ("latency not worse than 5",)}, "expected a percentage"),
        ({"for_": "30s"}, "at least one slice"),
        ({"order": "sideways"}, "random, mirrored or latin"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(RequestError) as failure:
        live_design(replace(REQUEST, **wrong))  # type: ignore[arg-type]
    assert message in str(failure.value)


@pytest.mark.parametrize(
    "wrong",
    [
        Request(set=("vm.dirty_background_ratio=ten,2",)),
        Request(set=("vm.dirty_background_ratio=10,,2",)),
        Request(set=("vm.dirty_background_ratio=10,2",), min_effect="abc"),
        Request(set=("vm.dirty_background_ratio=10,2",), baseline=("7",)),
    ],
)
def test_no_hint_leads_to_another_command(wrong: Request) -> None:
    with pytest.raises(RequestError) as failure:
        live_study(wrong, live_design(REQUEST), catalogue(), "/bin/true")
    assert "ajuste compare" not in f"{failure.value} {failure.value.hint}"


def test_a_setting_of_a_service_needs_to_know_of_which() -> None:
    with pytest.raises(RequestError) as failure:
        live_study(Request(set=("service.work_mem=4MB,8MB",)), live_design(REQUEST), catalogue(), "/bin/true")
    assert "service.work_mem" in failure.value.message
    assert "--service" in str(failure.value.hint)
