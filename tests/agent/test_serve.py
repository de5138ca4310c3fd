"""Many plans over one agent, which puts everything back after each of them and whatever becomes of its listener."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agent.serving import EXPIRE, Serving, shell, values, write
from tests.agent.test_ends import is_gone

from ajuste.model.event import Accepted, End, Failed, Restored, Started, Written

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: settings of this machine are changed")


@pytest.fixture(autouse=True)
def as_before(own_machine: None) -> Iterator[dict[str, str]]:
    before = values()
    yield before
    assert values() == before


@pytest.fixture
def serving(agent: str, tmp_path: Path) -> Iterator[Serving]:
    serving = Serving(agent, tmp_path)
    yield serving
    with serving.process as process:
        if process.poll() is None:
            process.terminate()
    assert list(tmp_path.iterdir()) == []


def test_each_plan_finds_the_settings_as_they_were(serving: Serving, as_before: dict[str, str]) -> None:
    for number in range(1, 4):
        serving.send(id=f"p{number}", writes=[write(EXPIRE, str(1000 * number + 7))], workload=shell(f"cat {EXPIRE}"))
    trial = serving.finish()
    assert trial.exit_code == 0
    assert [event.id for event in trial.of(Accepted)] == [event.id for event in trial.of(End)] == ["p1", "p2", "p3"]
    assert [event.before for event in trial.of(Written)] == [as_before[EXPIRE]] * 3
    assert [(event.found, event.value) for event in trial.of(Restored)] == [
        (value, as_before[EXPIRE]) for value in ("1007", "2007", "3007")
    ]
    outputs = [event.text for event in trial.events if event.event == "output" and event.stream == "stdout"]
    assert outputs == ["1007\n", "2007\n", "3007\n"]


def test_the_journal_is_written_once_and_gone_at_the_end(serving: Serving, tmp_path: Path) -> None:
    plan = {"writes": [write(EXPIRE, "2999")], "workload": shell(f"stat -c '%a %s' {tmp_path}/*")}
    for _ in range(20):
        serving.send(**plan)
    outputs = {event.text for event in serving.finish().events if event.event == "output" and event.stream == "stdout"}
    (line,) = outputs
    assert line.startswith("600 ")
    assert list(tmp_path.iterdir()) == []


def test_coupled_settings_are_put_back(serving: Serving, as_before: dict[str, str]) -> None:
    ratio, amount = "/proc/sys/vm/dirty_ratio", "/proc/sys/vm/dirty_bytes"
    serving.send(writes=[write(amount, "536870912", ratio)], workload=shell(f"cat {ratio} {amount}"))
    trial = serving.finish()
    assert trial.output().text == "0\n536870912\n"
    (restored,) = trial.of(Restored)
    assert (restored.tunable, restored.found, restored.value) == ("dirty_bytes", "536870912", as_before[amount])


def test_somebody_elses_change_is_seen_and_put_back(serving: Serving, as_before: dict[str, str]) -> None:
    serving.send(writes=[write(EXPIRE, "2999")], workload=shell(f"echo 1234 > {EXPIRE}"))
    (restored,) = serving.finish().of(Restored)
    assert (restored.found, restored.value) == ("1234", as_before[EXPIRE])


def test_a_value_that_the_kernel_refuses_changes_nothing(serving: Serving, tmp_path: Path) -> None:
    mark = tmp_path.parent / f"{tmp_path.name}-mark"
    writes = [write(EXPIRE, "2999"), write("/proc/sys/vm/dirty_ratio", "1000", "/proc/sys/vm/dirty_bytes")]
    serving.send(writes=writes, workload=shell(f"touch {mark}"))
    trial = serving.finish()
    assert (trial.failed.stage, trial.failed.tunable, trial.exit_code) == ("write", "dirty_ratio", 1)
    assert "Invalid argument" in trial.failed.message
    assert not mark.exists()


def test_when_nobody_listens_any_more_everything_ends_at_once(serving: Serving, as_before: dict[str, str]) -> None:
    serving.send(writes=[write(EXPIRE, "2999")], workload=shell("sleep 1000 & sleep 1000"))
    serving.send(id="never", writes=[write(EXPIRE, "2998")], workload=shell("sleep 1000"))
    started = serving.hear(Started)
    assert values() != as_before
    assert serving.process.stdout is not None
    serving.process.stdout.close()
    assert serving.process.wait(timeout=60) == 1
    assert is_gone(started.pid)
    assert values() == as_before


def test_the_end_of_the_plans_is_no_reason_to_stop(serving: Serving) -> None:
    serving.send(writes=[write(EXPIRE, "2999")], workload=shell(f"sleep 0.3; cat {EXPIRE}"))
    trial = serving.finish()
    assert (trial.output().text, trial.exit_code) == ("2999\n", 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_plan_and_puts_everything_back(
    serving: Serving, as_before: dict[str, str], number: signal.Signals
) -> None:
    serving.send(writes=[write(EXPIRE, "2999")], workload=shell("sleep 1000"))
    serving.hear(Started)
    serving.process.send_signal(number)
    end = serving.hear(End)
    assert not end.ok
    assert values() == as_before
    trial = serving.finish()
    assert trial.exit_code == 1
    assert "a signal asked the agent to stop" in {failed.message for failed in trial.of(Failed)}


def test_a_malformed_plan_is_the_last(serving: Serving) -> None:
    serving.send(id="good", writes=[write(EXPIRE, "2999")])
    serving.send(id="bad", timeout_ns=0)
    serving.send(id="late")
    trial = serving.finish()
    assert (trial.exit_code, trial.failed.stage) == (2, "plan")
    assert [event.id for event in trial.of(Accepted)] == ["good"]


def test_a_held_descriptor_is_not_the_workloads(agent: str, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    serving = Serving(agent, tmp_path, arguments=["--hold-fd", str(writer)], pass_fds=[writer])
    os.close(writer)
    serving.send(writes=[write(EXPIRE, "2999")], workload=shell("ls /proc/self/fd | wc -l"))
    assert serving.finish().output().text == "4\n", "the three streams and what ls has opened"
    assert os.read(reader, 1) == b"", "neither the agent nor its guardian has it any more"
    os.close(reader)
