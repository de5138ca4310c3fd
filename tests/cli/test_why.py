"""``ajuste why``: what it refuses, and (in a guest) that it explains a run without changing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shell import SMALL, Shell
from traces import read


def test_a_run_that_is_not_there_is_said(tmp_path: Path, ajuste_home: Path) -> None:
    complaint = Shell(tmp_path, ajuste_home)("why", "nothing", expect=2)[1]
    assert "run 'nothing' not found" in complaint


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--perfetto", "trace"), "--perfetto requires --divergence"),
        (("--divergence", "--perfetto", "missing/trace"), "--perfetto missing/trace: expected a file in an existing"),
        (("--divergence", "--perfetto", "."), "--perfetto .: expected a file in an existing directory"),
    ],
)
def test_a_trace_that_cannot_be_is_refused_before_anything_is_read(
    tmp_path: Path, ajuste_home: Path, words: tuple[str, ...], complaint: str
) -> None:
    assert complaint in Shell(tmp_path, ajuste_home)("why", "nothing", *words, expect=2)[1]
    assert not list(tmp_path.glob("trace"))


@pytest.mark.vm
@pytest.mark.timeout(600)
def test_a_trace_for_perfetto_has_what_is_told(tmp_path: Path, ajuste_home: Path) -> None:
    shell = Shell(tmp_path, ajuste_home)
    (tmp_path / "small.toml").write_text(
        SMALL.replace("min_blocks = 3\nmax_blocks = 3", "min_blocks = 1\nmax_blocks = 1")
    )
    shell("run", "small.toml", "--quiet")
    told = shell.json("why", "small", "--divergence")
    assert shell.json("why", "small", "--divergence", "--perfetto", "small.pftrace") == told
    found, trials = told["divergence"], read(tmp_path / "small.pftrace")
    assert [trial.name for trial in trials] == ["baseline: 750 µs", "configuration: 75 ms"]
    assert {trial.kernel for trial in trials} == {told["own"]["kernel"]}
    for trial, lane in zip(trials, (found["baseline"], found["own"]), strict=True):
        kinds, events = trial.kinds(), trial.counts()
        assert sum(kinds.values()) - kinds["timer"] == lane["decisions"] > 20
        assert (events["sched_switch"], events["sched_wakeup"], events["sched_wakeup_new"]) == (
            kinds["switch"],
            kinds["wakeup"],
            kinds["new"],
        )
        begin_ns = trial.instructions[0][0]
        decided = {(at_ns - begin_ns, kind, path, count) for at_ns, kind, _, path, count in trial.decisions}
        assert {
            (point["time_ns"], point["kind"], tuple(point["path"]), point["instructions"])
            for point in lane["following"]
        } <= decided
    baseline = trials[0]
    names = {tid: name for name, tid in baseline.threads.items()}
    zero_ns = baseline.instructions[0][0] + found["before"][-1]["time_ns"]
    switched = {
        (event.timestamp - zero_ns, names.get(event.sched_switch.next_pid, "idle"))
        for event in baseline.events
        if event.HasField("sched_switch")
    }
    assert {(run["begin_ns"], run["task"]) for run in found["baseline"]["runs"][1:]} <= switched
    parting = baseline.parting[0].timestamp
    firsts = [next(one for one in trial.decisions if one[0] == parting) for trial in trials]
    assert [kind for _, kind, *_ in firsts] == [found[who]["following"][0]["kind"] for who in ("baseline", "own")]
    out = shell("why", "small", "--divergence", "--perfetto", "small.pftrace")[0]
    assert "Trace of both trials: small.pftrace (open it at https://ui.perfetto.dev)" in out


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
