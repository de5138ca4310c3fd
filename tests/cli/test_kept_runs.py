"""A run that has ended never changes, and its name is its own."""

from __future__ import annotations

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


def asked(ajuste: Shell, *changes: tuple[str, str]) -> Any:
    """What ``ajuste run`` says of the study with these changes."""
    text = STUDY
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (ajuste.directory / "study.toml").write_text(text)
    return ajuste.json("run", "study.toml")


@pytest.mark.usefixtures("machine_lock")
def test_another_question_about_the_same_trials_is_a_run_beside_the_first(ajuste: Shell) -> None:
    first = asked(ajuste)
    assert (first["study"], [one["metric"] for one in first["verdicts"] if one["deciding"]]) == ("first", ["took"])
    second = asked(ajuste, ('"first"', '"second"'), ('metrics = ["took"]', 'metrics = ["elapsed"]'))
    assert second["run"] == f"{first['run']}.2"
    assert [one["metric"] for one in second["verdicts"] if one["deciding"]] == ["elapsed"]
    assert second["digest"] == first["digest"], "nothing was measured again"
    assert ajuste.json("report", "first") == first
    assert ajuste.json("report", "second") == second
    assert asked(ajuste) == first, "the same question is shown"


@pytest.mark.usefixtures("machine_lock")
def test_more_blocks_are_measured_for_another_run_only(ajuste: Shell) -> None:
    first = asked(ajuste)
    more = asked(ajuste, ("min_blocks = 3\nmax_blocks = 3", "min_blocks = 5\nmax_blocks = 5"))
    assert (first["blocks"], more["blocks"]) == (3, 5)
    assert ajuste.json("report", first["run"]) == first
    ajuste("store", "delete", first["run"], "--yes")
    assert ajuste.json("report", more["run"]) == more
    assert [run["run"] for run in ajuste.json("report")] == [more["run"]]


@pytest.mark.usefixtures("machine_lock")
def test_a_decided_run_never_becomes_a_failed_one(ajuste: Shell) -> None:
    first = asked(ajuste)
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
    assert [one["run"] for one in ajuste.json("report")] == [run["run"]]
    ajuste(*named, "true")  # the same again
