"""Benchmarks of processors and memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from statistics import fmean
from types import MappingProxyType
from typing import Final

from ajuste.outputs.base import ParseError, excerpt, figure
from ajuste.outputs.format import Parser
from ajuste_programs.printed import NUMBER, PrintedReport, PrintedRow

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
# Source: workloads/kernbench.toml (TIMEFORMAT of bash(1)).


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
        "glxgears": parse_glxgears,
        "kernbench": KERNBENCH.parse,
        "stream": STREAM.parse,
        "stress_ng": STRESS_NG.parse,
        "will_it_scale": parse_will_it_scale,
    }
)
TEXTS: Final = STREAM.texts()
