"""Advice from look to proof, in guests whose best change is known, and what is wrong with a question."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shell import Shell

# A job that shares its one CPU with a loop: more weight or a lower nice value nearly doubles its speed.
LOADED = "--kernel debian:5.10 --background spin"
JOB = "-- linpack reps_to=2"


def advice(ajuste: Shell, options: str) -> dict[str, Any]:
    return dict(json.loads(ajuste("advise", "--json", *f"{options} {JOB}".split())[0]))


@pytest.mark.slow
@pytest.mark.vm
def test_the_decisive_setting_is_proved_and_its_effect_is_that_of_a_comparison_by_hand(ajuste: Shell) -> None:
    options = f"{LOADED} --min-effect 5% --max-time 4m"
    advised = advice(ajuste, options)
    (line,) = advised["lines"]
    default, option = {"cgroup_weight": (100, "--cgroup-weight"), "nice": (0, "--nice")}[line["setting"]]
    proof = advised["proof"]
    assert proof["verdict"] == "improves"
    by_hand = f"{LOADED} {option} {default},{line['level']} --metric elapsed {JOB}".split()
    verdicts = json.loads(ajuste("compare", "--json", *by_hand)[0])["verdicts"]
    (verdict,) = (row for row in verdicts if row["metric"] == "elapsed")
    assert proof["low"] <= verdict["estimate"] <= proof["high"]
    # Asked again, nothing is measured: the runs are those of the store.
    assert advice(ajuste, options)["stages"] == advised["stages"]


@pytest.mark.slow
@pytest.mark.vm
def test_nothing_is_advised_where_nothing_can_help(ajuste: Shell) -> None:
    advised = advice(ajuste, "--kernel debian:5.10 --max-time 3m")
    assert advised["lines"] == []
    assert advised["look"]["shares"][0]["where"] == "user"
    assert advised["look"]["functions"][0]["share"] > 0.5


@pytest.mark.vm
def test_a_look_changes_nothing_and_says_what_may_matter(ajuste: Shell) -> None:
    looked = advice(ajuste, f"--dry-run --no-functions {LOADED}")
    assert looked["tried"] == looked["lines"] == []
    assert {"nice", "cgroup_weight"} <= {each["setting"] for each in looked["candidates"]}
    assert [stage["name"] for stage in looked["stages"]] == ["look"]
    reasons = {row["setting"]: row["why"] for row in looked["untried"]}
    assert (reasons["base_slice_ns"], reasons["vm.dirty_ratio"]) == ("absent", "cause")


@pytest.mark.usefixtures("machine_lock")
@pytest.mark.skipif(Path("/sys/fs/cgroup/cgroup.controllers").exists(), reason="this machine has cgroup v2")
def test_what_takes_something_that_this_machine_lacks_is_no_candidate(ajuste: Shell) -> None:
    loaded = ["--background", "4x spin", *JOB.split()]
    looked = json.loads(ajuste("advise", "--json", "--dry-run", *loaded)[0])
    assert "cpu-wait" in looked["look"]["causes"]
    assert "cgroup_weight" not in {each["setting"] for each in looked["candidates"]}
    (reason,) = [row["words"] for row in looked["untried"] if row["setting"] == "cgroup_weight"]
    assert "cgroup" in reason


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--vm", "the command to make better is missing"),
        ("--vm -- true -- false", "found 2 commands; expected one"),
        ("--vm --metric context-switches -- true", "has no better direction"),
        ("--vm --max-time 0s -- true", "--max-time 0s: expected a duration"),
        ("--vm --metric elapsed=higher -- true", "elapsed is better lower"),
        ("--kernel debian:6.1,debian:6.12 -- true", "kernel has several levels; expected one"),
        ("--vm --scratch ext4,xfs -- true", "fs.type has several levels; expected one"),
    ],
)
def test_what_is_wrong_is_named_before_anything_is_measured(ajuste: Shell, words: str, expected: str) -> None:
    _, complaint = ajuste("advise", *words.split(), expect=2)
    assert expected in complaint
    assert "1/4" not in complaint


def test_a_program_that_is_not_there_is_named(ajuste: Shell) -> None:
    _, complaint = ajuste("advise", "--vm", "--", "no-such-program", expect=2)
    assert 'program "no-such-program" not found' in complaint


@pytest.mark.vm
def test_a_constraint_that_does_not_hold_as_it_is_is_no_fault_of_advice(ajuste: Shell) -> None:
    words = ["--vm", "--dry-run", "--no-functions", "--constraint", "elapsed <= 1us", *JOB.split()]
    _, complaint = ajuste("advise", *words, expect=2)
    assert "does not hold of the workload as it is" in complaint


def test_advice_needs_no_optional_part() -> None:
    hidden = "import sys; sys.modules.update(dict.fromkeys(('sklearn', 'optuna', 'cmaes', 'pydoe')))"
    done = subprocess.run([sys.executable, "-c", f"{hidden}; import ajuste_advise.commands"], check=False)
    assert done.returncode == 0
