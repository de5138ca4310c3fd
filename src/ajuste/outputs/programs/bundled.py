"""The bundled workloads: each prints one line of results, ``NAME key=value …``, or LINPACK's table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.base import ParseError, excerpt, figure
from ajuste.outputs.format import Collector, Parser, ResultSource, TextFormat, in_beginning

_FRAMES: Final = re.compile(
    r"^frames profile=[a-z]{1,20} due=(\d{1,12}) drawn=(\d{1,12}) in_time=(\d{1,12}) elapsed_ns=(\d{1,18}) "
    r"min_ns=\d{1,18} p50_ns=(\d{1,18}) p90_ns=\d{1,18} p99_ns=(\d{1,18}) p999_ns=(\d{1,18}) max_ns=(\d{1,18})$",
    re.MULTILINE,
)
_JITTER: Final = re.compile(
    r"^jitter sleeps=\d{1,12} interval_us=\d{1,12} min_ns=(\d{1,18}) p50_ns=(\d{1,18}) p90_ns=(\d{1,18}) "
    r"p99_ns=(\d{1,18}) p999_ns=(\d{1,18}) max_ns=(\d{1,18})$",
    re.MULTILINE,
)
_MATRIX: Final = re.compile(r"^matrix size=(\d{1,12}) repetitions=(\d{1,12}) checksum=(\S{1,40})$", re.MULTILINE)
_PAGES: Final = re.compile(
    r"^pages policy=[a-z]{1,20} nodes=(\d{1,4}) pages=(\d{1,12}) local=(\d{1,12}) remote=(\d{1,12}) "
    r"unknown=(\d{1,12}) fill_ns=(\d{1,18}) read_ns=(\d{1,18}) sum=\d{1,20}$",
    re.MULTILINE,
)
_PATHS: Final = re.compile(
    r"^paths protocol=(?:tcp|mptcp) paths=([12]) elapsed_ns=(\d{1,18}) received_bytes=(\d{1,18}) stall_ns=(\d{1,18}) "
    r"path_bytes=(\d{1,18})(?:,(\d{1,18}))?$",
    re.MULTILINE,
)

_SHARE = r"[\d.]{1,20}%[ \t]+"

_ROW = re.compile(
    rf"^[ \t]*(\d{{1,12}})[ \t]+[\d.]{{1,20}}[ \t]+{_SHARE}{_SHARE}{_SHARE}([\d.]{{1,20}})[ \t]*$", re.MULTILINE
)

_INTERRUPTS = re.compile(r"^Interrupts[ \t]+(\d{1,15}) on CPU \d{1,5}[ \t]*$", re.MULTILINE)
_RESIDUAL = re.compile(r"^Residual[ \t]+(\S{1,40})[ \t]+normalised[ \t]+(\S{1,40})[ \t]*$", re.MULTILINE)
LINPACK_FORMAT: Final = "LINPACK table"

_HEAD: Final = re.compile(
    r"^[ \t]*Reps[ \t]+Time\(s\)[ \t]+DGEFA[ \t]+DGESL[ \t]+OVERHEAD[ \t]+KFLOPS[ \t\r]*$", re.MULTILINE
)

_CLASSIC_ROW: Final = re.compile(
    r"^\s*(?P<reps>\d{1,12})\s+(?P<time>\d{1,9}[.,]\d{1,9})\s+(?:\d{1,3}[.,]\d{1,4}\s*%\s+){3}(?P<kflops>\d{1,12}[.,]\d{1,9})\s*$"
)

_BEGUN: Final = re.compile(r"^\s*\d+\s+\S+\s+\S+%")

SPEED: Final = Metric(
    name="kflops",
    title="LINPACK speed",
    unit="kflop/s",
    direction="higher",
    what="Thousands of floating-point operations a second, a value for each row of the table.",
)


def frames(output: str) -> dict[str, float]:
    """Return ``frames.rate`` a second, ``frames.missed`` in percent of those due, and the times from when a frame was
    due to when it was ready, in milliseconds: ``frames.p50``, ``.p99``, ``.p999`` and ``.max``.
    """
    due, drawn, in_time, elapsed, *times = (figure(text, "frames") for text in _only("frames", _FRAMES, output))
    if not in_time <= drawn <= due or not due or not elapsed:
        raise _contradiction("frames", output)
    return {
        "frames.rate": drawn / (elapsed / 1e9),
        "frames.missed": 100 * (due - in_time) / due,
        **{f"frames.{name}": time / 1e6 for name, time in zip(("p50", "p99", "p999", "max"), times, strict=True)},
    }


def jitter(output: str) -> dict[str, float]:
    """Return how late sleeps ended, in µs: ``jitter.min``, ``.p50``, ``.p90``, ``.p99``, ``.p999`` and ``.max``."""
    names = (f"jitter.{name}" for name in ("min", "p50", "p90", "p99", "p999", "max"))
    values = zip(names, _only("jitter", _JITTER, output), strict=True)
    return {name: figure(value, name) / 1000 for name, value in values}


def matrix(output: str) -> dict[str, float]:
    """Return no figure: the product is always the same. Raises ParseError unless it ended with a finite checksum."""
    figure(_only("matrix", _MATRIX, output)[2], "the checksum")
    return {}


def pages(output: str) -> dict[str, float]:
    """Return ``pages.nodes``; ``pages.local`` in percent of all pages, where the kernel tells where they are;
    ``pages.fill`` and ``pages.read`` in milliseconds.
    """
    groups = _only("pages", _PAGES, output)
    nodes, count, local, remote, unknown, fill_ns, read_ns = (figure(text, "pages") for text in groups)
    if not count or local + remote + unknown != count:
        raise _contradiction("pages", output)
    placed = {"pages.local": 100 * local / (local + remote)} if local + remote else {}
    return {"pages.nodes": nodes, **placed, "pages.fill": fill_ns / 1e6, "pages.read": read_ns / 1e6}


def paths(output: str) -> dict[str, float]:
    """Return ``paths.goodput`` in Mbit/s of what the receiver got, ``paths.stall`` in milliseconds, ``paths.second`` in
    percent of all that arrived by the links (0 where there is one).
    """
    groups = _only("paths", _PATHS, output)
    links, elapsed_ns, received, stall_ns, first, second = (figure(text or "0", "paths") for text in groups)
    if not elapsed_ns or not first or (links == 2) != bool(groups[5]):
        raise _contradiction("paths", output)
    return {
        "paths.goodput": received * 8 / (elapsed_ns / 1e3),
        "paths.stall": stall_ns / 1e6,
        "paths.second": 100 * second / (first + second),
    }


def _only(name: str, line: re.Pattern[str], output: str) -> tuple[Any, ...]:
    lines = line.findall(output)
    if len(lines) != 1:
        raise ParseError(f"{name} printed {len(lines)} lines of results instead of one: {excerpt(output)}")
    groups: tuple[Any, ...] = lines[0]
    return groups


def _contradiction(name: str, output: str) -> ParseError:
    return ParseError(f"{name} printed figures that contradict each other: {excerpt(output)}")


def parse_linpack(output: str) -> dict[str, float]:
    """Return ``linpack.kflops`` of the row with the most repetitions, ``linpack.residual``, a few units where the
    machine calculates rightly, and ``linpack.interrupts`` of the CPU that it began on, if counted.
    """
    rows = [(int(repetitions), kflops) for repetitions, kflops in _ROW.findall(output)]
    if not rows:
        raise ParseError(f"LINPACK printed no row with KFLOPS: {excerpt(output)}")
    residuals = _RESIDUAL.findall(output)
    if len(residuals) != 1:
        raise ParseError(f"LINPACK printed {len(residuals)} residuals instead of one")
    _, kflops = max(rows, key=lambda row: row[0])
    metrics = {
        "linpack.kflops": figure(kflops, "KFLOPS"),
        "linpack.residual": figure(residuals[0][1], "the normalised residual"),
    }
    if interrupts := _INTERRUPTS.findall(output):
        metrics["linpack.interrupts"] = figure(interrupts[-1], "the interrupts")
    return metrics


# The table of the classic LINPACK benchmark in C: each row is one value of its speed.
#
# Source: netlib.org/benchmark/linpackc.new: "Reps Time(s) DGEFA DGESL OVERHEAD KFLOPS".


def read_linpack(source: ResultSource) -> MeasuredTable:
    """Read every row as a value. Rows of a table repeat ever more work, and so are not quite alike, except rows of as
    many repetitions in several tables.
    """
    collector = Collector(LINPACK_FORMAT, source.file)
    inside = False
    for number, line in enumerate(source.text.splitlines(), start=1):
        if _HEAD.match(line[:200]):
            inside = True
        elif row := _CLASSIC_ROW.match(line[:200]):
            collector.add(source.name, SPEED, float(row["kflops"].replace(",", ".")), line=number)
        elif inside and _BEGUN.match(line):
            raise RequestError(
                f"found {line.strip()[:60]!r}; expected a complete row of the table", place=Place(source.file, number)
            )
    return collector.table()


PARSERS: Final[Mapping[str, Parser]] = MappingProxyType(
    {"frames": frames, "jitter": jitter, "linpack": parse_linpack, "matrix": matrix, "pages": pages, "paths": paths}
)
TEXTS: Final = (
    TextFormat(
        "linpack",
        "LINPACK's table",
        in_beginning(_HEAD),
        read_linpack,
        reads="The table of LINPACK, which ends with the residual of the solution: the KFLOPS of each row.",
    ),
)
