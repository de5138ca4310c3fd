"""The state that pages share: one service, one index of runs, checks of the machine, and one follower for each run."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from ajuste.design.stopping import remaining
from ajuste.machine.files import make_directory
from ajuste.machine.home import Home
from ajuste.model.error import AjusteError
from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.verdict import Finding, Verdict
from ajuste.report.format import duration, result_labels
from ajuste.report.tables import deciding_metrics
from ajuste.report.verdicts import LOOKS, effect_style
from ajuste.store.head import Head, Run, RunNotes
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import Study
from ajuste_doctor.diagnosis import Diagnosis
from ajuste_lab.following import NewTrial, RunFollower
from ajuste_lab.index import RunFacts, RunIndex
from ajuste_lab.jobs import Jobs
from ajuste_lab.service import LabService

MOST_KEPT: Final = 500

LOOK_SECONDS: Final = 0.15

BEAT_SECONDS: Final = 2.0
"""Interval in seconds at which viewers hear whether the run goes on, and how much time is left."""

ANALYSIS_SHARE: Final = 0.1
"""Looking at intervals while a run goes on may take this share of one CPU."""

# A gap between two trials that is longer than this and than any trial is an interruption, not part of the pace.
_PAUSE_SECONDS: Final = 10.0

MOST_POINTS: Final = 2000
MOST_VIEWERS: Final = 64


@dataclass(frozen=True)
class QuietCheck:
    """A diagnosis with its time."""

    at: datetime
    diagnosis: Diagnosis


class Quietness:
    """The checks of one home, the last of which can be going on."""

    def __init__(self, home: Home, jobs: Jobs) -> None:
        self._file = home.state / "lab" / "quietness.jsonl"
        self._jobs = jobs
        self._lock = threading.Lock()
        self._measuring: threading.Thread | None = None
        self.problem = ""

    @property
    def is_measuring(self) -> bool:
        return self._measuring is not None and self._measuring.is_alive()

    def checks(self) -> list[QuietCheck]:
        """Return the checks, the oldest first."""
        try:
            lines = self._file.read_text(encoding="utf-8").splitlines()[-MOST_KEPT:]
        except OSError:
            return []
        checks = []
        for line in lines:
            with suppress(ValueError, KeyError, TypeError):
                document = json.loads(line)
                at = datetime.fromisoformat(document["at"])
                checks.append(QuietCheck(at, Diagnosis.model_validate(document["diagnosis"])))
        return checks

    def measure(self, *, quick: bool = True) -> None:
        """Begin to measure, unless a measurement goes on already."""
        with self._lock:
            if self.is_measuring:
                return
            self.problem = ""
            self._measuring = threading.Thread(target=self._measure, args=(quick,), name="lab quietness", daemon=True)
            self._measuring.start()

    def _measure(self, quick: bool) -> None:
        words = ["doctor", *(["--quick"] if quick else []), "--json"]
        try:
            make_directory(self._file.parent)
            diagnosis = json.loads(self._jobs.output_of(words, self._file.parent, timeout_s=180))
            line = json.dumps({"at": datetime.now(UTC).isoformat(timespec="seconds"), "diagnosis": diagnosis})
            with self._file.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except AjusteError as error:
            self.problem = str(error)
        except (OSError, ValueError) as error:
            self.problem = f"the measurement could not be kept: {error}"


class RunWatch:
    """A run as its viewers see it. ``events`` of all viewers come from one task."""

    def __init__(self, service: LabService, run: Run, clock: Callable[[], float] = time.time) -> None:
        self._service = service
        self._run = run
        self._clock = clock
        self._resolved = ResolvedStudy.model_validate_json(run.resolved)
        self._viewers: set[asyncio.Queue[str]] = set()
        self._task: asyncio.Task[None] | None = None
        self._trials: list[NewTrial] = []
        self._verdicts = ""
        self._analysed_blocks = -1
        self._rest_until = 0.0
        self._findings: Sequence[Verdict] = ()

    async def events(self) -> AsyncIterator[str]:
        """Yield events for a browser's EventSource: first the present state, then each change."""
        if len(self._viewers) >= MOST_VIEWERS:
            yield _event("full", {"message": f"{MOST_VIEWERS} others watch this run already"})
            return
        queue: asyncio.Queue[str] = asyncio.Queue(maxsize=1000)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())
        elif self._trials:
            queue.put_nowait(self._begin())
            if self._verdicts:
                queue.put_nowait(self._verdicts)
        self._viewers.add(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._viewers.discard(queue)

    async def _look(self) -> None:
        with RunFollower(self._service.home.store_url) as follower:
            self._trials = list(await asyncio.to_thread(follower.since, self._run.id, 0))
            self._tell(self._begin())
            if self._verdicts:  # of an earlier viewer, who has left
                self._tell(self._verdicts)
            beaten = 0.0
            while self._viewers:
                new: Sequence[NewTrial] = ()
                if await asyncio.to_thread(follower.changed):
                    last = self._trials[-1].number if self._trials else 0
                    new = await asyncio.to_thread(follower.since, self._run.id, last)
                if new:
                    self._trials += new
                    self._tell(_event("trials", {"trials": [_point(trial) for trial in new]}))
                if new or time.monotonic() - beaten >= BEAT_SECONDS:
                    beaten = time.monotonic()
                    if await self._has_ended(follower):
                        return
                    self._tell(_event("state", await asyncio.to_thread(self._state)))
                await self._analyse()
                await asyncio.sleep(LOOK_SECONDS)

    async def _has_ended(self, follower: RunFollower) -> bool:
        stopped = await asyncio.to_thread(follower.stopped, self._run.id)
        if stopped is not None and not stopped[0]:
            return False
        because = "it was deleted" if stopped is None else stopped[1]
        self._tell(_event("end", {"because": because}))
        await asyncio.sleep(LOOK_SECONDS)
        return True

    async def _analyse(self) -> None:
        # Once a block is complete, and within the share of CPU time that `ANALYSIS_SHARE` allows.
        done = self._blocks_done()
        if done == self._analysed_blocks or time.monotonic() < self._rest_until:
            return
        began = time.monotonic()
        self._analysed_blocks = done
        with suppress(AjusteError, ValueError):
            results = await asyncio.to_thread(self._service.results, self._run)
            self._findings = results.verdicts
            self._verdicts = _event("verdicts", verdict_rows(results))
            self._tell(self._verdicts)
        self._rest_until = time.monotonic() + (time.monotonic() - began) / ANALYSIS_SHARE

    def _blocks_done(self) -> int:
        clean = Counter(trial.block for trial in self._trials if trial.status == "ok" and not trial.warm_up)
        wanted = len(self._resolved.configurations)
        return sum(count >= min(wanted, 2) for count in clean.values())

    def _begin(self) -> str:
        return _event("begin", {"trials": [_point(trial) for trial in self._trials[-MOST_POINTS:]], **self._state()})

    def _state(self) -> dict[str, Any]:
        budget = self._resolved.study.budget
        done = self._blocks_done()
        counted = Counter(trial.status for trial in self._trials)
        job = self._service.jobs.of_run(self._run.id)
        going_on = self._service.is_going_on(self._run)
        left = ""
        if going_on and (rest := time_left(self._resolved.study, self._trials, done, self._findings, self._clock())):
            seconds, at_most = rest
            left = f"{'at most' if at_most else 'about'} {duration(seconds)} left" if seconds else "about to end"
        return {
            "blocks": done,
            "most_blocks": budget.max_blocks,
            "count": len(self._trials),
            "flagged": counted["flagged"],
            "failed": counted["failed"],
            "left": left,
            "doing": job.doing if job is not None and going_on else "",
            "going_on": going_on,
            "ours": job is not None and job.alive,
            "problem": job.problem if job is not None and not going_on else "",
        }

    def _tell(self, event: str) -> None:
        for queue in self._viewers:
            with suppress(asyncio.QueueFull):  # Who does not read gets fewer messages.
                queue.put_nowait(event)


def time_left(
    study: Study, trials: Sequence[NewTrial], done: int, findings: Sequence[Finding], now: float
) -> tuple[float, bool] | None:
    """Return the seconds that a run with ``done`` blocks goes on at the pace of its ``trials``, and whether that is
    at most; None before there is a pace.

    Pauses between trials do not count, trials beside each other count once, and those of a block that is not complete
    are done already.
    """
    budget = study.budget
    spans = sorted(
        (datetime.fromisoformat(trial.started).timestamp(), trial.host_seconds)
        for trial in trials
        if trial.started and trial.host_seconds > 0
    )
    if not spans or not done:
        return None
    longest = max(seconds for _, seconds in spans)
    running = waiting = 0.0
    end = spans[0][0]
    for begin, seconds in spans:
        running += max(0.0, begin + seconds - max(begin, end))
        waiting += begin - end if 0 < begin - end <= max(longest, _PAUSE_SECONDS) else 0.0
        end = max(end, begin + seconds)
    wall = (running + waiting) / running
    pace = (running + waiting) / sum(seconds for _, seconds in spans)
    spent: dict[str, float] = defaultdict(float)
    blocks: dict[str, set[int]] = defaultdict(set)
    for trial in trials:
        if not trial.warm_up:
            spent[trial.configuration] += trial.host_seconds
            blocks[trial.configuration].add(trial.block)
    rest = remaining(
        done, findings, min_blocks=budget.min_blocks, max_blocks=budget.max_blocks, allocation=study.allocation
    )
    left = 0.0
    for name, measured in blocks.items():
        more = rest.blocks_left.get(name, max(0, done + rest.blocks - len(measured)))
        left += pace * more * spent[name] / len(measured)
    underway = min(longest, max(0.0, now - end))
    left = max(0.0, left - underway, wall * (budget.min_seconds - running))
    most = math.inf if not budget.max_minutes else max(0.0, wall * (60 * budget.max_minutes - running))
    return min(left, most), rest.at_most or left >= most


class Watches:
    """The watches of all runs that have viewers."""

    def __init__(self, service: LabService) -> None:
        self._service = service
        self._watches: dict[str, RunWatch] = {}

    def of(self, run: Run) -> RunWatch:
        watch = self._watches.get(run.id)
        if watch is None:
            if len(self._watches) > MOST_VIEWERS:
                self._watches.clear()
            watch = self._watches[run.id] = RunWatch(self._service, run)
        return watch


def verdict_rows(results: Results) -> dict[str, Any]:
    """Return the effects so far, in words and figures, for the deciding metrics."""
    labels = result_labels(results)
    metrics = {metric.name: metric for metric in results.metrics}
    deciding = [metrics[name] for name in deciding_metrics(results) if name in metrics]
    names = labels.by_name(results)
    return {"names": names, "rows": [row for metric in deciding for row in _rows(results, metric, names)]}


def _rows(results: Results, metric: Metric, names: Mapping[str, str]) -> list[dict[str, Any]]:
    mine = [verdict for verdict in results.verdicts if verdict.metric == metric.name]
    styles = effect_style(mine, metric.unit)
    rows = []
    for verdict in mine:
        style, look = styles[verdict.scale], LOOKS[verdict.verdict]
        rows.append(
            {
                "metric": metric.title,
                "configuration": verdict.configuration,
                "name": names.get(verdict.configuration, verdict.configuration),
                "verdict": verdict.verdict,
                "sign": look.sign,
                "estimate": style.estimate(verdict),
                "interval": style.interval(verdict),
                "scale": verdict.scale,
                "at": verdict.estimate,
                "low": verdict.low,
                "high": verdict.high,
                "open": verdict.is_open,
            }
        )
    return rows


def _point(trial: NewTrial) -> dict[str, Any]:
    return {
        "n": trial.number,
        "b": trial.block,
        "c": trial.configuration,
        "s": trial.status,
        "w": trial.warm_up,
        "m": {name: value for name, value in trial.metrics.items() if math.isfinite(value)},
        "why": trial.reason[:200],
    }


def _event(name: str, document: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(document)}\n\n"


@dataclass
class Laboratory:
    """``token`` is the owner's, ``address`` the page's."""

    service: LabService
    token: str
    address: str
    index: RunIndex = field(init=False)
    notes: RunNotes = field(init=False)
    quietness: Quietness = field(init=False)
    watches: Watches = field(init=False)
    kept_kernels: tuple[float, dict[str, Any]] | None = None
    """The last list of kernels with its time, in seconds of the monotonic clock."""

    def __post_init__(self) -> None:
        home = self.service.home
        self.index, self.notes = RunIndex(home), RunNotes(home)
        self.quietness, self.watches = Quietness(home, self.service.jobs), Watches(self.service)

    def runs(self) -> tuple[list[Head], dict[str, RunFacts]]:
        """Return all runs, newest first, with the facts indexed so far."""
        heads = self.service.runs()
        return heads, self.index.of(heads)
