"""Results of frameworks for benchmarks, against what each says itself of the same values."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import pytest

from ajuste.model.error import RequestError
from ajuste.model.measurements import MeasuredTable, Summarised, Values
from ajuste_analyse.files import FileRequest, read_files

OUTPUTS = Path(__file__).parents[3] / "tests" / "outputs" / "outputs"


def read(name: str, runs: int | None = None) -> MeasuredTable:
    return read_files([OUTPUTS / name], ["it"], FileRequest(runs=runs))


def values(table: MeasuredTable, metric: str, configuration: str = "it") -> tuple[float, ...]:
    sample = table.samples[configuration, metric]
    assert isinstance(sample, Values)
    assert not sample.blocks
    return sample.values


def units(table: MeasuredTable) -> dict[str, tuple[str, str]]:
    return {metric.name: (metric.unit, metric.direction) for metric in table.metrics}


def document(name: str) -> Any:
    return json.loads((OUTPUTS / name).read_text())


def refused(tmp_path: Path, name: str, text: str, runs: int | None = None) -> RequestError:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(RequestError) as error:
        read_files([path], request=FileRequest(runs=runs))
    assert error.value.place is not None
    return error.value


def test_go_has_the_medians_of_benchstat() -> None:
    """``benchstat -format csv go-bench.txt`` prints these."""
    table = read("go-bench.txt")
    medians = {
        "Sort/n=16-2": 5.483e-07,
        "Sort/n=64-2": 1.677e-06,
        "Copy-2": 4.389e-08,
        "Sort/n=64-2 B/op": 512,
        "Sort/n=16-2 allocs/op": 1,
        "Copy-2 MB/s": 2.3334015e10,
        "Copy-2 kcopies": 2679.5,
    }
    assert {name: median(values(table, name)) for name in medians} == pytest.approx(medians, rel=1e-4)
    assert units(table)["Copy-2 MB/s"] == ("bytes/s", "higher")
    assert units(table)["Copy-2 kcopies"] == ("kcopies", "none")


@pytest.mark.parametrize(("end", "words"), [("--- FAIL: BenchmarkX\nFAIL\n", "--- FAIL"), ("PASS\n", "no results")])
def test_go_without_a_result_is_no_csv(tmp_path: Path, end: str, words: str) -> None:
    assert words in refused(tmp_path, "go.txt", f"goos: linux\ngoarch: amd64\npkg: x\n{end}").message


def test_go_says_what_is_better_and_of_which_package(tmp_path: Path) -> None:
    path = tmp_path / "it.txt"
    path.write_text(
        "Unit hits better=higher\npkg: a\nBenchmarkX-2 \t 10 \t 5 ns/op \t 3 hits\nok a 1s\n"
        "pkg: b\nBenchmarkX-2\nsome log\nBenchmarkX-2  10  7.5 ns/op  4 hits\nPASS\n"
    )
    table = read_files([path], ["it"])
    assert units(table)["a.X-2 hits"] == ("hits", "higher")
    assert (values(table, "a.X-2"), values(table, "b.X-2")) == ((pytest.approx(5e-9),), (pytest.approx(7.5e-9),))


def test_criterion_has_the_mean_of_its_own_estimate() -> None:
    table = read("criterion-messages.jsonl")
    for line in (OUTPUTS / "criterion-messages.jsonl").read_text().splitlines():
        message = json.loads(line)
        if message["reason"] == "benchmark-complete":
            assert fmean(values(table, message["id"])) == pytest.approx(message["mean"]["estimate"] * 1e-9)


def test_the_samples_of_criterion_are_named_as_the_file_beside_them_says(tmp_path: Path) -> None:
    for baseline in ("base", "new"):
        folder = tmp_path / "sort" / "of 64" / baseline
        folder.mkdir(parents=True)
        (folder / "sample.json").write_text((OUTPUTS / "criterion-sample.json").read_text())
        (folder / "benchmark.json").write_text('{"full_id": "sort/of 64"}')
    table = read_files([tmp_path / "**/base/sample.json", tmp_path / "**/new/sample.json"])
    assert table.configurations == ("base", "new")
    times = values(table, "sort/of 64", "base")
    assert fmean(times) == pytest.approx(947.242489291225e-9), "mean.point_estimate of estimates.json"
    (folder / "benchmark.json").write_text("[")
    assert [metric.name for metric in read_files([folder / "sample.json"]).metrics] == ["of 64"]


def test_pytest_benchmark_says_the_same_of_its_rounds() -> None:
    table = read("pytest-benchmark.json")
    for benchmark in document("pytest-benchmark.json")["benchmarks"]:
        rounds = values(table, benchmark["name"])
        assert fmean(rounds) == pytest.approx(benchmark["stats"]["mean"], rel=1e-12)
        assert stdev(rounds) == pytest.approx(benchmark["stats"]["stddev"], rel=1e-9)


def test_pytest_benchmark_without_its_rounds_has_their_mean(tmp_path: Path) -> None:
    saved = document("pytest-benchmark.json")
    for benchmark in saved["benchmarks"]:
        del benchmark["stats"]["data"]
        benchmark["name"] = "test_sort"
    path = tmp_path / "it.json"
    path.write_text(json.dumps(saved))
    table = read_files([path], ["it"])
    stats = saved["benchmarks"][0]["stats"]
    mean_only = table.samples["it", "pb/test_sort.py::test_sort[16]"]
    assert mean_only == Values((stats["mean"],), units=("1",), level="process")


def test_jmh_has_the_scores_that_it_prints() -> None:
    table = read("jmh.json")
    factors = {"ops/us": 1e6, "us/op": 1e-6}
    for benchmark in document("jmh.json"):
        name = f"x.Sums.sort [n={benchmark['params']['n']}] ({benchmark['mode']})"
        primary = benchmark["primaryMetric"]
        if benchmark["mode"] != "sample":
            assert fmean(values(table, name)) == pytest.approx(primary["score"] * factors[primary["scoreUnit"]])
            assert len(values(table, name)) == 6
        direction = "higher" if benchmark["mode"] == "thrpt" else "lower"
        assert units(table)[name] == ("1/s" if direction == "higher" else "s", direction)
        allocated = benchmark["secondaryMetrics"]["gc.alloc.rate.norm"]
        assert fmean(values(table, f"{name} gc.alloc.rate.norm")) == pytest.approx(allocated["score"])
    assert table.main == {name for name in units(table) if name.endswith(")")}


def test_an_iteration_of_jmh_that_samples_is_its_mean() -> None:
    table = read("jmh.json")
    (benchmark,) = (benchmark for benchmark in document("jmh.json") if benchmark["mode"] == "sample")
    iterations = [iteration for fork in benchmark["primaryMetric"]["rawDataHistogram"] for iteration in fork]
    counts = [sum(count for _, count in iteration) for iteration in iterations]
    means = values(table, "x.Sums.sort [n=16] (sample)")
    whole = sum(value * count for value, count in zip(means, counts, strict=True)) / sum(counts)
    assert whole == pytest.approx(benchmark["primaryMetric"]["score"] * 1e-6)
    assert values(table, "x.Sums.sort [n=16] (sample) p99") == (pytest.approx(2.975e-6, rel=1e-3),)


def test_asv_says_the_same_of_its_samples() -> None:
    table = read("asv.json")
    results = document("asv.json")["results"]
    times, size = results["sums.Sums.time_sort"][0], results["sums.Sums.track_size"][0]
    assert [median(values(table, f"sums.Sums.time_sort({n})")) for n in (16, 64)] == pytest.approx(times)
    assert [values(table, f"sums.Sums.track_size({n})") for n in (16, 64)] == [(size[0],), (size[1],)]
    assert units(table)["sums.peakmem_list"] == ("bytes", "lower")


def test_what_asv_could_not_measure_is_told(tmp_path: Path) -> None:
    saved = document("asv.json")
    saved["results"]["sums.Sums.track_size"][0] = [None, 512]
    path = tmp_path / "it.json"
    path.write_text(json.dumps(saved))
    assert read_files([path]).notes == ("it.json: left out 1 results that failed or were skipped.",)


def test_mmtests_says_the_same_in_all_its_forms() -> None:
    compared, text, samples = (read(f"mmtests-{name}") for name in ("compare.txt", "extract.txt", "extract.json"))
    assert compared.configurations == samples.configurations == ("vanilla-1", "loops-2")
    statistics: dict[str, Callable[[tuple[float, ...]], float]] = {
        "Min": min,
        "Max": max,
        "Amean": fmean,
        "Stddev": stdev,
    }
    for operation in ("time-1", "time-2"):
        assert sorted(values(text, operation)) == sorted(values(samples, operation, "vanilla-1"))
        for kernel in samples.configurations:
            for name, statistic in statistics.items():
                expected = statistic(values(samples, operation, kernel))
                assert values(compared, f"{name} {operation}", kernel) == (pytest.approx(expected, abs=6e-5),)
    assert set(units(compared).values()) == set(units(samples).values()) == {("", "lower")}


def test_a_kernel_without_a_result_and_what_is_better(tmp_path: Path) -> None:
    path = tmp_path / "it.txt"
    path.write_text(
        "                    6.1             6.12             6.18\n"
        "                     rc1-a              b                b\n"
        "Hmean     1   100.00 (   0.00%)   110.00 *  10.00%*     0.00 (   0.00%)\n"
        "Amean     1     5.00 (   0.00%)     4.00 (  20.00%)     6.00 ( -20.00%)\n"
    )
    table = read_files([path])
    assert table.configurations == ("6.1-rc1-a", "6.12-b", "6.18-b")
    assert units(table) == {"Hmean 1": ("", "higher"), "Amean 1": ("", "lower")}
    assert ("6.18-b", "Hmean 1") not in table.samples
    assert table.notes == ("it.txt: left out 1 summaries of 0 that stand for no result.",)


def test_the_table_of_lkp_needs_the_number_of_runs(tmp_path: Path) -> None:
    table = read("lkp-compare.txt", runs=9)
    old, new = table.configurations
    assert (old, new) == ("0123456789", "fedcba98765432100123456789")
    delay = "perf-sched.sch_delay.avg.ms"
    assert table.samples[old, delay] == Summarised(9, 3.52, pytest.approx(3.52 * 0.13 / 3)), "12.9 % is printed as 12"
    operations = "will-it-scale.per_process_ops"
    assert table.samples[new, operations] == Summarised(9, 76150, pytest.approx(76150 * 0.02 / 3)), "up to 2 %: none"
    assert table.samples[new, "perf-stat.i.instructions"] == Summarised(9, 1.934e11, pytest.approx(1.934e11 * 0.02 / 3))
    assert table.notes == ("lkp-compare.txt: left out 1 rows of failed runs.",)
    error = refused(tmp_path, "it.txt", (OUTPUTS / "lkp-compare.txt").read_text())
    assert (error.place and error.place.line, error.hint) == (16, "give it with --runs N: the runs of each commit")


def test_the_statistics_of_lkp() -> None:
    assert values(read("lkp-matrix.json"), "will-it-scale.16.processes") == (1265210, 1262004, 1268416)


def test_phoronix_has_its_values_by_identifier() -> None:
    table = read("phoronix.xml")
    compilation = "Timed Example Compilation (Time To Compile)"
    assert table.configurations == ("first", "second")
    assert fmean(values(table, compilation, "first")) == pytest.approx(41.233, abs=1e-3), "its own Value"
    assert fmean(values(table, compilation, "second")) == pytest.approx(40.033, abs=1e-3)
    assert units(table)[compilation] == ("s", "lower")
    assert units(table)["Example Server (Connections: 100)"] == ("Requests Per Second", "higher")
    assert table.notes == ("phoronix.xml: left out 1 results without a number.",)


@pytest.mark.parametrize(
    "declared",
    [
        '<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;&a;">]>',
        '<!DOCTYPE x SYSTEM "file:///etc/hostname">',
        '<!DOCTYPE x [<!ENTITY % e SYSTEM "http://localhost/e"> %e;]>',
    ],
)
def test_xml_with_declarations_is_refused(tmp_path: Path, declared: str) -> None:
    text = (OUTPUTS / "phoronix.xml").read_text().replace("?>\n", f"?>\n{declared}\n", 1)
    error = refused(tmp_path, "it.xml", text)
    assert "found a document type or an entity declaration; expected elements and texts only" in str(error)
    assert error.place is not None
    assert error.place.line == 2


@pytest.mark.parametrize(
    ("name", "old", "new", "line", "words"),
    [
        ("go-bench.txt", "437.2 ns/op", "437.2", 5, "expected figures, each with its unit"),
        ("go-bench.txt", "437.2 ns/op", "4.3.2 ns/op", 5, '"4.3.2" is not a number for ns/op'),
        ("go-bench.txt", "PASS", "--- FAIL: TestX", 17, "--- FAIL"),
        ("criterion-messages.jsonl", '"unit":"ns"', '"unit":"parsecs"', None, "expected one of ns, us, µs, ms, s"),
        ("criterion-messages.jsonl", '"iteration_count":[18109', '"iteration_count":[0', None, "at least one"),
        ("criterion-messages.jsonl", '"iteration_count":[18109,', '"iteration_count":[', None, "expected 9 times"),
        ("criterion-messages.jsonl", ',"benchmarks"', "", 2, "expected a whole message"),
        ("pytest-benchmark.json", '"data": [', '"data": ["x",', None, "expected a number"),
        ("jmh.json", '"rawData":[[', '"rawData":[[{},', None, "expected a number"),
        ("asv.json", '"16",', '"16", "32",', None, "expected 3 results"),
        ("mmtests-compare.txt", "0.0850 (   6.59%)", "0.0850", 3, "expected a figure and its change for each kernel"),
        ("mmtests-compare.txt", "loops\n", " " * 90, 2, "the names of the kernels are missing"),
        ("mmtests-extract.txt", "0.0910", "", 4, "expected operation, iteration, sample and value"),
        ("mmtests-extract.json", '"0.116"', '"x"', None, '"x" is not a number for time-1'),
        ("lkp-matrix.json", "1265210", '"many"', None, "expected a number"),
        ("phoronix.xml", "41.5:41.1", "41.5:x", 26, '"x" is not a number for Value or RawString'),
        ("phoronix.xml", "</PhoronixTestSuite>", "", 55, "not valid XML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, name: str, old: str, new: str, line: int | None, words: str
) -> None:
    text = (OUTPUTS / name).read_text()
    assert old in text
    error = refused(tmp_path, name, text.replace(old, new, 1))
    assert words in error.message
    assert error.place is not None
    assert error.place.line == line


def test_estimates_alone_are_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, "estimates.json", '{"mean": {"point_estimate": 1.0, "standard_error": 0.1}}')
    assert error.hint == "give the file sample.json beside it"
