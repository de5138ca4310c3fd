from __future__ import annotations

import random
from typing import Any

import pytest

from ajuste.analysis.digest import digest
from ajuste.model.event import Written
from ajuste.model.trial import Trial


@pytest.fixture
def data(trials: Any) -> list[Trial]:
    made: list[Trial] = trials({"knob=1": [1.5, 2.5], "knob=2": [3.5, 0.1]})
    write = Written(at_ns=7, tunable="knob", asked="1", before="5", after="1")
    return [t.model_copy(update={"events": f'{{"n":{i}}}\n', "written": (write,)}) for i, t in enumerate(made)]


def test_the_order_of_running_and_the_hosts_time_do_not_matter(data: list[Trial]) -> None:
    other = [t.model_copy(update={"host_seconds": 9.0, "started": "now", "console": "x", "reason": "r"}) for t in data]
    random.Random(3).shuffle(other)
    assert digest(other) == digest(data)


@pytest.mark.parametrize(
    "change",
    [
        {"events": "other"},
        {"metrics": {"elapsed": 1.5000000000000002}},
        {"metrics": {}},
        {"status": "flagged"},
        {"attempt": 1},
        {"not_supported": {"cycles": "x"}},
        {"written": ()},
        {"slot": {"seed": 1}},
        {"slot": {"position": 7}},
        {"slot": {"configuration": "other"}},
        {"slot": {"warm_up": True}},
    ],
)
def test_whatever_was_measured_changes_it(data: list[Trial], change: dict[str, Any]) -> None:
    if "slot" in change:
        change = {"slot": data[0].slot.model_copy(update=change["slot"])}
    assert digest([data[0].model_copy(update=change), *data[1:]]) != digest(data)


def test_one_trial_less_changes_it(data: list[Trial]) -> None:
    assert digest(data[1:]) != digest(data)
    assert len(digest([])) == 64
