"""Benchmarks of the scheduler: how late tasks wake up, and how fast they hand on messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ajuste.model.error import RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.base import ParseError, excerpt, finite
from ajuste.outputs.format import (
    Collector,
    DocumentFormat,
    DocumentNode,
    Parser,
    parse_document,
)
from ajuste_programs.printed import NUMBER, PrintedReport, PrintedRow, printed_metric

# Cyclictest of rt-tests, asked for its JSON: how late a thread woke up, as a histogram in whole microseconds.


_THOUSANDTHS = {"p50": 500, "p99": 990, "p999": 999}
_MOST_US = 10**9


def parse_cyclictest(output: str) -> dict[str, float]:
    """Return ``cyclictest.min``, ``.avg``, ``.max`` and, from the histogram, ``.p50``, ``.p99``, ``.p999``, in
    microseconds. A percentile is the smallest latency that so many wake-ups do not exceed; the longest one where it is
    beyond the histogram's end.
    """
    thread = _cyclictest_thread(output)
    cycles = _count(thread.get("cycles"), output)
    least, longest = _count(thread.get("min"), output), _count(thread.get("max"), output)
    average = thread.get("avg")
    histogram = thread.get("histogram")
    if not isinstance(average, int | float) or not isinstance(histogram, dict) or not cycles or least > longest:
        raise ParseError(f"cyclictest printed no results: {excerpt(output)}")
    buckets = sorted((_latency(key, output), _count(number, output)) for key, number in histogram.items())
    percentiles = {
        f"cyclictest.{name}": _rank(buckets, -(-cycles * p // 1000), longest) for name, p in _THOUSANDTHS.items()
    }
    return {
        "cyclictest.min": float(least),
        "cyclictest.avg": float(average),
        "cyclictest.max": float(longest),
        **percentiles,
    }


def _cyclictest_thread(output: str) -> dict[str, Any]:
    _, brace, rest = f"\n{output}".partition("\n{")  # before it are words on what was tuned
    try:
        document = json.loads("{" + rest if brace else "")
    except (ValueError, RecursionError) as error:
        raise ParseError(f"cyclictest printed no JSON: {excerpt(output)}") from error
    threads = document.get("thread") if isinstance(document, dict) else None
    if not isinstance(threads, dict) or len(threads) != 1 or not isinstance(threads.get("0"), dict):
        raise ParseError(f"cyclictest printed results of several threads; expected one: {excerpt(output)}")
    return dict(threads["0"])


def _count(value: object, output: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST_US:
        raise ParseError(f"cyclictest printed {str(value)[:40]!r} as a figure: {excerpt(output)}")
    return value


def _latency(key: str, output: str) -> int:
    if not key.isascii() or not key.isdigit() or len(key) > 9:
        raise ParseError(f"cyclictest printed {key[:40]!r} as a latency: {excerpt(output)}")
    return int(key)


def _rank(buckets: list[tuple[int, int]], rank: int, longest: int) -> float:
    for latency, number in buckets:
        rank -= number
        if rank <= 0:
            return float(latency)
    return float(longest)


# The logs of rt-app's threads: how late each round of a periodic thread was.
#
# Source: rt-app 1.0, src/rt-app.c (log_timing) and doc/tutorial.txt. Its times are in microseconds.


_ROUND: Final = re.compile(r"^[ \t]*\d{1,9}(?:[ \t]+-?\d{1,18}){10,12}[ \t\r]*$", re.ASCII | re.MULTILINE)
_RT_APP_RUN, _PERIOD, _SLACK, _WAKE_UP = 2, 3, 7, 10
_RT_APP_US: Final = 1e-6


def parse_rt_app(output: str) -> dict[str, float]:
    """Return figures of the rounds of all threads. Raises ParseError for an output without any."""
    rows = [[float(word) for word in line.split()[:11]] for line in _ROUND.findall(output)]
    if not rows:
        raise ParseError(f"rt-app logged no round: {excerpt(output)}")
    rounds = np.array(rows)
    slack, late = rounds[:, _SLACK] * _RT_APP_US, rounds[:, _WAKE_UP] * _RT_APP_US
    return {
        "rt-app.rounds": float(len(rows)),
        "rt-app.late": float(np.count_nonzero(slack < 0)),
        "rt-app.run": _mean(rounds[:, _RT_APP_RUN]) * _RT_APP_US,
        "rt-app.period": _mean(rounds[:, _PERIOD]) * _RT_APP_US,
        "rt-app.slack": _mean(slack),
        "rt-app.slack-min": float(slack.min()),
        "rt-app.wakeup-latency": _mean(late),
        **{f"rt-app.wakeup-latency-p{share}": float(np.percentile(late, share)) for share in (50, 90, 99)},
        "rt-app.wakeup-latency-max": float(late.max()),
    }


def _mean(values: npt.NDArray[np.float64]) -> float:
    return float(values.mean())


# Source: schbench.c (show_latencies, write_json_stats). Reports of intervals come before the last one, which counts.


_SCHBENCH_US: Final = 1e-6
_MAIN_OF_JSON: Final = ("rps-p50", "wakeup-latency-p99", "request-latency-p99")


def _form(figure: str, which: str) -> Metric:
    if figure == "rps":
        return printed_metric(f"rps-{which}", "Requests per second, {}", "1/s", "higher", step=1, can_be_0=True)
    title = f"{figure.capitalize().replace('-', ' ')}, {{}}"
    return printed_metric(f"{figure}-{which}", title, "s", "lower", step=_SCHBENCH_US, can_be_0=True)


def _table(section: str, figure: str, factor: float = _SCHBENCH_US) -> tuple[PrintedRow, PrintedRow]:
    return (
        PrintedRow(
            rf"\s+(?:\* ?)?(?P<which>{NUMBER})th: ",
            rf"({NUMBER})\s+\({NUMBER} samples\)",
            (_form(figure, "p{}"),),
            section=section,
            factor=factor,
        ),
        PrintedRow(
            r"\s+min=",
            rf"({NUMBER}), max=({NUMBER})",
            (f"{figure}-min", f"{figure}-max"),
            section=section,
            factor=factor,
        ),
    )


SCHBENCH: Final = PrintedReport(
    name="schbench",
    title="schbench",
    begins=r"^(?:Wakeup|Request|RPS)\b.{0,20} percentiles \(",
    needed=("wakeup-latency-p99", "average-rps"),
    main=r"average-rps|(?:wakeup|request)-latency-p99",
    heading=r"^(Wakeup|Request|RPS)\b.{0,20} percentiles \(",
    ends=r"^average rps: ",
    rows=(
        *_table("Wakeup", "wakeup-latency"),
        *_table("Request", "request-latency"),
        *_table("RPS", "rps", 1.0),
        PrintedRow(
            r"average rps: ",
            rf"({NUMBER})",
            (printed_metric("average-rps", "Requests per second", "1/s", "higher", step=0.01, can_be_0=True),),
        ),
    ),
)


# Its JSON: one value of each figure.


def recognise_schbench(document: DocumentNode) -> bool:
    """Return whether a document is of this kind."""
    whole = document.value
    return isinstance(whole, dict) and isinstance(whole.get("int"), dict) and "wakeup_latency_pct50.0" in whole["int"]


def read_schbench(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Read the members of ``int``, named as the text calls them."""
    collector = Collector("schbench JSON", file)
    for metric, value in _json_figures(document):
        collector.add(name, metric, value)
        if metric.name in _MAIN_OF_JSON:
            collector.main.add(metric.name)
    return collector.table()


def _json_figures(document: DocumentNode) -> Iterator[tuple[Metric, float]]:
    for key, value in document.need("int").members():
        figure, _, which = key.replace("_latency", "-latency").rpartition("_")
        if figure in ("wakeup-latency", "request-latency", "rps"):
            which = which.replace("pct", "p").removesuffix(".0")
            factor = 1.0 if figure == "rps" else _SCHBENCH_US
            yield SCHBENCH.describe(_form(figure, "{}"), which), value.number() * factor


def parse_schbench(output: str) -> dict[str, float]:
    """Return the figures of its JSON on standard output (``-j -``), or of its report on standard error."""
    if not output.lstrip().startswith("{"):
        return SCHBENCH.parse(output)
    try:
        document = parse_document(output, Path("stdout"))
        return {f"schbench.{metric.name}": finite(value, metric.name) for metric, value in _json_figures(document)}
    except RequestError as error:
        raise ParseError(f"schbench printed no complete report: {error}") from None


PARSERS: Final[Mapping[str, Parser]] = MappingProxyType(
    {"cyclictest": parse_cyclictest, "rt_app": parse_rt_app, "schbench": parse_schbench}
)
TEXTS: Final = SCHBENCH.texts()
DOCUMENTS: Final = (
    DocumentFormat(
        "schbench",
        "schbench -j",
        recognise_schbench,
        read_schbench,
        reads=(
            "schbench: quantiles of wake-up and request latencies, and of requests a second; its text or its JSON "
            "(`-j`)."
        ),
    ),
)
