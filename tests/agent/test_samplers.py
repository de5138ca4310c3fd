"""Samplers on this machine: what they read is compared with what is known otherwise. ``run`` is ``conftest.Runner``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from ajuste.catalogue.loader import figure_sources
from ajuste.model.event import Exited, Failed, Sample, Sampled, Started, parse_event

HUNDREDTH = 10_000_000


def sampler(source: str, *keys: str, interval_ns: int = HUNDREDTH) -> dict[str, Any]:
    return {"source": source, "keys": keys, "interval_ns": interval_ns}


def test_a_process_is_read_from_before_its_start_until_its_very_end(run: Any, tmp_path: Path) -> None:
    argv = ["dd", "if=/dev/zero", f"of={tmp_path / 'file'}", "bs=64k", "count=80"]
    trial = run(workload={"argv": argv}, samplers=[sampler("process", "io.wchar", "stat.minor_faults", "io.syscw")])
    first, *_, last = trial.of(Sample)
    assert first.at_ns <= trial.of(Started)[0].at_ns
    assert first.values["io.wchar"] < 100 < 80 * 65536 <= last.values["io.wchar"] < 80 * 65536 + 1000
    assert last.values["stat.minor_faults"] >= trial.exited().minor_faults
    assert (tmp_path / "file").stat().st_size == 80 * 65536


def test_readings_are_as_many_as_there_is_time_for_and_go_on_after_the_end(run: Any) -> None:
    trial = run.shell("sleep 0.3", samplers=[sampler("stat", "ctxt")], observe_ns=200_000_000)
    (end,) = trial.of(Sampled)
    samples = trial.of(Sample)
    assert end.readings == len(samples)
    # 50 in the time, and those of the start, of the end of the workload and of the observation.
    assert 50 <= end.readings + end.skipped <= 50 + 20 * (trial.exited().wall_ns // 200_000_000)
    until_s = (samples[-1].at_ns - trial.of(Started)[0].at_ns) / 1e9
    assert until_s >= trial.exited().wall_ns / 1e9 + 0.2
    figures = [sample.values["ctxt"] for sample in samples]
    assert figures == sorted(figures)


def test_only_what_was_asked_for_is_told(run: Any) -> None:
    trial = run.shell("exit 0", samplers=[sampler("meminfo", "MemTotal", "Swap*"), sampler("vmstat", "nr_no_such")])
    total = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    for sample in trial.of(Sample):
        assert sample.values.pop("MemTotal") == total
        assert {"SwapTotal", "SwapFree"} <= set(sample.values)
        assert all(name.startswith("Swap") for name in sample.values)
    assert [(end.source, end.readings > 0, end.not_supported) for end in trial.of(Sampled)] == [
        ("meminfo", True, None),
        ("vmstat", False, None),
    ]


def test_every_figure_of_this_kernel_is_in_the_catalogue(run: Any) -> None:
    trial = run.shell("exit 0", samplers=[sampler(source, "*") for source in figure_sources()])
    seen = {(sample.source, name) for sample in trial.of(Sample) for name in sample.values}
    assert {source for source, _ in seen} >= {"vmstat", "meminfo", "stat", "softirqs", "interrupts", "process"}
    assert [(source, name) for source, name in seen if figure_sources()[source].find(name) is None] == []
    for end in trial.of(Sampled):
        assert (end.readings == 0) == (end.not_supported is not None)


def test_a_program_that_does_not_exist_is_not_observed(run: Any) -> None:
    trial = run(workload={"argv": ["/no/such/program"]}, samplers=[sampler("stat", "*")], observe_ns=3_600_000_000_000)
    assert (trial.failed.stage, trial.exit_code) == ("workload", 1)


def test_who_is_told_to_stop_while_observing_does(agent: str) -> None:
    plan = {
        "id": "t",
        "workload": {"argv": ["/bin/true"]},
        "samplers": [sampler("stat", "ctxt")],
        "observe_ns": 3_600_000_000_000,
    }
    process = subprocess.Popen([agent, "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(plan))
    process.stdin.close()
    lines = [process.stdout.readline() for _ in range(3)]
    started = parse_event(lines[-1])
    assert isinstance(started, Started)
    while Path(f"/proc/{started.pid}").exists():
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGTERM)
    events = [parse_event(line) for line in (*lines, *process.stdout)]
    assert process.wait() == 1
    assert [event.exit_code for event in events if isinstance(event, Exited)] == [0]
    assert [event.message for event in events if isinstance(event, Failed)] == ["a signal asked the agent to stop"]
    assert len([event for event in events if isinstance(event, Sample)]) >= 2
