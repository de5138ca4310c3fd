"""Advice for programs that use the lab: what they can ask for, what it costs them, and what they read."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ajuste_lab")

from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste_advise.model import Advice, Look
from ajuste_lab.agents.budget import AgentBudget, AgentLimits
from ajuste_lab.agents.desk import AgentDesk
from ajuste_lab.agents.operations import find_operation
from ajuste_lab.service import LabService

ADVICE = Advice(
    workload="matrix", answer="Set nice=-10.", candidates=(), untried=(), tried=(), lines=(), stages=(),
    look=Look(run="r", metric="elapsed", elapsed_s=1.0, spread=0.0, trial_s=1.0, shares=(), causes={}),
)  # fmt: skip
# Stands for the command: it writes its words and the answer where the real one does.
PLAYED = """
import json, os, sys
answer, _, log, *words = sys.argv[1:]
(output,) = (word.partition("=")[2] for word in words if word.startswith("--output="))
open(output, "w").write(answer)
open("words.json", "w").write(json.dumps([os.environ["AJUSTE_ASKED_BY"], *words]))
open(log, "a").write(json.dumps({"event": "command ended", "exit_code": 0}) + "\\n")
"""


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[AgentDesk]:
    place = Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")
    lab = LabService(place, command=(sys.executable, "-I", "-S", "-c", PLAYED, ADVICE.model_dump_json()))
    yield AgentDesk(lab, AgentBudget(AgentLimits(trials=1000, minutes=30)))
    lab.close()


def call(desk: AgentDesk, operation: str, **arguments: Any) -> dict[str, Any]:
    return find_operation(operation).carry_out(desk, arguments)


def test_a_program_asks_for_advice_in_a_guest_and_reads_it(desk: AgentDesk) -> None:
    state = call(desk, "advise", workload="matrix size=50", background="spin", max_trials=200, wait_s=30)
    assert (state["going_on"], state["exit_code"]) == (False, 0)
    job = desk.service.jobs.find(state["job"])
    asker, *words = json.loads((job.directory / "words.json").read_text())
    assert "agent" in asker
    assert words[:2] == ["advise", "--vm"]
    assert {"--background=spin", "--max-trials=200", "--max-time=10m"} <= set(words)
    assert words[-3:] == ["--", "matrix", "size=50"]
    assert call(desk, "advice", job=state["job"])["advice"]["answer"] == ADVICE.answer


def test_it_is_charged_for_all_trials_that_it_may_take(desk: AgentDesk) -> None:
    state = call(desk, "advise", workload="matrix", wait_s=30)
    assert state["left"]["trials"] == 1000 - 300
    assert state["left"]["minutes"] > 29
    with pytest.raises(RequestError, match="up to 800 trials"):
        call(desk, "advise", workload="matrix", max_trials=800)


@pytest.mark.parametrize("workload", ["", "'open", "a -- b"])
def test_what_is_no_command_is_refused_and_starts_nothing(desk: AgentDesk, workload: str) -> None:
    with pytest.raises(RequestError, match="workload"):
        call(desk, "advise", workload=workload)
    assert desk.service.jobs.all() == []


def test_a_job_of_another_client_is_not_there(desk: AgentDesk) -> None:
    state = call(desk, "advise", workload="matrix", wait_s=30)
    other = AgentDesk(desk.service, AgentBudget(AgentLimits()))
    with pytest.raises(RequestError, match="not found"):
        call(other, "advice", job=state["job"])
