"""Files as the programs wrote them (``outputs/``), against what the programs themselves say of their runs."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean, stdev

import pytest

from ajuste.model.measurements import MeasuredTable, Summarised, Values
from ajuste_analyse.files import FileRequest, read_files

OUTPUTS = Path(__file__).parents[3] / "tests" / "outputs" / "outputs"


def read(name: str, runs: int | None = None) -> MeasuredTable:
    return read_files([OUTPUTS / name], ["it"], FileRequest(runs=runs))


def values(table: MeasuredTable, metric: str, configuration: str = "it") -> tuple[float, ...]:
    sample = table.samples[configuration, metric]
    assert isinstance(sample, Values)
    return sample.values


def test_hyperfine() -> None:
    table = read("hyperfine.json")
    results = json.loads((OUTPUTS / "hyperfine.json").read_text())["results"]
    assert table.configurations == ("true", "sleep 0.002")
    for result in results:
        times = values(table, "time", result["command"])
        assert fmean(times) == pytest.approx(result["mean"], rel=1e-12)
        assert stdev(times) == pytest.approx(result["stddev"], rel=1e-9)


def test_pyperf_says_of_them_that_they_are_58_6_us_and_spread_by_12_us() -> None:
    times = values(read("pyperf.json"), "timeit")
    assert len(times) == 20
    assert f"{1e6 * fmean(times):.1f} {1e6 * stdev(times):.1f}" == "58.6 12.0"


def test_google_benchmark() -> None:
    table = read("google-benchmark.json")
    benchmarks = json.loads((OUTPUTS / "google-benchmark.json").read_text())["benchmarks"]
    for benchmark in benchmarks:
        if benchmark.get("aggregate_name") == "mean":
            assert fmean(values(table, benchmark["run_name"])) == pytest.approx(benchmark["real_time"] * 1e-9)
            assert fmean(values(table, f"{benchmark['run_name']} (CPU)")) == pytest.approx(benchmark["cpu_time"] * 1e-9)


def test_hackbench() -> None:
    assert values(read("hackbench.txt"), "time") == (0.155, 0.057, 0.170)
    assert values(read("messaging.txt"), "time") == (0.205,)


def test_fio() -> None:
    """The document is found among other lines; json+ has the same figures beside its bins."""
    for name in ("fio-normal-and-json.txt", "fio-json-plus.json"):
        text = (OUTPUTS / name).read_text()
        start, end = text.index("{\n"), text.rindex("\n}")
        job = json.loads(text[start : end + 2])["jobs"][0]["read"]
        table = read(name)
        assert values(table, "read.iops") == (pytest.approx(job["iops"]),)
        assert values(table, "read.bandwidth") == (pytest.approx(job["bw_bytes"]),)
        assert values(table, "read.latency-p99") == (pytest.approx(job["clat_ns"]["percentile"]["99.000000"] / 1e9),)
        assert {metric.name.split(".")[0] for metric in table.metrics} == {"read"}


def test_perf_in_its_three_forms() -> None:
    text = read("perf-r3.txt")
    assert text.samples["it", "task-clock"] == Summarised(3, pytest.approx(0.88e-3), pytest.approx(0.88e-3 * 0.0657))
    assert text.samples["it", "context-switches"] == Summarised(3, 2, pytest.approx(2 * 0.1667))
    assert text.notes == ("perf-r3.txt: perf did not count cycles.",)
    lines = read("perf-r3.json", runs=3)
    assert lines.samples["it", "task-clock"] == Summarised(
        3, pytest.approx(0.955012e-3), pytest.approx(0.955012e-3 * 0.0298)
    )
    separated = read("perf-r3.csv", runs=3)
    assert separated.samples["it", "task-clock"] == Summarised(3, pytest.approx(1.27e-3), pytest.approx(0.0127e-3))
    assert separated.notes == ("perf-r3.csv: perf did not count cycles.",)


def test_perf_without_and_with_its_table_of_runs() -> None:
    single = read("perf-one.txt")
    assert values(single, "task-clock") == (pytest.approx(4.51e-3), pytest.approx(0.83e-3))
    assert values(single, "context-switches") == (2, 1)
    assert read("perf-table.txt").samples["it", "time-elapsed"] == Summarised(
        3, 0.005455, pytest.approx(0.005455 * 0.0247)
    )


def test_runs_that_were_all_alike_are_a_summary_too(tmp_path: Path) -> None:
    """perf prints no +- where the spread is 0."""
    alike = (OUTPUTS / "perf-r3.txt").read_text().replace("( +-  0.91% )", "")
    (tmp_path / "alike.txt").write_text(alike)
    table = read_files([tmp_path / "alike.txt"])
    assert table.samples["alike", "page-faults"] == Summarised(3, 73, 0)
