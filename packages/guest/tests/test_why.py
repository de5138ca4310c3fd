"""``ajuste why``: what it refuses, and (in a guest) that it explains a run without changing it."""

from __future__ import annotations

import html
import json
import shutil
from pathlib import Path

import pytest

from ajuste.machine.home import home
from ajuste.model.decision import DecisionPoint, NamedDecisions
from ajuste.model.wording import amount
from ajuste.store.store import Store
from ajuste_guest.analysis.divergence import divergence, in_words
from ajuste_guest.kernel.fetch import fetch_kernel
from shell import SMALL, Shell, small
from small_stores import run_of
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
@pytest.mark.slow
def test_a_trace_for_perfetto_has_what_is_told(tmp_path: Path, ajuste_home: Path) -> None:
    shell = Shell(tmp_path, ajuste_home)
    (tmp_path / "small.toml").write_text(small(1, 1))
    shell("run", "small.toml", "--quiet")
    document = shell.json("why", "small", "--divergence")
    assert shell.json("why", "small", "--divergence", "--perfetto", "small.pftrace") == document
    diverged, trials = document["divergence"], read(tmp_path / "small.pftrace")
    assert [trial.name for trial in trials] == ["baseline: 750 µs", "configuration: 75 ms"]
    assert {trial.kernel for trial in trials} == {document["own"]["kernel"]}
    for trial, lane in zip(trials, (diverged["baseline"], diverged["own"]), strict=True):
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
    zero_ns = baseline.instructions[0][0] + diverged["before"][-1]["time_ns"]
    switched = {
        (event.timestamp - zero_ns, names.get(event.sched_switch.next_pid, "idle"))
        for event in baseline.events
        if event.HasField("sched_switch")
    }
    assert {(run["begin_ns"], run["task"]) for run in diverged["baseline"]["runs"][1:]} <= switched
    parting = baseline.parting[0].timestamp
    firsts = [next(decision for decision in trial.decisions if decision[0] == parting) for trial in trials]
    assert [kind for _, kind, *_ in firsts] == [diverged[who]["following"][0]["kind"] for who in ("baseline", "own")]
    out = shell("why", "small", "--divergence", "--perfetto", "small.pftrace")[0]
    assert "Trace of both trials: small.pftrace (open it at https://ui.perfetto.dev)" in out


@pytest.mark.vm
@pytest.mark.timeout(600)
def test_a_study_ends_with_why_and_is_measured_as_it_was_without(tmp_path: Path, ajuste_home: Path) -> None:
    shell = Shell(tmp_path, ajuste_home)
    text = small(1, 1)
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
    assert "a run lasts" in " ".join(explanation["sentences"])
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


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("[target]", '[target]\nclock = "wall"', "a guest with the wall clock never decides the same twice"),
        (
            '[target]\nkernel = "debian:5.10"\ninstruction_ns = 8',
            '[target]\nkind = "host"\nclock = "wall"',
            "this machine never decides the same twice",
        ),
        ("750000, 75000000", "750000", "the run has one configuration, sched_min_granularity_ns=750000"),
    ],
)
def test_runs_without_decisions_that_can_be_compared_are_refused(
    tmp_path: Path, ajuste_home: Path, before: str, after: str, problem: str
) -> None:
    with Store(f"sqlite:///{store_of(ajuste_home)}") as store:
        run_of(SMALL.replace(before, after), store, tmp_path)
    shell = Shell(tmp_path, ajuste_home)
    assert refused(shell, "small").startswith(f"ajuste: --divergence: {problem}")


def store_of(place: Path) -> Path:
    (place / "data").mkdir(exist_ok=True)
    return place / "data" / "store.sqlite"


def refused(shell: Shell, *words: str) -> str:
    """Return the error of a wrong request: one message and one hint."""
    output, complaint = shell("why", *words, "--divergence", expect=2)
    assert output == ""
    assert "Traceback" not in complaint
    assert len(complaint.splitlines()) == 2
    return complaint


@pytest.mark.vm
@pytest.mark.slow
def test_where_two_configurations_part(tmp_path: Path, ajuste_home: Path) -> None:
    shell = Shell(tmp_path, ajuste_home)
    image = fetch_kernel("debian:5.10", home())
    kernel = Path(shutil.copy(image.vmlinuz, tmp_path / "vmlinuz"))
    text = small(1, 1)
    (tmp_path / "small.toml").write_text(text.replace("debian:5.10", f"path:vmlinuz,modules={image.modules}"))
    shell("run", "small.toml", "--quiet")

    gone = kernel.rename(tmp_path / "elsewhere")
    assert "vmlinuz not found" in refused(shell, "small")
    gone.rename(kernel)
    assert "did you mean sched_min_granularity_ns=75000000" in refused(
        shell, "small", "sched_min_granularity_ns=7500000"
    )
    assert "is the baseline" in refused(shell, "small", "sched_min_granularity_ns=750000")
    assert "'small' is a run" in refused(shell, "small", "small")
    refused(shell, "small", "sched_min_granularity_ns=75000000", "small")

    diverged = shell.json("why", "small", "--divergence")["divergence"]
    assert diverged["alike"] > 0
    points = [DecisionPoint.model_validate(diverged[trial]["following"][0]) for trial in ("baseline", "own")]
    first, second = points
    assert (first.kind, first.other) != (second.kind, second.other)
    assert (first.cpu, first.running) == (second.cpu, second.running)
    output = " ".join(shell("why", "small", "--divergence")[0].split())
    assert output.startswith(f"They part {amount(first.time_ns, 'ns')} after the workload's start, on CPU 0, while ")
    assert f"{first.running} runs." in output
    for point, who in zip(points, ("the baseline", "the configuration"), strict=True):
        assert f"Under {who} {in_words(point)}." in output
        assert f"Path under {who}: " in output
        assert f"→ {next(name for name in reversed(point.path) if name != '__switch_to_asm')}." in output
    page = tmp_path / "page.html"
    shell("why", "small", "--divergence", "--html", str(page))
    shell("report", "small", "--markdown", "small.md")
    for rendered in (html.unescape(page.read_text()), (tmp_path / "small.md").read_text()):
        assert "Where the decisions part" in rendered
        assert diverged["sentences"][0].partition(",")[0] in rendered

    recordings = followed(ajuste_home)
    assert json.dumps(shell.json("why", "small", "--divergence", "--fresh")["divergence"]) == json.dumps(diverged)
    for name, again in followed(ajuste_home).items():
        assert again == recordings[name]
        same = divergence(recordings[name], again)
        assert same.spread is None
        assert same.alike == same.baseline.decisions > 40


@pytest.mark.vm
@pytest.mark.slow
def test_where_two_configurations_part_on_two_cpus(tmp_path: Path, ajuste_home: Path) -> None:
    shell = Shell(tmp_path, ajuste_home)
    text = small(1, 1)
    text = text.replace("debian:5.10", "debian:6.1").replace("[target]", "[target]\ncpus = 2")
    (tmp_path / "small.toml").write_text(text.replace('kind = "spin"', 'kind = "spin"\ncount = 3'))
    shell("run", "small.toml", "--quiet")
    diverged = shell.json("why", "small", "--divergence")["divergence"]
    assert diverged["cpus"] == 2
    assert [{run["cpu"] for run in diverged[trial]["runs"]} for trial in ("baseline", "own")] == [{0, 1}] * 2
    output = shell("why", "small", "--divergence")[0]
    assert output.startswith("They part ")
    assert "CPU 0: " in output
    assert "CPU 1: " in output
    recordings = followed(ajuste_home)
    shell("why", "small", "--divergence", "--fresh")
    assert followed(ajuste_home) == recordings
    assert len(recordings) == 2


def followed(place: Path) -> dict[str, NamedDecisions]:
    with Store(f"sqlite:///{store_of(place)}") as store:
        recordings = store.recorded(store.find_run("small"))
    return {name: recording.decisions for name, recording in recordings.items() if recording.decisions is not None}
