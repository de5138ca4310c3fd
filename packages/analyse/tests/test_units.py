"""Units of replication: values of one fork, process or file are not independent."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from ajuste.model.measurements import MeasuredTable, Values
from ajuste.model.metric import Metric
from ajuste.model.verdict import Verdict
from ajuste.report.console import Console
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report
from ajuste_analyse.comparison import compare_samples
from ajuste_analyse.files import FileRequest, read_files
from ajuste_analyse.verdicts import TableQuestion, analyse_table

ELAPSED = Metric(name="elapsed", title="elapsed time", unit="s", direction="lower")
UNITS = tuple(str(fork) for fork in range(5) for _ in range(5))


def test_forks_that_differ_by_2_percent_make_no_more_than_5_percent_of_false_effects() -> None:
    random = np.random.default_rng(1)
    logs = np.repeat(random.normal(0, 0.02, (400, 2, 5)), 5, axis=2) + random.normal(0, 0.005, (400, 2, 25))
    sides = [[Values(tuple(np.exp(side)), units=UNITS, level="fork") for side in study] for study in logs]
    significant = [
        compare_samples(baseline, other, ELAPSED, 0.05).fixed.contrast.p_value < 0.05 for baseline, other in sides
    ]
    assert np.mean(significant) <= 0.065  # A t test's 5 %, and what 400 studies vary.
    pooled = [
        compare_samples(Values(baseline.values), Values(other.values), ELAPSED, 0.05).fixed.contrast.p_value < 0.05
        for baseline, other in sides
    ]
    assert np.mean(pooled) > 0.2


def jmh(path: Path, forks: list[list[float]]) -> Path:
    metric = {"score": 1.0, "scoreUnit": "ms/op", "rawData": forks}
    path.write_text(json.dumps([{"benchmark": "a.B.c", "mode": "avgt", "primaryMetric": metric}]))
    return path


def pyperf(path: Path, runs: list[list[float]]) -> Path:
    runs_of = [{"values": values} for values in runs]
    path.write_text(json.dumps({"version": "1.0", "benchmarks": [{"metadata": {"name": "b"}, "runs": runs_of}]}))
    return path


def google(path: Path, times: list[float]) -> Path:
    rows = [{"name": "b", "real_time": time, "time_unit": "ms", "run_type": "iteration"} for time in times]
    path.write_text(json.dumps({"context": {}, "benchmarks": rows}))
    return path


@pytest.mark.parametrize("kind", ["fork", "process", "process of google-benchmark"])
def test_one_unit_is_undecided_and_says_why(tmp_path: Path, kind: str) -> None:
    old, new = [1.0, 1.01, 0.99, 1.0, 1.02], [2.0, 2.01, 1.99, 2.0, 2.02]
    if kind == "fork":
        files = [jmh(tmp_path / f"{name}.json", [values]) for name, values in (("old", old), ("new", new))]
    elif kind == "process":
        files = [pyperf(tmp_path / f"{name}.json", [values]) for name, values in (("old", old), ("new", new))]
    else:
        files = [google(tmp_path / f"{name}.json", values) for name, values in (("old", old), ("new", new))]
    (verdict,) = analyse_table(read_files(files, (), FileRequest()), TableQuestion()).verdicts
    assert verdict.verdict == "undecided"
    assert f"only one {kind.split()[0]}" in verdict.reason


def test_several_forks_decide(tmp_path: Path) -> None:
    files = [
        jmh(tmp_path / f"{name}.json", [[level, 1.001 * level], [1.01 * level], [0.99 * level]])
        for name, level in (("old", 1.0), ("new", 2.0))
    ]
    (verdict,) = analyse_table(read_files(files, (), FileRequest()), TableQuestion()).verdicts
    assert verdict.verdict == "worsens"
    assert verdict.values == (3, 3)
    assert "3 forks" in verdict.reason


def test_files_of_a_group_are_the_units(tmp_path: Path) -> None:
    groups = []
    for name, level in (("old", 1.0), ("new", 1.1)):
        (tmp_path / name).mkdir()
        for number in range(3):
            values = level * (1 + 0.005 * number) * np.array([1, 1.001, 0.999])
            (tmp_path / name / f"{number}.txt").write_text("time\n" + "".join(f"{value:.6f}\n" for value in values))
        groups.append(tmp_path / name)
    (verdict,) = analyse_table(read_files(groups, (), FileRequest(lower=("time",))), TableQuestion()).verdicts
    assert verdict.values == (3, 3)
    assert "3 files" in verdict.reason


def test_the_figures_of_a_sentence_agree_with_its_percentage() -> None:
    """Arithmetic means would say: from 5.5 to 6.4, and lower by 36 %."""
    old, new = [1.0, 10.0] * 8, [0.4, 12.4, 0.41, 12.3] * 4
    samples = {("old", "time"): Values(tuple(old)), ("new", "time"): Values(tuple(new))}
    metric = ELAPSED.model_copy(update={"name": "time", "title": "time"})
    results = analyse_table(MeasuredTable("CSV", ("old", "new"), (metric,), samples), TableQuestion())
    screen = StringIO()
    print_report(results_report(results, ()), Console(file=screen))
    output = " ".join(screen.getvalue().split())
    assert results.verdicts[0].old == pytest.approx(10**0.5)
    assert results.verdicts[0].means_disagree
    assert "3.16 s with old" in output
    assert "2.24 s with new (−29" in output


def go(path: Path, runs: list[list[float]]) -> Path:
    outputs = [
        "goos: linux\npkg: x\n" + "".join(f"BenchmarkSort \t100\t{value} ns/op\n" for value in run) for run in runs
    ]
    path.write_text("PASS\n".join(outputs))
    return path


def criterion(path: Path, runs: list[list[float]]) -> Path:
    records = [{"reason": "benchmark-complete", "id": "sort", "unit": "ns", "iteration_count": [1] * len(run),
             "measured_values": run} for run in runs]  # fmt: skip
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def pytest_benchmark(path: Path, runs: list[list[float]]) -> Path:
    (only,) = runs
    test = {"name": "test_sort", "fullname": "t.py::test_sort", "stats": {"data": only}}
    path.write_text(json.dumps({"benchmarks": [test]}))
    return path


@pytest.mark.parametrize("write", [go, criterion, pytest_benchmark])
def test_rounds_of_one_process_cannot_judge_and_those_of_several_runs_can(
    tmp_path: Path, write: Callable[[Path, list[list[float]]], Path]
) -> None:
    def verdict(*paths: Path) -> Verdict:
        return analyse_table(read_files(paths, (), FileRequest()), TableQuestion()).verdicts[0]

    rounds = {"old": [10.0, 10.1, 9.9, 10.05], "new": [12.0, 12.1, 11.9, 12.05]}
    alone = verdict(*(write(tmp_path / f"{name}.json", [values]) for name, values in rounds.items()))
    assert (alone.verdict, alone.values) == ("undecided", (1, 1))
    assert "only one process" in alone.reason
    for name, values in rounds.items():
        (tmp_path / name).mkdir()
        for number, value in enumerate(values):
            write(tmp_path / name / f"{number}.json", [[value, 1.001 * value]])
    several = verdict(*(tmp_path / name for name in rounds))
    assert (several.verdict, several.values) == ("worsens", (4, 4))
    if write is not pytest_benchmark:
        runs = {name: [[value, 1.001 * value] for value in values] for name, values in rounds.items()}
        one_file = verdict(*(write(tmp_path / f"{name}.txt", side) for name, side in runs.items()))
        assert (one_file.verdict, one_file.values) == ("worsens", (4, 4))
