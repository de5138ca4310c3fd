"""Start of programs by the agent: environment, streams, priority, policy, CPUs, and what it says if it cannot.
``run`` is ``conftest.Runner``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ajuste.model.event import Exited

is_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: lower nice values and real-time policies")


def test_streams_are_kept_apart_and_the_environment_is_exactly_the_given_one(run: Any) -> None:
    workload = {"argv": ["env"], "environment": {"A": "1", "PATH": "/usr/bin:/bin"}, "directory": "/usr"}
    assert run(workload=workload).output().text.splitlines() == ["A=1", "PATH=/usr/bin:/bin"]
    trial = run(workload=run.command("pwd; cat; echo err >&2; exit 3") | {"directory": "/usr"})
    assert trial.output().text == "/usr\n"
    assert trial.output("stderr").text == "err\n"
    assert (trial.exited().exit_code, trial.exited().signal, trial.exit_code) == (3, None, 0)


@pytest.mark.parametrize("padding", [16, 512, 65536])
def test_padding_lengthens_the_environment_by_as_many_bytes(run: Any, padding: int) -> None:
    environ = "cat /proc/self/environ | wc -c"
    lengths = [int(run.shell(environ, perturbation={"environment_bytes": size}).output().text) for size in (0, padding)]
    assert lengths[1] - lengths[0] == padding


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ({"argv": ["/none"]}, "/none: No such file or directory"),
        ({"argv": ["no-such-program"]}, "no-such-program: no such program in "),
        ({"argv": ["/etc/passwd"]}, "/etc/passwd: Permission denied"),
        ({"argv": ["/tmp"]}, "/tmp: Permission denied"),
        ({"argv": ["/bin/true"], "directory": "/none"}, "/bin/true: directory: No such file or directory"),
        ({"argv": ["/bin/true"], "attributes": {"affinity": [100000]}}, "/bin/true: affinity: Invalid argument"),
    ],
)
@pytest.mark.parametrize("role", ["workload", "background"])
def test_a_program_that_cannot_be_started_says_why(run: Any, role: str, workload: dict[str, Any], words: str) -> None:
    trial = run(workload=workload) if role == "workload" else run.shell("exit 0", background=[workload])
    assert words in trial.failed.message
    assert (trial.failed.stage, trial.exit_code) == (role, 1)
    assert not trial.of(Exited)


def test_a_file_that_is_no_program_fails_at_its_exec(run: Any, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF no")
    program.chmod(0o755)
    trial = run(workload={"argv": [str(program)]})
    assert trial.failed.message == f"{program}: Exec format error"


def test_priority_policy_and_cpus_are_those_asked_for(run: Any) -> None:
    cpu = max(os.sched_getaffinity(0))
    look = (
        "import os; print(os.nice(0), os.sched_getscheduler(0), os.sched_getaffinity(0), os.getpgid(0) == os.getpid())"
    )
    for policy, number in (("batch", os.SCHED_BATCH), ("idle", os.SCHED_IDLE), ("other", os.SCHED_OTHER)):
        attributes = {"nice": 7, "policy": policy, "affinity": [cpu]}
        trial = run(workload={"argv": [sys.executable, "-c", look], "attributes": attributes})
        assert trial.output().text == f"7 {number} {{{cpu}}} True\n"


@is_root
def test_a_real_time_workload_is_measured_and_ended_like_any_other(run: Any) -> None:
    look = "import os; print(os.sched_getscheduler(0), os.sched_getparam(0).sched_priority)"
    for attributes, answer in (
        ({"policy": "fifo", "priority": 3}, f"{os.SCHED_FIFO} 3\n"),
        ({"policy": "rr"}, f"{os.SCHED_RR} 1\n"),
        ({"nice": -5}, "0 0\n"),
    ):
        assert run(workload={"argv": [sys.executable, "-c", look], "attributes": attributes}).output().text == answer
