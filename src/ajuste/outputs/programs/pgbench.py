"""pgbench of PostgreSQL: each report (also ``-r``), with ``tps``, latency, statements and scripts; of its log of
transactions (``-l``) the mean and the percentiles.

Source: PostgreSQL 9.6 to 17, src/bin/pgbench/pgbench.c (printResults, doLog).
"""

from __future__ import annotations

import re
from typing import Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.base import excerpt
from ajuste.outputs.collector import LOOKED_AT, Collector
from ajuste.outputs.format import ResultSource, TextFormat
from ajuste.outputs.printed import LONGEST_LINE, NUMBER, PrintedReport, PrintedRow, printed_metric

_MS: Final = 1e-3
_SHARE: Final = rf"(?: \({NUMBER}%\))?"


def _time(label: str, metric: Metric) -> PrintedRow:
    return PrintedRow(rf"{label} = ", rf"({NUMBER}) ms", (metric,), factor=_MS)


def _count(label: str, name: str, title: str, rest: str = _SHARE) -> PrintedRow:
    return PrintedRow(
        rf"{label}: ", rf"({NUMBER}){rest}", (printed_metric(name, title, "", "lower", step=1, can_be_0=True),)
    )


def _rate(words: str, name: str, title: str) -> PrintedRow:
    return PrintedRow(
        rf"tps = (?=.*{words})", rf"({NUMBER}) \({words}\)", (printed_metric(name, title, "1/s", "higher"),)
    )


_SCRIPT: Final = " - "
_MANY: Final = rf"(?:/{NUMBER})?"
REPORT: Final = PrintedReport(
    name="pgbench",
    title="pgbench",
    begins=r"^transaction type: ",
    needed=("latency", "tps"),
    main=r"tps|latency",
    heading=r"^SQL script (\d{1,4}): ",
    rows=(
        PrintedRow(
            r"number of transactions actually processed: ",
            rf"({NUMBER}){_MANY}",
            (printed_metric("transactions", "Transactions", "", "none", step=1, can_be_0=True),),
        ),
        _count("number of failed transactions", "failed", "Failed transactions"),
        _count("number of serialization failures", "serialization-failures", "Serialization failures"),
        _count("number of deadlock failures", "deadlocks", "Deadlocks"),
        _count("number of transactions retried", "retried", "Transactions that were tried again"),
        _count("total number of retries", "retries", "Retries"),
        _count("number of transactions skipped", "skipped", "Skipped transactions"),
        _count(
            rf"number of transactions above the {NUMBER} ms latency limit",
            "too-late",
            "Transactions above the latency limit",
            rf"{_MANY}{_SHARE}",
        ),
        _time("latency average", printed_metric("latency", "Mean latency", "s", "lower", step=1e-6)),
        _time("latency stddev", printed_metric("latency-sd", "Spread of the latency", "s", "none", can_be_0=True)),
        PrintedRow(
            r"rate limit schedule lag: ",
            rf"avg ({NUMBER}) \(max ({NUMBER})\) ms",
            (
                printed_metric("lag", "Mean lag behind the schedule", "s", "lower", can_be_0=True),
                printed_metric("lag-max", "Longest lag behind the schedule", "s", "lower", can_be_0=True),
            ),
            factor=_MS,
        ),
        _time(
            "initial connection time", printed_metric("connection-time", "Time to connect all clients", "s", "lower")
        ),
        _time("average connection time", printed_metric("connection-time", "Mean time to connect", "s", "lower")),
        _rate("without initial connection time", "tps", "Transactions a second"),
        _rate("including reconnection times", "tps", "Transactions a second"),
        _rate("excluding connections establishing", "tps", "Transactions a second"),
        _rate("including connections establishing", "tps-with-connecting", "Transactions a second, with connecting"),
        PrintedRow(
            rf"{_SCRIPT}(?={NUMBER} transactions)",
            rf"({NUMBER}) transactions \({NUMBER}% of total, tps = ({NUMBER})\)",
            (
                printed_metric("script-{section}.transactions", "Transactions of script {section}", "", "none", step=1),
                printed_metric("script-{section}.tps", "Transactions a second of script {section}", "1/s", "higher"),
            ),
        ),
        _time(
            f"{_SCRIPT}latency average",
            printed_metric("script-{section}.latency", "Mean latency of script {section}", "s", "lower", step=1e-6),
        ),
        _time(
            f"{_SCRIPT}latency stddev",
            printed_metric("script-{section}.latency-sd", "Spread, script {section}", "s", "none", can_be_0=True),
        ),
        _count(f"{_SCRIPT}number of failed transactions", "script-{section}.failed", "Failed, script {section}"),
        PrintedRow(
            r"\s+(?=\d{1,9}\.\d{3}\s)",
            rf"({NUMBER})\s+(?:\d+\s+){{0,2}}(?P<which>\S.*)",
            (printed_metric("statement {}", "{}", "s", "lower", step=1e-6, can_be_0=True),),
            factor=_MS,
            again=True,
        ),
    ),
    failed=((r"^pgbench: (?:error|fatal): (.{1,200})", "pgbench failed: {}"),),
)
parse = REPORT.parse

# The log of transactions: a run's quantiles. Its transactions are no repetitions: each follows on the one before.


LOG: Final = "pgbench -l"
_LINE: Final = re.compile(
    r"\d{1,9} \d{1,12} (?P<us>\d{1,15}|skipped|failed|serialization|deadlock|other) \d{1,6} \d{9,12} \d{1,6}"
    r"(?: \d{1,15}){0,2}",
    re.ASCII,
)
_LOOKED_AT_LINES: Final = 3
_QUANTILES: Final = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9)


def recognise_log(text: str) -> bool:
    """Whether a text is a log of transactions: its first lines are such."""
    lines = text[:LOOKED_AT].split("\n", _LOOKED_AT_LINES)[:_LOOKED_AT_LINES]
    return _LINE.fullmatch(lines[0].rstrip()) is not None and not text.lstrip().startswith("{")


def read_log(source: ResultSource) -> MeasuredTable:
    """One value of each figure: the mean, the quantiles and the extremes of all latencies."""
    found = Collector(LOG, source.file)
    latencies: list[float] = []
    lost = 0
    for number, whole in enumerate(source.text.splitlines(), 1):
        line = whole[:LONGEST_LINE].rstrip()
        if not line:
            continue
        transaction = _LINE.fullmatch(line)
        if transaction is None:
            raise RequestError(f"found {excerpt(line)}; expected a transaction", place=Place(source.file, number))
        if transaction["us"].isdigit():
            latencies.append(int(transaction["us"]) / 1e6)
        else:
            lost += 1
    if not latencies:
        raise RequestError("no transaction succeeded; expected at least one", place=Place(source.file))
    latencies.sort()
    figures = {"latency": sum(latencies) / len(latencies), "latency-min": latencies[0], "latency-max": latencies[-1]}
    figures |= {f"latency-p{share:g}": _quantile(latencies, share) for share in _QUANTILES}
    for name, value in figures.items():
        found.add(source.name, printed_metric(name, f"Log, {name}", "s", "lower", step=1e-6), value)
    found.main |= {"latency", "latency-p99"}
    count = printed_metric("failed", "Failed or skipped transactions", "", "lower", step=1, can_be_0=True)
    found.add(source.name, count, lost)
    return found.table()


def _quantile(ordered: list[float], percent: float) -> float:
    """The smallest value that so many per cent of all do not exceed."""
    rank = -(-len(ordered) * round(percent * 1000) // 100_000)
    return ordered[max(0, rank - 1)]


TEXTS: Final = (*REPORT.texts(), TextFormat("pgbench", LOG, recognise_log, read_log))
