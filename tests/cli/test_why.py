"""``ajuste why``: what it refuses, and (in a guest) that it explains a run without changing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shell import SMALL, Shell


def test_a_run_that_is_not_there_is_said(tmp_path: Path, ajuste_home: Path) -> None:
    complaint = Shell(tmp_path, ajuste_home)("why", "nothing", expect=2)[1]
    assert "run 'nothing' not found" in complaint


@pytest.mark.vm
@pytest.mark.timeout(600)
def test_a_study_ends_with_why_and_is_measured_as_it_was_without(tmp_path: Path, ajuste_home: Path) -> None:
    shell = Shell(tmp_path, ajuste_home)
    text = SMALL.replace("min_blocks = 3\nmax_blocks = 3", "min_blocks = 1\nmax_blocks = 1")
    (tmp_path / "small.toml").write_text(text)
    plain = shell.json("run", "small.toml", "--quiet")
    assert plain["explanations"] == []

    (tmp_path / "small.toml").write_text(text.replace("[analysis]", "[analysis]\nexplain = true"))
    explained = shell.json("run", "small.toml", "--quiet")
    assert (explained["run"], explained["digest"]) == (f"{plain['run']}.2", plain["digest"])
    assert shell.json("report", plain["run"]) == plain
    assert len(explained["trials"]) == len(plain["trials"]) == 2

    explanation = shell.json("why", "small")
    assert [explanation] == explained["explanations"]
    assert explanation["own"]["configuration"] == "sched_min_granularity_ns=75000000"
    assert "the workload leaves the CPU" in explanation["sentences"][0]
    switches = {who: explanation[who]["recording"]["workload"]["switches"]["by_turn"] for who in ("own", "baseline")}
    assert 5 * switches["own"] < switches["baseline"]

    costs = explanation["costs"]
    for trial in ("baseline", "own"):
        rows = [*costs["functions"], costs["others"]]
        whole = sum(part[trial] for part in costs["parts"])
        assert whole == sum(row[trial] for row in rows) == sum(costs["graph"][trial]) > 1_000_000
    named = {row["name"]: row for row in (*costs["functions"], *costs["most"])}
    assert named["__schedule"]["own_calls"] < named["__schedule"]["baseline_calls"]
    assert {"execve", "page_fault (exception)"} <= {row["name"] for row in costs["entries"]}
    assert shell.json("why", "small", "--fresh")["costs"] == costs

    assert "did you mean" in shell("why", "small", "sched_min_granularity_ns=7500000", expect=2)[1]
    assert "is the baseline" in shell("why", "small", "sched_min_granularity_ns=750000", expect=2)[1]
