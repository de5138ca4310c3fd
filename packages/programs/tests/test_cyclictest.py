"""Cyclictest's own JSON: its percentiles are those of numpy over all wake-ups."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.outputs.base import ParseError
from ajuste_programs.scheduling import parse_cyclictest


def printed(histogram: dict[int, int], *, beyond: int = 0, longest: int | None = None) -> str:
    latencies = np.repeat(list(histogram), list(histogram.values()))
    thread: dict[str, Any] = {
        "histogram": {str(latency): number for latency, number in histogram.items()},
        "cycles": len(latencies) + beyond,
        "min": int(latencies.min()),
        "max": int(latencies.max()) if longest is None else longest,
        "avg": float(latencies.mean()),
        "cpu": 0,
    }
    return "# /dev/cpu_dma_latency set to 0us\n" + json.dumps({"file_version": 1, "thread": {"0": thread}}, indent=2)


@given(st.dictionaries(st.integers(0, 20000), st.integers(1, 300), min_size=1, max_size=40))
def test_percentiles_are_those_of_all_wake_ups(histogram: dict[int, int]) -> None:
    latencies = np.repeat(list(histogram), list(histogram.values()))
    metrics = parse_cyclictest(printed(histogram))
    for name, share in (("p50", 50), ("p99", 99), ("p999", 99.9)):
        assert metrics[f"cyclictest.{name}"] == np.percentile(latencies, share, method="inverted_cdf"), name
    assert (metrics["cyclictest.min"], metrics["cyclictest.max"]) == (latencies.min(), latencies.max())


def test_what_is_beyond_the_histogram_counts_as_the_longest() -> None:
    metrics = parse_cyclictest(printed({10: 98}, beyond=2, longest=70000))
    assert (metrics["cyclictest.p50"], metrics["cyclictest.p99"]) == (10, 70000)


@pytest.mark.skipif(shutil.which("cyclictest") is None, reason="rt-tests is not installed")
def test_the_real_one_is_read() -> None:
    words = ["-q", "-t1", "--policy=other", "-i500", "-l100", "-h20000", "--histfile=/dev/null", "--json=-"]
    done = subprocess.run(["cyclictest", *words], capture_output=True, text=True, timeout=60, check=True)
    metrics = parse_cyclictest(done.stdout)
    assert (
        0
        < metrics["cyclictest.min"]
        <= metrics["cyclictest.p50"]
        <= metrics["cyclictest.p99"]
        <= metrics["cyclictest.max"]
    )


GOOD = printed({5: 3, 9: 1})


@pytest.mark.parametrize(
    "output",
    [
        "",
        "{",
        "[" * 10_000,
        "{}",
        GOOD.replace('"thread"', '"threads"'),
        GOOD.replace('"0": {', '"1": {'),
        GOOD.replace('"5": 3', '"5": -3'),
        GOOD.replace('"5": 3', '"five": 3'),
        GOOD.replace('"5": 3', '"5": true'),
        GOOD.replace('"cycles": 4', '"cycles": 0'),
        GOOD.replace('"max": 9', '"max": 1'),
        GOOD.replace('"avg"', '"mean"'),
    ],
)
def test_what_is_no_such_output_is_refused(output: str) -> None:
    with pytest.raises(ParseError):
        parse_cyclictest(output)
