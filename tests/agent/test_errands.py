"""Commands before and after a trial, and whose process a command is. ``run`` is ``conftest.Runner``."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.agent.test_ends import is_gone

from ajuste.model.event import Counter, Exited, Failed, Started

is_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: becomes another user")

NOBODY = {"uid": 65534, "gid": 65533, "groups": [65531, 65532]}


def test_commands_run_in_order_around_the_workload(run: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def note(word: str) -> Any:
        return run.command(f"echo {word} >> {log}")

    trial = run(before=[note("a"), note("b")], workload=note("workload"), after=[note("y"), note("z")])
    assert log.read_text().split() == ["a", "b", "workload", "y", "z"]
    order = [("before", 0), ("before", 1), ("workload", 0), ("after", 0), ("after", 1)]
    assert [(event.role, event.index) for event in trial.of(Exited)] == order
    assert [(event.role, event.index) for event in trial.of(Started)] == order
    assert trial.exit_code == 0


def test_what_they_print_is_kept(run: Any) -> None:
    trial = run(before=[run.command("echo out; echo err >&2")], workload={"argv": ["true"]})
    assert (trial.output(role="before").text, trial.output("stderr", role="before").text) == ("out\n", "err\n")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo first >&2; echo last >&2; exit 3", "/bin/sh ended with exit code 3: last"),
        ("kill -9 $$", "/bin/sh was ended by signal 9"),
        ("echo slow >&2; sleep 1000", "/bin/sh took too long: slow"),
    ],
)
def test_nothing_is_measured_if_one_before_fails(run: Any, tmp_path: Path, script: str, words: str) -> None:
    mark, undone = tmp_path / "mark", tmp_path / "undone"
    trial = run(
        before=[run.command(script), run.command(f"touch {mark}")],
        workload=run.command(f"touch {mark}"),
        after=[run.command(f"touch {undone}")],
        timeout_ns=500_000_000,
    )
    assert (trial.failed.stage, trial.failed.message, trial.exit_code) == ("before", words, 1)
    assert not mark.exists()
    assert undone.exists()


def test_one_after_runs_whatever_became_of_the_workload(run: Any, tmp_path: Path) -> None:
    undone = tmp_path / "undone"
    trial = run(workload={"argv": ["/none"]}, after=[run.command(f"touch {undone}"), run.command("exit 4")])
    assert undone.exists()
    assert [failed.stage for failed in trial.of(Failed)] == ["workload", "after"]


def test_a_program_that_is_not_there_says_so(run: Any) -> None:
    trial = run(before=[{"argv": ["/none"]}], workload={"argv": ["true"]})
    assert (trial.failed.stage, trial.failed.message) == ("before", "/none: No such file or directory")


def test_what_one_before_leaves_running_lives_until_the_end_of_the_trial(run: Any, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    server = run.command(f"sleep 1000 & echo $! > {pid}")
    trial = run(
        before=[server], workload=run.command(f"kill -0 $(cat {pid})"), after=[run.command(f"kill -0 $(cat {pid})")]
    )
    assert trial.exit_code == 0
    assert is_gone(int(pid.read_text()))


LOOK = """
import os
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
capabilities = [status[kind] for kind in ("CapEff", "CapPrm", "CapAmb")]
print(os.getresuid(), os.getresgid(), sorted(os.getgroups()), *capabilities, status["NoNewPrivs"], os.nice(0))
"""


@is_root
@pytest.mark.parametrize("role", ["workload", "before"])
def test_a_command_is_the_process_of_its_user(run: Any, role: str) -> None:
    command = {"argv": ["/usr/bin/python3", "-c", LOOK], "user": NOBODY, "attributes": {"nice": -5}}
    trial = run(workload=command) if role == "workload" else run(before=[command], workload={"argv": ["true"]})
    nothing = "0" * 16
    expected = f"{(65534,) * 3} {(65533,) * 3} [65531, 65532] {nothing} {nothing} {nothing} 0 -5\n"
    assert trial.output(role=role).text == expected


PDEATHSIG = "import ctypes; s = ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(s)); print(s.value)"


@is_root
def test_another_users_process_is_counted_and_dies_with_the_agent(run: Any) -> None:
    """Print in the process itself what prctl(2) says to PR_GET_PDEATHSIG."""
    command = {"argv": ["/usr/bin/python3", "-c", PDEATHSIG], "user": NOBODY}
    trial = run(workload=command, counters=["task-clock", "page-faults"])
    assert trial.output().text == f"{int(signal.SIGKILL)}\n"
    assert all(counter.not_supported or (counter.value or 0) > 0 for counter in trial.of(Counter))


@is_root
def test_a_users_process_may_open_its_streams_by_name(run: Any) -> None:
    trial = run(workload=run.command("echo a > /dev/stderr") | {"user": NOBODY})
    assert trial.output("stderr").text == "a\n"


@is_root
def test_what_the_user_may_not_is_said(run: Any, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    trial = run(workload={"argv": ["/bin/true"], "directory": str(tmp_path), "user": NOBODY})
    assert trial.failed.message == "/bin/true: directory: Permission denied"
