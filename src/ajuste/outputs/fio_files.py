"""The JSON of fio: one run of all its jobs, from which each figure of each direction is one value.

Source: fio's HOWTO, "JSON output", and stat.c: jobs[].read|write|trim with iops, bw_bytes and lat_ns, clat_ns
(nanoseconds; fio before 3.0 had lat in microseconds and bw in KiB/s only).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ajuste.model.error import RequestError
from ajuste.model.measurements import Table
from ajuste.model.metric import Direction, Metric
from ajuste.outputs.collector import LOOKED_AT, Collector
from ajuste.outputs.document import DocumentNode, parse_document

FORMAT = "fio JSON"
_BESIDE = re.compile(r'^\{[ \t\r]*\n\s*"fio version"', re.MULTILINE)
DIRECTIONS = ("read", "write", "trim")
PERCENTILES = {"50.000000": "p50", "95.000000": "p95", "99.000000": "p99", "99.900000": "p99.9"}


def recognise_beside_text(text: str) -> bool:
    """Whether a text has such a document after other lines: warnings, or those of ``--output-format=normal,json``."""
    return not text.lstrip().startswith("{") and _BESIDE.search(text[:LOOKED_AT]) is not None


def read_beside_text(text: str, name: str, file: Path) -> Table:
    """The document between the first and the last line that is a brace, read as if it were alone."""
    lines = text.split("\n")
    start = next(place for place, line in enumerate(lines) if line.rstrip() == "{")
    end = next((place for place in range(start, len(lines)) if lines[place].rstrip() == "}"), len(lines))
    document = parse_document("\n" * start + "\n".join(lines[start : end + 1]), file)
    if not recognise(document):
        raise document.wrong("what fio --output-format=json writes")
    return read(document, name, file)


def recognise(document: DocumentNode) -> bool:
    """Whether a document is of this kind."""
    return isinstance(document.value, dict) and "jobs" in document.value and "fio version" in document.value


def read(document: DocumentNode, name: str, file: Path) -> Table:
    """One value of each metric: over all jobs the sums of IOPS and bandwidth, and of latency the mean over all I/Os
    and the worst job's percentiles. Jobs of one run are parts of it, not repetitions.
    """
    found = Collector(FORMAT, file)
    jobs = document.need("jobs").items()
    for job in jobs:
        error = job.get("error")
        if error is not None and error.number():
            raise RequestError(
                f"this job failed with error {error.value}; expected a job without errors", place=error.place
            )
    for direction in DIRECTIONS:
        parts = [part for job in jobs if (part := job.get(direction)) and _ios(part) > 0]
        for metric, value in _figures(direction, parts) if parts else ():
            found.add(name, metric, value)
    return found.table()


def _ios(part: DocumentNode) -> float:
    total = part.get("total_ios")
    return total.number() if total else 0.0


def _figures(direction: str, parts: list[DocumentNode]) -> Iterator[tuple[Metric, float]]:
    yield _metric(f"{direction}.iops", "1/s", "higher"), sum(_number(part, "iops") for part in parts)
    yield _metric(f"{direction}.bandwidth", "bytes/s", "higher"), sum(_bytes_per_second(part) for part in parts)
    latencies = [(latency, _ios(part)) for part in parts if (latency := part.get("lat_ns"))]
    if len(latencies) == len(parts):
        total = sum(ios for _, ios in latencies)
        mean = sum(latency.need("mean").number() * ios for latency, ios in latencies) / total
        yield _metric(f"{direction}.latency", "s", "lower"), mean / 1e9
    for key, word in PERCENTILES.items():
        found = [value.number() for part in parts if (value := _percentile(part, key))]
        if len(found) == len(parts):
            yield _metric(f"{direction}.latency-{word}", "s", "lower"), max(found) / 1e9


def _number(part: DocumentNode, name: str) -> float:
    return part.need(name).number()


def _bytes_per_second(part: DocumentNode) -> float:
    exact = part.get("bw_bytes")
    return exact.number() if exact else 1024 * _number(part, "bw")


def _percentile(part: DocumentNode, key: str) -> DocumentNode | None:
    latency = part.get("clat_ns") or part.get("lat_ns")
    percentiles = latency.get("percentile") if latency else None
    return percentiles.get(key) if percentiles else None


def _metric(name: str, unit: str, direction: Direction) -> Metric:
    return Metric(name=name, title=f"fio {name.replace('.', ' ')}", unit=unit, direction=direction)
