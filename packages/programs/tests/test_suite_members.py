"""Benchmarks of the built-in suites: what they print, read from real outputs."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import geometric_mean

import pytest

pytest.importorskip("ajuste_analyse")

from ajuste.catalogue.loader import catalogue
from ajuste.outputs.base import ParseError
from ajuste.outputs.programs import parser
from ajuste_analyse.files import read_files

OUTPUTS = Path(__file__).parents[3] / "tests" / "outputs" / "outputs"


def figures(name: str, program: str) -> dict[str, float]:
    return parser(program)((OUTPUTS / name).read_text())


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("perf-messaging", "perf-bench-messaging.txt"),
        ("perf-pipe", "perf-bench-pipe.txt"),
        ("perf-syscall", "perf-bench-syscall.txt"),
        ("perf-memcpy", "perf-bench-memcpy.txt"),
        ("perf-memset", "perf-bench-memset.txt"),
        ("perf-futex-hash", "perf-bench-futex-hash.txt"),
        ("perf-futex-wake", "perf-bench-futex-wake.txt"),
        ("perf-futex-requeue", "perf-bench-futex-requeue.txt"),
        ("perf-futex-lock-pi", "perf-bench-futex-lock-pi.txt"),
        ("perf-epoll-wait", "perf-bench-epoll-wait.txt"),
        ("perf-epoll-ctl", "perf-bench-epoll-ctl.txt"),
        ("dbench", "dbench.txt"),
        ("tbench", "tbench.txt"),
        ("iperf3", "iperf3.json"),
        ("redis-benchmark", "redis-benchmark.csv"),
        ("memtier-redis", "memtier-redis.txt"),
        ("memtier-memcached", "memtier-memcached.txt"),
        ("memcached", "memcslap.txt"),
        ("netperf", "netperf.txt"),
        ("stream", "stream.txt"),
        ("will-it-scale", "will-it-scale.txt"),
        ("rt-app", "rt-app.txt"),
        ("perf-numa", "perf-bench-numa.txt"),
        ("kernbench", "kernbench.txt"),
    ],
)
def test_every_figure_is_a_metric_of_the_catalogue(kind: str, name: str) -> None:
    workload = catalogue().workloads[kind]
    read = parser(workload.parser)((OUTPUTS / name).read_text())
    assert set(read) == {metric.name for metric in workload.metrics}
    assert workload.main in read


@pytest.mark.parametrize("name", ["switch", "fork"])
def test_stress_ng(name: str) -> None:
    workload = catalogue().workloads["stress-ng"]
    read = figures(f"stress-ng-{name}.txt", "stress_ng")
    assert set(read) <= {metric.name for metric in workload.metrics}
    per_second = read["stress-ng.bogo-ops"] / read["stress-ng.real-time"]
    assert read["stress-ng.bogo-ops-per-second"] == pytest.approx(per_second, rel=0.01)
    cpu = read["stress-ng.user-time"] + read["stress-ng.system-time"]
    assert read["stress-ng.bogo-ops-per-cpu-second"] == pytest.approx(read["stress-ng.bogo-ops"] / cpu, rel=0.02)
    assert ("stress-ng.context-switch" in read) == (name == "switch")


def test_unixbench_has_the_tests_that_ran_and_the_mean_of_their_indices() -> None:
    read = figures("unixbench.txt", "unixbench")
    assert set(read) <= {metric.name for metric in catalogue().workloads["unixbench"].metrics}
    ran = [value for name, value in read.items() if name.endswith("-index")]
    assert len(ran) == 2
    assert read["unixbench.index"] == pytest.approx(geometric_mean(ran), rel=0.001)
    assert read["unixbench.pipe-index"] == pytest.approx(read["unixbench.pipe"] / 12440 * 10, rel=0.001)


def test_figures_of_the_new_programs_agree_with_each_other() -> None:
    redis = figures("redis-benchmark.csv", "redis_benchmark")
    order = [redis[f"redis-benchmark.get-latency-{statistic}"] for statistic in ("min", "p50", "p95", "p99", "max")]
    assert order == sorted(order)
    memtier = figures("memtier-redis.txt", "memtier")
    parts = memtier["memtier.sets-per-second"] + memtier["memtier.gets-per-second"]
    assert memtier["memtier.totals-per-second"] == pytest.approx(parts, abs=0.02)
    netperf = figures("netperf.txt", "netperf")
    assert 1 / netperf["netperf.latency"] == pytest.approx(netperf["netperf.transactions-per-second"], rel=0.05)
    numa = figures("perf-bench-numa.txt", "perf_bench")
    assert numa["perf-bench.data"] == pytest.approx(2 * numa["perf-bench.thread-data"], rel=0.01)
    stream = figures("stream.txt", "stream")  # a copy moves each of two million numbers of 8 bytes in and out
    assert stream["stream.copy"] == pytest.approx(32 / stream["stream.copy-time-min"], rel=0.001)
    scale = figures("will-it-scale.txt", "will_it_scale")
    slowest, fastest = scale["will-it-scale.slowest-task"], scale["will-it-scale.fastest-task"]
    assert slowest + fastest == pytest.approx(scale["will-it-scale.operations-per-second"], rel=0.001)
    film = figures("rt-app.txt", "rt_app")
    assert film["rt-app.period"] == pytest.approx(0.01, rel=0.05)
    assert film["rt-app.rounds"] == pytest.approx(2 * 1.0 / 0.01, rel=0.05)


def test_times_of_perf_bench_are_in_seconds() -> None:
    read = figures("perf-bench-pipe.txt", "perf_bench")
    assert read["perf-bench.time"] / 20_000 == pytest.approx(read["perf-bench.time-per-operation"], rel=0.01)
    assert 1 / read["perf-bench.operations-per-second"] == pytest.approx(
        read["perf-bench.time-per-operation"], rel=1e-4
    )
    wake = figures("perf-bench-futex-wake-parallel.txt", "perf_bench")
    assert 0 < wake["perf-bench.wake-latency"] < 1e-3


def test_an_operation_of_dbench_is_as_slow_as_its_longest_latency() -> None:
    read = figures("dbench.txt", "dbench")
    longest = max(value for name, value in read.items() if name.count("-") == 2 and name.endswith("-latency-max"))
    assert longest >= 0.95 * read["dbench.latency-max"], "operations also count while files are removed"
    assert read["dbench.writex-count"] > 0


def test_a_file_of_dbench_can_be_analysed() -> None:
    table = read_files([OUTPUTS / "dbench.txt", OUTPUTS / "tbench.txt"], ["files", "network"])
    assert {"throughput", "latency-max"} <= {metric.name for metric in table.metrics}


def test_iperf3_is_in_units_for_people() -> None:
    document = json.loads((OUTPUTS / "iperf3.json").read_text())
    read = figures("iperf3.json", "iperf3")
    assert read["iperf3.received"] == document["end"]["sum_received"]["bits_per_second"] / 1e6
    assert read["iperf3.rtt"] == pytest.approx(document["end"]["streams"][0]["sender"]["mean_rtt"] / 1e6)


def test_sysbench_mutex_has_the_figures_of_its_workload() -> None:
    read = figures("sysbench-mutex.txt", "sysbench")
    assert set(read) <= {metric.name for metric in catalogue().workloads["sysbench-mutex"].metrics}


@pytest.mark.parametrize(
    ("program", "output", "message"),
    [
        ("perf_bench", "nothing", "printed 0 reports"),
        ("perf_bench", "# Running 'sched/pipe' benchmark:\n     Total time: nan [sec]\n" * 2, "printed 2 reports"),
        ("stress_ng", "stress-ng: metrc: [1] stressor  bogo ops\n", "has no bogo-ops"),
        (
            "stress_ng",
            "stress-ng: metrc: [1] stressor  bogo ops\nstress-ng: error: [1] cannot fork\n",
            "stress-ng failed: cannot fork",
        ),
        ("dbench", "dbench version 4.00\n", "has no throughput"),
        ("redis_benchmark", '"test","rps","avg_latency_ms"\n', "measured no command"),
        ("will_it_scale", "testcase:x\nwarmup\nmin:1 max:2 total:3\n", "no complete measurement"),
        ("rt_app", "#idx perf run\n", "logged no round"),
        ("stream", "STREAM version $Revision: 5.10 $\nFailed Validation on array a[]\n", "computed wrong results"),
        ("netperf", "MIGRATED TCP STREAM TEST from x\nnetperf: cannot connect\n", "netperf failed: cannot connect"),
        ("iperf3", "nothing", "no JSON"),
        ("iperf3", '{"error": "unable to connect"}', "iperf3 failed"),
        ("iperf3", '{"end": 3}', 'no table "end"'),
        ("iperf3", '{"end": {"sum_sent": {}, "sum_received": {"bits_per_second": true}}}', "cpu_utilization_percent"),
    ],
)
def test_what_is_no_result_is_refused(program: str, output: str, message: str) -> None:
    with pytest.raises(ParseError) as refused:
        parser(program)(output)
    assert message in str(refused.value)
