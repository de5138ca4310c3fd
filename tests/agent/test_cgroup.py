"""Control groups on this machine, which is not the agent's own: what it lacks is said, not changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.agent.conftest import Runner

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ROOT / "cgroup.controllers"


def complaint(run: Runner, tmp_path: Path, **attributes: object) -> str:
    trial = Runner(run.arguments[0], tmp_path).shell("true", attributes=attributes)
    assert (trial.exit_code, trial.failed.stage) == (1, "workload")
    return trial.failed.message


@pytest.mark.skipif(CONTROLLERS.exists(), reason="this machine has cgroup v2")
@pytest.mark.parametrize("attributes", [{"cgroup_weight": 50}, {"cgroup_limits": {"cpu.max": "max"}}])
def test_without_cgroup_v2_there_are_no_limits(run: Runner, tmp_path: Path, attributes: dict[str, object]) -> None:
    assert complaint(run, tmp_path, **attributes) == "/bin/sh: a control group needs cgroup v2 at /sys/fs/cgroup"


@pytest.mark.skipif(not CONTROLLERS.exists(), reason="this machine has no cgroup v2")
def test_a_controller_that_groups_do_not_have_is_not_enabled(run: Runner, tmp_path: Path) -> None:
    shared = (ROOT / "cgroup.subtree_control").read_text()
    lacking = {"cpu.max", "memory.max", "io.max", "pids.max"} - {f"{name}.max" for name in shared.split()}
    if not lacking:
        pytest.skip("groups have every controller here")
    message = complaint(run, tmp_path, cgroup_limits={lacking.pop(): "max"})
    assert "to enable it: echo +" in message or "has no controller" in message
    assert (ROOT / "cgroup.subtree_control").read_text() == shared
