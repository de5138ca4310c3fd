"""Benchmark frameworks of programming languages, and hyperfine, which times commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ajuste.outputs.format import DocumentFormat, DocumentNode, TextFormat, in_beginning
from ajuste_analyse.frameworks.asv import ASV_FORMAT, read_asv, recognise_asv
from ajuste_analyse.frameworks.criterion import (
    MESSAGE,
    read_criterion,
    read_messages,
    recognise_criterion,
    recognise_estimates,
    refuse_estimates,
)
from ajuste_analyse.frameworks.go_test import GO_TEST_FORMAT, RECOGNISED, read_go_test
from ajuste_analyse.frameworks.google_benchmark import read_google_benchmark
from ajuste_analyse.frameworks.hyperfine import read_hyperfine
from ajuste_analyse.frameworks.jmh import JMH_FORMAT, read_jmh, recognise_jmh
from ajuste_analyse.frameworks.pyperf import read_pyperf
from ajuste_analyse.frameworks.pytest_benchmark import (
    PYTEST_BENCHMARK_FORMAT,
    read_pytest_benchmark,
    recognise_pytest_benchmark,
)


def lists(name: str, field: str) -> Callable[[DocumentNode], bool]:
    """Return what recognises a document whose member ``name`` is a list of objects that have ``field``."""

    def recognise(document: DocumentNode) -> bool:
        rows = document.value.get(name) if isinstance(document.value, dict) else None
        return isinstance(rows, list) and all(isinstance(row, dict) and field in row for row in rows)

    return recognise


TEXTS: Final = (
    TextFormat(
        "criterion",
        "cargo criterion --message-format=json",
        in_beginning(MESSAGE),
        read_messages,
        reads=(
            "Criterion.rs: `sample.json`, or the messages of `cargo criterion --message-format=json`; the time per "
            "iteration of each sample, a metric for each benchmark. All samples of a run come from one process: runs "
            "are compared."
        ),
    ),
    TextFormat(
        "go",
        GO_TEST_FORMAT,
        in_beginning(RECOGNISED),
        read_go_test,
        reads=(
            "`go test -bench`, which benchstat reads too: each line (`-count` gives several), a metric for each "
            "benchmark and unit, named as benchstat does. All lines of a run come from one process of a package: runs "
            "are compared."
        ),
    ),
)
DOCUMENTS: Final = (
    DocumentFormat(
        "asv",
        ASV_FORMAT,
        recognise_asv,
        read_asv,
        reads=(
            "airspeed velocity's results: each sample of each benchmark and its parameters (`asv run "
            "--record-samples`), or its one result."
        ),
    ),
    DocumentFormat("criterion", "Criterion.rs sample.json", recognise_criterion, read_criterion),
    DocumentFormat("criterion", "Criterion.rs estimates.json", recognise_estimates, refuse_estimates),
    DocumentFormat(
        "google-benchmark",
        "Google Benchmark's JSON",
        lists("benchmarks", "real_time"),
        read_google_benchmark,
        reads=(
            "Google Benchmark's JSON: each repetition (a file is one process), a metric for each benchmark; its own "
            "aggregates are left to Ajuste."
        ),
    ),
    DocumentFormat(
        "hyperfine",
        "hyperfine --export-json",
        lists("results", "command"),
        read_hyperfine,
        reads=(
            "hyperfine's JSON (`--export-json`): each run; each command is a configuration, or the file if it has one. "
            "A command that is there twice is two configurations, (1) and (2)."
        ),
    ),
    DocumentFormat(
        "jmh",
        JMH_FORMAT,
        recognise_jmh,
        read_jmh,
        reads=(
            "JMH's JSON (`-rf json`): each iteration of each fork (forks are compared), also of profilers; in mode "
            "`sample` its mean, and percentiles of all."
        ),
    ),
    DocumentFormat(
        "pyperf",
        "pyperf's JSON",
        lists("benchmarks", "runs"),
        read_pyperf,
        reads=(
            "pyperf's JSON: each value of each benchmark (processes are compared; calibration and warm-ups have no "
            "value)."
        ),
    ),
    DocumentFormat(
        "pytest-benchmark",
        PYTEST_BENCHMARK_FORMAT,
        recognise_pytest_benchmark,
        read_pytest_benchmark,
        reads=(
            "pytest-benchmark's JSON (`--benchmark-json`): the time of each round of each test, or their mean where a "
            "saved file has no rounds. All rounds of a file come from one process: files are compared."
        ),
    ),
)
