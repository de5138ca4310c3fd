"""Figures in outputs, amounts with their units, and the metrics that every trial has from wait4(2) and perf events.

Their names, units and meanings for people are in ``catalogue/metrics.toml``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from ajuste.model.error import RunError
from ajuste.model.event import Counter, Exited, Loaded
from ajuste.model.modelled import ModelledMachine, all_missed

if TYPE_CHECKING:
    from ajuste.model.cost import Costs, CostTask

# What a parser raises when an output is not what its program prints.


class ParseError(RunError):
    """The output was not understood; the message says what was expected and what was found."""


def excerpt(text: str, limit: int = 80) -> str:
    """Return the beginning of an output in quotes, for messages."""
    line = text.strip().split("\n", 1)[0]
    return f'"{line}"' if len(line) <= limit else f'"{line[:limit]}…"'


# Figures in outputs.


def figure(text: str, what: str) -> float:
    """Return the finite number that ``text`` is. Raises ParseError that names ``what`` it should be."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ParseError(f"{excerpt(text)} is not a number for {what}")
    return value


def finite(value: float, what: str) -> float:
    """Return ``value`` as a finite number. Raises ParseError that names ``what`` it should be."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ParseError(f"{excerpt(str(value))} is not a finite number for {what}")
    return number


Counts = Mapping[str, int]
"""Values of perf events by name; times in nanoseconds."""


@dataclass(frozen=True)
class _Counted:
    # A metric that needs `counters`; `value` may assume that all of them are there.
    counters: tuple[str, ...]
    value: Callable[[Exited, Counts], float | None]


def _count(name: str) -> _Counted:
    return _Counted((name,), lambda exited, counts: float(counts[name]))


_WAITED: Mapping[str, Callable[[Exited], float]] = MappingProxyType(
    {
        "elapsed": lambda exited: exited.wall_ns / 1e9,
        "user-time": lambda exited: exited.user_ns / 1e9,
        "system-time": lambda exited: exited.system_ns / 1e9,
        "voluntary-switches": lambda exited: float(exited.voluntary_switches),
        "involuntary-switches": lambda exited: float(exited.involuntary_switches),
        "minor-faults": lambda exited: float(exited.minor_faults),
        "major-faults": lambda exited: float(exited.major_faults),
        "peak-rss": lambda exited: float(exited.peak_rss_bytes),
    }
)

_COUNTED: Mapping[str, _Counted] = MappingProxyType(
    {
        "task-clock": _Counted(("task-clock",), lambda exited, counts: counts["task-clock"] / 1e6),
        "cpus-utilized": _Counted(
            ("task-clock",), lambda exited, counts: counts["task-clock"] / exited.wall_ns if exited.wall_ns else None
        ),
        "context-switches": _count("context-switches"),
        "cpu-migrations": _count("cpu-migrations"),
        "page-faults": _count("page-faults"),
        "cycles": _count("cycles"),
        "instructions": _count("instructions"),
        "ipc": _Counted(
            ("cycles", "instructions"),
            lambda exited, counts: counts["instructions"] / counts["cycles"] if counts["cycles"] else None,
        ),
        "cache-references": _count("cache-references"),
        "cache-misses": _count("cache-misses"),
        "branches": _count("branches"),
        "branch-misses": _count("branch-misses"),
    }
)

BASE_METRICS = (*_WAITED, *_COUNTED)
HARDWARE_METRICS: Final = tuple(_COUNTED)[tuple(_COUNTED).index("cycles") :]
"""Metrics of a processor's own counters."""


def counters_for(metrics: Iterable[str]) -> tuple[str, ...]:
    """Return the perf events that ``metrics`` need, each once, in a fixed order."""
    wanted = set(metrics)
    needed = {name for metric, counted in _COUNTED.items() if metric in wanted for name in counted.counters}
    order = dict.fromkeys(name for counted in _COUNTED.values() for name in counted.counters)
    return tuple(name for name in order if name in needed)


def base_metrics(exited: Exited, counters: Iterable[Counter]) -> tuple[dict[str, float], dict[str, str]]:
    """Return the metrics of a workload that ended, and the reasons for those that are not supported.

    ``elapsed``, ``user-time`` and ``system-time`` in seconds, ``task-clock`` in milliseconds, ``peak-rss`` in bytes. A
    metric whose counters were not asked for is in neither.
    """
    by_name = {counter.name: counter for counter in counters}
    counts = {name: counter.value for name, counter in by_name.items() if counter.value is not None}
    metrics = {name: value(exited) for name, value in _WAITED.items()}
    missing: dict[str, str] = {}
    for name, counted in _COUNTED.items():
        if all(counter in counts for counter in counted.counters):
            value = counted.value(exited, counts)
            if value is not None:
                metrics[name] = value
        elif all(counter in by_name for counter in counted.counters):
            reasons = (
                by_name[counter].not_supported or "not counted" for counter in counted.counters if counter not in counts
            )
            missing[name] = next(iter(reasons))
    return metrics, missing


# What the lens counts, exactly, of the workload and all that it made.


_EXACT: Final[Mapping[str, Callable[[CostTask], int]]] = MappingProxyType(
    {
        "instructions": lambda task: task.user + task.kernel,
        "user-instructions": lambda task: task.user,
        "kernel-instructions": lambda task: task.kernel,
        "branches": lambda task: task.branches,
    }
)

EXACT_METRICS = tuple(_EXACT)


def exact_metrics(costs: Costs) -> dict[str, float]:
    """Return the metrics of a workload whose instructions were counted one by one."""
    tasks = [task for task in costs.tasks if task.role == "workload"]
    metrics = {name: float(sum(map(of_task, tasks))) for name, of_task in _EXACT.items()}
    return metrics | _modelled_metrics(costs.machine, tasks) if costs.machine else metrics


# What the modelled machine makes of the same.


MODELLED_TIME: Final = "modelled-time"
MODELLED_METRICS: Final = (
    "loads",
    "stores",
    "l1i-misses",
    "l1d-misses",
    "l2-misses",
    "llc-misses",
    "coherence-misses",
    "remote-accesses",
    "tlb-misses",
    "branch-misses",
    MODELLED_TIME,
)


def _modelled_metrics(machine: ModelledMachine, tasks: Sequence[CostTask]) -> dict[str, float]:
    # The time is in seconds.
    modelled = [task.modelled for task in tasks if task.modelled is not None]
    missed = all_missed(counts.misses for counts in modelled)
    figures = (
        sum(counts.loads for counts in modelled),
        sum(counts.stores for counts in modelled),
        missed.l1i,
        missed.l1d,
        missed.l2,
        missed.llc,
        missed.lost,
        missed.remote,
        missed.walks,
        missed.branches,
        machine.seconds(sum(task.user + task.kernel for task in tasks), missed),
    )
    return dict(zip(MODELLED_METRICS, map(float, figures), strict=True))


# Shares of the CPU: what the workload and each background load got of it.


CPU_SHARE: Final = "cpu-share"


def background_share(number: int) -> str:
    """Return the metric of the background load of that number, counted from 1 as in the study."""
    return f"{CPU_SHARE}.background-{number}"


def shares(exits: Iterable[Exited], loaded: Sequence[Loaded], loads: Sequence[int]) -> dict[str, float]:
    """Return CPU time, user and system, by the workload's elapsed time, in per cent of one CPU.

    ``loads`` has the number of each background command's load: commands of one load are added up. What they used before
    the workload started, as ``loaded`` says, does not count.
    """
    ends = {(event.role, event.index): event for event in exits}
    workload = ends.get(("workload", 0))
    if workload is None or not workload.wall_ns:
        return {}
    before = loaded[0].used_ns if loaded else ()
    used_ns = {CPU_SHARE: workload.user_ns + workload.system_ns}
    for index, number in enumerate(loads):
        if (end := ends.get(("background", index))) is not None:
            name = background_share(number)
            earlier_ns = before[index] if index < len(before) else 0
            used_ns[name] = used_ns.get(name, 0) + max(0, end.user_ns + end.system_ns - earlier_ns)
    return {name: 100 * ns / workload.wall_ns for name, ns in used_ns.items()}


# Amounts whose unit changes within an output, such as ``840us``, ``12.3 ms`` and ``1.2s``, as figures of one metric.
#
# What is printed is converted to the metric's own unit. A number without a unit is already in it, as ever. A metric's
# unit is a time, an amount of data, or else the name of what is counted; after a slash is what it is counted by.
# Which spellings each of them has is in docs/reference/study-files.md.


_SPELLED: Final = {
    Fraction(1, 10**9): ("ns", "nsec", "nsecs"),
    Fraction(1, 10**6): ("us", "usec", "usecs", "µs", "μs"),
    Fraction(1, 10**3): ("ms", "msec", "msecs"),
    Fraction(1): ("s", "sec", "secs", "second", "seconds"),
    Fraction(60): ("min", "mins", "minute", "minutes"),
    Fraction(3600): ("h", "hr", "hrs", "hour", "hours"),
}
_TIMES: Final = {name: size for size, names in _SPELLED.items() for name in names}
# Only where the metric is a time: as a metric's own unit it could be anything.
_MINUTES: Final = {"m": Fraction(60)}

_BINARY: Final = {f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTP", 1)}
_DECIMAL: Final = {letter: Fraction(1000**power) for power, letter in enumerate("KMGTP", 1)} | {"k": Fraction(1000)}
_PREFIXES: Final = {"": Fraction(1)} | _DECIMAL | _BINARY
_DATA: Final = {
    f"{prefix}{name}": size * part
    for names, part in ((("B", "byte", "bytes"), Fraction(1)), (("b", "bit", "bits"), Fraction(1, 8)))
    for name in names
    for prefix, size in _PREFIXES.items()
}
# Of data without a letter for what they are of: as programs for people mean it (`ls -h`, fio).
_BARE: Final = _BINARY | {name[0]: size for name, size in _BINARY.items()} | {"k": Fraction(1024)}

_NUMBER: Final = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_AMOUNT: Final = re.compile(rf"\s*([+-]?{_NUMBER}(?:[eE][+-]?[0-9]{{1,3}})?)\s*(.*?)\s*", re.DOTALL)
_PART: Final = re.compile(rf"\s*({_NUMBER})\s*([a-zµμ]+)")
_PER_SECOND: Final = re.compile(r"(.*)(b|B)ps")

LONGEST: Final = 100
"""Characters of an amount."""


@dataclass(frozen=True)
class Unit:
    """``size`` in seconds or bytes, of a count 1 with its ``name``; ``per`` is seconds or a name, if there is any."""

    kind: Literal["time", "data", "count"]
    size: Fraction
    name: str
    per: Fraction | str | None


def parse_unit(text: str) -> Unit:
    """Return the unit of a metric."""
    head, per = _split(text)
    if head in _TIMES:
        return Unit("time", _TIMES[head], head, per)
    if head in _DATA:
        return Unit("data", _DATA[head], head, per)
    return Unit("count", Fraction(1), "" if head == "1" else head, per)


def _split(text: str) -> tuple[str, Fraction | str | None]:
    head, slash, tail = text.partition("/")
    if slash:
        return head.strip(), _TIMES.get(tail.strip(), tail.strip())
    if match := _PER_SECOND.fullmatch(text):
        return match[1] + match[2], Fraction(1)
    return text.strip(), None


def amount(text: str, unit: str, what: str) -> float:
    """Return the figure that ``text`` is, in ``unit``. Raises ParseError that names ``what`` it should be."""
    match = _AMOUNT.fullmatch(text) if len(text) <= LONGEST else None
    if match is None or not match[2] or match[2] == unit:
        return figure(text if match is None else match[1], what)
    metric_unit = parse_unit(unit)
    if (seconds := _parts(text, metric_unit)) is not None:
        return finite(seconds, what)
    # How many of the metric's unit the printed one is; None where they have nothing in common.
    head, per = _split(match[2])
    size = _size(head, metric_unit)
    ratio = None if size is None else _by(size / metric_unit.size, per, metric_unit)
    if ratio is None:
        wanted, hint = (f"an amount in {unit}", "") if unit else ("a number", _HINT)
        raise ParseError(f"{excerpt(text)} is not {wanted} for {what}{hint}")
    return finite(_times(figure(match[1], what), ratio), what)


_FOLLOWS: Final = re.compile(r" ?([A-Za-zµμ]+(?:/[A-Za-z]+)?)(?![A-Za-z0-9])")


def another_unit(text: str, rest: str, unit: str) -> str | None:
    """Return the time or amount of data that a number is in by the ``rest`` of its line, if that is not ``unit``."""
    match = _FOLLOWS.match(rest)
    if match is None or parse_unit(unit).kind == "count":
        return None
    try:
        same = amount(f"{text} {match[1]}", unit, "") == figure(text, "")
    except ParseError:
        return None
    return None if same else match[1]


_HINT: Final = "; name the metric's unit, such as ms, to convert printed units to it"


def _times(value: float, ratio: Fraction) -> float:
    # Rounded once where the ratio is whole or a part of one: 840 µs are exactly 0.84 ms.
    return value * ratio.numerator / ratio.denominator


def _size(head: str, metric_unit: Unit) -> Fraction | None:
    if metric_unit.kind == "time":
        return (_TIMES | _MINUTES).get(head)
    if metric_unit.kind == "data":
        return (_DATA | _BARE).get(head)
    known = {prefix: size for prefix, size in _PREFIXES.items() if head in (prefix, prefix + metric_unit.name)}
    known |= {prefix: size for prefix, size in _PREFIXES.items() if head == f"{prefix} {metric_unit.name}"}
    return min(known.values(), default=None)


def _by(ratio: Fraction, per: Fraction | str | None, metric_unit: Unit) -> Fraction | None:
    if isinstance(per, Fraction) and isinstance(metric_unit.per, Fraction):
        return ratio * metric_unit.per / per
    if per == metric_unit.per:
        return ratio
    # ``1.5K`` of operations per second, and ``12 ms`` of ms/op, need not say it again; ``3 MiB`` is no speed.
    is_implied = metric_unit.kind == "count" or isinstance(metric_unit.per, str)
    return ratio if per is None and is_implied else None


def _parts(text: str, metric_unit: Unit) -> float | None:
    # `1m30.5s` in the metric's unit, from the largest part to the smallest; `None` for what is not like it.
    if metric_unit.kind != "time" or metric_unit.per is not None:
        return None
    end, total, before, count = 0, 0.0, None, 0
    while match := _PART.match(text, end):
        size = (_TIMES | _MINUTES).get(match[2])
        if size is None or (before is not None and size >= before):
            return None
        total += _times(float(match[1]), size / metric_unit.size)
        end, before, count = match.end(), size, count + 1
    return total if count > 1 and not text[end:].strip() else None
