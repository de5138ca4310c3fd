"""Guards by readings alone: what breaks one, and what cannot be checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from ajuste.model.live import Guard, LiveDesign, LiveMetric
from ajuste.model.metric import Metric
from ajuste_live.guards import Ended, GuardWatch, longest_silence
from ajuste_live.reading import Fold, Reading, level, mean_of_events, mean_of_values, quantile_of_buckets

SUMMARY = [(100.0 * n, 10.0 * n) for n in range(10)]
"""The sum and the number of events, second by second."""
BUCKETS = [(5.0 * n, 10.0 * n) for n in range(10)]
LOG = [(1.0, 2.0)] * 10
STEADY = {"took": 0.0}
"""The baseline's slices had a value at every look."""


def checks(
    fold: Fold, series: Sequence[tuple[float, ...]], silences: Mapping[str, float], *, is_baseline: bool = False
) -> list[Ended | None]:
    """Return what a guard that always holds says, look after look, one second apart."""
    metric = LiveMetric(metric=Metric(name="took", title="took", unit="s", direction="lower"), kind="x", where="y")
    guard = Guard(text="took < 1e9", metric="took", sign="<", limit=1e9)
    design = LiveDesign(metrics=(metric,), guards=(guard,), slice_s=60, for_s=600)
    watch = GuardWatch(design, {"took": fold}, {}, silences, is_baseline)
    readings = [Reading(float(n), values) for n, values in enumerate(series)]
    return [watch.check({"took": readings[: n + 1]}, {"took": readings[: n + 1]}, {}) for n in range(len(readings))]


@pytest.mark.parametrize(
    ("fold", "growing", "silent"),
    [
        (mean_of_events, SUMMARY, SUMMARY[-1]),
        (quantile_of_buckets(0.5, (1.0, math.inf)), BUCKETS, BUCKETS[-1]),
        (mean_of_values, LOG, ()),
    ],
)
def test_a_service_that_answers_nothing_cannot_be_checked_for_long(
    fold: Fold, growing: list[tuple[float, ...]], silent: tuple[float, ...]
) -> None:
    assert checks(fold, growing, STEADY) == [None] * 10
    *before, end = checks(fold, [*growing, silent, silent], STEADY)
    assert before == [None] * 11
    assert end is not None
    assert end.kind == "guard"
    assert "cannot be checked" in end.words


def test_a_service_that_answers_nothing_from_the_beginning_cannot_be_checked() -> None:
    assert [outcome is None for outcome in checks(mean_of_events, [(5.0, 1.0)] * 4, STEADY)] == [
        True,
        True,
        False,
        False,
    ]


def test_how_long_depends_on_what_the_baseline_has_shown() -> None:
    silent = [*SUMMARY, *[SUMMARY[-1]] * 9]
    known: tuple[tuple[dict[str, float], int], ...] = (({}, 5), ({"took": 1.0}, 2), ({"took": 3.0}, 6))
    for silences, seconds in known:
        outcomes = checks(mean_of_events, silent, silences)
        assert next(n for n, outcome in enumerate(outcomes) if outcome) == 9 + seconds
    assert not any(checks(mean_of_events, silent, STEADY, is_baseline=True))


def test_a_level_always_has_a_value() -> None:
    assert not any(checks(level, [(1.0,)] * 20, STEADY))


def test_the_longest_silence_of_a_timeline() -> None:
    assert longest_silence([]) == 0
    assert longest_silence([(1.0, 5.0), (2.0, None), (3.0, None), (4.0, 1.0), (5.0, None)]) == 2
    assert longest_silence([(1.0, None), (2.0, None), (3.0, 1.0)]) == 1
