"""A workload begins when its background load is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ajuste.model.event import Exited, Failed, Loaded, Started

READERS = "for i in 1 2 3 4 5 6 7 8 9 10; do (while :; do :; done) & done; wait"


def loaded(trial: Any) -> Loaded:
    (event,) = trial.of(Loaded)
    return event


def test_a_load_that_starts_others_is_whole_before_the_workload_starts(run: Any) -> None:
    for script, processes in ((READERS, 11), ("exec sleep 60", 1)):
        trial = run.shell("true", background=[run.command(script)])
        assert (loaded(trial).settled, loaded(trial).processes) == (True, processes), script
        assert loaded(trial).at_ns < trial.of(Started)[-1].at_ns


def test_nothing_is_waited_for_where_nobody_asks(run: Any) -> None:
    trial = run.shell("true", background=[run.command(READERS)], ready=[{"by": "started"}])
    assert (loaded(trial).settled, loaded(trial).processes) == (True, 0)


def test_what_a_load_used_before_the_workload_is_known(run: Any, workloads: str) -> None:
    trial = run.shell("sleep 0.1", background=[{"argv": [workloads, "spin"]}], settle_ns=200_000_000)
    end = trial.exited("background")
    assert loaded(trial).waited_ns >= 200_000_000
    assert 0 < loaded(trial).used_ns[0] < end.user_ns + end.system_ns


def test_a_load_that_never_settles_is_reported_and_measured_beside(run: Any, tmp_path: Path) -> None:
    # It always wants to run, and starts nothing but itself: no program is read from a disk that may be busy.
    more = "i=$((i + 1)); read line <&3 &"
    growing = f"mkfifo {tmp_path}/never; exec 3<>{tmp_path}/never; i=0; while [ $i -lt 4000 ]; do {more} done; wait"
    trial = run.shell("true", background=[run.command(growing)], ready_timeout_ns=200_000_000)
    assert not loaded(trial).settled
    assert loaded(trial).waited_ns >= 200_000_000
    assert trial.exited().exit_code == 0


def test_output_and_a_command_say_when_a_load_is_there(run: Any, tmp_path: Path) -> None:
    flag = tmp_path / "there"
    writer = run.command(f"sleep 0.1; echo up and running >&2; sleep 0.1; touch {flag}; sleep 60")
    ways = [{"by": "output", "text": "up and"}, {"by": "command", "command": {"argv": ["test", "-e", str(flag)]}}]
    trial = run.shell(f"test -e {flag}", background=[writer, run.command("sleep 60")], ready=ways)
    assert trial.exited().exit_code == 0
    assert trial.exited("background", 1).signal == 9, "looking does not end it"


@pytest.mark.parametrize(
    "ready", [{"by": "output", "text": "never"}, {"by": "command", "command": {"argv": ["false"]}}]
)
def test_a_load_that_is_not_ready_in_time_fails_the_trial(run: Any, ready: dict[str, Any]) -> None:
    trial = run.shell("true", background=[run.command("sleep 60")], ready=[ready], ready_timeout_ns=100_000_000)
    assert trial.exit_code == 1
    assert trial.failed.stage == "background"
    assert not [event for event in trial.of(Started) if event.role == "workload"]
    assert not [event for event in trial.of(Failed) if "killed" in event.message]
    assert not [event for event in trial.of(Exited) if event.role == "workload"]
