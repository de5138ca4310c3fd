"""The monitor of a slice: reads every source once a second, checks the guards, and sends a heartbeat.

A program that lasts as long as the slice (``ajuste-watch``) receives the beats. Without one for ``SILENCE_SECONDS`` it
ends, and the agent restores: also if this process is killed, hangs or is stopped.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from ajuste.machine.home import WATCH
from ajuste.model.event import Exited, Failed
from ajuste.model.live import LiveDesign, duration
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation, Slot, Trial
from ajuste.model.wording import count_of
from ajuste.outputs.trial_status import TrialReading, trial, with_last_words
from ajuste_live.guards import Ended, GuardWatch
from ajuste_live.reading import READ_SECONDS, CounterResetError, NothingShownError, Reading, Source, latest, look_at
from ajuste_live.record import BEGIN, BREACH, END

_LOG: Final = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
BEAT_SECONDS: Final = 0.2
_START_SECONDS: Final = 0.002
SILENCE_SECONDS: Final = 1.4
"""Seconds without a beat after which the slice ends."""

MISSING_SHARE: Final = 0.2
"""Maximum share of looks in which a metric may show nothing."""

STEP_SECONDS: Final = 1.0
"""Minimum step of the clock that flags a slice."""

SHORT_SHARE: Final = 0.9
"""Minimum share of its length after which a slice counts."""

EXIT_ENDED: Final = 3
"""The exit code of ``ajuste-watch`` if the monitor ended the slice."""

EXIT_SILENT: Final = 4
"""The exit code of ``ajuste-watch`` if the beats stopped."""


@dataclass
class Watched:
    """The readings of a slice by metric, from ``begin_s`` on; those from ``counted_s`` on count. ``nothing`` has the
    reasons of failed readings, ``ended`` why the slice ended early, ``stepped_s`` by how much the clock was set.
    """

    begin_s: float
    counted_s: float
    end_s: float = 0.0
    readings: dict[str, list[Reading]] = field(default_factory=dict)
    nothing: dict[str, list[str]] = field(default_factory=dict)
    ended: Ended | None = None
    stepped_s: float = 0.0

    def counted(self) -> dict[str, list[Reading]]:
        """Return the readings of the part that counts."""
        return {
            name: [reading for reading in of_metric if reading.at_s >= self.counted_s]
            for name, of_metric in self.readings.items()
        }


class Heart:
    """The pipe from the monitor to ``ajuste-watch``. A context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pipe = -1

    def __enter__(self) -> Self:
        self.path.unlink(missing_ok=True)
        os.mkfifo(self.path, 0o600)
        # Both ends, so that writing never fails for lack of a reader. The watch sees the end of the pipe only when this
        # process ends.
        self._pipe = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._pipe)
        self.path.unlink(missing_ok=True)

    def beat(self) -> None:
        """Send a beat: the guards are being checked."""
        self._write(b".")

    def tell(self, words: str) -> None:
        """End the slice for the reason ``words``."""
        self._write(words.replace("\n", " ").encode(errors="replace")[:900] + b"\n")

    @property
    def is_heard(self) -> bool:
        """Return whether ``ajuste-watch`` has read all beats, so that it runs."""
        return not any(fcntl.ioctl(self._pipe, termios.FIONREAD, bytes(4)))

    def drain(self) -> None:
        """Discard what an earlier watch has not read."""
        with suppress(BlockingIOError):
            while os.read(self._pipe, 4096):
                pass

    def _write(self, data: bytes) -> None:
        with suppress(BlockingIOError):
            os.write(self._pipe, data)


class LiveMonitor:
    """Watches one slice of ``slice_s`` seconds on its own thread, from entering to leaving.

    ``now_s`` returns the seconds since the run began, ``wants_end`` whether a person asked to stop;
    ``kill_unresponsive`` belongs to the executor.
    """

    def __init__(
        self,
        sources: Mapping[str, Source],
        guards: GuardWatch,
        heart: Heart,
        *,
        slice_s: float,
        washout_s: float,
        now_s: Callable[[], float],
        wants_end: Callable[[], bool] = lambda: False,
        kill_unresponsive: Callable[[float], str] = lambda _: "",
    ) -> None:
        self._sources = sources
        self._guards = guards
        self._heart = heart
        self._slice_s = slice_s
        self._now_s = now_s
        self._wants_end = wants_end
        self._kill_unresponsive = kill_unresponsive
        self._ended_s: float | None = None
        self._over = threading.Event()
        begin = now_s()
        self.watched = Watched(begin, begin + washout_s, begin)
        self._waiting: dict[str, Future[dict[str, Reading | str]]] = {}
        self._thread = threading.Thread(target=self._watch, name="monitor", daemon=True)

    def __enter__(self) -> Self:
        self._heart.drain()
        self._heart.beat()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        self._await_watch()
        apart = time.time() - time.monotonic()
        try:
            self._look_until_the_end()
        except Exception as error:  # noqa: BLE001 - after any error the old values must come back
            _LOG.exception("monitor failed")
            self._end(Ended("fault", f"the guards could not be checked: {error or type(error).__name__}"))
        self.watched.end_s = self._now_s()
        self.watched.stepped_s = time.time() - time.monotonic() - apart
        while not self._over.wait(BEAT_SECONDS):
            self._beat()

    def _await_watch(self) -> None:
        # The watch starts once the values are in force: a server that loads its configuration takes a while.
        beat_at_s = self._now_s() + BEAT_SECONDS
        while not self._heart.is_heard and not self._over.wait(_START_SECONDS):
            if self._now_s() > beat_at_s:
                self._beat()
                beat_at_s += BEAT_SECONDS
        waited_s = self._now_s() - self.watched.begin_s
        self.watched.begin_s += waited_s
        self.watched.counted_s += waited_s

    def _look_until_the_end(self) -> None:
        for at_s in self._looks():
            while (left := at_s - self._now_s()) > 0 and not self._over.wait(min(left, BEAT_SECONDS)):
                self._beat()
            if self._over.is_set() or self.watched.ended:
                return
            ended = self._look()
            if ended is None and self._wants_end():
                ended = Ended("stop", "ajuste live stop was called")
            if ended is not None:
                self._end(ended)

    def _end(self, ended: Ended) -> None:
        # The first reason counts.
        if self.watched.ended is None:
            self.watched.ended = ended
            self._ended_s = time.monotonic()
            self._heart.tell(ended.words)

    def _beat(self) -> None:
        # Once the slice was ended, the agent must restore: a process that keeps it from that is killed.
        if self.watched.ended is None:
            self._heart.beat()
        overdue_s = 0.0 if self._ended_s is None else time.monotonic() - self._ended_s
        if killed := self._kill_unresponsive(overdue_s):
            _LOG.warning("process killed", extra={"because": killed})
            self._end(Ended("fault", killed))

    def _looks(self) -> Sequence[float]:
        # Each second, at the begin of the part that counts, and just before the end.
        begin, end = self.watched.begin_s, self.watched.begin_s + self._slice_s - 0.05
        count = int(self._slice_s / LOOK_SECONDS)
        ticks = {begin + LOOK_SECONDS * tick for tick in range(count + 1)}
        # Looks close to these two would only repeat them.
        near = (self.watched.counted_s, end)
        ticks = {
            tick for tick in ticks if tick < end and all(abs(tick - instant) > LOOK_SECONDS / 3 for instant in near)
        }
        return sorted(ticks | set(near))

    def _look(self) -> Ended | None:
        # A slow source is not read again until it has answered.
        for origin in dict.fromkeys(source.origin for source in self._sources.values()):
            if origin not in self._waiting:
                self._waiting[origin] = self._begin(origin)
        deadline = time.monotonic() + READ_SECONDS + 0.1
        while (left := deadline - time.monotonic()) > 0:
            self._beat()
            if not wait(self._waiting.values(), min(left, BEAT_SECONDS)).not_done:
                break
        nothing: dict[str, str] = {}
        for origin, future in list(self._waiting.items()):
            if future.done():
                self._take(future.result(), nothing)
                del self._waiting[origin]
            else:
                late = (name for name, source in self._sources.items() if source.origin == origin)
                nothing |= dict.fromkeys(late, f"took longer than {READ_SECONDS} s")
        for name, why in nothing.items():
            self.watched.nothing.setdefault(name, []).append(why)
        return self._guards.check(self.watched.readings, self.watched.counted(), nothing)

    def _begin(self, origin: str) -> Future[dict[str, Reading | str]]:
        # A daemon thread, since an endpoint may never answer.
        answer: Future[dict[str, Reading | str]] = Future()
        threading.Thread(target=lambda: answer.set_result(self._read(origin)), name="source", daemon=True).start()
        return answer

    def _take(self, answers: Mapping[str, Reading | str], nothing: dict[str, str]) -> None:
        for name, reading in answers.items():
            match reading:
                case Reading():
                    self.watched.readings.setdefault(name, []).append(reading)
                case why:
                    nothing[name] = why

    def _read(self, origin: str) -> dict[str, Reading | str]:
        answers: dict[str, Reading | str] = {}
        for name, source in self._sources.items():
            if source.origin == origin:
                try:
                    answer = look_at(source)
                    answers[name] = Reading(self._now_s(), answer)
                except NothingShownError as nothing:
                    answers[name] = str(nothing)
        return answers


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
    """Return the trial of a slice. Disturbances are ignored: a live service has a load of its own."""
    alone = replace(observation, disturbances=())
    measured = trial(slot, attempt, plan, alone, TrialReading(any_exit=True), started=started, earlier=earlier)
    values, problems = _values(watched, sources, design)
    problems = [*([watched.ended.words] if watched.ended else _short(observation, watched, design)), *problems]
    if abs(watched.stepped_s) > STEP_SECONDS:
        way = "forward" if watched.stepped_s > 0 else "back"
        problems.append(f"the clock was set {way} by {duration(abs(watched.stepped_s))}")
    broken = {BREACH: 1.0} if watched.ended and watched.ended.kind == "guard" else {}
    reasons = [*([measured.reason] if measured.status != "ok" else []), *problems]
    # Each metric's values between two readings, with their times.
    lines = {name: _line(sources[name], of_metric) for name, of_metric in watched.readings.items()}
    return measured.model_copy(
        update={
            "metrics": {**values, BEGIN: watched.counted_s, END: watched.end_s, **broken},
            "not_supported": {},
            "status": "flagged" if problems and measured.status == "ok" else measured.status,
            "reason": "; ".join(reasons),
            "console": json.dumps({"readings": lines}, separators=(",", ":")),
        }
    )


def _short(observation: Observation, watched: Watched, design: LiveDesign) -> list[str]:
    exited = _exit(observation)
    if exited is not None and (why := why_no_watch(observation)):
        return [why]
    if exited is not None and exited.exit_code == EXIT_SILENT:
        return ["the guards were not checked in time, so the slice was ended"]
    if watched.end_s - watched.begin_s < SHORT_SHARE * design.slice_s:
        return ["the slice ended before its time"]
    return []


def why_no_watch(observation: Observation) -> str:
    """Return why ``ajuste-watch`` failed, with its last words; empty if it worked."""
    exited = _exit(observation)
    if exited is not None and exited.exit_code in (0, EXIT_ENDED, EXIT_SILENT):
        return ""
    failures = [event.message for event in observation.events if isinstance(event, Failed)]
    if exited is not None:
        failures.append(f"signal {exited.signal}" if exited.signal else f"exit code {exited.exit_code}")
    why = with_last_words("; ".join(failures) or observation.problem or "it did not end", observation.events)
    return f"{WATCH}, which watches a slice, failed: {why}"


def _exit(observation: Observation) -> Exited | None:
    exits = [event for event in observation.events if isinstance(event, Exited) and event.role == "workload"]
    return exits[0] if exits else None


def _values(watched: Watched, sources: Mapping[str, Source], design: LiveDesign) -> tuple[dict[str, float], list[str]]:
    # The figures of the part that counts, and the problems of deciding metrics.
    values: dict[str, float] = {}
    problems: list[str] = []
    deciding = {metric.metric.name for metric in design.metrics}
    counted = watched.counted()
    for name, source in sources.items():
        of_metric = counted.get(name, [])
        missing = watched.nothing.get(name, [])
        why = ""
        try:
            value = source.fold(of_metric)
        except CounterResetError as reset:
            value, why = None, f"{name}: {reset}"
        if value is not None:
            values[name] = value
        elif not why:
            cut = ", as the slice was ended" if watched.ended else ""
            why = f"{name} has no value{f': {missing[-1]}' if missing else cut}"
        if not why and len(missing) > MISSING_SHARE * (len(of_metric) + len(missing)):
            why = f"{name} showed nothing {count_of(len(missing), 'time')}: {missing[-1]}"
        if why and name in deciding:
            problems.append(why)
    return values, problems


def _line(source: Source, readings: list[Reading]) -> list[tuple[float, float | None]]:
    points: list[tuple[float, float | None]] = []
    for place, reading in enumerate(readings[1:]):
        try:
            value = latest(source.fold, readings[place : place + 2])
        except CounterResetError:
            value = None
        points.append((round(reading.at_s, 3), value))
    return points
