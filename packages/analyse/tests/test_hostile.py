"""Whatever a file contains, it is read, or refused in one clear message: never another exception.

``AJUSTE_FUZZ`` sets how many inputs each parser gets; `make fuzz` asks for 100,000.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ajuste.model.error import RequestError
from ajuste.model.measurements import MeasuredTable, Values
from ajuste.model.results import Results
from ajuste.outputs.format import ResultSource
from ajuste_analyse.files import read_source
from ajuste_analyse.verdicts import TableQuestion, analyse_table
from foreign_outputs import GERMAN, GOOGLE, LINPACK, PERF, PYPERF
from mutation import bounded, mutated

EXAMPLES = int(os.environ.get("AJUSTE_FUZZ", "90"))
fuzzed = settings(
    max_examples=min(EXAMPLES // 3, 1000), deadline=None, suppress_health_check=list(HealthCheck), database=None
)
HYPERFINE: dict[str, Any] = {"results": [{"command": "x", "times": [1.0, 2.0], "exit_codes": [0, 0]}]}
FIO: dict[str, Any] = {
    "fio version": "fio-3.33",
    "jobs": [
        {"error": 0, "read": {"total_ios": 3, "io_bytes": 18, "runtime": 2000, "bw_bytes": 9, "lat_ns": {"mean": 2.0}}}
    ],
}
OUTPUTS = Path(__file__).parents[3] / "tests" / "outputs" / "outputs"
SEEDS = {
    "csv": "configuration,block,time [s]\na,1,1.5\nb,1,2\n",
    "hyperfine": json.dumps(HYPERFINE),
    "fio": json.dumps(FIO),
    "google": json.dumps(GOOGLE),
    "pyperf": json.dumps(PYPERF),
    "perf": PERF,
    "perf in German": GERMAN,
    "perf -j": '{"counter-value" : "12.5", "unit" : "msec", "event" : "task-clock", "variance" : 0.5}\n',
    "perf -x": "12.5,msec,task-clock,0.50%,12500000,100.00,0.9,CPUs utilized\n"
    "3,,context-switches,0.00%,12500000,100.00,2,/sec\n",
    "Ajuste": "configuration,nice,block,position,seed,attempt,warm_up,status,reason,elapsed [s]\n"
    "a,0,1,0,7,0,no,ok,,1.5\nb,4,1,1,8,0,no,ok,,2.5\na,0,2,0,7,0,yes,ok,,1\nb,4,2,1,8,0,no,failed,timeout,\n",
    "fio beside text": f"warning\n{json.dumps(FIO, indent=2)}\nmore\n",
    "linpack": LINPACK,
    "hackbench": "Time: 0.123\n",
    **{path.name: path.read_text() for path in sorted(OUTPUTS.iterdir())},
}


def outcome(text: str, runs: int | None = None) -> MeasuredTable | RequestError:
    """Return what is read, or how it is refused."""
    try:
        return read_source(ResultSource(text, "name", Path("file"), runs))
    except RequestError as error:
        return error


def sound(table: MeasuredTable | RequestError) -> bool:
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


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("kind", SEEDS)
def test_no_content_breaks_a_parser(kind: str) -> None:
    """Nor the analysis of what was read, which every 50th time follows."""
    source = random.Random(kind)
    seed = SEEDS[kind]
    for number in range(EXAMPLES):
        text = mutated(seed, source)
        runs = source.choice((None, 2, 9))
        try:
            with bounded():
                result = outcome(text, runs)
            assert sound(result)
            if number % 50 == 0 and not isinstance(result, RequestError):
                analysed(result)
        except Exception as error:
            error.add_note(f"input {number}: {text!r}")
            raise


def analysed(table: MeasuredTable) -> None:
    """The whole way to a report's document."""
    with contextlib.suppress(RequestError):  # such as no metric in common
        Results.model_validate_json(analyse_table(table, TableQuestion(three_sigma=True)).model_dump_json())


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


@pytest.mark.timeout(3000)
@fuzzed
@given(documents)
def test_no_document_breaks_a_parser(document: Any) -> None:
    assert sound(outcome(json.dumps(document)))
