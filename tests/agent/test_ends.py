"""Ends of processes of the agent, and that nothing is left of them. ``run`` is ``conftest.Runner``."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from ajuste.model.event import End, Exited, Started, parse_event


def is_gone(pid: int) -> bool:
    """Return whether the process is no more, or a zombie that somebody else has yet to reap."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_the_end_of_the_time_is_the_end_of_the_whole_group(run: Any) -> None:
    trial = run.shell("sleep 1000 & sh -c 'sleep 1000 & echo $! $$; wait' & echo $!; wait", timeout_ns=300_000_000)
    exited = trial.exited()
    assert (exited.timed_out, exited.signal, trial.exit_code) == (True, signal.SIGTERM, 0)
    # Its time limit begins before its own clock, by what a slow machine takes to start it.
    assert exited.wall_ns >= 150_000_000
    pids = [int(word) for word in trial.output().text.split()]
    assert len(pids) >= 2
    assert all(is_gone(pid) for pid in pids)


def test_a_process_that_ignores_the_gentle_signal_is_killed(run: Any) -> None:
    trial = run.shell("trap '' TERM; echo on; while :; do sleep 0.01; done", timeout_ns=300_000_000)
    assert (trial.exited().timed_out, trial.exited().signal) == (True, signal.SIGKILL)
    # The grace of 100 ms is longer than what its time limit begins before its own clock.
    assert trial.exited().wall_ns >= 310_000_000
    assert trial.output().text == "on\n"


def test_nothing_is_left_of_a_process_that_ends_before_its_children(run: Any) -> None:
    trial = run.shell("sleep 1000 & echo $!; setsid sleep 1000 & echo $!; exit 0")
    assert not trial.exited().timed_out
    assert all(is_gone(int(pid)) for pid in trial.output().text.split())


def test_a_signal_is_an_end_of_its_own(run: Any) -> None:
    exited = run.shell("kill -SEGV $$").exited()
    assert (exited.signal, exited.exit_code, exited.timed_out) == (signal.SIGSEGV, None, False)


def test_the_background_runs_from_before_the_start_to_the_end(run: Any, workloads: str) -> None:
    loads = [{"argv": [workloads, "spin"]}, run.command("exit 7")]
    trial = run.shell("sleep 0.2", background=loads, settle_ns=100_000_000)
    assert [(event.role, event.index) for event in trial.of(Started)] == [
        ("background", 0),
        ("background", 1),
        ("workload", 0),
    ]
    order = [(event.role, event.index) for event in trial.of(Exited)]
    assert order == [("workload", 0), ("background", 0), ("background", 1)]
    first, second = trial.exited("background", 0), trial.exited("background", 1)
    assert (first.signal, second.exit_code) == (signal.SIGKILL, 7)
    assert first.wall_ns >= trial.exited().wall_ns + 100_000_000
    assert second.wall_ns < first.wall_ns


def test_a_request_to_stop_ends_everything(run: Any, agent: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps({"id": "s", "workload": run.command("sleep 1000"), "background": [run.command("sleep 1000")]})
    )
    with subprocess.Popen([agent, "run", "--plan", str(plan)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines: list[str] = []
        while sum('"started"' in line for line in lines) < 2:
            lines.append(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=30)
    trial = run.trial(process.returncode, "", "".join(lines) + rest)
    assert trial.failed.message == "a signal asked the agent to stop"
    assert (trial.exit_code, trial.of(End)[0].ok) == (1, False)
    assert all(is_gone(started.pid) for started in trial.of(Started))


def test_its_processes_do_not_outlive_a_killed_agent(agent: str) -> None:
    document = json.dumps({"id": "k", "workload": {"argv": ["sleep", "1000"]}})
    with subprocess.Popen([agent, "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(document)
        process.stdin.close()
        started = None
        while not isinstance(started, Started):
            started = parse_event(process.stdout.readline())
        process.kill()
        process.wait(timeout=30)
    deadline = time.monotonic() + 30
    while not is_gone(started.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert is_gone(started.pid)
