"""Whatever a file contains, it is read, or refused in one clear message: never another exception.

``AJUSTE_FUZZ`` sets how many inputs each parser gets; `make fuzz` asks for 100,000.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ajuste.foreign.formats import Source, read_source
from ajuste.model.error import RequestError
from ajuste.model.table import Table, Values
from foreign_outputs import GERMAN, GOOGLE, LINPACK, PERF, PYPERF

EXAMPLES = int(os.environ.get("AJUSTE_FUZZ", "200"))
fuzzed = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
HYPERFINE: dict[str, Any] = {"results": [{"command": "x", "times": [1.0, 2.0], "exit_codes": [0, 0]}]}
FIO: dict[str, Any] = {
    "fio version": "fio-3.33",
    "jobs": [{"error": 0, "read": {"total_ios": 3, "iops": 1.5, "bw_bytes": 9, "lat_ns": {"mean": 2.0}}}],
}
SEEDS = {
    "csv": "configuration,block,time [s]\na,1,1.5\nb,1,2\n",
    "hyperfine": json.dumps(HYPERFINE),
    "fio": json.dumps(FIO),
    "google": json.dumps(GOOGLE),
    "pyperf": json.dumps(PYPERF),
    "perf": PERF,
    "perf in German": GERMAN,
    "perf -j": '{"counter-value" : "12.5", "unit" : "msec", "event" : "task-clock", "variance" : 0.5}\n',
    "linpack": LINPACK,
    "hackbench": "Time: 0.123\n",
}
pieces = st.sampled_from(
    [
        *'"{}[],:;\n\t\0 .+-',
        "nan",
        "inf",
        "1e999",
        "-0",
        "9" * 400,
        "null",
        "true",
        "é",
        "\ufeff",
        "</script>",
        "\x1b[2J",
    ]
) | st.text(max_size=5)


@st.composite
def mutated(draw: st.DrawFn, seed: str) -> str:
    """The seed with a few pieces replaced, repeated, or cut out."""
    text = seed
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 20)))
        text = text[:start] + draw(pieces) * draw(st.integers(0, 3)) + text[end:]
    return text


def outcome(text: str, runs: int | None = None) -> Table | RequestError:
    """What is read, or how it is refused."""
    try:
        return read_source(Source(text, "name", Path("file"), runs))
    except RequestError as error:
        return error


def sound(table: Table | RequestError) -> bool:
    """An error has a message and a place; every value of a table is a finite number of a known configuration and
    metric.
    """
    if isinstance(table, RequestError):
        return bool(table.message) and table.place is not None
    metrics = {metric.name for metric in table.metrics}
    return bool(table.configurations) and all(
        configuration in table.configurations
        and metric in metrics
        and all(map(math.isfinite, sample.values if isinstance(sample, Values) else (sample.mean,)))
        for (configuration, metric), sample in table.samples.items()
    )


@pytest.mark.parametrize("kind", SEEDS)
def test_no_content_breaks_a_parser(kind: str) -> None:
    @fuzzed
    @given(mutated(SEEDS[kind]), st.none() | st.integers(2, 9))
    def check(text: str, runs: int | None) -> None:
        assert sound(outcome(text, runs))

    check()


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["results", "command", "times", "jobs", "fio version", "read", "lat_ns", "benchmarks", "runs"]
            )
            | st.sampled_from(
                ["real_time", "time_unit", "values", "metadata", "name", "exit_codes", "total_ios", "mean"]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=30,
)


@fuzzed
@given(documents)
def test_no_document_breaks_a_parser(document: Any) -> None:
    assert sound(outcome(json.dumps(document)))
