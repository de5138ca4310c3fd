"""The time of a run goes on by clocks that nobody sets."""

from __future__ import annotations

import os
import time
from pathlib import Path

from ajuste.machine.session import boot_id
from ajuste_live.conduct import Instant, seconds_between
from ajuste_live.state import LiveState, own_state

YEAR_S = 365 * 86_400.0
BEGAN = Instant(boot="one", up_s=100.0, day_s=1e9)


def test_a_clock_that_was_set_changes_nothing_within_a_boot() -> None:
    for step_s in (YEAR_S, -YEAR_S):
        later = Instant(boot="one", up_s=160.0, day_s=BEGAN.day_s + step_s)
        assert seconds_between(BEGAN, later) == 60


def test_over_a_reboot_the_time_of_the_day_tells_and_nothing_takes_less_than_none() -> None:
    assert seconds_between(BEGAN, Instant(boot="two", up_s=5.0, day_s=BEGAN.day_s + 90)) == 90
    assert seconds_between(BEGAN, Instant(boot="two", up_s=5.0, day_s=0.0)) == 0


def test_a_run_that_goes_on_in_a_new_boot_keeps_its_time_by_that_boot() -> None:
    after = Instant(boot="two", up_s=5.0, day_s=BEGAN.day_s + 90).earlier(90)
    assert seconds_between(after, Instant(boot="two", up_s=15.0, day_s=0.0)) == 100


def test_now_is_this_boot() -> None:
    before = Instant.now()
    time.sleep(0.05)
    assert before.boot == boot_id()
    assert 0.05 <= seconds_between(before, Instant.now()) < 5


def test_a_running_experiment_is_known_by_what_no_clock_changes() -> None:
    state = own_state("run", "study")
    assert state.started_ticks == int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    assert state.is_alive
    assert not state.model_copy(update={"started_ticks": state.started_ticks - 1}).is_alive
    assert not state.model_copy(update={"boot": "another"}).is_alive
    assert LiveState.model_validate_json(state.model_dump_json()).pid == os.getpid()
