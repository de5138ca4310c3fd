"""Guards: limits that must hold while a configuration is tried, checked by the last readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Literal

from ajuste.design.guards import beyond_limit, worse_than_usual
from ajuste.model.error import RequestError
from ajuste.model.live import Guard, LiveDesign
from ajuste.model.metric import Metric
from ajuste.model.wording import number, percent
from ajuste_live.reading import CounterResetError, Fold, NothingShownError, Reading, latest, read_file

BLIND_LOOKS: Final = 2
"""Number of failed readings in a row that break a guard."""
SILENT_SECONDS: Final = 2.0
"""Seconds for which a guarded metric may have no value, such as a mean without events; or twice the longest such time
in slices of the baseline, if that is more."""
UNKNOWN_SECONDS: Final = 5.0
"""The same before the first slice of the baseline."""
# Looks are not exactly a second apart.
_JITTER_SECONDS: Final = 0.2
FEWEST_READINGS: Final = 5

_PRESSURE: Final = Path("/proc/pressure")

EndKind = Literal["guard", "load", "stop", "fault"]


@dataclass(frozen=True)
class Ended:
    """The reason to end a slice early."""

    kind: EndKind
    words: str


@dataclass
class GuardWatch:
    """Checks ``design``'s guards. ``baselines`` are the values of the baseline's slices so far, by metric, ``silences``
    the longest time without a value in them; ``is_baseline``: this slice is one of them.
    """

    design: LiveDesign
    folds: Mapping[str, Fold]
    baselines: Mapping[str, Sequence[float]] = field(default_factory=dict)
    silences: Mapping[str, float] = field(default_factory=dict)
    is_baseline: bool = False
    _blind: dict[str, int] = field(default_factory=dict, init=False)
    # The last time at which each guarded metric had a value.
    _valued_s: dict[str, float] = field(default_factory=dict, init=False)

    def check(
        self,
        readings: Mapping[str, Sequence[Reading]],
        counted: Mapping[str, Sequence[Reading]],
        nothing: Mapping[str, str],
    ) -> Ended | None:
        """Return the reason to end the slice, if any: by the last two ``readings`` of each metric, by those that
        ``counted`` so far, and by those that show ``nothing`` now, with the reason.
        """
        for guard in self.design.guards:
            if guard.metric in nothing:
                self._blind[guard.text] = self._blind.get(guard.text, 0) + 1
                if self._blind[guard.text] >= BLIND_LOOKS:
                    return Ended("guard", f"guard {guard.text}: cannot be checked: {nothing[guard.metric]}")
                continue
            self._blind[guard.text] = 0
            of_metric = readings.get(guard.metric, ())
            value = _value(partial(latest, self.folds[guard.metric]), of_metric)
            words = self._silent(guard, value, of_metric)
            if not words and not guard.sign:
                words = self._worse(guard, counted.get(guard.metric, ()))
            elif not words and value is not None:
                words = beyond_limit(guard, self._metric(guard), value)
            if words:
                return Ended("guard", f"guard {guard.text}: {words}")
        return beyond_load(self.design)

    def _silent(self, guard: Guard, value: float | None, of_metric: Sequence[Reading]) -> str:
        # A service that stops answering under the tried value does not keep its guards.
        if not of_metric:
            return ""
        now_s = of_metric[-1].at_s
        since_s = self._valued_s.setdefault(guard.metric, of_metric[0].at_s)
        if value is not None:
            self._valued_s[guard.metric] = now_s
        elif now_s - since_s > self._silence_s(guard.metric) - _JITTER_SECONDS:
            return f"cannot be checked: {guard.metric} has no value for {now_s - since_s:.0f} s"
        return ""

    def _silence_s(self, metric: str) -> float:
        if self.is_baseline:
            return max(UNKNOWN_SECONDS, self.design.slice_s / 2)
        known_s = self.silences.get(metric)
        return UNKNOWN_SECONDS if known_s is None else max(SILENT_SECONDS, 2 * known_s)

    def _worse(self, guard: Guard, counted: Sequence[Reading]) -> str:
        value = _value(self.folds[guard.metric], counted) if len(counted) >= FEWEST_READINGS else None
        if value is None:
            return ""
        return worse_than_usual(guard, self._metric(guard), value, self.baselines.get(guard.metric, ()))

    def _metric(self, guard: Guard) -> Metric:
        return next(metric.metric for metric in self.design.all_metrics if metric.metric.name == guard.metric)


def longest_silence(line: Sequence[tuple[float, float | None]]) -> float:
    """Return the longest time in seconds without a value, from a metric's timeline in one slice."""
    longest_s, since_s = 0.0, line[0][0] if line else 0.0
    for at_s, value in line:
        longest_s = max(longest_s, at_s - since_s) if value is None else longest_s
        since_s = since_s if value is None else at_s
    return longest_s


def _value(fold: Fold, readings: Sequence[Reading]) -> float | None:
    # None also after a reset of a counter.
    try:
        return fold(readings)
    except CounterResetError:
        return None


def beyond_load(design: LiveDesign) -> Ended | None:
    """Return the reason to end a slice if the machine's load is beyond its limits."""
    if design.max_load is not None and (load := load_average()) > design.max_load:
        return Ended("load", f"the load average is {number(load)}, more than {design.max_load:g}")
    if design.max_pressure is not None:
        for resource in ("cpu", "io", "memory"):
            stalled = pressure(resource)
            if stalled > design.max_pressure:
                limit = percent(design.max_pressure)
                return Ended(
                    "load", f"tasks wait for {resource} {percent(round(stalled, 3))} of the time, more than {limit}"
                )
    return None


def load_average() -> float:
    """Return the mean number of tasks that ran or waited in about the last minute (proc_loadavg(5)). Read from the
    file: containers may have one of their own.
    """
    return float(read_file(Path("/proc/loadavg")).split()[0])


def require_pressure(design: LiveDesign) -> None:
    """Raise RequestError if a limit on pressure cannot be checked."""
    if design.max_pressure is None:
        return
    try:
        read_file(_PRESSURE / "cpu")
    except NothingShownError as nothing:
        raise RequestError(
            f"--max-pressure requires pressure stall information: {nothing}",
            hint="give --max-load instead, or boot with psi=1 on the kernel's command line",
        ) from None


def pressure(resource: str) -> float:
    """Return the share of the last 10 s in which some task waited (PSI); 0 on a kernel without PSI."""
    try:
        text = read_file(_PRESSURE / resource)
        fields = dict(word.partition("=")[::2] for word in text.splitlines()[0].split()[1:])
        return float(fields["avg10"]) / 100
    except (NothingShownError, IndexError, KeyError, ValueError):
        return 0.0
