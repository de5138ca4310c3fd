"""A trial during which somebody was stopped is known as such."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tests.agent.conftest import Told
from tests.agent.serving import Serving, shell

from ajuste.executor.host.host import HostExecutor
from ajuste.model.event import Exited, Paused, Started
from ajuste.model.plan import Command, Plan
from ajuste.model.trial import Slot
from ajuste.outputs.trial_status import TrialReading, trial

SLOT = Slot(configuration="a", block=0, position=0, seed=0)


def stopped_for(seconds: float, pid: Callable[[], int], after: float) -> threading.Thread:
    """Stop the process that ``pid`` finds ``after`` so many seconds, and have it go on ``seconds`` later."""

    def work() -> None:
        time.sleep(after)
        stopped = pid()
        os.kill(stopped, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(stopped, signal.SIGCONT)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def run(serving: Serving, script: str, pid: Callable[[], int], seconds: float) -> Told:
    """Return what the agent says of a trial in whose middle a process was stopped."""
    serving.send(workload=shell(script))
    serving.hear(Started)
    thread = stopped_for(seconds, pid, 0.3)
    trial = serving.finish()
    thread.join()
    return trial


def of(trial: Told, who: str) -> list[Paused]:
    return [event for event in trial.of(Paused) if event.who == who]


@pytest.mark.parametrize(
    ("script", "seconds"), [("sleep 1.5", 3.0), ("sleep 1.5", 1.4), ("sleep 2.5", 1.0), ("sleep 1.5", 0.4)]
)
def test_a_stopped_agent_is_known(agent: str, tmp_path: Path, script: str, seconds: float) -> None:
    """Stop it so that it goes on before the workload's end, and so that it goes on after it."""
    serving = Serving(agent, tmp_path)
    trial = run(serving, script, lambda: serving.process.pid, seconds)
    (paused,) = of(trial, "agent")
    assert paused.paused_ns >= 0.9 * seconds * 1e9


def test_a_stopped_workload_is_known(agent: str, tmp_path: Path) -> None:
    serving = Serving(agent, tmp_path)

    def workload() -> int:
        (child,) = [child for child in psutil.Process(serving.process.pid).children() if child.name() == "sh"]
        return child.pid

    trial = run(serving, "sleep 0.6; :", workload, 1.5)
    assert of(trial, "agent") == []
    (paused,) = of(trial, "workload")
    assert paused.paused_ns >= 1.4e9


def test_who_was_not_stopped_is_not_said_to_have_been(agent: str, tmp_path: Path) -> None:
    serving = Serving(agent, tmp_path)
    serving.send(workload=shell("(sleep 0.1 &); sleep 2.5"))
    trial = serving.finish()
    assert trial.of(Paused) == []
    assert trial.exited().exit_code == 0


def test_a_trial_with_a_stopped_agent_is_flagged_and_said_why() -> None:
    plan = Plan(id="t", workload=Command(argv=("sleep", "0.5")))
    with HostExecutor() as host:
        assert host._agent is not None
        pid = host._agent.pid
        thread = stopped_for(1.5, lambda: pid, 0.2)
        observation = host.run(plan)
        thread.join()
    paused_trial = trial(SLOT, 0, plan, observation, TrialReading())
    assert paused_trial.status == "flagged"
    assert "Ajuste was stopped for up to " in paused_trial.reason
    assert any(isinstance(event, Exited) for event in observation.events)
