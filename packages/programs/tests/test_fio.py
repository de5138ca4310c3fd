"""fio's JSON: the figures of several jobs together are those that fio itself prints of them, and of all their I/Os."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.catalogue.level import arguments
from ajuste.catalogue.loader import catalogue
from ajuste.outputs.base import ParseError
from ajuste_programs.storage import jain, parse_fio

Values = list[int]


def latency(values: Values, *, bins: bool = True) -> dict[str, Any]:
    """Return these latencies as fio has them, if each is a bin of its own."""
    if not values:
        return {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
    counts = {str(value): values.count(value) for value in dict.fromkeys(values)}
    return {
        "min": min(values),
        "max": max(values),
        "mean": round(float(np.mean(values)), 6),
        "stddev": round(float(np.std(values, ddof=1)), 6) if len(values) > 1 else 0.0,
        "N": len(values),
        "percentile": {"50.000000": sorted(values)[(len(values) - 1) // 2]},
        **({"bins": counts} if bins else {}),
    }


def transfer(values: Values, runtime: int = 100, *, bins: bool = True) -> dict[str, Any]:
    return {
        "io_bytes": 2**20 * len(values),
        "total_ios": len(values),
        "runtime": runtime if values else 0,
        "lat_ns": latency(values, bins=bins),
    }


def job(name: str, read: Values, write: Values = [], *, runtime: int = 100, bins: bool = True, **more: Any) -> Any:  # noqa: B006
    return {
        "jobname": name,
        "groupid": 0,
        "error": 0,
        "job_runtime": runtime,
        "usr_cpu": 10.0,
        "sys_cpu": 20.0,
        "iodepth_level": {"1": 25.0, ">=64": 75.0},
        "read": transfer(read, runtime, bins=bins),
        "write": transfer(write, runtime, bins=bins),
        **more,
    }


def printed(*jobs: Any) -> str:
    return "note: something\n" + json.dumps({"fio version": "fio-3.33", "jobs": jobs}, indent=2) + "\n"


NANOSECONDS = st.lists(st.integers(1, 10**9), min_size=1, max_size=30)


@given(st.lists(NANOSECONDS, min_size=1, max_size=5))
def test_several_jobs_together_are_all_their_reads(jobs: list[Values]) -> None:
    metrics = parse_fio(printed(*(job("job", values) for values in jobs)))
    every = np.array([value for values in jobs for value in values]) / 1e3
    assert metrics["fio.read.latency"] == pytest.approx(every.mean())
    assert metrics["fio.read.latency-sd"] == pytest.approx(every.std(ddof=1) if len(every) > 1 else 0, abs=1e-3)
    assert (metrics["fio.read.latency-min"], metrics["fio.read.latency-max"]) == (every.min(), every.max())
    for name, share in (("p50", 50), ("p90", 90), ("p99", 99), ("p999", 99.9)):
        assert metrics[f"fio.read.latency-{name}"] == np.percentile(every, share, method="inverted_cdf"), name


def test_rates_are_over_the_time_of_the_longest_job() -> None:
    metrics = parse_fio(printed(job("job", [1] * 10, runtime=100), job("job", [1] * 10, runtime=400)))
    assert metrics["fio.read.iops"] == metrics["fio.read.bandwidth"] == 50
    assert metrics["fio.fairness"] == pytest.approx(jain([100, 25]))
    assert (metrics["fio.cpu-user"], metrics["fio.depth-1"], metrics["fio.depth-8"], metrics["fio.depth-64"]) == (
        10,
        25,
        0,
        75,
    )


def test_jobs_of_different_names_are_told_apart() -> None:
    metrics = parse_fio(printed(job("reader", [1000]), job("writer", [], [3000, 5000])))
    assert (metrics["fio.reader.read.latency"], metrics["fio.writer.write.latency"]) == (1, 4)
    assert (metrics["fio.read.latency"], metrics["fio.write.latency"]) == (1, 4)
    assert not any(name.startswith(("fio.reader.write", "fio.writer.read")) for name in metrics)


def test_jobs_after_one_another_have_no_figures_together() -> None:
    metrics = parse_fio(printed(job("first", [1000]), job("second", [3000], groupid=1)))
    assert {name.split(".")[1] for name in metrics} == {"first", "second"}


def test_percentiles_of_jobs_without_bins_are_not_guessed() -> None:
    several = parse_fio(printed(*(job("job", values, bins=False) for values in ([1000, 2000], [3000, 9000]))))
    alone = parse_fio(printed(job("job", [1000, 2000], bins=False)))
    assert "fio.read.latency-p50" not in several
    assert several["fio.read.latency-max"] == 9
    assert alone["fio.read.latency-p50"] == 1


@given(st.lists(st.floats(0, 1e15), min_size=1, max_size=20))
def test_the_index_of_fairness_is_between_1_of_n_and_1(shares: list[float]) -> None:
    assert 1 / len(shares) - 1e-9 <= jain(shares) <= 1 + 1e-9


def test_the_index_of_fairness_knows_its_ends() -> None:
    assert jain([7, 7, 7]) == jain([0, 0]) == pytest.approx(1)
    assert jain([0, 0, 0, 5]) == pytest.approx(1 / 4)


GOOD = printed(job("job", [1000, 2000], [3000]))

HOSTILE = [
    "",
    "{\n",
    "{\n}\n",
    "{\n" + '"a":' + "[" * 100_000 + "\n}",
    printed(),
    printed(job("job", [])),
    GOOD.replace('"fio version"', '"version"'),
    GOOD.replace('"error": 0', '"error": 5'),
    GOOD.replace('"error": 0', '"error": 0, "total_err": 2'),
    GOOD.replace('"error": 0', '"error": "0"'),
    GOOD.replace('"total_ios": 2', '"total_ios": -2'),
    GOOD.replace('"total_ios": 2', '"total_ios": true'),
    GOOD.replace('"total_ios": 2', '"total_ios": 1e400'),
    GOOD.replace('"total_ios": 2', '"total_ios": ' + "9" * 5000),
    GOOD.replace('"mean": 1500.0', '"mean": NaN'),
    GOOD.replace('"mean": 1500.0', '"mean": 9500.0'),
    GOOD.replace('"1000": 1', '"1000": 3'),
    GOOD.replace('"1000": 1', '"-1000": 1'),
    GOOD.replace('"usr_cpu": 10.0', '"usr_cpu": Infinity'),
]


@pytest.mark.parametrize("output", HOSTILE)
def test_what_is_no_such_output_is_refused(output: str) -> None:
    assert output != GOOD
    with pytest.raises(ParseError):
        parse_fio(output)


@given(st.text(max_size=60), st.integers(0, len(GOOD)), st.integers(0, 60))
def test_whatever_is_read_is_read_or_refused(noise: str, start: int, length: int) -> None:
    try:
        metrics = parse_fio(GOOD[:start] + noise + GOOD[start + length :])
    except ParseError:
        return
    assert all(np.isfinite(value) for value in metrics.values())


def test_names_of_jobs_that_could_be_anything_else_are_left_out() -> None:
    metrics = parse_fio(printed(job("<b>a.read</b>", [1000]), job("b", [3000])))
    assert {name for name in metrics if "<" in name} == set()
    assert metrics["fio.b.read.latency"] == 3


needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")


def run_fio(directory: Path, *words: str) -> str:
    command = ["fio", *words]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120, check=True).stdout


@needs_fio
def test_all_jobs_together_are_what_fio_says_of_the_same_run(tmp_path: Path) -> None:
    kind = catalogue().find_workload("fio")
    parameters = {"pattern": "mixed", "block_kib": "16", "size_mib": "1", "jobs": "3", "direct": "0", "engine": "psync"}
    output = run_fio(tmp_path, *arguments(kind, parameters), "--output-format=json+,normal,terse")
    metrics = parse_fio(output)
    terse = [line.split(";") for line in output.splitlines() if line.startswith("3;")]
    assert len(terse) == 3
    # fio(1), "TERSE OUTPUT": the 7th field is what was read in KiB, from the 38th on are the mean latencies in µs.
    kibibytes = sum(int(fields[5]) for fields in terse)
    longest = max(int(fields[8]) for fields in terse)
    assert metrics["fio.read.bandwidth"] == pytest.approx(kibibytes / 1024 * 1000 / longest)
    reads = [int(fields[5]) / 16 for fields in terse]
    means = [float(fields[39]) for fields in terse]
    assert metrics["fio.read.latency"] == pytest.approx(float(np.average(means, weights=reads)), rel=1e-4)
    assert metrics["fio.read.latency-min"] == pytest.approx(min(int(fields[37]) for fields in terse), abs=1)
    assert metrics["fio.read.latency-max"] == pytest.approx(max(int(fields[38]) for fields in terse), abs=1)
    summary = re.search(r"READ: bw=.*?, io=(\S+)KiB .*?, run=(\d+)-(\d+)msec", output)
    assert summary
    assert int(summary[3]) == longest


@needs_fio
def test_percentiles_from_bins_are_those_that_fio_prints(tmp_path: Path) -> None:
    kind = catalogue().find_workload("fio")
    parameters = {"pattern": "write", "block_kib": "4", "size_mib": "4", "jobs": "1", "direct": "0", "engine": "psync"}
    output = run_fio(tmp_path, *arguments(kind, parameters))
    percentiles = json.loads(output[output.index("{") :])["jobs"][0]["write"]["lat_ns"]["percentile"]
    metrics = parse_fio(output)
    for name, share in (("p50", "50"), ("p90", "90"), ("p95", "95"), ("p99", "99"), ("p999", "99.9")):
        assert metrics[f"fio.write.latency-{name}"] == percentiles[f"{float(share):.6f}"] / 1e3, name
