"""Trials column by column say the same as trials one by one."""

from __future__ import annotations

from typing import Any

import pytest

from ajuste.model.event import Written
from ajuste.model.measurements import Gathering, measurements
from ajuste.model.trial import Slot, Trial


def trial(block: int, position: int, name: str, **fields: Any) -> Trial:
    slot = Slot(block=block, position=position, configuration=name, seed=2**64 - 1)
    return Trial.model_validate({"slot": slot, "status": "ok", **fields})


@pytest.fixture
def some() -> list[Trial]:
    write = Written(at_ns=5, tunable="knob", asked="1", before="0", after="1")
    return [
        trial(1, 0, "b", metrics={"late": 3.0}, status="flagged", reason="busy"),
        trial(0, 1, "a", metrics={"time": 1.5}, written=(write,), not_supported={"cycles": "no PMU"}),
        trial(0, 0, "b", written=(write.model_copy(update={"at_ns": 9}),)),
    ]


def test_rows_are_in_the_order_of_the_design(some: list[Trial]) -> None:
    measured = measurements(some)
    assert len(measured) == 3
    assert measured.block.tolist() == [0, 0, 1]
    assert [measured.configuration[row] for row in range(3)] == ["b", "a", "b"]
    assert [measured.figures(row) for row in range(3)] == [{}, {"time": 1.5}, {"late": 3.0}]
    assert measured.seed.tolist() == [2**64 - 1] * 3
    assert measured.reason[2] == "busy"
    assert measured.of("b").tolist() == [0, 2]
    assert measured.of("nobody").tolist() == []
    assert measured.has_status("flagged").tolist() == [False, False, True]
    assert measured.has_status("failed").tolist() == [False, False, False]


def test_writes_that_differ_by_their_time_only_are_one_value(some: list[Trial]) -> None:
    measured = measurements(some)
    assert measured.written[0] == measured.written[1]
    assert [write.tunable for write in measured.written[0]] == ["knob"]
    assert measured.written.among(measured.of("b")) == [measured.written[0], ()]
    assert measured.not_supported[1] == {"cycles": "no PMU"}


def test_metrics_that_come_late_are_missing_before(some: list[Trial]) -> None:
    gathering = Gathering(read_written=tuple, read_not_supported=dict)
    for number, metrics in enumerate(({"old": 1.0}, {}, {"new": 2.0})):
        gathering.extend(
            block=[number],
            position=[0],
            attempt=[0],
            seed=[1],
            warm_up=[False],
            metrics=[metrics],
            configuration=["a"],
            status=["ok"],
            reason=[""],
            written=[()],
            not_supported=[()],
        )
    measured = gathering.measurements()
    assert [measured.figures(row) for row in range(3)] == [{"old": 1.0}, {}, {"new": 2.0}]


def test_nothing_measured_is_no_row() -> None:
    assert len(measurements([])) == 0
