"""Load generators for databases and caches: pgbench, sysbench, and clients of Redis and memcached."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.base import ParseError, excerpt
from ajuste.outputs.format import LOOKED_AT, Collector, Parser, ResultSource, TextFormat
from ajuste_programs.printed import LONGEST_LINE, NUMBER, PrintedReport, PrintedRow, printed_metric

# Source: libmemcached-awesome 1.1, src/bin/memslap.cc (main).


def _memcslap_time(label: str, metric: str | Metric) -> PrintedRow:
    return PrintedRow(rf"{label}:\s+", rf"({NUMBER}) seconds\.", (metric,))


def _memcslap_other(name: str, title: str) -> Metric:
    return printed_metric(name, title, "s", "lower", step=1e-3)


MEMCSLAP: Final = PrintedReport(
    name="memcslap",
    title="memcslap",
    reads="memcslap of libmemcached: how long it took to store all keys and to get them.",
    begins=r"^Time to generate\s+\d+ test keys:",
    needed=("total",),
    main="get|set|mget",
    rows=(
        _memcslap_time(r"Time to generate\s+\d+ test keys", "generate"),
        _memcslap_time(r"Time to set\s+\d+ keys by\s+\d+ threads", _memcslap_other("set", "Time to set the keys")),
        _memcslap_time(r"Time to set\s+\d+ keys", "fill"),
        _memcslap_time(r"Time to get\s+\d+ keys by\s+\d+ threads", "get"),
        _memcslap_time(
            r"Time to mget\s+\d+ keys by\s+\d+ threads", _memcslap_other("mget", "Time to get the keys together")
        ),
        _memcslap_time(r"Time to start\s+\d+ threads", "start"),
        _memcslap_time(r"Time total", "total"),
    ),
)


# Source: memtier_benchmark 2.1, run_stats.cpp (print). Its latencies are in milliseconds, its KB are 1024 bytes.


_HIT: Final = rf"(?:{NUMBER}|---)"


def _memtier_row(label: str, name: str, hits: str = _HIT) -> PrintedRow:
    # The default quantiles; with `hits` as a group, also how many keys were found.
    looked_up = ("hits-per-second", "misses-per-second") if hits != _HIT else ()
    latencies = ("latency", "latency-p50", "latency-p99", "latency-p99.9")
    return PrintedRow(
        rf"{label}\s+(?={NUMBER})",
        r"\s+".join((rf"({NUMBER})", hits, hits, *([rf"({NUMBER})"] * 5))),
        tuple(f"{name}-{figure}" for figure in ("per-second", *looked_up, *latencies, "transfer")),
    )


MEMTIER: Final = PrintedReport(
    name="memtier",
    title="memtier_benchmark",
    reads="memtier_benchmark, a client of Redis and memcached: operations and latencies of each kind of request.",
    begins=r"^ALL STATS",
    needed=("totals-per-second",),
    main=r"totals-(?:per-second|latency|latency-p.*)",
    rows=(
        _memtier_row("Sets", "sets"),
        _memtier_row("Gets", "gets", rf"({NUMBER})"),
        _memtier_row("Totals", "totals", rf"({NUMBER})"),
    ),
)


# Source: PostgreSQL 9.6 to 17, src/bin/pgbench/pgbench.c (printResults, doLog).


_PGBENCH_MS: Final = 1e-3
_SHARE: Final = rf"(?: \({NUMBER}%\))?"


def _pgbench_time(label: str, metric: str | Metric) -> PrintedRow:
    return PrintedRow(rf"{label} = ", rf"({NUMBER}) ms", (metric,), factor=_PGBENCH_MS)


def _count(label: str, name: str, title: str = "", rest: str = _SHARE) -> PrintedRow:
    # Without a title the catalogue describes it.
    metric = printed_metric(name, title, "", "lower", step=1, can_be_0=True) if title else name
    return PrintedRow(rf"{label}: ", rf"({NUMBER}){rest}", (metric,))


def _rate(words: str, metric: str | Metric) -> PrintedRow:
    return PrintedRow(rf"tps = (?=.*{words})", rf"({NUMBER}) \({words}\)", (metric,))


_SCRIPT: Final = " - "
_MANY: Final = rf"(?:/{NUMBER})?"
PGBENCH: Final = PrintedReport(
    name="pgbench",
    title="pgbench",
    reads=(
        "pgbench of PostgreSQL: each report (also `-r`), with `tps`, latency, statements and scripts; of its log of "
        "transactions (`-l`) the mean and the percentiles."
    ),
    begins=r"^transaction type: ",
    needed=("latency", "tps"),
    main=r"tps|latency",
    heading=r"^SQL script (\d{1,4}): ",
    rows=(
        PrintedRow(
            r"number of transactions actually processed: ",
            rf"({NUMBER}){_MANY}",
            ("transactions",),
        ),
        _count("number of failed transactions", "failed"),
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
        _pgbench_time("latency average", "latency"),
        _pgbench_time("latency stddev", "latency-sd"),
        PrintedRow(
            r"rate limit schedule lag: ",
            rf"avg ({NUMBER}) \(max ({NUMBER})\) ms",
            (
                printed_metric("lag", "Mean lag behind the schedule", "s", "lower", can_be_0=True),
                printed_metric("lag-max", "Longest lag behind the schedule", "s", "lower", can_be_0=True),
            ),
            factor=_PGBENCH_MS,
        ),
        _pgbench_time("initial connection time", "connection-time"),
        _pgbench_time(
            "average connection time", printed_metric("connection-time", "Mean time to connect", "s", "lower")
        ),
        _rate("without initial connection time", "tps"),
        _rate("including reconnection times", "tps"),
        _rate("excluding connections establishing", "tps"),
        _rate(
            "including connections establishing",
            printed_metric("tps-with-connecting", "Transactions per second, with connecting", "1/s", "higher"),
        ),
        PrintedRow(
            rf"{_SCRIPT}(?={NUMBER} transactions)",
            rf"({NUMBER}) transactions \({NUMBER}% of total, tps = ({NUMBER})\)",
            (
                printed_metric("script-{section}.transactions", "Transactions of script {section}", "", "none", step=1),
                printed_metric("script-{section}.tps", "Transactions per second of script {section}", "1/s", "higher"),
            ),
        ),
        _pgbench_time(
            f"{_SCRIPT}latency average",
            printed_metric("script-{section}.latency", "Mean latency of script {section}", "s", "lower", step=1e-6),
        ),
        _pgbench_time(
            f"{_SCRIPT}latency stddev",
            printed_metric("script-{section}.latency-sd", "Spread, script {section}", "s", "none", can_be_0=True),
        ),
        _count(f"{_SCRIPT}number of failed transactions", "script-{section}.failed", "Failed, script {section}"),
        PrintedRow(
            r"\s+(?=\d{1,9}\.\d{3}\s)",
            rf"({NUMBER})\s+(?:\d+\s+){{0,2}}(?P<which>\S.*)",
            (printed_metric("statement {}", "{}", "s", "lower", step=1e-6, can_be_0=True),),
            factor=_PGBENCH_MS,
            again=True,
        ),
    ),
    failed=((r"^pgbench: (?:error|fatal): (.{1,200})", "pgbench failed: {}"),),
)


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
    """Return whether the first lines of a text are those of a log of transactions."""
    lines = text[:LOOKED_AT].split("\n", _LOOKED_AT_LINES)[:_LOOKED_AT_LINES]
    return _LINE.fullmatch(lines[0].rstrip()) is not None and not text.lstrip().startswith("{")


def read_log(source: ResultSource) -> MeasuredTable:
    """Return the mean, the quantiles and the extremes of all latencies."""
    collector = Collector(LOG, source.file)
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
        collector.add(source.name, printed_metric(name, f"Log, {name}", "s", "lower", step=1e-6), value)
    collector.main |= {"latency", "latency-p99"}
    count = printed_metric("failed", "Failed or skipped transactions", "", "lower", step=1, can_be_0=True)
    collector.add(source.name, count, lost)
    return collector.table()


def _quantile(ordered: list[float], percent: float) -> float:
    # The smallest value that so many per cent of all do not exceed.
    rank = -(-len(ordered) * round(percent * 1000) // 100_000)
    return ordered[max(0, rank - 1)]


# Source: Redis 7.0, src/redis-benchmark.c (showLatencyReport). Its latencies are in milliseconds.


_FIGURE: Final = rf'"({NUMBER})"'
_REDIS_BENCHMARK_LATENCIES: Final = (
    ("latency", "Mean latency"),
    ("latency-min", "Shortest latency"),
    ("latency-p50", "Median latency"),
    ("latency-p95", "95th percentile of the latency"),
    ("latency-p99", "99th percentile of the latency"),
    ("latency-max", "Longest latency"),
)

REDIS_BENCHMARK: Final = PrintedReport(
    name="redis-benchmark",
    title="redis-benchmark --csv",
    reads="redis-benchmark with `--csv`: requests per second and latencies of each command.",
    begins=r'^"test","rps","avg_latency_ms"',
    needed=(),
    main=r".*-(?:per-second|latency|latency-p\d+)",
    rows=(
        PrintedRow(
            r'"(?P<which>[A-Za-z0-9_]{1,40})[^"]{0,80}",(?="\d)',
            ",".join((_FIGURE,) * (1 + len(_REDIS_BENCHMARK_LATENCIES))),
            (
                printed_metric("{}-per-second", "{} per second", "1/s", "higher", step=0.01),
                *(
                    printed_metric(f"{{}}-{name}", f"{title} of {{}}", "ms", "lower", step=1e-3, can_be_0=True)
                    for name, title in _REDIS_BENCHMARK_LATENCIES
                ),
            ),
        ),
    ),
    failed=((r"^(?:ERROR|Error)\b(.{1,200})", "redis-benchmark failed:{}"),),
)


def parse_redis_benchmark(output: str) -> dict[str, float]:
    """Return the figures of a live run, with commands in lower case. Raises ParseError without any command."""
    metrics = {name.lower(): value for name, value in REDIS_BENCHMARK.parse(output).items()}
    if not metrics:
        raise ParseError(f"redis-benchmark measured no command: {excerpt(output)}")
    return metrics


# Source: sysbench 1.0.20, src/sysbench.c (sb_report_*, print_global_stats), src/tests/*/*.c (*_report_cumulative).


_SYSBENCH_MS: Final = 1e-3


def _sysbench_row(label: str, *names: str, rest: str = rf"({NUMBER})") -> PrintedRow:
    return PrintedRow(rf"\s+{label}:\s*", rest, names)


def _latency(label: str, metric: str | Metric) -> PrintedRow:
    return PrintedRow(rf"\s+{label}:\s*", rf"({NUMBER})", (metric,), section="Latency", factor=_SYSBENCH_MS)


def _counted(label: str, name: str) -> PrintedRow:
    return _sysbench_row(label, name, f"{name}-per-second", rest=rf"({NUMBER})\s+\(({NUMBER}) per sec\.\)")


def _fileio(word: str) -> PrintedRow:
    # Of 1.1: IOPS, and of what transfers data MiB/s and MB/s.
    return PrintedRow(
        rf"\s+{word}:\s*(?=IOPS)",
        rf"IOPS=({NUMBER})\s+({NUMBER}) MiB/s \({NUMBER} MB/s\)",
        (f"{word}s", f"{word}-bandwidth"),
    )


_RATES: Final = (
    _sysbench_row("events per second", "events-per-second"),
    _sysbench_row(r"events/s \(eps\)", "events-per-second"),
    _sysbench_row("time elapsed", "duration", rest=rf"({NUMBER})s"),
    _sysbench_row("total time", "duration", rest=rf"({NUMBER})s"),
    _sysbench_row("total number of events", "events"),
)
_MEMORY: Final = (
    PrintedRow(
        r"Total operations:\s*",
        rf"({NUMBER}) \(\s*({NUMBER}) per second\)",
        ("operations", "operations-per-second"),
    ),
    PrintedRow(
        rf"(?={NUMBER} MiB transferred)",
        rf"({NUMBER}) MiB transferred \(({NUMBER}) MiB/sec\)",
        ("transferred", "transfer"),
    ),
)
_FILES: Final = (
    _sysbench_row("reads/s", "reads"),
    _sysbench_row("writes/s", "writes"),
    _sysbench_row("fsyncs/s", "fsyncs"),
    _sysbench_row("read, MiB/s", "read-bandwidth"),
    _sysbench_row("written, MiB/s", "write-bandwidth"),
    _fileio("read"),
    _fileio("write"),
    PrintedRow(r"\s+fsync:\s*IOPS=", rf"({NUMBER})", ("fsyncs",)),
)
_DATABASE: Final = (
    *(
        PrintedRow(rf"\s+{word}:\s*(?=\d)", rf"({NUMBER})", (f"queries-{word}",))
        for word in ("read", "write", "other", "total")
    ),
    _counted("transactions", "transactions"),
    _counted("queries", "queries"),
    _counted("ignored errors", "ignored-errors"),
    _counted("reconnects", "reconnects"),
)
_SYSBENCH_LATENCIES: Final = (
    _latency("min", "latency-min"),
    _latency("avg", "latency"),
    _latency("max", "latency-max"),
    _latency(
        rf"(?P<which>{NUMBER})th percentile",
        printed_metric("latency-p{}", "{}th percentile of the latency", "s", "lower", step=1e-5, can_be_0=True),
    ),
    _latency("sum", "latency-sum"),
)
_FAIRNESS: Final = tuple(
    _sysbench_row(rf"{label} \(avg/stddev\)", name, f"{name}-sd", rest=rf"({NUMBER})/({NUMBER})")
    for label, name in (("events", "thread-events"), ("execution time", "thread-time"))
)

SYSBENCH: Final = PrintedReport(
    name="sysbench",
    title="sysbench",
    reads="sysbench 1.0 and 1.1: events a second, their latency, and what a test says of its own.",
    begins=r"^sysbench \d",
    needed=("duration", "events", "latency", "thread-time"),
    main=r"(?:events|operations|transactions)-per-second|transfer|reads|writes|latency(?:-p.*)?",
    rows=(*_RATES, *_MEMORY, *_FILES, *_DATABASE, *_SYSBENCH_LATENCIES, *_FAIRNESS),
    heading=r"^(\w+)\b.*:$",
    failed=((r"^FATAL: (.{1,200})", "sysbench failed: {}"),),
)


PARSERS: Final[Mapping[str, Parser]] = MappingProxyType(
    {
        "memcslap": MEMCSLAP.parse,
        "memtier": MEMTIER.parse,
        "pgbench": PGBENCH.parse,
        "redis_benchmark": parse_redis_benchmark,
        "sysbench": SYSBENCH.parse,
    }
)
TEXTS: Final = (
    *MEMCSLAP.texts(),
    *MEMTIER.texts(),
    *PGBENCH.texts(),
    TextFormat("pgbench", LOG, recognise_log, read_log),
    *REDIS_BENCHMARK.texts(),
    *SYSBENCH.texts(),
)
