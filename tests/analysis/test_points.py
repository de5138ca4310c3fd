"""Trials that are listed one by one."""

from __future__ import annotations

from typing import Any

import pytest

from ajuste.analysis import record
from ajuste.analysis.record import select_points, tally
from ajuste.model.measurements import measurements
from ajuste.model.results import Point, tally_points


@pytest.fixture
def many(trials: Any) -> Any:
    """Twenty blocks of two configurations; two trials were flagged."""
    made = trials({"a": list(range(20)), "b": list(range(20, 40))})
    for place in (3, 25):
        made[place] = made[place].model_copy(update={"status": "flagged", "reason": f"reason {place}"})
    return made


def by_name(point: Point) -> tuple[int, str]:
    return (point.block, point.configuration)


def test_few_trials_are_all_told_and_counted_alike(many: Any) -> None:
    columns = measurements(many)
    points = select_points(columns)
    assert [(point.block, point.configuration, point.metrics) for point in sorted(points, key=by_name)] == [
        (block, name, {"elapsed": float(block + base)}) for block in range(20) for name, base in (("a", 0), ("b", 20))
    ]
    assert tally(columns) == tally_points(points)
    assert tally(columns).reasons == {"reason 3": 1, "reason 25": 1}


def test_of_many_whole_blocks_are_told_and_what_was_not_clean(many: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MOST_WORDS", 72)
    points = select_points(measurements(many))
    assert [point.block for point in points if point.status == "ok"] == [0, 0, 4, 4, 8, 8, 11, 11, 15, 15, 19, 19]
    assert [(point.block, point.configuration) for point in points if point.status != "ok"] == [(3, "a"), (5, "b")]
    assert tally(measurements(many)).clean == 38
