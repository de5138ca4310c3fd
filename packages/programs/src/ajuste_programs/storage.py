"""Benchmarks of storage: fio and dbench."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, Self, TypeVar

from pydantic import Field, ValidationError, model_validator

from ajuste.model.base import BaseModel
from ajuste.model.error import RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.base import ParseError, excerpt
from ajuste.outputs.format import (
    LOOKED_AT,
    Collector,
    DocumentFormat,
    DocumentNode,
    Parser,
    ResultSource,
    TextFormat,
    parse_document,
)
from ajuste_programs.printed import NUMBER, PrintedReport, PrintedRow
from ajuste_stats.terms import Direction

# Source: dbench 4.0, dbench.c (show_one_latency, report_latencies, main). Its MB are 10^6 bytes.


OPERATIONS: Final = (
    *("NTCreateX", "Close", "Rename", "Unlink", "Deltree", "Mkdir", "Qpathinfo", "Qfileinfo", "Qfsinfo"),
    *("Sfileinfo", "Find", "WriteX", "ReadX", "LockX", "UnlockX", "Flush"),
)


def _dbench_row(name: str) -> PrintedRow:
    # Latencies are printed in ms, without the unit.
    word = name.lower()
    return PrintedRow(
        rf"\s*{name}\s+(?=\d)",
        rf"(\d+)\s+({NUMBER})\s+({NUMBER})",
        (f"{word}-count", f"{word}-latency", f"{word}-latency-max"),
    )


DBENCH: Final = PrintedReport(
    name="dbench",
    title="dbench",
    reads="dbench and tbench 4: the throughput of all clients, and how long each kind of operation took.",
    begins=r"^dbench version \d",
    needed=("throughput",),
    main="throughput|latency-max",
    rows=(
        PrintedRow(
            r"Throughput\s+",
            rf"({NUMBER}) MB/sec\s+(?:\(sync open\)\s+|\(sync dirs\)\s+)*\d+ clients\s+\d+ procs\s+"
            rf"max_latency=({NUMBER}) ?ms",
            ("throughput", "latency-max"),
        ),
        *map(_dbench_row, OPERATIONS),
    ),
)


# Source: fio's HOWTO, "JSON output"; stat.c, show_thread_status_json and show_run_stats.


DIRECTIONS: Final = ("read", "write", "trim")
LATENCIES: Final = {"latency": "lat_ns", "submission": "slat_ns", "completion": "clat_ns"}
DEPTHS: Final = ("1", "2", "4", "8", "16", "32", ">=64")

_OPENING: Final = re.compile(r"^\{[ \t\r]*$", re.MULTILINE)
_CLOSING: Final = re.compile(r"^\}[ \t\r]*$", re.MULTILINE)
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")

Job = TypeVar("Job")
Share = Annotated[float, Field(strict=True, ge=0, le=1e6, allow_inf_nan=False)]


class _Transfer(BaseModel):
    # What a job did in one direction; `runtime` in milliseconds.
    io_bytes: Count
    total_ios: Count
    runtime: Count
    lat_ns: FioLatency | None = None
    slat_ns: FioLatency | None = None
    clat_ns: FioLatency | None = None


class _Job(BaseModel):
    # One job, or the whole group with `--group_reporting`; CPU times in per cent of its run time.
    jobname: str
    groupid: Count = 0
    error: int = Field(strict=True)
    total_err: Count = 0
    job_runtime: Count
    usr_cpu: Share
    sys_cpu: Share
    iodepth_level: dict[str, Share] = Field(default_factory=dict)
    read: _Transfer
    write: _Transfer
    trim: _Transfer | None = None

    @property
    def bytes_per_second(self) -> float:
        # In all directions, each over its own time.
        parts = (self.read, self.write, self.trim)
        return sum(1000 * part.io_bytes / part.runtime for part in parts if part and part.runtime)


class _Run(BaseModel):
    version: str = Field(alias="fio version")
    jobs: tuple[_Job, ...] = Field(min_length=1)


def parse_fio(output: str) -> dict[str, float]:
    """Metrics ``fio.…`` of all jobs if they ran at the same time, and ``fio.JOB.…`` of each other set of
    ``concurrent_jobs``.

    For each direction ``read.iops``, ``.bandwidth`` (MiB/s) and, in microseconds, ``.latency`` (the mean from when the
    I/O was handed over to when it was done), ``.submission`` and ``.completion``, its parts, each also ``-sd``,
    ``-min``, ``-max`` and, where fio kept what is needed, ``-p50`` … ``-p999``. Of all directions ``cpu-user`` and
    ``cpu-system`` (%), ``depth-1`` … ``depth-64`` (%), and of several jobs ``fairness``. Raises ParseError.
    """
    jobs = _run(output).jobs
    for job in jobs:
        if job.error or job.total_err:
            raise ParseError(f"fio's job {excerpt(job.jobname)} failed with error {job.error or job.total_err}")
    metrics: dict[str, float] = {}
    for name, same in concurrent_jobs([(job.groupid, job.jobname, job) for job in jobs]).items():
        if not name or _NAME.fullmatch(name):
            metrics.update(_metrics(f"fio.{name}" if name else "fio", same))
    if not metrics:
        raise ParseError("fio's jobs did no I/O")
    return metrics


def concurrent_jobs(jobs: Sequence[tuple[float, str, Job]]) -> dict[str, list[Job]]:
    """Return jobs (group, name, job) whose figures make sense together, by the name of each set.

    ``""`` is all of them, where there is one group: groups run one after the other (``--stonewall``) or are reported
    apart on purpose (``--new_group``). The others are those of one name, with the group's number where several groups
    have that name.
    """
    parts: dict[tuple[float, str], list[Job]] = {}
    for group, name, job in jobs:
        parts.setdefault((group, name), []).append(job)
    named = Counter(name for _, name in parts)
    sets = {"": [job for _, _, job in jobs]} if len({group for group, _ in parts}) == 1 else {}
    if len(parts) > 1:
        for (group, name), same in parts.items():
            sets[name if named[name] == 1 else f"{name}-group{group:g}"] = same
    return sets


def jain(shares: Sequence[float]) -> float:
    """Return how evenly something is shared: 1 if all have the same, 1/n if one of n has everything.

    Jain, Chiu and Hawe (1984), "A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared
    Computer Systems", DEC-TR-301.
    """
    largest = max(shares)
    scaled = [share / largest for share in shares] if largest else [1.0 for _ in shares]
    return sum(scaled) ** 2 / (len(scaled) * sum(share**2 for share in scaled))


def _run(output: str) -> _Run:
    opening = _OPENING.search(output)
    closing = _CLOSING.search(output, opening.end()) if opening else None
    if not opening or not closing:
        raise ParseError(f"fio did not print JSON: {excerpt(output)}")
    try:
        return _Run.model_validate_json(output[opening.start() : closing.end()])
    except ValidationError as failure:
        first = failure.errors()[0]
        words = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise ParseError(f"fio printed unexpected JSON: {excerpt(words, 160)}") from None
    except RecursionError:
        raise ParseError("fio's JSON is nested too deeply") from None


def _metrics(prefix: str, jobs: Sequence[_Job]) -> Iterator[tuple[str, float]]:
    done = 0
    for direction in DIRECTIONS:
        parts: list[_Transfer] = [part for job in jobs if (part := getattr(job, direction)) and part.total_ios]
        if parts:
            done += len(parts)
            yield from _transfers(f"{prefix}.{direction}", parts)
    if not done:
        return
    yield f"{prefix}.cpu-user", _weighted(jobs, lambda job: job.usr_cpu)
    yield f"{prefix}.cpu-system", _weighted(jobs, lambda job: job.sys_cpu)
    for depth in DEPTHS:
        yield f"{prefix}.depth-{depth.removeprefix('>=')}", _weighted(jobs, _at_depth(depth))
    if len(jobs) > 1:
        yield f"{prefix}.fairness", jain([job.bytes_per_second for job in jobs])


def _transfers(prefix: str, parts: Sequence[_Transfer]) -> Iterator[tuple[str, float]]:
    # Rates are over the longest run time, as in fio's summary of a group: rates of jobs that ended at different times
    # do not add up.
    longest = max(part.runtime for part in parts)
    if longest:
        yield f"{prefix}.iops", 1000 * sum(part.total_ios for part in parts) / longest
        yield f"{prefix}.bandwidth", 1000 * sum(part.io_bytes for part in parts) / longest / 2**20
    for name, field in LATENCIES.items():
        latency = together([latencies for part in parts if (latencies := getattr(part, field))])
        if latency is None:
            continue
        yield f"{prefix}.{name}", latency.mean / 1e3
        figures = {"sd": latency.stddev, "min": latency.min, "max": latency.max, **latency.percentiles()}
        for word, value in figures.items():
            yield f"{prefix}.{name}-{word}", value / 1e3


def _at_depth(depth: str) -> Callable[[_Job], float]:
    return lambda job: job.iodepth_level.get(depth, 0.0)


def _weighted(jobs: Sequence[_Job], share: Callable[[_Job], float]) -> float:
    # The mean of a share of the jobs' time, each counted by how long it ran.
    whole = sum(job.job_runtime for job in jobs)
    return sum(share(job) * job.job_runtime for job in jobs) / whole if whole else 0.0


# Latencies as fio reports them, of one job or of several together.


Count = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Real = Annotated[float, Field(strict=True, ge=0, lt=1e18, allow_inf_nan=False)]
Digits = Annotated[str, Field(pattern=r"^[0-9]{1,18}$")]
Percent = Annotated[str, Field(pattern=r"^[0-9]{1,3}\.[0-9]{1,9}$")]

PERCENTILES: Final = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}

# fio prints six decimals of a mean.
_ROUNDING: Final = 1e-9


class FioLatency(BaseModel):
    """``N`` latencies in nanoseconds. ``bins`` (json+) says how often each value was seen, to fio's 64th of a power
    of two; ``percentile`` has fio's own reading of them.
    """

    N: Count
    min: Real
    max: Real
    mean: Real
    stddev: Real
    percentile: dict[Percent, Count] = Field(default_factory=dict)
    bins: dict[Digits, Count] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.N and not self.min * (1 - _ROUNDING) - 1e-6 <= self.mean <= self.max * (1 + _ROUNDING) + 1e-6:
            raise ValueError("the mean is not between the minimum and the maximum latency")
        if self.bins and sum(self.bins.values()) != self.N:
            raise ValueError("the bins do not add up to the number of latencies")
        return self

    def percentiles(self) -> dict[str, float]:
        """Nanoseconds by the names of ``PERCENTILES``: from the bins, or else those that fio printed."""
        if self.bins:
            ordered = sorted((int(value), count) for value, count in self.bins.items())
            return {name: _rank(ordered, share / 100 * self.N) for name, share in PERCENTILES.items()}
        printed = {float(share): value for share, value in self.percentile.items()}
        return {name: float(printed[share]) for name, share in PERCENTILES.items() if share in printed}


def together(parts: Sequence[FioLatency]) -> FioLatency | None:
    """Return all latencies of ``parts`` as one; ``None`` if there are none.

    Percentiles are known only where all parts have bins, or there is one part alone. Deviations are pooled as fio does
    itself (stat.c, sum_stat; Chan, Golub and LeVeque 1979, "Updating formulae and a pairwise algorithm for computing
    sample variances").
    """
    counted = [part for part in parts if part.N]
    if len(counted) <= 1:
        return counted[0] if counted else None
    number = sum(part.N for part in counted)
    mean = sum(part.N * part.mean for part in counted) / number
    squares = sum(part.stddev**2 * (part.N - 1) + part.N * (part.mean - mean) ** 2 for part in counted)
    bins: Counter[str] = Counter()
    if all(part.bins for part in counted):
        for part in counted:
            bins.update(part.bins)
    return FioLatency(
        N=number,
        min=min(part.min for part in counted),
        max=max(part.max for part in counted),
        mean=mean,
        stddev=math.sqrt(squares / (number - 1)),
        bins=dict(bins),
    )


def _rank(ordered: Sequence[tuple[int, int]], rank: float) -> float:
    # The smallest value that `rank` of them do not exceed (stat.c, calc_clat_percentiles).
    seen = 0
    for value, count in ordered:
        seen += count
        if seen >= rank:
            return float(value)
    return float(ordered[-1][0])


# Files of fio's JSON: one run of all its jobs, from which each figure of each direction is one value.
#
# Source: fio's HOWTO, "JSON output", and stat.c: jobs[].read|write|trim with iops, bw_bytes and lat_ns, clat_ns
# (nanoseconds; fio before 3.0 had lat in microseconds and bw in KiB/s only).


FIO_FORMAT = "fio JSON"
_BESIDE = re.compile(r'^\{[ \t\r]*\n\s*"fio version"', re.MULTILINE)
_PRINTED_PERCENTILES = {"50.000000": "p50", "95.000000": "p95", "99.000000": "p99", "99.900000": "p99.9"}


def recognise_fio_beside_text(text: str) -> bool:
    """Return whether a text has such a document after other lines: warnings, or those of
    ``--output-format=normal,json``.
    """
    return not text.lstrip().startswith("{") and _BESIDE.search(text[:LOOKED_AT]) is not None


def read_fio_beside_text(source: ResultSource) -> MeasuredTable:
    """The document between the first and the last line that is a brace, read as if it were alone."""
    lines = source.text.split("\n")
    start = next(place for place, line in enumerate(lines) if line.rstrip() == "{")
    end = next((place for place in range(start, len(lines)) if lines[place].rstrip() == "}"), len(lines))
    document = parse_document("\n" * start + "\n".join(lines[start : end + 1]), source.file)
    if not recognise_fio(document):
        raise document.wrong("what fio --output-format=json writes")
    return read_fio(document, source.name, source.file)


def recognise_fio(document: DocumentNode) -> bool:
    """Return whether a document is of this kind."""
    return isinstance(document.value, dict) and "jobs" in document.value and "fio version" in document.value


def read_fio(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Return one value of each metric of each set of ``concurrent_jobs``: IOPS and bandwidth over the longest job, the
    mean latency of all I/Os and the worst job's percentiles. Jobs of one run are parts of it, not repetitions.
    """
    collector = Collector(FIO_FORMAT, file)
    jobs = document.need("jobs").items()
    for job in jobs:
        error = job.get("error")
        if error is not None and error.number():
            raise RequestError(
                f"this job failed with error {error.value}; expected a job without errors", place=error.place
            )
    sets = concurrent_jobs([(_group(job), _job_name(job), job) for job in jobs])
    for word, same in sets.items():
        for direction in DIRECTIONS:
            parts = [part for job in same if (part := job.get(direction)) and _ios(part) > 0]
            prefix = f"{word}.{direction}" if word else direction
            for metric, value in _figures(prefix, parts) if parts else ():
                collector.add(name, metric, value)
    if "" not in sets:
        collector.notes.append(
            f"{file.name}: fio's groups of jobs have no figures together: they ran one after the other (--stonewall) "
            "or are apart (--new_group)."
        )
    return collector.table()


def _group(job: DocumentNode) -> float:
    group = job.get("groupid")
    return group.number() if group else 0.0


def _job_name(job: DocumentNode) -> str:
    name = job.get("jobname")
    return name.text() if name else ""


def _ios(part: DocumentNode) -> float:
    total = part.get("total_ios")
    return total.number() if total else 0.0


def _figures(prefix: str, parts: list[DocumentNode]) -> Iterator[tuple[Metric, float]]:
    # As in `_transfers`, over the longest run time.
    longest = max(_need_number(part, "runtime") for part in parts)
    if longest:
        yield _file_metric(f"{prefix}.iops", "1/s", "higher"), 1000 * sum(map(_ios, parts)) / longest
        moved = sum(_bytes(part) for part in parts)
        yield _file_metric(f"{prefix}.bandwidth", "bytes/s", "higher"), 1000 * moved / longest
    latencies = [(latency, _ios(part)) for part in parts if (latency := part.get("lat_ns"))]
    if len(latencies) == len(parts):
        total = sum(ios for _, ios in latencies)
        mean = sum(latency.need("mean").number() * ios for latency, ios in latencies) / total
        yield _file_metric(f"{prefix}.latency", "s", "lower"), mean / 1e9
    for key, word in _PRINTED_PERCENTILES.items():
        percentiles = [value.number() for part in parts if (value := _percentile(part, key))]
        if len(percentiles) == len(parts):
            yield _file_metric(f"{prefix}.latency-{word}", "s", "lower"), max(percentiles) / 1e9


def _need_number(part: DocumentNode, name: str) -> float:
    return part.need(name).number()


def _bytes(part: DocumentNode) -> float:
    # fio before 3.0 gives KiB, and no bw_bytes.
    return _need_number(part, "io_bytes") * (1 if part.get("bw_bytes") else 1024)


def _percentile(part: DocumentNode, key: str) -> DocumentNode | None:
    latency = part.get("clat_ns") or part.get("lat_ns")
    percentiles = latency.get("percentile") if latency else None
    return percentiles.get(key) if percentiles else None


def _file_metric(name: str, unit: str, direction: Direction) -> Metric:
    return Metric(name=name, title=f"fio {name.replace('.', ' ')}", unit=unit, direction=direction)


PARSERS: Final[Mapping[str, Parser]] = MappingProxyType({"dbench": DBENCH.parse, "fio": parse_fio})
TEXTS: Final = (
    *DBENCH.texts(),
    TextFormat(
        "fio",
        "fio",
        recognise_fio_beside_text,
        read_fio_beside_text,
        reads=(
            "fio's JSON (`--output-format=json` or `json+`): one value of each figure of all jobs together, and of "
            "those of each name; percentiles of the worst job. Groups that run one after the other (`--stonewall`) "
            "have no figures together."
        ),
    ),
)
DOCUMENTS: Final = (DocumentFormat("fio", "fio --output-format=json", recognise_fio, read_fio),)
