"""Files as their programs write them, read back and compared with what the programs themselves say."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ajuste.model.error import RequestError
from ajuste.model.measurements import MeasuredTable, Summarised, Values
from ajuste_analyse.files import FileRequest, read_files
from ajuste_programs.storage import parse_fio
from foreign_outputs import GERMAN, GOOGLE, LINPACK, PERF, PYPERF


@pytest.fixture
def put(tmp_path: Path) -> Any:
    def write(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return write


def line_of(error: RequestError) -> int | None:
    return error.place.line if error.place else None


def values(table: MeasuredTable, configuration: str, metric: str) -> tuple[float, ...]:
    sample = table.samples[configuration, metric]
    assert isinstance(sample, Values)
    return sample.values


def test_a_table_with_configurations_and_blocks(put: Any) -> None:
    path = put("a.csv", "configuration,block,time [ms],rate\nold,1,2.5,7\nnew,1,2.25,8e3\nold,2,2.75,-1\n")
    table = read_files([path], request=FileRequest(lower=["time"], higher=["rate"]))
    assert table.configurations == ("old", "new")
    assert [(m.name, m.unit, m.direction) for m in table.metrics] == [("time", "ms", "lower"), ("rate", "", "higher")]
    assert table.samples["old", "time"] == Values((2.5, 2.75), ("1", "2"))
    assert values(table, "new", "rate") == (8000.0,)


@pytest.mark.parametrize("text", ["time;x\n2,5;1\n", "time\tx\n2.5\t1\n", "\ufefftime,x\r\n2.5,1\r\n"])
def test_other_separators_and_ends_of_lines(put: Any, text: str) -> None:
    assert values(read_files([put("old.csv", text)]), "old", "time") == (2.5,)


def test_several_files_are_several_configurations(put: Any) -> None:
    files = [put("old.csv", "time\n1\n2\n"), put("new.csv", "time\n3\n")]
    assert read_files(files).configurations == ("old", "new")
    assert read_files(files, ["a", "b"]).configurations == ("a", "b")
    assert values(read_files(files, ["a", "a"]), "a", "time") == (1.0, 2.0, 3.0)


def test_hyperfine_says_the_same_of_its_runs(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    subprocess.run(
        ["hyperfine", "-N", "--runs", "5", "--export-json", path, "true", "sleep 0.001"],
        check=True,
        capture_output=True,
    )
    results = json.loads(path.read_text())["results"]
    table = read_files([path])
    assert table.configurations == ("true", "sleep 0.001")
    for result in results:
        times = values(table, result["command"], "time")
        assert sum(times) / len(times) == pytest.approx(result["mean"], rel=1e-12)


def test_the_same_command_twice_is_two_configurations(tmp_path: Path) -> None:
    path = tmp_path / "aa.json"
    command = ["hyperfine", "-N", "--runs", "5", "--export-json", path, "true", "true"]
    subprocess.run(command, check=True, capture_output=True)
    table = read_files([path])
    assert table.configurations == ("true (1)", "true (2)")
    for name, result in zip(table.configurations, json.loads(path.read_text())["results"], strict=True):
        assert values(table, name, "time") == tuple(result["times"])
    assert any('"true"' in note and "(1)" in note for note in table.notes)


def test_a_failed_run_is_no_result(put: Any) -> None:
    path = put("a.json", {"results": [{"command": "x", "times": [1, 2], "exit_codes": [0, 1]}]})
    with pytest.raises(RequestError, match="1 of 2 runs of a failed"):
        read_files([path])


def test_fio_says_the_same_of_its_run(tmp_path: Path) -> None:
    path = tmp_path / "fio.json"
    subprocess.run(
        [
            *("fio", "--name=x", f"--filename={tmp_path}/data", "--size=2M", "--rw=randrw", "--bs=4k", "--numjobs=2"),
            *("--output-format=json", f"--output={path}"),
        ],
        check=True,
        capture_output=True,
    )
    jobs = json.loads(path.read_text())["jobs"]
    table = read_files([path])
    longest = max(job["write"]["runtime"] for job in jobs) / 1000
    writes = sum(job["write"]["total_ios"] for job in jobs)
    assert values(table, "fio", "write.iops") == (pytest.approx(writes / longest),)
    weighted = sum(job["read"]["lat_ns"]["mean"] * job["read"]["total_ios"] for job in jobs)
    total = sum(job["read"]["total_ios"] for job in jobs)
    assert values(table, "fio", "read.latency") == (pytest.approx(weighted / total / 1e9),)
    assert not [metric for metric in table.metrics if metric.name.startswith("trim")]


def test_groups_of_fio_that_ran_after_one_another_have_no_sum(tmp_path: Path) -> None:
    """Compare each set of jobs with what fio says of it (``--group_reporting``), and with the live reader."""
    path = tmp_path / "fio.json"
    jobs = ("--name=a", "--rw=write", "--name=b", "--stonewall", "--rw=read", "--numjobs=2")
    again = ("--name=a", "--stonewall", "--rw=write")
    subprocess.run(
        [
            *("fio", f"--filename={tmp_path}/data", "--size=2M", "--bs=4k", "--group_reporting", *jobs, *again),
            *("--output-format=json", f"--output={path}"),
        ],
        check=True,
        capture_output=True,
    )
    first, second, third = json.loads(path.read_text())["jobs"]
    table = read_files([path])
    expected = {
        "a-group0.write.iops": first["write"]["iops"],
        "b.read.iops": second["read"]["iops"],
        "a-group2.write.iops": third["write"]["iops"],
    }
    rates = {m.name: values(table, "fio", m.name) for m in table.metrics if m.name.endswith("iops")}
    assert rates == {name: (pytest.approx(value, rel=1e-6),) for name, value in expected.items()}
    live = {name: value for name, value in parse_fio(path.read_text()).items() if name.endswith("iops")}
    assert live == {f"fio.{name}": pytest.approx(value, rel=1e-6) for name, value in expected.items()}
    assert any("one after the other" in note for note in table.notes)


def test_a_summary_of_perf(put: Any) -> None:
    table = read_files([put("before.txt", PERF)])
    assert table.samples["before", "task-clock"] == Summarised(5, 2.51031, pytest.approx(2.51031 * 0.0053))
    assert table.samples["before", "context-switches"] == Summarised(5, 333, pytest.approx(333 * 0.021))
    assert table.samples["before", "time-elapsed"] == Summarised(5, 2.5187, pytest.approx(2.5187 * 0.0053))
    assert "cycles" not in [metric.name for metric in table.metrics]


def test_a_summary_in_a_locale_with_decimal_commas(put: Any) -> None:
    table = read_files([put("before.txt", GERMAN)])
    assert table.samples["before", "task-clock"] == Summarised(5, 2.51031, pytest.approx(2.51031 * 0.0053))
    assert table.samples["before", "context-switches"] == Summarised(5, 1333, pytest.approx(1333 * 0.021))


def test_single_runs_of_perf_are_values(put: Any) -> None:
    run = " Performance counter stats for 'x':\n\n     12,345      context-switches\n\n    1.5 seconds time elapsed\n\n"
    table = read_files([put("x.txt", run * 3)])
    assert values(table, "x", "context-switches") == (12345.0,) * 3
    assert values(table, "x", "time-elapsed") == (1.5,) * 3


def test_perf_in_json_lines(put: Any) -> None:
    line = '{"counter-value" : "2510.310000", "unit" : "msec", "event" : "task-clock", "variance" : 0.53}\n'
    path = put("x.json", line + '{"counter-value" : "<not supported>", "unit" : "", "event" : "cycles"}\n')
    assert read_files([path], request=FileRequest(runs=5)).samples["x", "task-clock"] == Summarised(
        5, pytest.approx(2.51031), pytest.approx(2.51031 * 0.0053)
    )
    with pytest.raises(RequestError, match="the number of runs is missing") as caught:
        read_files([path])
    assert line_of(caught.value) == 1


def test_the_other_programs(put: Any) -> None:
    assert values(read_files([put("l.txt", LINPACK)]), "l", "kflops") == (3254116.504, 3263018.275)
    assert values(read_files([put("h.txt", "Running …\nTime: 0.123\nTime: 0.125\n")]), "h", "time") == (0.123, 0.125)
    assert values(read_files([put("m.txt", "     Total time: 0.055 [sec]\n")]), "m", "time") == (0.055,)
    google = read_files([put("g.json", GOOGLE)])
    assert values(google, "g", "BM_x") == (pytest.approx(2.5e-6), pytest.approx(2.7e-6))
    assert values(google, "g", "BM_x (CPU)") == (pytest.approx(2e-6), pytest.approx(2.1e-6))
    assert values(read_files([put("p.json", PYPERF)]), "p", "bench") == (0.1, 0.2, 0.3)


@pytest.mark.parametrize(
    ("name", "content", "line", "words"),
    [
        ("a.csv", "", None, "empty"),
        ("a.csv", "  \n\n", None, "empty"),
        ("a.csv", "time\n", None, "no result"),
        ("a.csv", "time\n1\nnan\n", 3, "finite"),
        ("a.csv", "time\n1\n-inf\n", 3, "finite"),
        ("a.csv", "time\n1\nfast\n", 3, "expected a number"),
        ("a.csv", "time,x\n1,2\n1\n", 3, "found 1 fields; expected 2, as in the first line"),
        ("a.csv", "time,x\n1,\n", 2, "x is empty"),
        ("a.csv", "time,time\n1,2\n", 1, "twice"),
        ("a.csv", "1,2\n3,4\n", 1, "expected column names"),
        ("a.csv", "configuration,block\na,1\n", 1, "the metric column is missing"),
        ("a.csv", "configuration,time\n,1\n", 2, "configuration without a name"),
        ("a.csv", 'a,b\n"1,2\n', None, "not valid CSV"),
        ("a.json", '{"results": [\n', 2, "not valid JSON"),
        ("a.json", '{"a": 1}', None, "unknown JSON document"),
        ("a.json", '{"results": [{"command": "x", "times": [1, "2"]}]}', None, 'found "2"'),
        ("a.json", '{"results": [{"command": "x", "mean": 1}]}', None, "only a summary"),
        ("a.json", '{"results": []}', None, "no result"),
        ("a.json", "[" * 100000, None, "not valid JSON"),
        ("a.csv", "time\n1\n1e300\n", 3, "expected a number between 1e-100 and 1e100"),
        ("a.csv", "time\n1\n1_000\n", 3, "expected a number"),
        ("a.csv", "time [s],time [ms]\n1,2\n", 1, "two columns have the metric 'time'"),
        ("a.csv", "command,mean,stddev,median,min\ntrue,1,1,1,1\n", 1, "lack the number of runs"),
        ("a.csv", "block,time\n,2\n", 2, "found a block without a name"),
        ("a.csv", "time\n1\n\0\n", 3, "has a NUL"),
        ("a.txt", "Time: 0.1\nTime: -nan\n", 2, "found 'Time: -nan'; expected a time"),
        ("a.txt", LINPACK + "    8192   3.96  nan%   2.8%  12.78%  326\n", 12, "expected a complete row"),
        ("a.txt", "# time counts unit events\n 0.05 1.01 msec task-clock\n", None, "intervals of a run"),
        ("a.txt", PERF.replace("               333", "CPU0           333"), 5, "parts of a run"),
        ("a.txt", "1,09,msec,task-clock,1094192,100.00,0.073,CPUs utilized\n", 1, "expected a value, its unit"),
        (
            "a.json",
            '{"counter-value" : "1", "unit" : "", "event" : "x", "cpu" : "0"}',
            1,
            "not supported: parts of a run",
        ),
        ("a.json", {"benchmarks": [{"real_time": 1, "run_type": "aggregate"}]}, None, "only aggregates"),
        ("a.json", {"fio version": "3", "jobs": [{"error": 5}]}, None, "failed with error 5"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(
    put: Any, name: str, content: Any, line: int | None, words: str
) -> None:
    with pytest.raises(RequestError) as caught:
        read_files([put(name, content)])
    assert words in str(caught.value)
    assert "a." in str(caught.value.place)
    if line is not None:
        assert line_of(caught.value) == line


def test_bytes_that_are_no_text_are_said_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"time\n1\n\xe9\n")
    with pytest.raises(RequestError, match="UTF-8") as caught:
        read_files([path])
    assert line_of(caught.value) == 3


def test_utf_16_is_read_if_it_is_marked(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("time\n1\n2\n", encoding="utf-16")
    assert values(read_files([path]), "a", "time") == (1.0, 2.0)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(RequestError, match="not complete UTF-16"):
        read_files([path])


def test_a_metric_has_one_unit_in_all_files(put: Any) -> None:
    files = [put("a.csv", "time [s]\n1\n"), put("b.csv", "time [ms]\n1\n")]
    with pytest.raises(RequestError, match=r"b.csv: time is in ms here and in s in another file"):
        read_files(files)


def test_names_with_commas_and_several_in_a_word(put: Any) -> None:
    path = put("a.csv", '"ops, all",time,size\n1,2,3\n')
    table = read_files([path], request=FileRequest(lower=["time,size"], higher=["ops, all"], differences=["time"]))
    assert [(m.direction, m.scale) for m in table.metrics] == [
        ("higher", "ratio"),
        ("lower", "difference"),
        ("lower", "ratio"),
    ]


def test_a_column_of_words_is_told_how_names_are_said(put: Any) -> None:
    with pytest.raises(RequestError) as caught:
        read_files([put("a.csv", "version,time\nold,1\n")])
    assert caught.value.hint == "if these are configuration names, name the column configuration"


def test_a_name_that_no_utf_8_can_hold_is_written_out(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"a\xff.csv")
    path.write_text("time\n1\n")
    assert read_files([path]).configurations == ("a\\udcff",)


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    for path, words in (
        (tmp_path, "has no files"),
        (tmp_path / "none", "No such file"),
        (Path("/dev/zero"), "not a reg"),
    ):
        with pytest.raises(RequestError, match=words):
            read_files([path])


def test_a_direction_for_an_unknown_metric_is_said(put: Any) -> None:
    with pytest.raises(RequestError, match="--lower tim: metric not found; expected one of time"):
        read_files([put("a.csv", "time\n1\n")], request=FileRequest(lower=["tim"]))
