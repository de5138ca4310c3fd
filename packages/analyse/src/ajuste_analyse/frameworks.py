"""Benchmark frameworks of programming languages, and hyperfine, which times commands."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.base import excerpt
from ajuste.outputs.format import (
    MOST_METRICS,
    Collector,
    DocumentFormat,
    DocumentNode,
    ResultSource,
    TextFormat,
    in_beginning,
    number_at,
    parse_document,
    utf8,
)
from ajuste_stats.terms import Direction

# Source: asv 0.6, asv/results.py: result_columns, results (version 2); ``asv run --record-samples`` keeps the
# samples. The units of what is tracked are in another file, benchmarks.json.


ASV_FORMAT: Final = "asv results"
_ASV_UNITS: Final = {"time": "s", "timeraw": "s", "mem": "bytes", "peakmem": "bytes"}


def recognise_asv(document: DocumentNode) -> bool:
    """Return whether a document is of this kind."""
    whole = document.value
    return isinstance(whole, dict) and isinstance(whole.get("results"), dict) and "result_columns" in whole


def read_asv(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Read each benchmark as a metric for each of its parameters' values."""
    collector = Collector(ASV_FORMAT, file)
    columns = [column.text() for column in document.need("result_columns").items()]
    failed = 0
    for benchmark, entry in document.need("results").members():
        values = dict(zip(columns, entry.items(), strict=False))
        if "result" not in values or values["result"].value is None:
            failed += 1
            continue
        results = values["result"].items()
        samples = _listed(values.get("samples"))
        # asv takes less as better in all benchmarks.
        unit = _ASV_UNITS.get(benchmark.rsplit(".", 1)[-1].split("_", 1)[0], "")
        titles = list(islice(_titles(utf8(benchmark), values.get("params")), MOST_METRICS + 1))
        if len(titles) != len(results):
            raise values["result"].wrong(f"{len(titles)} results, one for each of the parameters' values")
        for number, (title, result) in enumerate(zip(titles, results, strict=True)):
            if result.value is None or (isinstance(result.value, float) and math.isnan(result.value)):
                failed += 1
                continue
            sample = samples[number].value if number < len(samples) else None
            measured = samples[number].items() if sample else [result]
            metric = Metric(name=title, title=title, unit=unit, direction="lower")
            for value in measured:
                collector.add(name, metric, value.number())
    if failed:
        collector.notes.append(f"{utf8(file.name)}: left out {failed} results that failed or were skipped.")
    return collector.table()


def _listed(samples: DocumentNode | None) -> list[DocumentNode]:
    return samples.items() if samples is not None and samples.value is not None else []


def _titles(benchmark: str, params: DocumentNode | None) -> Iterator[str]:
    values = [[node.text() for node in values.items()] for values in _listed(params)]
    for chosen in product(*values):
        yield f"{benchmark}({', '.join(chosen)})" if chosen else benchmark


# Source: criterion.rs 0.5, src/analysis and src/benchmark.rs; its book, "External Tools". Each sample is the time of
# some iterations, and so a value of the time of one.


CRITERION_FORMAT: Final = "Criterion.rs"
_CRITERION_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_MESSAGE: Final = re.compile(r'^\{"reason":\s?"benchmark-complete"', re.MULTILINE)
_MOST_BYTES: Final = 1 << 16


def recognise_criterion(document: DocumentNode) -> bool:
    """Return whether a document has the samples of a benchmark."""
    return isinstance(document.value, dict) and {"iters", "times"} <= document.value.keys()


def read_criterion(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Read samples of one metric, called as ``benchmark.json`` beside the file says, or after its folder."""
    collector = Collector(CRITERION_FORMAT, file, level="process")
    _criterion_add(
        collector,
        name,
        _criterion_benchmark(file),
        document.need("iters"),
        document.need("times"),
        _CRITERION_UNITS["ns"],
    )
    return collector.table()


def recognise_estimates(document: DocumentNode) -> bool:
    """Return whether a document has only the estimates of a benchmark."""
    whole = document.value
    return isinstance(whole, dict) and isinstance(whole.get("mean"), dict) and "point_estimate" in whole["mean"]


def refuse_estimates(_document: DocumentNode, _name: str, file: Path) -> MeasuredTable:
    """Raise RequestError: they do not say how many samples they are of."""
    raise RequestError(
        "found estimates only; expected the samples that they are of",
        place=Place(file),
        hint="give the file sample.json beside it",
    )


def _criterion_benchmark(file: Path) -> str:
    described = file.with_name("benchmark.json")
    try:
        if described.is_file() and described.stat().st_size <= _MOST_BYTES:
            full_id = json.loads(described.read_text(encoding="utf-8")).get("full_id")
            if isinstance(full_id, str) and full_id.strip():
                return utf8(full_id)
    except (OSError, ValueError, AttributeError, RecursionError):
        pass  # it is not of Criterion.rs
    return utf8(file.absolute().parent.parent.name) or "time"


def read_messages(source: ResultSource) -> MeasuredTable:
    """Read each benchmark as a metric; other lines are of tests that ran too."""
    collector = Collector(CRITERION_FORMAT, source.file, level="process")
    runs: Counter[str] = Counter()
    for number, line in enumerate(source.text.split("\n"), 1):
        if not line.startswith("{"):
            continue
        try:
            message = parse_document(line, source.file)
        except RequestError as error:
            place = Place(source.file, number)
            raise RequestError(f"{error.message}; expected a whole message", place=place) from None
        reason = message.get("reason")
        if reason is None or reason.value != "benchmark-complete":
            continue
        unit = message.need("unit")
        factor = _CRITERION_UNITS.get(unit.text())
        if factor is None:
            raise unit.wrong(f"one of {', '.join(_CRITERION_UNITS)}")
        title = message.need("id").text()
        runs[title] += 1
        counts, times = message.need("iteration_count"), message.need("measured_values")
        _criterion_add(collector, source.name, title, counts, times, factor, process=runs[title])
    return collector.table()


def _criterion_add(
    collector: Collector,
    name: str,
    title: str,
    counts: DocumentNode,
    times: DocumentNode,
    factor: float,
    *,
    process: int = 1,
) -> None:
    metric = Metric(name=title, title=title, unit="s", direction="lower", what="Time of one iteration in each sample.")
    iterations, measured = counts.items(), times.items()
    if len(iterations) != len(measured):
        raise times.wrong(f"{len(iterations)} times, as there are counts of iterations")
    for count, time in zip(iterations, measured, strict=True):
        if count.number() <= 0:
            raise count.wrong("at least one iteration")
        collector.add(name, metric, time.number() * factor / count.number(), unit=str(process))


# Source: golang.org/design/14313-benchmark-format and golang.org/x/perf/benchfmt (Unit lines, names without
# Benchmark).


GO_TEST_FORMAT: Final = "go test -bench"
_NUMBER: Final = r"[0-9.eE+-]{1,40}"
_BEGUN: Final = re.compile(r"Benchmark\S{0,200}\s+\d+(?:\s|$)")
_RESULT: Final = re.compile(
    rf"Benchmark(?P<name>\S{{0,200}})\s+\d{{1,18}}(?P<figures>(?:\s+{_NUMBER}\s+[^\s\d]\S{{0,60}}){{1,40}})\s*"
)
# Also of a run that failed or has no benchmarks.
_RECOGNISED: Final = re.compile(
    rf"^(?:Benchmark\S{{0,200}}\s+\d{{1,18}}\s+{_NUMBER}\s+[^\s\d]\S*|(?:goos|pkg): \S|--- FAIL: Benchmark)",
    re.MULTILINE,
)
_FIGURE: Final = re.compile(rf"({_NUMBER})\s+([^\s\d]\S{{0,60}})")
_FAILED: Final = re.compile(r"(?:--- FAIL:|FAIL\b|panic:)")
_BETTER: Final = re.compile(r"Unit\s+(?P<unit>\S{1,60})\s+(?:.*\s)?better=(?P<better>higher|lower)\b")
_PACKAGE: Final = re.compile(r"pkg:\s*(\S{1,200})")
# As benchstat has them; the unit of what has none here is written after the benchmark's name.
_SCALES: Final[dict[str, tuple[str, float, Direction]]] = {
    "ns/op": ("s", 1e-9, "lower"),
    "MB/s": ("bytes/s", 1e6, "higher"),
    "B/op": ("bytes", 1.0, "lower"),
    "allocs/op": ("", 1.0, "lower"),
}
_LONGEST: Final = 4000


@dataclass(frozen=True)
class _Result:
    package: str
    process: int
    name: str
    unit: str
    value: float
    line: int


def read_go_test(source: ResultSource) -> MeasuredTable:
    """Read each benchmark as a metric for each of its units, named as benchstat does, with its package if there are
    several.
    """
    collector = Collector(GO_TEST_FORMAT, source.file, level="process")
    better: dict[str, Direction] = {}
    results = list(_results(source, better))
    packages = {result.package for result in results}
    for result in results:
        name = f"{result.package}.{result.name}" if len(packages) > 1 else result.name
        unit, factor, direction = _SCALES.get(
            result.unit, (result.unit, 1.0, "higher" if result.unit.endswith("/s") else "none")
        )
        title = name if result.unit == "ns/op" else f"{name} {result.unit}"
        scale = "difference" if result.unit in ("B/op", "allocs/op") else "ratio"
        metric = Metric(name=title, title=title, unit=unit, direction=better.get(result.unit, direction), scale=scale)
        collector.add(source.name, metric, result.value * factor, unit=str(result.process), line=result.line)
    return collector.table()


def _results(source: ResultSource, better: dict[str, Direction]) -> Iterator[_Result]:
    package, process = "", 1
    started: set[str] = set()
    for number, whole in enumerate(source.text.splitlines(), 1):
        line = whole[:_LONGEST]
        place = Place(source.file, number)
        if _FAILED.match(line):
            raise RequestError(f"found {excerpt(line)}", place=place, hint="fix the failure and measure again")
        if match := _PACKAGE.match(line):
            package = match[1]
            process += package in started
            started.add(package)
        elif match := _BETTER.match(line):
            better[match["unit"]] = "higher" if match["better"] == "higher" else "lower"
        elif _BEGUN.match(line):
            result = _RESULT.fullmatch(line)
            if result is None:
                raise RequestError(f"found {excerpt(line)}; expected figures, each with its unit", place=place)
            for text, unit in _FIGURE.findall(result["figures"]):
                name, value = result["name"] or "Benchmark", number_at(text, unit, place)
                yield _Result(package, process, name, unit, value, number)


# Source: google/benchmark, docs/user_guide.md, "Output formats": benchmarks[].run_type, run_name, real_time,
# cpu_time, time_unit.


GOOGLE_BENCHMARK_FORMAT = "Google Benchmark JSON"
_GOOGLE_BENCHMARK_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def read_google_benchmark(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Read each benchmark as two metrics of the configuration ``name``, in seconds: real time and CPU time."""
    collector = Collector(GOOGLE_BENCHMARK_FORMAT, file, level="process")
    aggregates = False
    for benchmark in document.need("benchmarks").items():
        kind = benchmark.get("run_type")
        if kind is not None and kind.text() == "aggregate":
            aggregates = True
            continue
        if (failed := benchmark.get("error_occurred")) and failed.value:
            raise RequestError(
                "this benchmark failed; expected results without failures",
                place=benchmark.place,
                hint="fix the failure and measure again",
            )
        title = (benchmark.get("run_name") or benchmark.need("name")).text()
        unit = (benchmark.get("time_unit") or benchmark.need("time_unit")).text()
        if unit not in _GOOGLE_BENCHMARK_SECONDS:
            raise benchmark.need("time_unit").wrong(f"one of {', '.join(_GOOGLE_BENCHMARK_SECONDS)}")
        for field, suffix in (("real_time", ""), ("cpu_time", " (CPU)")):
            if (time := benchmark.get(field)) is not None:
                metric = Metric(name=title + suffix, title=title + suffix, unit="s", direction="lower")
                collector.add(name, metric, time.number() * _GOOGLE_BENCHMARK_SECONDS[unit])
    if aggregates and collector.empty:
        raise RequestError(
            "found only aggregates; expected every repetition",
            place=Place(file),
            hint="measure without --benchmark_report_aggregates_only",
        )
    return collector.table()


# Source: hyperfine 1.x, --export-json: results[].command, times, user, system, exit_codes.


HYPERFINE_FORMAT = "hyperfine JSON"
TIME = Metric(name="time", title="Time", unit="s", direction="lower", what="Wall-clock time of a run, by hyperfine.")


def read_hyperfine(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Read a single command as the configuration ``name``, several as configurations of their own names. A command that
    is there twice (an A/A comparison) is two configurations with numbers.
    """
    collector = Collector(HYPERFINE_FORMAT, file)
    results = document.need("results").items()
    commands = [name] if len(results) == 1 else [result.need("command").text() for result in results]
    counted, seen = Counter(commands), Counter[str]()
    for repeated in (command for command, count in counted.items() if count > 1):
        collector.notes.append(
            f"{file.name}: {counted[repeated]} results have the command {excerpt(repeated)}. They are compared as "
            f"configurations (1) to ({counted[repeated]})."
        )
    for same, result in zip(commands, results, strict=True):
        seen[same] += 1
        command = same if counted[same] == 1 else f"{same} ({seen[same]})"
        times = result.get("times")
        if times is None:
            raise RequestError(
                f"{command} has only a summary; expected the times of its runs",
                place=result.place,
                hint="use hyperfine --export-json, which has every run",
            )
        listed = result.get("exit_codes")
        codes = [code.value for code in listed.items()] if listed else []
        if any(codes):
            raise RequestError(
                f"{sum(map(bool, codes))} of {len(codes)} runs of {command} failed",
                place=result.place,
                hint="fix the failure and measure again",
            )
        for time in times.items():
            collector.add(command, TIME, time.number())
    return collector.table()


# Source: JMH 1.37, org.openjdk.jmh.results.format.JSONResultFormat: primaryMetric and secondaryMetrics with scoreUnit
# and rawData (forks of iterations); in the mode ``sample`` rawDataHistogram (pairs of a time and how often it was
# seen).


JMH_FORMAT: Final = "JMH JSON"
_JMH_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "hr": 3600.0, "day": 86400.0}
_BYTES: Final = {"B/op": ("bytes", 1.0), "MB/sec": ("bytes/s", float(1 << 20)), "counts": ("", 1.0)}
_PRINTED: Final = {"50.0": "p50", "90.0": "p90", "95.0": "p95", "99.0": "p99", "99.9": "p99.9", "99.99": "p99.99"}


def recognise_jmh(document: DocumentNode) -> bool:
    """Return whether a document is of this kind."""
    whole = document.value
    return (
        isinstance(whole, list)
        and bool(whole)
        and all(isinstance(result, dict) and "primaryMetric" in result for result in whole)
    )


def read_jmh(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Read each benchmark as a metric, with its parameters, and with its mode where it ran in several."""
    collector = Collector(JMH_FORMAT, file, level="fork")
    results = document.items()
    modes: dict[str, set[str]] = defaultdict(set)
    for result in results:
        modes[_jmh_benchmark(result)].add(result.need("mode").text())
    for result in results:
        title, mode = _jmh_benchmark(result), result.need("mode").text()
        if len(modes[title]) > 1:
            title = f"{title} ({mode})"
        primary = result.need("primaryMetric")
        _jmh_add(collector, name, title, primary, "higher" if mode == "thrpt" else "lower")
        collector.main.add(title)
        if primary.get("rawDataHistogram") is not None:
            _add_percentiles(collector, name, title, primary)
        secondary = result.get("secondaryMetrics")
        for key, metric in secondary.members() if secondary else ():
            _jmh_add(collector, name, f"{title} {key.removeprefix('·')}", metric, "none")
    return collector.table()


def _jmh_benchmark(result: DocumentNode) -> str:
    params = result.get("params")
    described = ", ".join(f"{key}={value.text()}" for key, value in params.members()) if params else ""
    benchmark = result.need("benchmark").text()
    return f"{benchmark} [{described}]" if described else benchmark


def _jmh_metric(title: str, unit: DocumentNode, direction: Direction) -> tuple[Metric, float]:
    before, _, after = unit.text().partition("/")
    scale: tuple[str, float] = _BYTES.get(unit.text(), (unit.text(), 1.0))
    if before == "ops" and after in _JMH_SECONDS:
        scale = ("1/s", 1 / _JMH_SECONDS[after])
    elif after in ("op", "") and before in _JMH_SECONDS:
        scale = ("s", _JMH_SECONDS[before])
    metric = Metric(
        name=title,
        title=title,
        unit=scale[0],
        direction=direction,
        scale="difference" if direction == "none" else "ratio",
    )
    return metric, scale[1]


def _jmh_add(collector: Collector, name: str, title: str, scored: DocumentNode, direction: Direction) -> None:
    metric, factor = _jmh_metric(title, scored.need("scoreUnit"), direction)
    histogram = scored.get("rawDataHistogram")
    forks = histogram or scored.need("rawData")
    for number, fork in enumerate(forks.items(), 1):
        for iteration in fork.items():
            value = _mean(iteration) if histogram else iteration.number()
            collector.add(name, metric, value * factor, unit=str(number))


def _mean(iteration: DocumentNode) -> float:
    # Of pairs of a time and a count.
    total, number = 0.0, 0.0
    for pair in iteration.items():
        both = pair.items()
        if len(both) != 2 or both[1].number() <= 0:
            raise pair.wrong("a time and how often it was measured")
        total += both[0].number() * both[1].number()
        number += both[1].number()
    if not number:
        raise iteration.wrong("at least one time")
    return total / number


def _add_percentiles(collector: Collector, name: str, title: str, primary: DocumentNode) -> None:
    # Of all samples together: one value each.
    percentiles = primary.need("scorePercentiles")
    for key, word in _PRINTED.items():
        value = percentiles.get(key)
        if value is not None:
            metric, factor = _jmh_metric(f"{title} {word}", primary.need("scoreUnit"), "lower")
            collector.add(name, metric, value.number() * factor)


# Source: pyperf's documentation, "pyperf JSON": benchmarks[].runs[].values, metadata.name and metadata.unit.


PYPERF_FORMAT = "pyperf JSON"
_PYPERF_UNITS = {"second": "s", "byte": "bytes", "integer": ""}


def read_pyperf(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Read each benchmark of the file as a metric of the configuration ``name``."""
    collector = Collector(PYPERF_FORMAT, file, level="process")
    common = document.get("metadata")
    for number, benchmark in enumerate(document.need("benchmarks").items(), start=1):
        specific = benchmark.get("metadata")
        title = _metadata_text(specific, "name") or _metadata_text(common, "name") or f"benchmark-{number}"
        unit = _metadata_text(specific, "unit") or _metadata_text(common, "unit") or "second"
        metric = Metric(name=title, title=title, unit=_PYPERF_UNITS.get(unit, unit), direction="lower")
        for process, run in enumerate(benchmark.need("runs").items(), 1):
            values = run.get("values")
            for value in values.items() if values else ():
                collector.add(name, metric, value.number(), unit=str(process))
    return collector.table()


def _metadata_text(metadata: DocumentNode | None, name: str) -> str:
    node = metadata.get(name) if metadata else None
    return node.text() if node else ""


# Source: pytest-benchmark 5, docs/usage, "--benchmark-json": benchmarks[].name, fullname, stats.data. Saved results
# without data have the mean of their rounds.


PYTEST_BENCHMARK_FORMAT: Final = "pytest-benchmark JSON"


def recognise_pytest_benchmark(document: DocumentNode) -> bool:
    """Return whether a document is of this kind."""
    benchmarks = document.value.get("benchmarks") if isinstance(document.value, dict) else None
    return (
        isinstance(benchmarks, list)
        and bool(benchmarks)
        and all(
            isinstance(benchmark, dict) and "stats" in benchmark and "fullname" in benchmark for benchmark in benchmarks
        )
    )


def read_pytest_benchmark(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Read each test as a metric of the configuration ``name``, with its file where two have the same name."""
    collector = Collector(PYTEST_BENCHMARK_FORMAT, file, level="process")
    benchmarks = document.need("benchmarks").items()
    counted = Counter(benchmark.need("name").text() for benchmark in benchmarks)
    for benchmark in benchmarks:
        short = benchmark.need("name").text()
        title = short if counted[short] == 1 else benchmark.need("fullname").text()
        metric = Metric(name=title, title=title, unit="s", direction="lower", what="Time of each round.")
        stats = benchmark.need("stats")
        data = stats.get("data")
        if data is not None:
            for value in data.items():
                collector.add(name, metric, value.number())
            continue
        collector.add(name, metric, stats.need("mean").number())
    return collector.table()


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
        in_beginning(_MESSAGE),
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
        in_beginning(_RECOGNISED),
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
