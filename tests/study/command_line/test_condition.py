"""Conditions of ``--fail-on`` are checked before anything is measured."""

from __future__ import annotations

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste.model.verdict import FailCondition
from ajuste.study.command_line.conditions import fail_conditions
from ajuste.study.command_line.request import Request
from ajuste.study.command_line.study import adhoc_study
from ajuste.study.schema import DesignTable, Study

TWO = (("sleep", "0.01"), ("sleep", "0.02"))


def study(*metrics: str, commands: tuple[tuple[str, ...], ...] = TWO) -> Study:
    return adhoc_study(Request(commands, metric=metrics), catalogue())


@pytest.mark.parametrize(
    ("text", "metrics", "limit"),
    [
        ("worsens", ("elapsed", "speed"), None),
        ("worsens:2%", ("elapsed", "speed"), 0.02),
        ("worsens:0.5", ("elapsed", "speed"), 0.5),
        ("worsens:speed", ("speed",), None),
        ("worsens: elapsed : 150% ", ("elapsed",), 1.5),
    ],
)
def test_metric_and_limit_are_optional(text: str, metrics: tuple[str, ...], limit: float | None) -> None:
    with_metrics = study("elapsed", "speed,1/s,higher=regex:(.)", "which,none=regex:(.)")
    assert fail_conditions([text], with_metrics, catalogue()) == (FailCondition(text, metrics, limit),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected worsens, worsens:METRIC"),
        ("improves", "expected worsens, worsens:METRIC"),
        ("worsens:", "expected worsens, worsens:METRIC"),
        ("worsens:1%:elapsed", "expected worsens, worsens:METRIC"),
        ("worsens:elapsed:1%:2%", "expected worsens, worsens:METRIC"),
        ("worsens:elapsed:-1%", "limit -1%: expected a share"),
        ("worsens:elapsed:10", "limit 10: expected a percentage"),
        ("worsens:elapsd", '"elapsd" is not a deciding metric; did you mean elapsed?'),
        ("worsens:zzz", '"zzz" is not a deciding metric; expected one of elapsed, speed, which'),
        ("worsens:which", "which: no direction is better, so nothing worsens"),
        ("worsens:speed:100%", "speed is positive and better if higher, so it cannot worsen by 100 % or more"),
    ],
)
def test_what_can_never_come_true_is_refused(text: str, message: str) -> None:
    with_metrics = study("elapsed", "speed,1/s,higher=regex:(.)", "which,none=regex:(.)")
    with pytest.raises(RequestError) as failure:
        fail_conditions([text], with_metrics, catalogue())
    assert message in str(failure.value)
    assert str(failure.value).startswith("--fail-on ")
    assert failure.value.exit_code == 2


def test_a_study_without_verdicts_on_configurations_is_refused() -> None:
    with pytest.raises(RequestError, match="nothing to compare: found one configuration"):
        fail_conditions(["worsens"], study(commands=TWO[:1]), catalogue())
    screened = study().model_copy(update={"design": DesignTable(combine="screening")})
    with pytest.raises(RequestError, match="judges effects of factors, not configurations"):
        fail_conditions(["worsens"], screened, catalogue())
    assert fail_conditions([], study(commands=TWO[:1]), catalogue()) == ()
