"""A live experiment from its first slice to its verdict; each slice is stored at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Self

from ajuste.design.stopping import Stop
from ajuste.executor.executor import Executor, now
from ajuste.machine.home import how_to_mend
from ajuste.machine.session import boot_id
from ajuste.model.base import BaseModel
from ajuste.model.error import RunError
from ajuste.model.live import LiveDesign, duration
from ajuste.model.plan import Command, Plan
from ajuste.model.trial import Observation, Slot, Trial
from ajuste.model.verdict import Verdict
from ajuste.model.wording import Ongoing, Say, amount, block_name, visible_line
from ajuste.report.format import study_settings
from ajuste.study.commands import plan_for
from ajuste.study.resolved import ResolvedStudy
from ajuste_live.guards import GuardWatch, beyond_load, longest_silence
from ajuste_live.monitor import LOOK_SECONDS, SILENCE_SECONDS, Heart, LiveMonitor, slice_trial, why_no_watch
from ajuste_live.prediction import Known, SlicesPrediction, longest, predictions
from ajuste_live.reading import Source
from ajuste_live.record import BREACH, END, STAYED
from ajuste_live.results import (
    awaits_stays,
    breaches_by_name,
    computable,
    in_order,
    judge_live,
    kept_readings,
    live_answer,
)
from ajuste_live.wash_out import StepResponse, WashOut, estimate_wash_out
from ajuste_stats.switchback.design import STAY, order_of_block

ENOUGH_BLOCKS: Final = 5
"""Number of blocks with enough changes to estimate the wash-out."""
_LEAST_SECONDS: Final = 1.0
_LEAST_SHARE: Final = 0.1

_LOG: Final = logging.getLogger(__name__)

MOST_ATTEMPTS: Final = 3
"""Maximum number of attempts of a slice that is not clean."""

MOST_FAILED: Final = 3
"""Number of failed slices in a row that stop the run: more would only change settings."""

MOST_BROKEN: Final = 3
"""Number of baseline slices in a row with a broken guard that stop the run: the service itself is in trouble."""

_PAUSE_SECONDS: Final = 1.0

# Time for the agent beyond the slice.
_SETTLE_SECONDS: Final = 5.0


def is_estimated_after(blocks: int) -> bool:
    """Return whether the wash-out is estimated after ``blocks``: as soon as possible, then when they have doubled."""
    times, rest = divmod(blocks, ENOUGH_BLOCKS)
    return rest == 0 and times > 0 and times & (times - 1) == 0


def wash_out_of(study: ResolvedStudy, trials: Sequence[Trial], live: LiveDesign) -> WashOut:
    """Return the longest wash-out of the deciding metrics, at most half of a slice."""
    ordered = [trial for trial in in_order(trials) if trial.status == "ok"]
    wash_outs = [_of_metric(metric.name, ordered, live) for metric in study.deciding]
    longest = max(wash_outs, key=lambda wash_out: wash_out.seconds)
    if longest.seconds <= live.slice_s / 2:
        return longest
    words = f"{longest.says}; limited to half of a slice, so give a longer --slice"
    return WashOut(live.slice_s / 2, longest.constant_s, words)


def _of_metric(metric: str, ordered: Sequence[Trial], live: LiveDesign) -> WashOut:
    # Every change between configurations shows the response once.
    responses = []
    for before, after in pairwise(ordered):
        values = tuple(value for _, value in kept_readings(after, metric) if value is not None)
        old, new = before.slot.configuration, after.slot.configuration
        if old != new and len(values) >= live.slice_s / LOOK_SECONDS / 2:
            responses.append(StepResponse(old, new, values))
    least_s = min(max(_LEAST_SECONDS, _LEAST_SHARE * live.slice_s), live.slice_s / 4)
    return estimate_wash_out(responses, LOOK_SECONDS, least_s=least_s)


class Instant(BaseModel):
    """A moment by two clocks: ``up_s`` is the time since ``boot``, suspension included; ``day_s`` is the time of day,
    which may be set.
    """

    boot: str
    up_s: float
    day_s: float

    @classmethod
    def now(cls) -> Self:
        """Return the current instant."""
        return cls(boot=boot_id(), up_s=time.clock_gettime(time.CLOCK_BOOTTIME), day_s=time.time())

    def earlier(self, seconds: float) -> Self:
        """Return the instant ``seconds`` before, by the same clocks."""
        return self.model_copy(update={"up_s": self.up_s - seconds, "day_s": self.day_s - seconds})


def seconds_between(earlier: Instant, later: Instant) -> float:
    """Return the seconds between two instants, by the time of day only across a reboot; at least 0."""
    if earlier.boot == later.boot:
        return later.up_s - earlier.up_s
    return max(0.0, later.day_s - earlier.day_s)


def watch_command(program: Path, heart: Heart, slice_s: float) -> Command:
    """Return the command of ``ajuste-watch``. It runs as the agent's user: another one could not open root's pipe."""
    options = ("--for", str(round(slice_s * 1000)), "--silence", str(round(SILENCE_SECONDS * 1000)))
    return Command(argv=(str(program), *options, str(heart.path)))


def require_watch(executor: Executor, program: Path, heart: Heart) -> None:
    """Try ``ajuste-watch`` for a moment, with nothing changed. Raises RunError if it fails."""
    heart.beat()
    plan = Plan(id="watch", workload=watch_command(program, heart, 0.001), timeout_ns=round(_SETTLE_SECONDS * 1e9))
    if why := why_no_watch(executor.run(plan)):
        raise RunError(f"{why}; nothing was changed", hint=how_to_mend())


class StopAskedError(Exception):
    """Raised when a person asks the run to end."""


@dataclass
class LiveHooks:
    """The surroundings of a conductor. ``keep`` stores a slice, ``note`` stores facts about the run, ``tell`` shows
    progress, ``state`` publishes the current state (fields of LiveState), ``predict`` the prediction; ``wants_end``
    returns whether a person asked to stop.
    """

    keep: Callable[[Trial], None]
    note: Callable[[Mapping[str, Any]], None]
    tell: Say
    wants_end: Callable[[], bool]
    state: Callable[..., None]
    predict: Callable[[SlicesPrediction], None]


@dataclass
class Conductor:
    """Carries out slices on ``executor`` until everything is decided or the time is over. ``trials`` are the slices so
    far, ``about`` the noted facts about the run, ``known`` the noise of its metrics known before.
    """

    study: ResolvedStudy
    executor: Executor
    sources: Mapping[str, Source]
    heart: Heart
    hooks: LiveHooks
    watch: Path
    trials: list[Trial] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    known: Mapping[str, Known] = field(default_factory=dict)
    _begin_s: float = field(init=False)
    _names: Mapping[str, str] = field(init=False)
    _earlier: dict[str, str] = field(default_factory=dict, init=False)
    _broken_in_a_row: int = field(default=0, init=False)
    _failed_in_a_row: int = field(default=0, init=False)
    _silences: dict[str, float] = field(default_factory=dict, init=False)
    _prediction: SlicesPrediction | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.trials = computable(self.trials)
        done_s = max((trial.metrics.get(END, 0.0) for trial in self.trials), default=0.0)
        now, monotonic_s = Instant.now(), time.monotonic()
        began = Instant.model_validate(self.about.get("began_at", now))
        # The time goes on while no process runs, and never ends before the last slice.
        so_far_s = max(done_s, seconds_between(began, now))
        self.about["began_at"] = now.earlier(so_far_s).model_dump()
        self._begin_s = so_far_s - monotonic_s
        for trial in self.trials:
            self._note_silences(trial)
        self._names = study_settings(self.study)

    @property
    def _live(self) -> LiveDesign:
        return self.study.live_design

    @property
    def now_s(self) -> float:
        """Seconds since the run began."""
        return self._begin_s + time.monotonic()

    @property
    def washout_s(self) -> float:
        """The wash-out: the requested one, or the estimate, or a safe one until then."""
        return float(self.about.get("washout_s", self._live.first_washout_s))

    def carry_out(self) -> Stop:
        """Measure until there is a reason to stop. Raises the executor's errors."""
        number = max((trial.slot.block for trial in self.trials), default=0)
        self._predict()
        try:
            stop = self._stop_before(number)
            while stop is None:
                self._block(number)
                if self._live.washout_s is None and is_estimated_after(number + 1):
                    self._estimate_wash_out()
                self._predict()
                stop = self._stop_before(number + 1)
                self._tell_judged(number, is_last=stop is not None)
                number += 1
        except StopAskedError:
            return Stop("time", f"stopped by ajuste live stop after {self._counted()}")
        return stop

    def _counted(self) -> str:
        count = len(in_order(self.trials))
        return f"{count} slice{'' if count == 1 else 's'}"

    def _stop_before(self, number: int) -> Stop | None:
        names = self._members(number)
        verdicts = self._verdicts()
        if self._broken_in_a_row >= MOST_BROKEN:
            why = next(trial.reason for trial in reversed(self.trials) if trial.metrics.get(BREACH))
            return Stop("failed", f"a guard was broken {MOST_BROKEN} times in a row under the baseline: {why}")
        if self._failed_in_a_row >= MOST_FAILED:
            return Stop("failed", f"{MOST_FAILED} slices in a row failed: {self.trials[-1].reason}")
        broken = breaches_by_name(self.trials)
        if len(names) < 2:
            if all(name in broken for name in self.study.names if name != self.study.baseline):
                return Stop("decided", f"no configuration is left that keeps the guards, after {self._counted()}")
            return Stop("decided", f"all verdicts decided after {self._counted()}")
        if number and verdicts and not any(v.is_open for v in verdicts if v.configuration not in broken):
            return Stop("decided", f"all verdicts decided after {self._counted()}")
        stay = self._stay(number)
        length_s = self._live.slice_s * (stay * len(names) if stay > 1 else 1)  # a part of a stay shows nothing
        if self.now_s + length_s > self._live.for_s:
            return Stop("time", f"the time of {duration(self._live.for_s)} is over after {self._counted()}")
        return None

    def _verdicts(self, before: int | None = None) -> tuple[Verdict, ...]:
        trials = [trial for trial in self.trials if before is None or trial.slot.block < before]
        return tuple(verdict for judged in judge_live(self.study, trials) for verdict in judged.verdicts)

    def _members(self, number: int) -> tuple[str, ...]:
        # Decided when the block begins, so that a resumed run has the same blocks.
        before = [trial for trial in self.trials if trial.slot.block < number]
        broken = breaches_by_name(before)
        open_names = {verdict.configuration for verdict in self._verdicts(number) if verdict.is_open}
        baseline = self.study.baseline
        return tuple(
            name
            for name in self.study.names
            if name == baseline or (name not in broken and (not number or name in open_names))
        )

    def _stay(self, number: int) -> int:
        # The length of the stays of block `number`. Decided from the blocks before, as members are.
        before = [trial for trial in self.trials if trial.slot.block < number]
        return STAY if self._live.stays and awaits_stays(self.study, before) else 1

    def _block(self, number: int) -> None:
        names, stay = self._members(number), self._stay(number)
        order = order_of_block(number, names, self.study.study.design.seed, self._live.order, stay=stay)
        slots = [
            Slot(block=number, position=position, configuration=name, seed=0) for position, name in enumerate(order)
        ]
        if stay > 1:
            self._block_of_stays(slots)
            return
        # Repeats come after the rest of the block: a disturbance may be over by then.
        for _ in range(MOST_ATTEMPTS):
            for slot in slots:
                if self._is_wanted(slot):
                    is_over = self.now_s + self._live.slice_s > self._live.for_s
                    if is_over or self._broken_in_a_row >= MOST_BROKEN or self._failed_in_a_row >= MOST_FAILED:
                        return
                    self._slice(slot)

    def _block_of_stays(self, slots: Sequence[Slot]) -> None:
        # An interrupted stay is not repeated: the next block is drawn anew.
        if self._attempts(slots[0]):
            return
        for slot in slots:
            if self.now_s + self._live.slice_s > self._live.for_s:
                return
            self._slice(slot, stay=slot.position % STAY + 1)
            if self.trials[-1].status != "ok":
                return

    def _left(self) -> str:
        most_s = max(0.0, self._live.for_s - self.now_s)
        predicted = self._prediction.slices if self._prediction else None
        likely_s = most_s if predicted is None else (predicted - len(in_order(self.trials))) * self._live.slice_s
        how = "about" if 0 < likely_s < most_s else "at most"
        left_s = likely_s if how == "about" else most_s
        return f"{self._counted()} done · {how} {duration(left_s)} left"

    def _attempts(self, slot: Slot) -> list[Trial]:
        place = (slot.block, slot.position)
        return [trial for trial in self.trials if (trial.slot.block, trial.slot.position) == place]

    def _is_wanted(self, slot: Slot) -> bool:
        attempts = self._attempts(slot)
        if slot.configuration != self.study.baseline and slot.configuration in breaches_by_name(self.trials):
            return False
        return not any(attempt.status == "ok" for attempt in attempts) and len(attempts) < MOST_ATTEMPTS

    def _slice(self, slot: Slot, *, stay: int = 0) -> None:
        self._await_quiet(slot.block)
        attempt = len(self._attempts(slot))
        live = self._live
        self.hooks.state(configuration=slot.configuration, slices=len(self.trials), block=slot.block, doing="measuring")
        self.hooks.tell(
            Ongoing(f"Measuring {self._names[slot.configuration]} ({block_name(slot.block)}) · {self._left()}")
        )
        plan = plan_for(self.study, slot, attempt)
        assert plan.workload is not None
        command = watch_command(self.watch, self.heart, live.slice_s)
        plan = plan.model_copy(
            update={"workload": command, "timeout_ns": round((live.slice_s + _SETTLE_SECONDS) * 1e9)}
        )
        is_baseline = slot.configuration == self.study.baseline
        started = now()
        _LOG.info("slice begun", extra={"configuration": slot.configuration, "block": slot.block, "attempt": attempt})
        with self.monitor(slot.configuration, live.slice_s, self.executor.kill_unresponsive) as monitor:
            lost: RunError | None = None
            try:
                observation = self.executor.run(plan)
            except RunError as failure:  # still stored, so a configuration that broke a guard is not tried again
                lost, observation = failure, Observation(problem=failure.message)
        watched = monitor.watched
        if lost is not None and watched.ended is not None:
            lost = RunError(f"{lost.message}: {watched.ended.words}", hint=lost.hint)
        trial = slice_trial(
            slot, attempt, plan, observation, watched, self.sources, live, started=started, earlier=self._earlier
        )
        if stay:
            trial = trial.model_copy(update={"metrics": {**trial.metrics, STAYED: float(stay)}})
        self._earlier.update({event.tunable: event.before for event in trial.written})
        if lost is None and watched.ended is not None and watched.ended.kind == "stop":
            raise StopAskedError
        self.trials.append(trial)
        self.hooks.keep(trial)
        self._say(trial)
        if lost is not None:
            raise lost
        self._note_silences(trial)
        is_broken = bool(trial.metrics.get(BREACH)) and is_baseline
        self._broken_in_a_row = self._broken_in_a_row + 1 if is_broken else 0
        is_failed = trial.status != "ok" and (watched.ended is None or watched.ended.kind not in ("guard", "load"))
        self._failed_in_a_row = self._failed_in_a_row + 1 if is_failed else 0

    def monitor(self, configuration: str, length_s: float, kill_unresponsive: Callable[[float], str]) -> LiveMonitor:
        """Return the monitor of a stretch under ``configuration``, to be entered; ``kill_unresponsive`` belongs to the
        holder of its values.
        """
        folds = {name: source.fold for name, source in self.sources.items()}
        is_baseline = configuration == self.study.baseline
        return LiveMonitor(
            self.sources,
            GuardWatch(self._live, folds, self._baseline_values(), self._silences, is_baseline),
            self.heart,
            slice_s=length_s,
            washout_s=min(self.washout_s, length_s / 2),
            now_s=lambda: self.now_s,
            wants_end=self.hooks.wants_end,
            kill_unresponsive=kill_unresponsive,
        )

    def _note_silences(self, trial: Trial) -> None:
        # Only clean slices of the baseline show how long a guarded metric usually has no value.
        if trial.slot.configuration == self.study.baseline and trial.status == "ok":
            for metric in {guard.metric for guard in self._live.guards}:
                longest_s = longest_silence(kept_readings(trial, metric))
                self._silences[metric] = max(self._silences.get(metric, 0.0), longest_s)

    def _baseline_values(self) -> dict[str, list[float]]:
        values: dict[str, list[float]] = {}
        for trial in self.trials:
            if trial.slot.configuration == self.study.baseline and trial.status == "ok":
                for name, value in trial.metrics.items():
                    values.setdefault(name, []).append(value)
        return values

    def _await_quiet(self, block: int) -> None:
        # No value is changed while the machine has too much to do.
        message = ""
        while True:
            if self.hooks.wants_end():
                raise StopAskedError
            load = beyond_load(self._live)
            if load is None or self.now_s > self._live.for_s:
                return
            if not message:
                message = load.words
                self.hooks.tell(f"waiting: {message}")
                self.hooks.state(slices=len(self.trials), block=block, doing=f"waiting: {message}")
            time.sleep(_PAUSE_SECONDS)

    def _estimate_wash_out(self) -> None:
        # Later estimates rest on more changes; only a longer wash-out is taken.
        wash_out = wash_out_of(self.study, self.trials, self._live)
        if "washout_s" not in self.about or wash_out.seconds > self.washout_s:
            self.about |= {
                "washout_s": wash_out.seconds,
                "notes": [*self.about.get("notes", ()), f"Wash-out: {wash_out.says}."],
            }
            self.hooks.note(self.about)
            self.hooks.tell(f"wash-out: {duration(wash_out.seconds)} ({wash_out.says})")

    def _tell_judged(self, number: int, *, is_last: bool) -> None:
        # After the last block the results have the answer.
        judged = judge_live(self.study, self.trials)
        more = [metric.more_slices for metric in judged if metric.more_slices]
        left = f" About {max(more):,} more slices." if more else ""
        answer = live_answer(self.study, judged, self.trials)
        if not is_last:
            self.hooks.tell(f"after {self._counted()}: {visible_line(answer)}{left}")
        self.hooks.state(slices=len(self.trials), block=number, said=answer)

    def _predict(self) -> None:
        # Reported when it becomes known, not at every change.
        predicted = predictions(self.study, self.known, self.trials)
        before, now = self._prediction, longest(predicted)
        self._prediction = now
        if before is None or (before.plan is None) != (now.plan is None):
            for prediction in predicted:
                self.hooks.tell(prediction.words)
        if now.slices is not None and "predicted" not in self.about:
            self.about["predicted"] = {"slices": now.slices, "after": len(in_order(self.trials))}
            self.hooks.note(self.about)
        self.hooks.predict(now)

    def _say(self, trial: Trial) -> None:
        units = {metric.metric.name: metric.metric.unit for metric in self._live.all_metrics}
        values = [
            f"{name} {amount(trial.metrics[name], unit)}" for name, unit in units.items() if name in trial.metrics
        ]
        flag = "" if trial.status == "ok" else f" ({trial.status}: {visible_line(trial.reason)})"
        predicted = self._prediction.slices if self._prediction else None
        of = "" if predicted is None else f" ({predicted:,} predicted)"
        where = f"slice {len(self.trials)}{of}, {block_name(trial.slot.block)}"
        configuration = self._names[trial.slot.configuration]
        self.hooks.tell(f"{where}: {configuration}: {', '.join(values) or 'no value'}{flag}")


def rebooted(about: Mapping[str, Any]) -> bool:
    """Return whether the machine was rebooted since the run was last active."""
    return bool(about.get("boot", boot_id()) != boot_id())
