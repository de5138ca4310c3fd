"""perf stat and perf bench."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable, Summarised
from ajuste.model.metric import Metric
from ajuste.outputs.format import Collector, DocumentNode, Parser, ResultSource, TextFormat, parse_document, utf8
from ajuste_programs.printed import NUMBER, PrintedReport, PrintedRow, printed_metric

FORMAT: Final = "perf stat"
_SECONDS: Final = {"sec": 1.0, "seconds": 1.0, "msec": 1e-3, "usec": 1e-6, "ns": 1e-9}
_LOWER: Final = frozenset(
    {"time-elapsed", "task-clock", "cpu-clock", "user-time", "system-time", "duration_time", "cycles", "instructions"}
    | {"cache-misses", "branch-misses"}
)


class _Events:
    # The events of a file as they are found. Those that perf could not count are reported, not passed over.
    def __init__(self, source: ResultSource) -> None:
        self.source = source
        self._found = Collector(FORMAT, source.file)
        self._not_counted: dict[str, None] = {}

    def skip(self, event: str) -> None:
        self._not_counted.setdefault(event)

    def add(
        self,
        event: str,
        unit: str,
        value: float,
        *,
        spread_percent: float | None,
        line: int,
        runs: int | None = None,
        step: float = 0.0,
    ) -> None:
        # Add an event's value, or with a spread the summary of `runs` runs, where the person did not say of how many;
        # `step` is the last place printed. `spread_percent` is what perf prints after ±: the standard error of the
        # mean, relative to the mean, in per cent (stddev_stats and rel_stddev_stats of tools/perf/util/stat.c). Raises
        # RequestError where runs are not known.
        place = Place(self.source.file, line)
        if value < 0 or (spread_percent is not None and spread_percent < 0):
            wrong = value if value < 0 else f"{spread_percent} %"
            raise RequestError(f"{event} is {wrong}; expected at least 0", place=place)
        event, _, modifier = event.partition(":")
        seconds = _SECONDS.get(unit)
        factor = 1.0 if seconds is None else seconds
        scaled = value * factor
        metric = Metric(
            name=event,
            title=event + (f" ({modifier})" if modifier else ""),
            unit="s" if seconds is not None else unit,
            direction="lower" if event in _LOWER else "none",
            scale="ratio" if seconds is not None else "difference",
            resolution=step * factor if seconds is not None else 1.0,
        )
        if spread_percent is None:
            self._found.add(self.source.name, metric, scaled, line=line)
            return
        runs = self.source.runs or runs
        if runs is None:
            raise RequestError(
                "found a summary of several runs; the number of runs is missing",
                place=place,
                hint="give it with --runs N: the N of perf stat -r N",
            )
        sem = abs(scaled) * spread_percent / 100
        self._found.add_summary(self.source.name, metric, Summarised(runs, scaled, sem), line)

    def table(self) -> MeasuredTable:
        if self._not_counted:
            name = utf8(self.source.file.name)
            self._found.notes.append(f"{name}: perf did not count {', '.join(self._not_counted)}.")
        return self._found.table()


# The text of ``perf stat``, also of ``-r N``, in whatever way the locale writes numbers.
#
# Source: perf-stat(1) and tools/perf/util/stat-display.c; the printf flag ' (thousands' grouping) follows the locale.


_HEAD: Final = re.compile(r"Performance counter stats for (?P<what>.{1,4000}?)(?: \((?P<runs>\d{1,9}) runs\))?:\s*$")
_LOCAL_NUMBER: Final = r"[0-9](?:[0-9.,'\u00a0\u202f\u2009 ]{0,30}[0-9])?"
_EVENT: Final = re.compile(
    rf"^\s*(?P<value>{_LOCAL_NUMBER})\s+(?:(?P<unit>msec|usec|sec|ns|Joules|MiB)\s+)?(?P<event>[\w./:,=@-]{{1,100}})"
)
_ELAPSED: Final = re.compile(
    rf"^\s*(?P<value>{_LOCAL_NUMBER})\s+(?:\+-\s+{_LOCAL_NUMBER}\s+)?seconds (?P<what>time elapsed|user|sys)\b"
)
_PERF_SPREAD: Final = re.compile(rf"\(\s*\+-\s*(?P<percent>{_LOCAL_NUMBER})\s*%\s*\)\s*$")
_NOT_COUNTED: Final = re.compile(r"^\s*<not (?:counted|supported)>\s+(?:msec\s+)?(?P<event>[\w./:,=@-]{1,100})")
_PART: Final = re.compile(r"^(?:CPU\d+|S\d+(?:-D\d+)?(?:-C\d+)?|N\d+|\S{1,40}-\d+)\s+\d[\d.,]*\s+(?:msec\s+)?[\w-]")
_NAMES: Final = {"time elapsed": "time-elapsed", "user": "user-time", "sys": "system-time"}
_INTERVALS: Final = re.compile(r"^#\s+time\s+counts\s+unit\s+events", re.MULTILINE)
_LONGEST_LINE: Final = 4096


def recognise_text(text: str) -> bool:
    """Return whether a text is of this kind."""
    return "Performance counter stats for" in text or _INTERVALS.search(text[:65536]) is not None


def read_text(source: ResultSource) -> MeasuredTable:
    """Read each block of the text as one value of each event, or with ``-r N`` as a summary of N runs, whose number the
    person's word overrides.
    """
    if _INTERVALS.search(source.text):
        raise RequestError(
            "perf stat -I is not supported: intervals of a run are not repetitions",
            place=Place(source.file),
            hint="use perf stat -r N",
        )
    events = _Events(source)
    lines = source.text.splitlines()
    comma = _decimal_comma(lines)
    counted: int | None = None
    inside = False
    for number, line in enumerate((line[:_LONGEST_LINE] for line in lines), start=1):
        if head := _HEAD.search(line):
            counted, inside = int(head["runs"]) if head["runs"] else None, True
        elif not inside:
            continue
        elif missing := _NOT_COUNTED.match(line):
            events.skip(missing["event"])
        elif _PART.match(line):
            raise RequestError(
                "perf stat -A and --per-... are not supported: parts of a run are not repetitions",
                place=Place(source.file, number),
            )
        elif figure := _text_figure(line, comma, Place(source.file, number), counted):
            events.add(
                figure.event,
                figure.unit,
                figure.value,
                spread_percent=figure.spread,
                line=number,
                runs=counted,
                step=figure.step,
            )
    return events.table()


@dataclass(frozen=True)
class _Figure:
    event: str
    unit: str
    value: float
    spread: float | None
    step: float


def _text_figure(line: str, comma: bool, place: Place, runs: int | None) -> _Figure | None:
    spread = _PERF_SPREAD.search(line)
    percent = parse_number(spread["percent"], comma, place) if spread else None
    if percent is None and runs is not None:
        percent = 0.0  # perf prints none where all runs were alike
    match = _ELAPSED.match(line)
    if match:
        event, unit = _NAMES[match["what"]], "seconds"
    elif match := _EVENT.match(line):
        event, unit = match["event"], match["unit"] or ""
    else:
        return None
    _, point, fraction = match["value"].rpartition("," if comma else ".")
    decimals = len(fraction) if point else 0
    return _Figure(event, unit, parse_number(match["value"], comma, place), percent, 10.0**-decimals)


def _decimal_comma(lines: list[str]) -> bool:
    # Whether the decimal sign is a comma: times and percentages always have decimals, so their last sign is it.
    for line in lines:
        match = _ELAPSED.match(line[:_LONGEST_LINE]) or _PERF_SPREAD.search(line[:_LONGEST_LINE])
        if match:
            text = match["value"] if "value" in match.re.groupindex else match["percent"]
            signs = [sign for sign in text if sign in ".,"]
            if signs:
                return signs[-1] == ","
    return False


def parse_number(text: str, comma: bool, place: Place) -> float:
    """Return the number that a locale wrote. Raises RequestError."""
    plain = re.sub(r"['\u00a0\u202f\u2009 ]", "", text)
    plain = plain.replace(".", "").replace(",", ".") if comma else plain.replace(",", "")
    try:
        return float(plain)
    except ValueError:
        raise RequestError(f"{text!r} is not a number; expected a number", place=place) from None


# The separated lines of ``perf stat -x``: an event a line, with ``-r N`` the spread of N runs.
#
# Source: perf-stat(1), "CSV FORMAT": value, unit, event, with -r the variance (the relative standard error of the mean,
# as ``0.53%``), run time of the counter, per cent of the time that it ran, and a derived figure with its unit.


_FIRST: Final = re.compile(
    r"^(?:[0-9][0-9.,]{0,30}|<not (?:counted|supported)>)(?P<separator>[^\w.<> ])"
    r"[\w%/]{0,20}(?P=separator)[A-Za-z][\w./:=@-]{0,100}(?P=separator)"
)
_NUMBER: Final = re.compile(r"^[0-9][0-9.,]{0,30}$")
_FEWEST_FIELDS: Final = 5


def recognise_lines(text: str) -> bool:
    """Return whether a text is of this kind."""
    return _separator(text) is not None


def read_lines(source: ResultSource) -> MeasuredTable:
    """Read a value of each event; perf does not print here of how many runs."""
    events = _Events(source)
    separator = _separator(source.text) or ","
    for line_number, line in enumerate(source.text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        place = Place(source.file, line_number)
        fields = line[:_LONGEST_LINE].split(separator)
        if len(fields) < _FEWEST_FIELDS:
            raise RequestError(
                f"found {len(fields)} fields; expected at least {_FEWEST_FIELDS}, as perf stat -x writes", place=place
            )
        value, unit, event, spread = (field.strip() for field in fields[:4])
        if value.startswith("<not"):
            events.skip(event)
            continue
        if unit[:1].isdigit() or not event:
            raise RequestError(
                "expected a value, its unit and an event",
                place=place,
                hint="use -x';' without -I and -A: timestamps, CPUs and decimal commas are not supported",
            )
        percent = spread.removesuffix("%") if spread.endswith("%") else None
        events.add(
            event,
            unit,
            _field_figure(value, place),
            spread_percent=None if percent is None else _field_figure(percent, place),
            line=line_number,
        )
    return events.table()


def _field_figure(text: str, place: Place) -> float:
    if not _NUMBER.match(text):
        raise RequestError(f"{text[:40]!r} is not a number; expected a number", place=place)
    return parse_number(text, "," in text, place)


def _separator(text: str) -> str | None:
    # The character between the fields, if the first line that is no comment looks like one of perf's.
    line = next((line for line in text[:65536].splitlines() if line.strip() and not line.startswith("#")), "")
    match = _FIRST.match(line[:_LONGEST_LINE])
    return match["separator"] if match else None


# The JSON lines of ``perf stat -j``: an object for each event, and with ``-r N`` the spread of N runs.
#
# Source: linux, tools/perf/util/stat-display.c: counter-value, unit, event, variance (the relative standard error of
# the mean, in per cent), and perf-stat(1).


def recognise_json(text: str) -> bool:
    """Return whether a text is of this kind."""
    lines = (line for line in text[:65536].splitlines() if line.strip() and not line.startswith("#"))
    first = next(lines, "")
    return first.startswith("{") and '"counter-value"' in first


def read_json(source: ResultSource) -> MeasuredTable:
    """Read a value of each event; perf does not print here of how many runs."""
    events = _Events(source)
    for number, line in enumerate(source.text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            event = parse_document(line, source.file)
        except RequestError as error:
            raise RequestError(error.message, place=Place(source.file, number)) from None
        _add_document(events, event, number)
    return events.table()


def _add_document(events: _Events, event: DocumentNode, line: int) -> None:
    if event.get("event") is None or event.get("counter-value") is None:
        return
    text = event.need("counter-value").value
    for key, option in (("interval", "-I"), ("cpu", "-A"), ("thread", "--per-thread")):
        if event.get(key) is not None:
            raise RequestError(
                f"{option} is not supported: parts of a run are not repetitions", place=Place(events.source.file, line)
            )
    if isinstance(text, str) and text.startswith("<not"):
        events.skip(event.need("event").text())
        return
    try:
        value = float(text)
    except (TypeError, ValueError):
        wrong = event.need("counter-value").wrong("a number")
        raise RequestError(wrong.message, place=Place(events.source.file, line)) from None
    variance = event.get("variance")
    unit = event.get("unit")
    events.add(
        event.need("event").text(),
        unit.text() if unit else "",
        value,
        spread_percent=variance.number() if variance else None,
        line=line,
    )


# perf bench: messages, pipes, system calls, futexes, epoll, and the bandwidth of memory and of NUMA nodes.
#
# Source: Linux 6.1, tools/perf/bench/*.c. Its GB/sec are 2^30 bytes per second (mem-functions.c, print_bps), but 10^9
# in bench numa.


_PERF_BENCH_SPREAD: Final = rf"(?: \(\+-\s*{NUMBER}%\))?"


def _row(before: str, after: str, metric: str | Metric, factor: float = 1.0) -> PrintedRow:
    return PrintedRow(rf"{before}(?={NUMBER}{after})", rf"({NUMBER}){after}", (metric,), factor=factor)


_SCHEDULING: Final = (
    _row(r"\s+Total time: ", r" \[sec\]", "time"),
    _row(r"\s+", r" usecs/op", "time-per-operation", 1e-6),
    _row(r"\s+", r" ops/sec", "operations-per-second"),
)
_FUTEX: Final = (
    _row(r"Averaged ", rf" operations/sec{_PERF_BENCH_SPREAD}, total secs = \d+", "operations-per-second"),
    _row(r"Averaged ", rf" ops/sec{_PERF_BENCH_SPREAD}, total secs = \d+", "operations-per-second"),
    _row(r"Wokeup \d+ of \d+ threads in ", rf" ms{_PERF_BENCH_SPREAD}", "wake-time", 1e-3),
    _row(r"Requeued \d+ of \d+ threads in ", rf" ms{_PERF_BENCH_SPREAD}", "requeue-time", 1e-3),
    _row(
        r"Avg per-thread latency \(waking \d+/\d+ threads\) in ",
        rf" ms{_PERF_BENCH_SPREAD}",
        printed_metric("wake-latency", "Latency to wake a thread", "s", "lower", step=1e-7),
        1e-3,
    ),
)
_EPOLL: Final = tuple(
    _row(r"Averaged ", rf" {word} operations{_PERF_BENCH_SPREAD}", f"{word.lower()}-operations")
    for word in ("ADD", "MOD", "DEL")
)
_MEMORY: Final = (
    PrintedRow(
        rf"\s+(?={NUMBER} GB/sec)",
        rf"({NUMBER}) GB/sec",
        (printed_metric("{section}", "Bandwidth, {section}", "GiB/s", "higher"),),
    ),
)

# Its GB are 10^9 bytes (numa.c, __bench_numa). These go before the bandwidth of copies, which ends alike.
_NUMA: Final = (
    _row(r"\s+", r" secs slowest \(max\) thread-runtime", "runtime-max"),
    _row(r"\s+", r" secs fastest \(min\) thread-runtime", "runtime-min"),
    _row(r"\s+", r" secs average thread-runtime", "runtime"),
    _row(r"\s+", r" % difference between max/avg runtime", "runtime-difference"),
    _row(r"\s+", r" GB data processed, per thread", "thread-data"),
    _row(r"\s+", r" GB data processed, total", "data"),
    _row(r"\s+", r" nsecs/byte/thread runtime", "time-per-byte", 1e-9),
    _row(r"\s+", r" GB/sec/thread speed", "thread-bandwidth"),
    _row(r"\s+", r" GB/sec total speed", "bandwidth"),
)

PERF_BENCH: Final = PrintedReport(
    name="perf-bench",
    title="perf bench",
    begins=r"^# Running '[a-z]+/[a-z_-]+' benchmark:",
    needed=(),
    main=r"time|operations-per-second|wake-time|requeue-time|wake-latency|bandwidth|default",
    rows=(*_NUMA, *_SCHEDULING, *_FUTEX, *_EPOLL, *_MEMORY),
    heading=r"^# function '([a-z0-9-]{1,40})'",
)


PARSERS: Final[Mapping[str, Parser]] = MappingProxyType({"perf_bench": PERF_BENCH.parse})
TEXTS: Final = (
    TextFormat(
        "perf",
        "perf stat -j",
        recognise_json,
        read_json,
        around=True,
        reads=(
            "`perf stat` as text, `-x` or `-j`: each run; `-r N` summarises N runs, and `+-` is the standard error of "
            "the mean."
        ),
    ),
    TextFormat("perf", "perf stat", recognise_text, read_text, around=True),
    TextFormat("perf", "perf stat -x", recognise_lines, read_lines, around=True),
)
