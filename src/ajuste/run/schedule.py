"""The schedules of a run, one for each kind of study: the trials of each block, and the end of the run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count
from types import MappingProxyType
from typing import Protocol

from ajuste.analysis.results import findings, mean_precisions
from ajuste.design.blocks import block, members
from ajuste.design.stopping import (
    Mean,
    Stop,
    StoppingLimits,
    hopeless,
    is_look,
    review_from,
    reviews,
    stop,
    stop_at_best,
    stop_irrelevant,
)
from ajuste.model.relevance import NoChance
from ajuste.model.trial import Slot, Trial
from ajuste.model.verdict import Finding
from ajuste.outputs.trial_status import is_broken, why_lost
from ajuste.study.resolve import Resolver
from ajuste.study.resolved import ResolvedStudy


class TrialHistory:
    """The trials of a run so far, by block and position; ``machines`` by block, if there are several."""

    def __init__(self, trials: Iterable[Trial] = (), machines: Mapping[int, str] = MappingProxyType({})) -> None:
        self.machines = dict(machines)
        self._trials: dict[int, dict[int, list[Trial]]] = {}
        self._spans = Spans()
        for trial in trials:
            self.add(trial)

    def add(self, trial: Trial, machine: str = "") -> None:
        """Add the next attempt of a trial. Output of programs is kept in the first block only: a message may quote it,
        and more would fill the memory.
        """
        if machine:
            self.machines[trial.slot.block] = machine
        stored = trial if trial.slot.block == 0 else trial.model_copy(update={"events": "", "console": ""})
        self._trials.setdefault(trial.slot.block, {}).setdefault(trial.slot.position, []).append(stored)
        self._spans.add(trial)

    def trials(self, number: int) -> list[Trial]:
        """Return all trials up to block ``number``. An interrupted run may have some of later blocks."""
        return [
            trial
            for block, slots in sorted(self._trials.items())
            if block <= number
            for _, attempts in sorted(slots.items())
            for trial in attempts
        ]

    def slots(self, number: int) -> tuple[Slot, ...]:
        """Return the slots of a block with trials, by position."""
        return tuple(attempts[0].slot for _, attempts in sorted(self._trials.get(number, {}).items()))

    def attempts(self, slot: Slot) -> Sequence[Trial]:
        """Return the trials of a slot, oldest first."""
        return self._trials.get(slot.block, {}).get(slot.position, [])

    def seconds_of(self, number: int) -> float:
        """Return the host seconds of a block's last attempts; 0 without trials."""
        return sum(attempts[-1].host_seconds for attempts in self._trials.get(number, {}).values())

    @property
    def minutes(self) -> float:
        """Host minutes in which at least one trial was running."""
        return self._spans.minutes


class Spans:
    """The host's time in which trials were running; overlaps count once."""

    def __init__(self) -> None:
        self._begins: list[float] = []
        self._ends: list[float] = []
        self._seconds = 0.0

    @property
    def minutes(self) -> float:
        return self._seconds / 60

    def add(self, trial: Trial) -> None:
        """Count the time of ``trial``, in any order and with any overlap."""
        begin = datetime.fromisoformat(trial.started).timestamp()
        end = begin + trial.host_seconds
        first = bisect_left(self._ends, begin)
        last = bisect_right(self._begins, end)
        joined = sum(self._ends[n] - self._begins[n] for n in range(first, last))
        if first < last:
            begin, end = min(begin, self._begins[first]), max(end, self._ends[last - 1])
        self._begins[first:last] = [begin]
        self._ends[first:last] = [end]
        self._seconds += end - begin - joined


class BlockWatcher(Protocol):
    """A display of blocks; ``findings`` are None for a block without a look."""

    def block_done(self, block: int, findings: Sequence[Finding] | None) -> None: ...


class Schedule(ABC):
    """Decides what is measured next, by the study and the trials in ``history`` alone.

    A resumed run has the same blocks: the configurations of a block depend only on the trials before the last review
    (see ``design.stopping``), never on when a process ended.
    """

    first: int = 0
    """The block with which the runner begins or resumes."""
    limits: StoppingLimits
    last_findings: tuple[Finding, ...] = ()
    """The findings of the last look."""
    no_chance: tuple[NoChance, ...] = ()
    """The reasons, if no factor can matter."""
    follows_from_trials = True
    """True if blocks depend on the trials before them."""
    correction = ""
    """The error rates of its findings in words, where these are no verdicts."""

    def __init__(self, study: ResolvedStudy, history: TrialHistory, resolver: Resolver | None = None) -> None:
        """A ``resolver`` is for those that make configurations as they go."""
        self.study = study
        self.history = history

    @abstractmethod
    def roster(self, number: int) -> tuple[tuple[str, ...], int]:
        """Return the configurations of a block, and the first block since which they are the same."""

    @abstractmethod
    def last_alike(self, number: int) -> int | None:
        """Return the last block sure to have the configurations of block ``number``; None if all have."""

    def together(self, number: int) -> int:
        """Return the last block that must be measured together with block ``number``."""
        return number

    def parts(self, slots: Sequence[Slot]) -> Sequence[Sequence[Slot]]:
        """Split the ``slots`` of several blocks into parts, each of which ends before the next begins."""
        return (slots,)

    @abstractmethod
    def look(self, number: int) -> Stop | None:
        """Return the reason to stop after the complete block ``number``, or None."""

    @abstractmethod
    def tell(self, number: int, watcher: BlockWatcher) -> None:
        """Show the findings after block ``number``."""

    def stop_before(self, number: int) -> Stop | None:
        """Return the reason not to begin block ``number``, or None."""
        return None

    def hopeless(self) -> Stop | None:
        """Return the reason to give up after the first block, with the workload's last output, or None."""
        lost = hopeless(self.history.trials(0), self.is_lost)
        return None if lost is None else Stop("failed", f"{lost.slot.configuration}: {why_lost(lost)}")

    def is_lost(self, trial: Trial) -> bool:
        """Return whether a trial yields nothing, and a repetition would not either: it broke, or its output lacks
        deciding metrics.
        """
        missing = [metric.name not in trial.metrics for metric in self.study.deciding]
        return is_broken(trial) or all(missing) or (trial.status == "flagged" and any(missing))

    def block(self, number: int) -> tuple[Slot, ...]:
        """Return the slots of a block. A block that was begun under another analysis or budget, and so under another
        plan, stays as it is.
        """
        design = self.study.study.design
        names, since = self.roster(number)
        planned = block(number, names, design.seed, warm_up=design.warm_up, order=design.order, since=since)
        tried = self.history.slots(number)
        return planned if set(tried) <= set(planned) else tried


class FixedSchedule(Schedule):
    """Schedules every configuration in every block, until a look stops the run."""

    follows_from_trials = False

    def __init__(self, study: ResolvedStudy, history: TrialHistory, resolver: Resolver | None = None) -> None:
        super().__init__(study, history, resolver)
        budget = study.study.budget
        self.limits = StoppingLimits(budget.min_blocks, budget.max_blocks, budget.max_minutes, budget.min_seconds)
        self._warm_up = study.study.design.warm_up
        self._findings: dict[int, tuple[Finding, ...]] = {}
        # The last complete block is looked at again: the process may have ended before its look.
        self.first = max(0, next(number for number in count() if not self._is_complete(number)) - 1)
        self._looked = max(0, self.first - self._warm_up)  # An earlier process looked at earlier blocks.

    def roster(self, number: int) -> tuple[tuple[str, ...], int]:
        return self.study.names, self._warm_up if number >= self._warm_up else 0

    def last_alike(self, number: int) -> int | None:
        return None

    def look(self, number: int) -> Stop | None:
        # The time is checked after every block, verdicts only at looks.
        measured, minutes = number + 1 - self._warm_up, self.history.minutes
        if measured <= 0 or not (is_look(measured, self._looked, self.limits) or minutes >= self.limits.max_minutes):
            return None
        self._looked = measured
        self.last_findings = self.findings(number)
        if (end := self._judge(number, measured, minutes)) is not None:
            return end
        return stop_irrelevant(self.last_findings, measured, self.limits.min_blocks) if self.no_chance else None

    def tell(self, number: int, watcher: BlockWatcher) -> None:
        if number >= self._warm_up:
            watcher.block_done(number, self.expected)

    @property
    def expected(self) -> tuple[Finding, ...]:
        """The last findings, without requests for more blocks if no factor can matter."""
        if not self.no_chance:
            return self.last_findings
        return tuple(finding.model_copy(update={"more_blocks": 0}) for finding in self.last_findings)

    def findings(self, number: int) -> tuple[Finding, ...]:
        """Return the findings after the complete block ``number``."""
        if number not in self._findings:
            self._findings[number] = self.compute_findings(self.history.trials(number))
        return self._findings[number]

    def compute_findings(self, trials: Sequence[Trial]) -> tuple[Finding, ...]:
        """Return what decides when to stop, by these trials."""
        return findings(self.study, trials, self.history.machines)

    def _judge(self, number: int, measured: int, minutes: float) -> Stop | None:
        known_means = [
            Mean(precision.quantity.name, precision.known, precision.interval.n if precision.interval else 0)
            for precision in mean_precisions(self.study, self.history.trials(number))
        ]
        end = stop(self.last_findings, measured, minutes, self.limits, known_means)
        unclean = (trial for trial in self.history.trials(number) if trial.status != "ok")
        first = next(unclean, None)  # the history has the output of the first block only
        if end is None or end.why != "failed" or first is None:
            return end
        return replace(end, words=f"{end.words}; {first.slot.configuration}: {why_lost(first)}")

    def _is_complete(self, number: int) -> bool:
        tried = len(self.history.slots(number))
        return tried > 0 and (tried == len(self.roster(number)[0]) or tried == len(self.block(number)))


class NarrowingSchedule(FixedSchedule):
    """Schedules the baseline and the undecided configurations in later blocks."""

    follows_from_trials = True

    def roster(self, number: int) -> tuple[tuple[str, ...], int]:
        names, since = super().roster(number)
        if not self._narrows or number < self._warm_up:
            return names, since
        for review in reviews(self.limits.min_blocks):
            if review > number - self._warm_up:
                break
            following = self._following(self._warm_up + review - 1)
            if following != names:
                names, since = following, self._warm_up + review
        return names, since

    def last_alike(self, number: int) -> int | None:
        if not self._narrows:
            return None
        return self._warm_up + review_from(max(1, number - self._warm_up + 1), self.limits.min_blocks) - 1

    def _following(self, number: int) -> tuple[str, ...]:
        return members(self.study.names, self.study.baseline, self.findings(number))

    @property
    def _narrows(self) -> bool:
        return len(self.study.names) > 2


class BestSchedule(NarrowingSchedule):
    """Schedules the baseline and the contenders for the best in later blocks, until few enough are left."""

    def __init__(self, study: ResolvedStudy, history: TrialHistory) -> None:
        self._contenders: dict[int, tuple[str, ...]] = {}
        super().__init__(study, history)

    def _following(self, number: int) -> tuple[str, ...]:
        going_on = {self.study.baseline, *self._contenders_after(number)}
        return tuple(name for name in self.study.names if name in going_on)

    def _judge(self, number: int, measured: int, minutes: float) -> Stop | None:
        return stop_at_best(len(self._contenders_after(number)), len(self.study.names), measured, minutes, self.limits)

    def _contenders_after(self, number: int) -> tuple[str, ...]:
        if number not in self._contenders:
            from ajuste.analysis.block_values import contenders

            self._contenders[number] = contenders(self.study, self.history.trials(number))
        return self._contenders[number]
