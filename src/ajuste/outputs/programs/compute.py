"""Benchmarks of processors and memory, and the bundled workloads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from statistics import fmean
from types import MappingProxyType
from typing import Any, Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.base import ParseError, excerpt, figure
from ajuste.outputs.format import Collector, Parser, ResultSource, TextFormat, in_beginning
from ajuste.outputs.printed import NUMBER, PrintedReport, PrintedRow

# The bundled workloads: each prints one line of results, ``NAME key=value …``, which their readers know by heart.


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


# glxgears of Mesa's demos: every five seconds a line ``2508 frames in 5.0 seconds = 501.541 FPS``.


_GLXGEARS_LINE = re.compile(
    r"^(\d{1,9}) frames in \d{1,6}\.\d seconds = (\d{1,9}\.\d{1,6}) FPS$", re.MULTILINE | re.ASCII
)


def parse_glxgears(output: str) -> dict[str, float]:
    """Return ``glxgears.rate``: frames a second, over all lines. The time of each is its frames by their rate: that has
    more digits than the time.
    """
    samples = [
        (figure(frames, "frames"), figure(rate, "the frame rate")) for frames, rate in _GLXGEARS_LINE.findall(output)
    ]
    if not samples:
        raise ParseError(f"glxgears printed no frame rate; it needs at least five seconds: {excerpt(output)}")
    if not all(frames and rate for frames, rate in samples):
        raise ParseError(f"glxgears drew nothing: {excerpt(output)}")
    return {"glxgears.rate": sum(frames for frames, _ in samples) / sum(frames / rate for frames, rate in samples)}


# A build of a kernel, timed by a shell: the line that the workload ``kernbench`` prints.
#
# Source: src/ajuste/catalogue/workloads/kernbench.toml (TIMEFORMAT of bash(1)).


KERNBENCH: Final = PrintedReport(
    name="kernbench",
    title="kernbench",
    begins=r"^kernbench: elapsed ",
    needed=("elapsed",),
    main="elapsed",
    rows=(
        PrintedRow(
            r"kernbench: ",
            rf"elapsed ({NUMBER}) s, user ({NUMBER}) s, system ({NUMBER}) s, cpu ({NUMBER})%",
            ("elapsed", "user", "system", "cpu"),
        ),
    ),
)


_SHARE = r"[\d.]{1,20}%[ \t]+"
_ROW = re.compile(
    rf"^[ \t]*(\d{{1,12}})[ \t]+[\d.]{{1,20}}[ \t]+{_SHARE}{_SHARE}{_SHARE}([\d.]{{1,20}})[ \t]*$", re.MULTILINE
)
_INTERRUPTS = re.compile(r"^Interrupts[ \t]+(\d{1,15}) on CPU \d{1,5}[ \t]*$", re.MULTILINE)
_RESIDUAL = re.compile(r"^Residual[ \t]+(\S{1,40})[ \t]+normalised[ \t]+(\S{1,40})[ \t]*$", re.MULTILINE)


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


# Source: stream.c 5.10 (main, checkSTREAMresults). Its MB are 10^6 bytes.


def _stream_row(label: str) -> PrintedRow:
    name = label.lower()
    return PrintedRow(
        rf"{label}:\s+",
        rf"({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})",
        (name, f"{name}-time", f"{name}-time-min", f"{name}-time-max"),
    )


STREAM: Final = PrintedReport(
    name="stream",
    title="STREAM",
    reads="STREAM: the bandwidth of memory in four loops over arrays.",
    begins=r"^STREAM version \$Revision",
    needed=("copy", "scale", "add", "triad"),
    main="copy|scale|add|triad",
    rows=tuple(map(_stream_row, ("Copy", "Scale", "Add", "Triad"))),
    failed=((r"^Failed Validation (.{1,200})", "STREAM computed wrong results: {}"),),
)


# stress-ng with ``--metrics``: what one stressor did, in all its instances.
#
# Source: stress-ng 0.15.06, stress-ng.c (stress_metrics_dump). Its MB are 2^20 bytes.


_STRESS_NG_LINE: Final = r"stress-ng: metrc: \[\d+\] "
_COUNTS: Final = (
    *("bogo-ops", "real-time", "user-time", "system-time"),
    *("bogo-ops-per-second", "bogo-ops-per-cpu-second", "cpu-per-instance", "peak-memory"),
)


def _stress_ng_row(text: str, name: str, factor: float = 1.0) -> PrintedRow:
    rest = rf"{text}(?: \(geomet?r?ic mean of \d+ instances?\))?"
    return PrintedRow(
        rf"{_STRESS_NG_LINE}[a-z0-9-]+\s+(?={NUMBER} {text})",
        rf"({NUMBER}) {rest}",
        (name,),
        factor=factor,
    )


STRESS_NG: Final = PrintedReport(
    name="stress-ng",
    title="stress-ng",
    begins=rf"^{_STRESS_NG_LINE}stressor\s+bogo ops",
    needed=("bogo-ops", "bogo-ops-per-second"),
    main="bogo-ops-per-second",
    rows=(
        PrintedRow(
            rf"{_STRESS_NG_LINE}(?!stressor\b)[a-z0-9-]+\s+(?=\d+\s+{NUMBER}\s+{NUMBER}\s)",
            rf"(\d+)\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+(\d+)",
            _COUNTS,
        ),
        _stress_ng_row(r"nanosecs per context switch \(pipe method\)", "context-switch", 1e-9),
        _stress_ng_row(r"swapcontext calls per sec", "swapcontext-calls"),
        _stress_ng_row(r"MB per sec pipe write rate", "pipe-write-rate"),
        _stress_ng_row(r"nanosecs per mutex", "mutex-time", 1e-9),
        _stress_ng_row(r"ns duration per sched_yield call", "yield-time", 1e-9),
        _stress_ng_row(r"microsecs per clone", "clone-time", 1e-6),
        _stress_ng_row(r"nanosecs to start a pthread", "pthread-start", 1e-9),
    ),
    failed=((r"^stress-ng: (?:error|fail):\s+\[\d+\] (.{1,200})", "stress-ng failed: {}"),),
)


# will-it-scale: operations per second of tasks that do the same thing side by side.
#
# Source: will-it-scale, main.c (main). Samples of the warm-up do not count; each later sample is a second.


_SAMPLE: Final = re.compile(r"^min:(\d{1,18}) max:(\d{1,18}) total:(\d{1,18})$", re.ASCII | re.MULTILINE)
_AVERAGE: Final = re.compile(r"^average:(\d{1,18})$", re.ASCII | re.MULTILINE)


def parse_will_it_scale(output: str) -> dict[str, float]:
    """Return means of all samples. Raises ParseError for an incomplete run."""
    _, marker, measured = output.partition("\nmeasurement\n")
    samples, average = _SAMPLE.findall(measured), _AVERAGE.findall(measured)
    if not marker or not samples or len(average) != 1:
        raise ParseError(f"will-it-scale printed no complete measurement: {excerpt(output)}")
    lowest, highest, total = zip(*((float(figure) for figure in sample) for sample in samples), strict=True)
    return {
        "will-it-scale.operations-per-second": float(average[0]),
        "will-it-scale.slowest-task": fmean(lowest),
        "will-it-scale.fastest-task": fmean(highest),
        "will-it-scale.total-min": min(total),
        "will-it-scale.total-max": max(total),
    }


PARSERS: Final[Mapping[str, Parser]] = MappingProxyType(
    {
        "frames": frames,
        "jitter": jitter,
        "matrix": matrix,
        "pages": pages,
        "paths": paths,
        "glxgears": parse_glxgears,
        "kernbench": KERNBENCH.parse,
        "linpack": parse_linpack,
        "stream": STREAM.parse,
        "stress_ng": STRESS_NG.parse,
        "will_it_scale": parse_will_it_scale,
    }
)
TEXTS: Final = (
    TextFormat(
        "linpack",
        "LINPACK's table",
        in_beginning(_HEAD),
        read_linpack,
        reads="The table of LINPACK, which ends with the residual of the solution: the KFLOPS of each row.",
    ),
    *STREAM.texts(),
)
