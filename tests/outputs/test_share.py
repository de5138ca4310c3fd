from __future__ import annotations

from typing import Any

import pytest

from ajuste.model.event import Exited, Loaded
from ajuste.outputs.base import shares


def exited(role: str, index: int, wall_ms: int, user_ms: int, system_ms: int = 0) -> Exited:
    fields: dict[str, Any] = {"at_ns": 1, "role": role, "index": index, "exit_code": 0, "wall_ns": wall_ms * 10**6}
    fields |= {"user_ns": user_ms * 10**6, "system_ns": system_ms * 10**6}
    counts = ("voluntary_switches", "involuntary_switches", "minor_faults", "major_faults", "peak_rss_bytes")
    return Exited.model_validate(fields | dict.fromkeys(counts, 0))


def test_a_share_is_user_and_system_time_by_elapsed_time() -> None:
    assert shares([exited("workload", 0, 2000, 450, 50)], (), ()) == {"cpu-share": pytest.approx(25.0)}


def test_commands_of_one_load_are_added_up() -> None:
    exits = [exited("background", index, 2500, 100 * (index + 1)) for index in range(3)]
    assert shares([exited("workload", 0, 2000, 0), *exits], (), (1, 1, 2)) == {
        "cpu-share": 0,
        "cpu-share.background-1": pytest.approx(15.0),
        "cpu-share.background-2": pytest.approx(15.0),
    }


def test_what_did_not_run_for_any_time_or_was_not_asked_for_has_no_share() -> None:
    exits = [exited("workload", 0, 0, 0), exited("background", 1, 5, 5), exited("before", 0, 5, 5)]
    assert shares(exits, (), (1,)) == {}


def test_what_a_load_used_before_the_workload_is_no_share_of_its() -> None:
    loaded = Loaded(at_ns=1, settled=True, waited_ns=100, processes=1, used_ns=(300 * 10**6,))
    exits = [exited("workload", 0, 1000, 500), exited("background", 0, 1300, 800)]
    assert shares(exits, [loaded], (1,)) == {
        "cpu-share": pytest.approx(50.0),
        "cpu-share.background-1": pytest.approx(50.0),
    }
