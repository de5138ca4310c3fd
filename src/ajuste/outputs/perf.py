"""What the three forms of ``perf stat``'s output have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import Summarised
from ajuste.model.metric import Direction, Metric
from ajuste.outputs.collector import Collector, utf8

FORMAT: Final = "perf stat"
_SECONDS: Final = {"sec": 1.0, "seconds": 1.0, "msec": 1e-3, "usec": 1e-6, "ns": 1e-9}
_LOWER: Final = frozenset(
    {"time-elapsed", "task-clock", "cpu-clock", "user-time", "system-time", "duration_time", "cycles", "instructions"}
    | {"cache-misses", "branch-misses"}
)


@dataclass
class NotCounted:
    """The events of a file that perf could not count, which are told and not passed over."""

    file: Path
    _events: dict[str, None] = field(default_factory=dict)

    def add(self, event: str) -> None:
        self._events.setdefault(event)

    def noted(self, found: Collector) -> Collector:
        """``found`` with a note of them."""
        if self._events:
            found.notes.append(f"{utf8(self.file.name)}: perf did not count {', '.join(self._events)}.")
        return found


def add_event(
    found: Collector,
    configuration: str,
    event: str,
    unit: str,
    value: float,
    *,
    spread_percent: float | None,
    runs: int | None,
    line: int,
    step: float = 0.0,
) -> None:
    """Add an event's value, or with a spread the summary of ``runs`` runs; ``step`` is the last place printed.

    ``spread_percent`` is what perf prints after ±: the standard error of the mean, relative to the mean, in per cent
    (stddev_stats and rel_stddev_stats of tools/perf/util/stat.c). Raises RequestError where runs are not known.
    """
    if value < 0 or (spread_percent is not None and spread_percent < 0):
        wrong = value if value < 0 else f"{spread_percent} %"
        raise RequestError(f"{event} is {wrong}; expected at least 0", place=Place(found.file, line))
    event, _, modifier = event.partition(":")
    seconds = _SECONDS.get(unit)
    factor = 1.0 if seconds is None else seconds
    scaled = value * factor
    metric = Metric(
        name=event,
        title=event + (f" ({modifier})" if modifier else ""),
        unit="s" if seconds is not None else unit,
        direction=_direction(event),
        scale="ratio" if seconds is not None else "difference",
        resolution=step * factor if seconds is not None else 1.0,
    )
    if spread_percent is None:
        found.add(configuration, metric, scaled, line=line)
        return
    if runs is None:
        raise RequestError(
            "found a summary of several runs; the number of runs is missing",
            place=Place(found.file, line),
            hint="give it with --runs N: the N of perf stat -r N",
        )
    sem = abs(scaled) * spread_percent / 100
    found.add_summary(configuration, metric, Summarised(runs, scaled, sem), line)


def _direction(event: str) -> Direction:
    return "lower" if event in _LOWER else "none"


def require_runs(runs: int | None, file: Path) -> None:
    """Raises RequestError for a number of runs that no summary can have."""
    if runs is not None and runs < 2:
        raise RequestError(f"--runs {runs}: expected at least 2", place=Place(file))
