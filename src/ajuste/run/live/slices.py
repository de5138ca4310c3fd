"""From what was watched of a slice to a trial: the metrics over the part that counts, and whether it is clean."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from ajuste.model.event import Exited
from ajuste.model.live import BEGIN, BREACH, END, LiveDesign
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation, Slot, Trial
from ajuste.outputs.trial import TrialReading, trial
from ajuste.run.live.monitor import Watched
from ajuste.run.live.reading import CounterResetError, Reading, Source, latest

MISSING_SHARE: Final = 0.2
"""Of the looks that may show nothing."""
STEP_SECONDS: Final = 1.0
"""A clock that was set by more than that is noticed."""
SHORT_SHARE: Final = 0.9
"""A slice that ended before so much of it was over does not count."""

SILENT: Final = 4
"""The exit code of ``ajuste-watch`` where nobody checked the guards."""


def slice_trial(
    slot: Slot,
    attempt: int,
    plan: Plan,
    observation: Observation,
    watched: Watched,
    sources: Mapping[str, Source],
    design: LiveDesign,
    *,
    started: str,
    earlier: Mapping[str, str],
) -> Trial:
    """The trial of a slice. Unusual load is no matter: a live service has a load of its own."""
    alone = observation.model_copy(update={"disturbances": ()})
    found = trial(slot, attempt, plan, alone, TrialReading(any_exit=True), started=started, earlier=earlier)
    values, problems = _values(watched, sources, design)
    problems = [*([watched.ended.words] if watched.ended else _short(observation, watched, design)), *problems]
    if abs(watched.stepped_s) > STEP_SECONDS:
        problems.append(f"the clock was set by {watched.stepped_s:+.3g} s")
    broken = {BREACH: 1.0} if watched.ended and watched.ended.kind == "guard" else {}
    reasons = [*([found.reason] if found.status != "ok" else []), *problems]
    return found.model_copy(
        update={
            "metrics": {**values, BEGIN: watched.counted_s, END: watched.end_s, **broken},
            "not_supported": {},
            "status": "flagged" if problems and found.status == "ok" else found.status,
            "reason": "; ".join(reasons),
            "console": _timeline(watched, sources),
        }
    )


def _short(observation: Observation, watched: Watched, design: LiveDesign) -> list[str]:
    exits = [event for event in observation.events if isinstance(event, Exited) and event.role == "workload"]
    if exits and exits[0].exit_code == SILENT:
        return ["the guards were not checked in time, so the slice was ended"]
    if watched.end_s - watched.begin_s < SHORT_SHARE * design.slice_s:
        return ["the slice ended before its time"]
    return []


def _values(watched: Watched, sources: Mapping[str, Source], design: LiveDesign) -> tuple[dict[str, float], list[str]]:
    """The figure of each metric over what counts, and what is wrong with those that the verdict rests on."""
    found: dict[str, float] = {}
    problems: list[str] = []
    deciding = {one.metric.name for one in design.metrics}
    counted = watched.counted()
    for name, source in sources.items():
        own = counted.get(name, [])
        missing = watched.nothing.get(name, [])
        why = ""
        try:
            value = source.fold(own)
        except CounterResetError as reset:
            value, why = None, f"{name}: {reset}"
        if value is not None:
            found[name] = value
        elif not why:
            why = f"{name} has no value" + (f": {missing[-1]}" if missing else "")
        if not why and len(missing) > MISSING_SHARE * (len(own) + len(missing)):
            why = f"{name} showed nothing {len(missing)} times: {missing[-1]}"
        if why and name in deciding:
            problems.append(why)
    return found, problems


def _timeline(watched: Watched, sources: Mapping[str, Source]) -> str:
    """Each metric between two readings, as one line of JSON: when, and how much."""
    lines = {name: _line(sources[name], own) for name, own in watched.readings.items()}
    return json.dumps({"readings": lines}, separators=(",", ":"))


def _line(source: Source, readings: list[Reading]) -> list[tuple[float, float | None]]:
    found: list[tuple[float, float | None]] = []
    for place, reading in enumerate(readings[1:]):
        try:
            value = latest(source.fold, readings[place : place + 2])
        except CounterResetError:
            value = None
        found.append((round(reading.at_s, 3), value))
    return found
