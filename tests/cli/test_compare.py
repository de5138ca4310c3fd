"""Questions on the command line, on this machine and in a guest."""

from __future__ import annotations

import itertools
import json
import os
import re
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guests import in_guests
from shell import Shell
from small_stores import Commands

EXPIRE = Path("/proc/sys/vm/dirty_expire_centisecs")


def compared(ajuste: Shell, *words: str) -> Any:
    """The document that ``ajuste compare`` prints."""
    return json.loads(ajuste("compare", "--json", *words)[0])


@pytest.mark.usefixtures("machine_lock")
def test_one_command_is_described_by_figures_that_agree_with_its_trials(ajuste: Shell) -> None:
    results = compared(ajuste, "--blocks", "12", "--", "true")
    assert (results["study"], results["clock"], results["blocks"], results["verdicts"]) == ("compare", "wall", 12, [])
    assert results["reproduce"] == ["ajuste compare --blocks 12 -- true"]
    (only,) = results["configurations"]
    assert (only["name"], only["levels"]) == ("true", {})
    trials = ajuste.json("report", results["run"], "--trials")
    assert sum(trial["slot"]["warm_up"] for trial in trials) == 1
    clean = [trial for trial in trials if trial["status"] == "ok" and not trial["slot"]["warm_up"]]
    elapsed = [trial["metrics"]["elapsed"] for trial in clean]
    summary = only["metrics"]["elapsed"]
    assert summary["n"] == len(elapsed)
    assert summary["mean"] == pytest.approx(np.mean(elapsed))
    assert summary["median"] == pytest.approx(np.median(elapsed))
    assert summary["sd"] == pytest.approx(np.std(elapsed, ddof=1))
    assert (summary["minimum"], summary["maximum"]) == (min(elapsed), max(elapsed))
    assert summary["low"] < summary["mean"] < summary["high"]
    assert results["answer"].startswith("Elapsed time of true: ")


@pytest.mark.usefixtures("machine_lock")
def test_a_longer_sleep_is_worse_and_the_answer_comes_first(ajuste: Shell) -> None:
    output, complained = ajuste("compare", "--", "sleep", "0.01", "--", "sleep", "0.05")
    assert all(line.startswith(("Running ", "Working ")) for line in complained.splitlines()), "a line each half minute"
    assert re.match(r"Keep sleep 0.01: sleep 0.05 raises elapsed time from \d[\d.]* ms to \d[\d.]* ms \([+×]", output)
    assert re.search(r" Elapsed time: \d.* with sleep 0\.05 \([+×].*worsens\)\. ", " ".join(output.split()))
    assert "wall clock" in output
    assert "again  ajuste compare -- sleep 0.01 -- sleep 0.05" in output


@pytest.mark.usefixtures("machine_lock")
def test_metrics_of_ones_own_are_read_from_the_output_and_programs_from_here(ajuste: Shell) -> None:
    job = ajuste.directory / "job"
    job.write_text("#!/bin/sh\necho '{\"jobs\": [{\"iops\": '$1'}]}'\necho took $2 ms >&2\n")
    job.chmod(0o755)
    results = compared(
        ajuste,
        *(
            "--metric",
            "iops,1/s,higher=json:/jobs/0/iops",
            "--metric",
            "took,ms,lower,stderr,step=1=regex:took (.*) ms",
        ),
        *("--blocks", "7", "--", "./job", "250", "70", "--", "./job", "500", "70"),
    )
    verdicts = {(v["configuration"], v["metric"]): v for v in results["verdicts"] if v["deciding"]}
    assert verdicts["./job 500 70", "iops"]["verdict"] == "improves"
    assert verdicts["./job 500 70", "iops"]["estimate"] == pytest.approx(2.0)
    assert verdicts["./job 500 70", "took"]["estimate"] == pytest.approx(1.0)
    assert {m["name"]: m["unit"] for m in results["metrics"]}["iops"] == "1/s"


@pytest.mark.usefixtures("machine_lock")
def test_commands_around_the_trials_run_once_or_before_each(ajuste: Shell) -> None:
    log = ajuste.directory / "log"

    def note(word: str) -> str:
        return f"sh -c 'echo {word} >> {log}'"

    around = ("--setup", note("setup"), "--prepare", note("prepare"), "--cleanup", note("cleanup"))
    ajuste("compare", *around, "--blocks", "2", "--warm-up", "0", "--", "sh", "-c", f"echo run >> {log}")
    assert log.read_text().split() == ["setup", "prepare", "run", "prepare", "run", "cleanup"]


@pytest.mark.usefixtures("machine_lock")
def test_a_command_that_fails_is_an_error_at_once_unless_it_may(ajuste: Shell) -> None:
    failing = ("--", "sh", "-c", "echo one; echo two >&2; exit 3")
    output, complained = ajuste("compare", *failing, expect=1)
    assert output == ""
    assert "the workload exited with code 3; last output: two" in complained
    results = compared(ajuste, "--ignore-failure", "--blocks", "3", *failing)
    assert results["blocks"] == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="changing a setting of this machine takes root")
@pytest.mark.usefixtures("machine_lock")
def test_a_setting_is_varied_and_put_back(ajuste: Shell) -> None:
    before = EXPIRE.read_text()
    read = ("--", "cat", str(EXPIRE))
    metric = ("--metric", "value,none,step=1=regex:([0-9]+)")
    results = compared(ajuste, "--set", "vm.dirty_expire_centisecs=2900,1000", *metric, "--blocks", "3", *read)
    assert EXPIRE.read_text() == before
    means = {c["name"]: c["metrics"]["value"]["mean"] for c in results["configurations"]}
    assert means == {"vm.dirty_expire_centisecs=2900": 2900, "vm.dirty_expire_centisecs=1000": 1000}

    results = compared(ajuste, "--set", "vm.dirty_expire_centisecs=29s", *metric, "--blocks", "3", *read)
    assert EXPIRE.read_text() == before
    plain, changed = results["configurations"]
    assert (plain["name"], plain["baseline"], plain["metrics"]["value"]["mean"]) == ("as it is", True, int(before))
    assert changed["metrics"]["value"]["mean"] == 2900


@in_guests
def test_a_dry_run_does_nothing_and_a_saved_study_would_do_the_same(ajuste: Shell) -> None:
    words = ("compare", "--vm", "--nice", "0,10", "--background", "spin", "--prepare", "touch done", "--", "sleep", "1")
    output, _ = ajuste(*words[:1], "--dry-run", "--save", "saved.toml", *words[1:])
    assert "No setting was changed and nothing was run." in output
    saved = (ajuste.directory / "saved.toml").read_text()
    assert saved.startswith("# Does the same as: ajuste compare --vm --nice 0,10 ")
    assert tomllib.loads(saved)["factor"] == [{"name": "nice", "levels": ["0", "10"]}]
    assert ajuste("plan", "saved.toml")[0] == output
    (ajuste.directory / "saved.toml").write_text(edited := f"{saved}# edited\n")
    _, complained = ajuste(*words[:1], "--dry-run", "--save", "saved.toml", *words[1:], expect=2)
    assert "saved.toml exists; nothing was written" in complained
    assert "--force" in complained
    assert (ajuste.directory / "saved.toml").read_text() == edited
    ajuste(*words[:1], "--dry-run", "--save", "saved.toml", "--force", *words[1:])
    ajuste(*words[:1], "--dry-run", "--save", "saved.toml", *words[1:])
    assert tomllib.loads((ajuste.directory / "saved.toml").read_text()) == tomllib.loads(saved)
    assert not (ajuste.directory / "done").exists()
    assert ajuste.json("report") == []


@pytest.mark.usefixtures("machine_lock")
@pytest.mark.parametrize("step_s", [3600, -3600])
def test_a_clock_that_is_set_changes_no_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step_s: int) -> None:
    """An hour forward or back after it was first asked."""
    real, offsets = time.time, itertools.chain([0], itertools.repeat(step_s))
    monkeypatch.setattr("time.time", lambda: real() + next(offsets))
    monkeypatch.setattr("time.time_ns", lambda: round(1e9 * time.time()))
    code, output, complained = Commands(tmp_path, monkeypatch).run(
        *("compare", "--blocks", "4", "--max-time", "1h", "--json", "--", "true")
    )
    assert code == 0, complained
    assert json.loads(output)["blocks"] == 4


@pytest.mark.vm
def test_in_a_guest_the_same_question_has_the_same_answer_to_the_bit(ajuste: Shell) -> None:
    command = ("--vm", "--blocks", "2", "--prepare", "true", "--", "sleep", "0.01", "--", "sleep", "0.02")
    first: dict[str, Any] = compared(ajuste, *command)
    assert (first["clock"], first["blocks"]) == ("virtual", 2)
    assert [c["name"] for c in first["configurations"]] == ["sleep 0.01", "sleep 0.02"]
    assert re.match(r"ajuste compare --fresh --kernel debian:6\.12\.\d+\S* --vm --blocks 2", first["reproduce"][0])
    again = compared(ajuste, *command)
    assert again["run"] == first["run"], "under the virtual clock it is shown again"
    assert "Measured just now; --fresh measures again." in ajuste("compare", *command)[0]
    anew = compared(ajuste, "--fresh", *command)
    assert anew["run"] != first["run"]
    assert anew["digest"] == first["digest"]
