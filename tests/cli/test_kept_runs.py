"""A run that has ended never changes, and its name is its own."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

import pytest

from shell import Shell

STUDY = """\
schema = 1
name = "first"
question = "Does echo take a while?"

[[factor]]
name = "command"
levels = ["one", "two"]

[[workload.variant]]
name = "one"
command = ["sh", "-c", "echo took 1 ms"]

[[workload.variant]]
name = "two"
command = ["sh", "-c", "echo took 2 ms"]

[[workload.metric]]
name = "took"
pattern = "took ([0-9]+) ms"
unit = "ms"
direction = "lower"

[target]
kind = "host"

[design]
warm_up = 0

[analysis]
metrics = ["took"]

[budget]
min_blocks = 3
max_blocks = 3
"""


def run_study(ajuste: Shell, *changes: tuple[str, str]) -> Any:
    """Run the study with these changes and return its results."""
    text = STUDY
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (ajuste.directory / "study.toml").write_text(text)
    return ajuste.json("run", "study.toml")


@pytest.mark.usefixtures("machine_lock")
def test_another_question_about_the_same_trials_is_a_run_beside_the_first(ajuste: Shell) -> None:
    first = run_study(ajuste)
    assert (first["study"], [verdict["metric"] for verdict in first["verdicts"] if verdict["deciding"]]) == (
        "first",
        ["took"],
    )
    second = run_study(ajuste, ('"first"', '"second"'), ('metrics = ["took"]', 'metrics = ["elapsed"]'))
    assert second["run"] == f"{first['run']}.2"
    assert [verdict["metric"] for verdict in second["verdicts"] if verdict["deciding"]] == ["elapsed"]
    assert second["digest"] == first["digest"], "nothing was measured again"
    assert ajuste.json("report", "first") == first
    assert ajuste.json("report", "second") == second
    assert run_study(ajuste) == first, "the same question is shown"


@pytest.mark.usefixtures("machine_lock")
def test_the_three_sigma_rule_is_asked_of_a_run_later(ajuste: Shell) -> None:
    first = run_study(ajuste)
    assert first["three_sigma"] == []
    later = ajuste.json("report", "first", "--three-sigma")
    assert [row["configuration"] for row in later["three_sigma"]] == [c["name"] for c in first["configurations"]]
    assert later["verdicts"] == first["verdicts"]
    assert later["three_sigma"][1]["verdict"] == first["verdicts"][0]["verdict"]
    output, _ = ajuste("report", "first", "--three-sigma")
    assert "3-sigma" in output
    assert "ignores" in output
    assert ajuste.json("report", "first") == first


@pytest.mark.usefixtures("machine_lock")
def test_a_run_of_fewer_blocks_has_no_more_than_it_asks_for(ajuste: Shell) -> None:
    first = run_study(ajuste, ("min_blocks = 3\nmax_blocks = 3", "min_blocks = 5\nmax_blocks = 5"))
    fewer = run_study(ajuste)
    assert (first["blocks"], fewer["blocks"]) == (5, 3)
    assert fewer["run"].partition(".")[0] != first["run"]
    analysed = run_study(ajuste, ('metrics = ["took"]', 'metrics = ["elapsed"]'))
    assert (analysed["run"], analysed["blocks"]) == (f"{fewer['run']}.2", 3), "the trials of the one that fits"


@pytest.mark.usefixtures("machine_lock")
def test_nor_has_it_those_of_an_interrupted_one(ajuste: Shell) -> None:
    mark = ajuste.directory / "ran"
    slow = ('"echo took 1 ms"', f'"echo >> {mark}; sleep 0.3; echo took 1 ms"')
    (ajuste.directory / "study.toml").write_text(STUDY.replace(*slow).replace("_blocks = 3", "_blocks = 500"))
    process = ajuste.start("run", "study.toml")
    deadline = time.monotonic() + 60
    while not mark.exists() or len(mark.read_text()) < 12:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    interrupted = ajuste.json("report", "first")
    fewer = run_study(ajuste, slow)
    assert interrupted["blocks"] > fewer["blocks"] == 3
    assert fewer["run"] != interrupted["run"]


@pytest.mark.usefixtures("machine_lock")
def test_more_blocks_are_measured_for_another_run_only(ajuste: Shell) -> None:
    first = run_study(ajuste)
    more = run_study(ajuste, ("min_blocks = 3\nmax_blocks = 3", "min_blocks = 5\nmax_blocks = 5"))
    assert (first["blocks"], more["blocks"]) == (3, 5)
    assert ajuste.json("report", first["run"]) == first
    ajuste("store", "delete", first["run"], "--yes")
    assert ajuste.json("report", more["run"]) == more
    assert [run["run"] for run in ajuste.json("report")] == [more["run"]]


@pytest.mark.usefixtures("machine_lock")
def test_a_decided_run_never_becomes_a_failed_one(ajuste: Shell) -> None:
    first = run_study(ajuste)
    (ajuste.directory / "study.toml").write_text(STUDY.replace('["took"]', '["instructions"]'))
    ajuste.start("run", "study.toml").communicate()
    assert ajuste.json("report", first["run"]) == first


@pytest.mark.usefixtures("machine_lock")
def test_a_name_belongs_to_one_question(ajuste: Shell) -> None:
    named = ("compare", "--name", "mine", "--blocks", "2", "--json", "--")
    ajuste(*named, "true")
    (run,) = ajuste.json("report")
    _, refused = ajuste(*named, "echo", expect=2)
    assert f"--name mine: run {run['run']} has this name and another question or command" in refused
    assert "choose another name" in refused
    assert [entry["run"] for entry in ajuste.json("report")] == [run["run"]]
    ajuste(*named, "true")  # the same again


@pytest.mark.usefixtures("machine_lock")
def test_a_cleanup_that_fails_loses_nothing(ajuste: Shell) -> None:
    cleanup = "sh -c 'printf \"\\033[2Jcannot\\nclean\\n\"; exit 4'"
    _, complained = ajuste("compare", "--blocks", "2", "--cleanup", cleanup, "--", "true", expect=1)
    assert "the cleanup command failed: /usr/bin/sh ended with exit code 4" in complained
    assert "last output: \\x1b[2Jcannot / clean" in complained
    (run,) = ajuste.json("report")
    assert f"ajuste report {run['run']} shows what was measured" in complained
    assert run["stopped"] == "budget"
    assert ajuste.json("report", run["run"])["blocks"] == 2


@pytest.mark.usefixtures("machine_lock")
def test_a_setup_that_fails_says_what_it_said(ajuste: Shell) -> None:
    _, complained = ajuste("compare", "--setup", "sh -c 'echo no disk; exit 4'", "--", "true", expect=1)
    assert "the setup command failed: /usr/bin/sh ended with exit code 4; last output: no disk" in complained
    assert ajuste.json("report") == []


@pytest.mark.usefixtures("machine_lock")
def test_binary_output_makes_no_large_store_unless_it_is_wanted(ajuste: Shell) -> None:
    options = ("--blocks", "3", "--metric", "bytes,none,stderr=regex:([0-9]+) bytes", "--")
    command = (*options, "dd", "if=/dev/urandom", "bs=300000", "count=1")
    small = json.loads(ajuste("compare", "--json", *command)[0])
    assert small["configurations"][0]["metrics"]["bytes"]["mean"] == 300_000
    ajuste("compare", "--keep-output", *command)
    whole, cut = (sum(run["size_bytes"].values()) for run in ajuste.json("store", "size")["runs"])
    assert whole > 10 * cut
    (first, *_) = ajuste.json("report", small["run"], "--trials")
    assert "bytes left out" in first["events"]
