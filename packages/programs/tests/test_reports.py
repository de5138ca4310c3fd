"""Reports of load generators and benchmarks, against what their own figures say of each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ajuste_analyse")

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste.model.measurements import MeasuredTable, Values
from ajuste.outputs.base import ParseError
from ajuste.outputs.programs import parser, parsers, text_formats
from ajuste_analyse.files import read_files
from ajuste_programs.printed import PrintedReport, quantity

OUTPUTS = Path(__file__).parents[3] / "tests" / "outputs" / "outputs"


def read(name: str) -> MeasuredTable:
    return read_files([OUTPUTS / name], ["it"])


def values(table: MeasuredTable, metric: str) -> tuple[float, ...]:
    sample = table.samples["it", metric]
    assert isinstance(sample, Values)
    return sample.values


def value(table: MeasuredTable, metric: str) -> float:
    (only,) = values(table, metric)
    return only


def unit(table: MeasuredTable, metric: str) -> tuple[str, str]:
    (match,) = (each for each in table.metrics if each.name == metric)
    return match.unit, match.direction


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("12.3ms", "s", 0.0123),
        ("45us", "s", 45e-6),
        ("1.2s", "s", 1.2),
        ("1.50m", "s", 90.0),
        ("7", "s", 7.0),
        ("2.50KB", "bytes", 2560.0),
        ("1.00MB", "bytes/s", 1048576.0),
        ("44.06k", "1/s", 44060.0),
        ("3", "", 3.0),
        ("3ms", "bytes", None),
        ("3KB", "s", None),
        ("-nan", "s", None),
        ("1.2.3", "s", None),
        ("", "s", None),
    ],
)
def test_a_figure_is_read_in_one_unit_whatever_its_own_is(text: str, unit: str, expected: float | None) -> None:
    assert quantity(text, unit) == (None if expected is None else pytest.approx(expected))


def reports() -> list[PrintedReport]:
    readers = [*parsers().values(), *(text.read for text in text_formats())]
    owners = {id(owner): owner for reader in readers if (owner := getattr(reader, "__self__", None))}
    return [owner for owner in owners.values() if isinstance(owner, PrintedReport)]


@pytest.mark.parametrize("report", reports(), ids=lambda report: report.name)
def test_what_a_row_has_only_the_name_of_is_described_by_a_workload(report: PrintedReport) -> None:
    metrics = [*(metric for row in report.rows for metric in row.metrics), *report.zeros]
    assert all(report.describe(metric).direction for metric in metrics)
    described = {name for name in catalogue().workload_metrics if name.startswith(f"{report.name}.")}
    alone = {metric.name for metric in metrics if not isinstance(metric, str)}
    assert not described & {f"{report.name}.{name}" for name in alone - ALSO_OTHERWISE}, "described twice"


ALSO_OTHERWISE = {"connection-time"}
"""Names under which a program also prints another figure: pgbench a mean, with a connection a transaction."""


def test_a_percentile_is_described_as_the_workload_has_it_or_else_by_its_reader(tmp_path: Path) -> None:
    (tmp_path / "wrk.txt").write_text((OUTPUTS / "wrk.txt").read_text().replace("75%", "99.99%"))
    titles = {metric.name: metric.title for metric in read_files([tmp_path / "wrk.txt"], ["it"]).metrics}
    assert titles["latency-p50"] == "Median latency"
    assert titles["latency-p99.99"] == "99.99th percentile of the latency"


def test_wrk_prints_a_unit_with_each_figure() -> None:
    table = read("wrk.txt")
    latency = ("latency", "latency-max", "latency-p50", "latency-p99")
    assert [value(table, name) for name in latency] == pytest.approx([99.71e-6, 3.81e-3, 79e-6, 343e-6])
    assert value(table, "requests-per-second") == 43711.01
    assert value(table, "thread-rate") == 44060.0
    assert value(table, "read") / value(table, "duration") == pytest.approx(value(table, "transfer"), rel=0.01)
    assert unit(table, "latency-p99") == ("s", "lower")
    assert unit(table, "transfer") == ("bytes/s", "higher")
    assert table.main == {"requests-per-second", "latency", *(f"latency-p{percent}" for percent in (50, 75, 90, 99))}


def test_errors_that_wrk_leaves_out_are_0() -> None:
    assert value(read("wrk.txt"), "error-responses") == 0
    failed = read("wrk-errors.txt")
    assert value(failed, "error-responses") == value(failed, "requests") == 66410


def test_h2load() -> None:
    timed = read("h2load-timed.txt")
    assert value(timed, "requests") / 2 == pytest.approx(value(timed, "requests-per-second"), rel=1e-4)
    assert value(timed, "request-time-max") == pytest.approx(4.48e-3)
    assert value(timed, "request-time") == pytest.approx(87e-6)
    counted = read("h2load.txt")
    assert value(counted, "duration") == pytest.approx(0.06322)
    assert 2000 / value(counted, "duration") == pytest.approx(value(counted, "requests-per-second"), rel=1e-3)
    assert value(counted, "traffic") / value(counted, "duration") == pytest.approx(value(counted, "transfer"), rel=1e-2)


def test_sysbench() -> None:
    cpu = read("sysbench-cpu.txt")
    assert value(cpu, "events") / value(cpu, "duration") == pytest.approx(value(cpu, "events-per-second"), rel=1e-3)
    assert value(cpu, "latency-sum") / value(cpu, "events") == pytest.approx(value(cpu, "latency"), abs=0.005e-3)
    assert value(cpu, "latency-p95") == pytest.approx(0.34e-3)
    assert value(cpu, "thread-events") * 2 == value(cpu, "events")
    memory = read("sysbench-memory.txt")
    assert value(memory, "transferred") / value(memory, "duration") == pytest.approx(
        value(memory, "transfer"), rel=0.05
    )
    files = read("sysbench-fileio.txt")
    assert value(files, "reads") * 16 / 1024 == pytest.approx(value(files, "read-bandwidth"), rel=1e-3)
    assert value(files, "writes") == 25316.53
    assert value(read("sysbench-threads.txt"), "latency-p99") == pytest.approx(0.9e-3)


def test_sysbench_with_a_database() -> None:
    table = read("sysbench-oltp.txt")
    assert value(table, "queries-read") == 40040
    assert value(table, "queries-total") == value(table, "queries") == 40040 + 11369 + 5755
    assert value(table, "transactions") == value(table, "events")
    assert value(table, "transactions") / value(table, "duration") == pytest.approx(
        value(table, "transactions-per-second"), rel=1e-3
    )
    assert (value(table, "ignored-errors"), value(table, "reconnects-per-second")) == (18, 0)
    assert unit(table, "ignored-errors-per-second") == ("1/s", "lower")


def test_pgbench() -> None:
    plain = read("pgbench.txt")
    assert value(plain, "tps") * value(plain, "latency") == pytest.approx(2, rel=0.01), "that many clients"
    assert value(plain, "connection-time") == pytest.approx(4.884e-3)
    statements = read("pgbench-r.txt")
    each = [value(statements, metric.name) for metric in statements.metrics if metric.name.startswith("statement ")]
    assert sum(each) == pytest.approx(value(statements, "latency"), rel=0.02)
    assert value(statements, "statement END;") == pytest.approx(0.318e-3)
    rate = read("pgbench-rate.txt")
    assert [value(rate, name) for name in ("lag", "lag-max", "too-late")] == pytest.approx([195e-6, 1272e-6, 0])
    scripts = read("pgbench-scripts.txt")
    assert value(scripts, "script-1.tps") + value(scripts, "script-2.tps") == pytest.approx(value(scripts, "tps"))
    assert value(scripts, "script-2.latency") == pytest.approx(0.151e-3)
    assert scripts.main == {"tps", "latency"}


def test_pgbench_of_before_version_14(tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    path.write_text(
        "transaction type: <builtin: TPC-B (sort of)>\nlatency average = 1.190 ms\n"
        "tps = 1679.1 (including connections establishing)\ntps = 1680.8 (excluding connections establishing)\n"
        "statement latencies in milliseconds:\n         0.053  BEGIN;\n         0.054  BEGIN;\n"
    )
    table = read_files([path])
    assert {metric.name: table.samples["old", metric.name] for metric in table.metrics} == {
        "latency": Values((pytest.approx(1.19e-3),)),
        "tps-with-connecting": Values((1679.1,)),
        "tps": Values((1680.8,)),
        "statement BEGIN;": Values((pytest.approx(53e-6),)),
        "statement BEGIN; (2)": Values((pytest.approx(54e-6),)),
    }


def test_the_log_of_pgbench_has_the_quantiles_of_a_run() -> None:
    table = read("pgbench.log")
    latencies = np.array([int(line.split()[2]) for line in (OUTPUTS / "pgbench.log").read_text().splitlines()]) / 1e6
    assert value(table, "latency") == pytest.approx(latencies.mean())
    for percent in (50, 75, 90, 95, 99, 99.9):
        quantile = np.quantile(latencies, percent / 100, method="inverted_cdf")
        assert value(table, f"latency-p{percent:g}") == pytest.approx(quantile)


def test_only_the_last_report_of_schbench_counts() -> None:
    table = read("schbench.txt")
    assert value(table, "wakeup-latency-p99") == pytest.approx(25248e-6), "not 6712 or 20000, of the intervals"
    assert value(table, "request-latency-max") == pytest.approx(74861e-6)
    assert (value(table, "rps-p50"), value(table, "average-rps")) == (54, 67.5)
    assert table.main == {"wakeup-latency-p99", "request-latency-p99", "average-rps"}
    document = read("schbench.json")
    assert value(document, "wakeup-latency-p99") == pytest.approx(39360e-6)
    shared = {metric.name for metric in table.metrics} & {metric.name for metric in document.metrics}
    assert len(shared) == len(table.metrics) - 1, "all but average-rps"


def test_runs_one_after_the_other_are_values_of_one_sample(tmp_path: Path) -> None:
    for name, metric in (
        ("wrk.txt", "latency"),
        ("sysbench-cpu.txt", "latency"),
        ("pgbench.txt", "tps"),
        ("schbench.txt", "average-rps"),
        ("h2load.txt", "request-time"),
    ):
        path = tmp_path / name
        path.write_text((OUTPUTS / name).read_text() * 3)
        table = read_files([path], ["it"])
        assert values(table, metric) == (value(read(name), metric),) * 3
        assert table.samples["it", metric] == Values(values(table, metric)), "in no blocks"


@pytest.mark.parametrize(
    ("name", "old", "new", "line", "words"),
    [
        ("wrk.txt", "99.71us", "-nan", 4, "expected its figure"),
        ("wrk.txt", "99.71us", "99.71KB", 4, 'found "99.71KB" in "Latency'),
        ("wrk.txt", "Requests/sec:  43711.01\n", "", 1, "has no requests-per-second; expected wrk, complete"),
        ("h2load.txt", "req/s           :", "gone", 1, "has no client-rate"),
        ("sysbench-cpu.txt", "0.34", "", 25, 'found "95th percentile:"; expected its figure'),
        ("sysbench-cpu.txt", "Threads started!", "FATAL: no memory", 12, "sysbench failed: no memory"),
        ("pgbench.txt", "tps = 15575.621898", "tps = fast", 13, "expected its figure"),
        ("pgbench.txt", "latency average", "pgbench: error: gone\nlatency average", 11, "pgbench failed: gone"),
        ("pgbench.txt", "tps = ", "latency average = 1.0 ms\ntps = ", 13, "latency is given twice"),
        ("pgbench.log", "0 2 1637 0 1795460830 119727", "0 2 16", 3, 'found "0 2 16"; expected a transaction'),
        ("schbench.txt", "average rps: 67.50", "", 1, "has no average-rps"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    tmp_path: Path, name: str, old: str, new: str, line: int, words: str
) -> None:
    text = (OUTPUTS / name).read_text()
    assert old in text
    path = tmp_path / name
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(RequestError) as refused:
        read_files([path])
    assert words in refused.value.message
    assert refused.value.place is not None
    assert (Path(refused.value.place.file).name, refused.value.place.line) == (name, line)


@pytest.mark.parametrize("name", ["pgbench", "sysbench", "wrk", "h2load", "schbench"])
def test_a_live_workload_has_the_same_figures(name: str) -> None:
    path = OUTPUTS / ("sysbench-cpu.txt" if name == "sysbench" else f"{name}.txt")
    metrics = parser(name)(path.read_text())
    table = read(path.name)
    assert metrics == {f"{name}.{metric.name}": value(table, metric.name) for metric in table.metrics}
    with pytest.raises(ParseError, match=f"{name} printed 0 reports instead of one"):
        parser(name)("nothing\n")
    with pytest.raises(ParseError, match=f"{name} printed 2 reports instead of one"):
        parser(name)(path.read_text() * 2)
