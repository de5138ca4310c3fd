"""The schedules of a run, one for each kind of study: which trials each block holds, and when the run ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count, groupby
from types import MappingProxyType
from typing import Final, Protocol

from ajuste.analysis.pairs import clean_trials, given_up, sampled
from ajuste.analysis.results import findings, mean_precisions
from ajuste.design.blocks import block, members, raw_bits
from ajuste.design.refinement import KnownSurface, build_grid, known
from ajuste.design.search.goal import Standing
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
    stop_refining,
)
from ajuste.model.boot import BootState
from ajuste.model.relevance import NoChance
from ajuste.model.trial import Slot, Trial
from ajuste.model.verdict import Finding
from ajuste.outputs.trial import is_broken, why_lost
from ajuste.study.answerable import block_count_of_boot, boot_round
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.settings import ablation_names

# The history of a run: the trials that were kept so far, by block and position.


class TrialHistory:
    """The trials of a run as they come in; ``machines`` are those of several that blocks belong to."""

    def __init__(self, trials: Iterable[Trial] = (), machines: Mapping[int, str] = MappingProxyType({})) -> None:
        self.machines = dict(machines)
        self._kept: dict[int, dict[int, list[Trial]]] = {}
        self._spans = Spans()
        for one in trials:
            self.add(one)

    def add(self, trial: Trial, machine: str = "") -> None:
        """Keep a trial, attempt after attempt, of one of several machines. What its programs printed is kept of the
        first block only.
        """
        if machine:
            self.machines[trial.slot.block] = machine
        kept = trial if trial.slot.block == 0 else trial.model_copy(update={"events": "", "console": ""})
        self._kept.setdefault(trial.slot.block, {}).setdefault(trial.slot.position, []).append(kept)
        self._spans.add(trial)

    def trials(self, number: int) -> list[Trial]:
        """All trials up to block ``number``: a run that was interrupted may have kept some of the next one."""
        return [
            one
            for block, slots in sorted(self._kept.items())
            if block <= number
            for _, own in sorted(slots.items())
            for one in own
        ]

    def slots(self, number: int) -> tuple[Slot, ...]:
        """What of a block was tried."""
        return tuple(own[0].slot for _, own in sorted(self._kept.get(number, {}).items()))

    def attempts(self, slot: Slot) -> Sequence[Trial]:
        """What was tried in that slot."""
        return self._kept.get(slot.block, {}).get(slot.position, [])

    def seconds_of(self, number: int) -> float:
        """How long the trials of a block took; 0 if none was tried."""
        return sum(own[-1].host_seconds for own in self._kept.get(number, {}).values())

    @property
    def minutes(self) -> float:
        """For how many minutes of the host's time at least one trial was running."""
        return self._spans.minutes


class Spans:
    """The host's time in which trials were running. What overlaps counts once."""

    def __init__(self) -> None:
        self._begins: list[float] = []
        self._ends: list[float] = []
        self._seconds = 0.0

    @property
    def minutes(self) -> float:
        return self._seconds / 60

    def add(self, trial: Trial) -> None:
        """Count the time of ``trial``, which may have run before, beside or after all others."""
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
    """Is told what is known after each block; ``None`` where nothing new is."""

    def block_done(self, block: int, findings: Sequence[Finding] | None) -> None: ...

    def search_stands(self, standing: Standing) -> None: ...


class Schedule(ABC):
    """What is measured next, by the study and the trials in ``history`` alone.

    A run that was interrupted has the very same blocks when it goes on: which configurations a block holds depends on
    the trials before the last review only (see ``design.stopping``), never on when a process ended.
    """

    first: int = 0
    """The block with which the runner begins, or goes on."""
    limits: StoppingLimits
    found: tuple[Finding, ...] = ()
    """What is known since the last look."""
    no_chance: tuple[NoChance, ...] = ()
    """Why nothing that varies can matter, if so."""
    follows_from_trials = True
    """Whether blocks depend on the trials before them."""

    def __init__(self, study: ResolvedStudy, history: TrialHistory) -> None:
        self.study = study
        self.history = history

    @abstractmethod
    def roster(self, number: int) -> tuple[tuple[str, ...], int]:
        """The configurations of a block, and the first block from which on it was just these."""

    @abstractmethod
    def last_alike(self, number: int) -> int | None:
        """The last block that certainly holds what block ``number`` does; ``None`` where all blocks do."""

    def together(self, number: int) -> int:
        """The last block that must be measured together with block ``number``."""
        return number

    def parts(self, slots: Sequence[Slot]) -> Sequence[Sequence[Slot]]:
        """``slots`` of several blocks, by what is measured before anything else begins."""
        return (slots,)

    @abstractmethod
    def look(self, number: int) -> Stop | None:
        """Whether to stop after block ``number``, all of whose trials are kept."""

    @abstractmethod
    def tell(self, number: int, watcher: BlockWatcher) -> None:
        """Say what is known after block ``number``."""

    def stop_before(self, number: int) -> Stop | None:
        """Whether there is nothing that block ``number`` could be for."""
        return None

    def hopeless(self) -> Stop | None:
        """Whether there is no point in going on after the first block, with what the workload said last."""
        lost = hopeless(self.history.trials(0), self.is_lost)
        return None if lost is None else Stop("failed", f"{lost.slot.configuration}: {why_lost(lost)}")

    def is_lost(self, trial: Trial) -> bool:
        """Whether a trial says nothing, and another one like it would not either: it broke, or its output has not the
        metrics that decide.
        """
        missing = [one.name not in trial.metrics for one in self.study.deciding]
        return is_broken(trial) or all(missing) or (trial.status == "flagged" and any(missing))

    def block(self, number: int) -> tuple[Slot, ...]:
        """The slots of a block. One that was begun under another analysis or budget, and so planned otherwise, is left
        as it is.
        """
        design = self.study.study.design
        names, since = self.roster(number)
        planned = block(number, names, design.seed, warm_up=design.warm_up, order=design.order, since=since)
        kept = self.history.slots(number)
        return planned if set(kept) <= set(planned) else kept


class FixedSchedule(Schedule):
    """Every block holds every configuration, until a look says that it is enough."""

    follows_from_trials = False

    def __init__(self, study: ResolvedStudy, history: TrialHistory) -> None:
        super().__init__(study, history)
        budget = study.study.budget
        self.limits = StoppingLimits(budget.min_blocks, budget.max_blocks, budget.max_minutes, budget.min_seconds)
        self._warm_up = study.study.design.warm_up
        self._findings: dict[int, tuple[Finding, ...]] = {}
        self.first = max(0, next(number for number in count() if not self._is_complete(number)) - 1)
        self._looked = max(0, self.first - self._warm_up)  # What came before was looked at when it was measured.

    def roster(self, number: int) -> tuple[tuple[str, ...], int]:
        return self.study.names, self._warm_up if number >= self._warm_up else 0

    def last_alike(self, number: int) -> int | None:
        return None

    def look(self, number: int) -> Stop | None:
        """As often as there is a look; always whether the time is spent."""
        measured, minutes = number + 1 - self._warm_up, self.history.minutes
        if measured <= 0 or not (is_look(measured, self._looked, self.limits) or minutes >= self.limits.max_minutes):
            return None
        self._looked = measured
        self.found = self.findings(number)
        if (end := self._judge(number, measured, minutes)) is not None:
            return end
        return stop_irrelevant(self.found, measured, self.limits.min_blocks) if self.no_chance else None

    def tell(self, number: int, watcher: BlockWatcher) -> None:
        if number >= self._warm_up:
            watcher.block_done(number, self.expected)

    @property
    def expected(self) -> tuple[Finding, ...]:
        """What is known; where it is no use to go on, nothing asks for more blocks."""
        if not self.no_chance:
            return self.found
        return tuple(one.model_copy(update={"more_blocks": 0}) for one in self.found)

    def findings(self, number: int) -> tuple[Finding, ...]:
        """What can be said after block ``number``, all of whose trials are kept."""
        if number not in self._findings:
            self._findings[number] = findings(self.study, self.history.trials(number), self.history.machines)
        return self._findings[number]

    def _judge(self, number: int, measured: int, minutes: float) -> Stop | None:
        known_means = [
            Mean(one.metric.name, one.known, one.interval.n if one.interval else 0)
            for one in mean_precisions(self.study, self.history.trials(number))
        ]
        end = stop(self.found, measured, minutes, self.limits, known_means)
        unclean = (trial for trial in self.history.trials(number) if trial.status != "ok")
        first = next(unclean, None)  # What its workload printed is still there.
        if end is None or end.why != "failed" or first is None:
            return end
        return replace(end, words=f"{end.words}; {first.slot.configuration}: {why_lost(first)}")

    def _is_complete(self, number: int) -> bool:
        kept = len(self.history.slots(number))
        return kept > 0 and (kept == len(self.roster(number)[0]) or kept == len(self.block(number)))


class NarrowingSchedule(FixedSchedule):
    """Later blocks hold the baseline and what is still undecided."""

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
        # The configurations that go on after a review of block `number` and those before it.
        return members(self.study.names, self.study.baseline, self.findings(number))

    @property
    def _narrows(self) -> bool:
        return len(self.study.names) > 2


class BestSchedule(NarrowingSchedule):
    """Later blocks hold the baseline and what may be the best, until few enough may."""

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
            from ajuste.analysis.surface.surfaces import contenders

            self._contenders[number] = contenders(self.study, self.history.trials(number))
        return self._contenders[number]


class RefinedSchedule(FixedSchedule):
    """Of a grid, the first blocks hold the coarse points, and later ones those where the surface is known worst."""

    follows_from_trials = True

    def __init__(self, study: ResolvedStudy, history: TrialHistory) -> None:
        self._grid = build_grid(study.factors, [one.configuration for one in study.configurations])
        self._known: dict[int, KnownSurface] = {}
        super().__init__(study, history)

    def roster(self, number: int) -> tuple[tuple[str, ...], int]:
        if number < self._warm_up + self.limits.min_blocks:
            return self._grid.coarse, super().roster(number)[1]
        return self._known_after(number - 1).following, number

    def last_alike(self, number: int) -> int | None:
        return max(number, self._warm_up + self.limits.min_blocks - 1)

    def _judge(self, number: int, measured: int, minutes: float) -> Stop | None:
        return stop_refining(self._known_after(number), measured, minutes, self.limits)

    def _known_after(self, number: int) -> KnownSurface:
        # How well the surfaces are known after block `number`.
        if number not in self._known:
            clean = clean_trials(self.history.trials(number))
            values = sampled(self._grid, clean, self.study.deciding, self.study.study.analysis.smallest_effect)
            self._known[number] = known(self._grid, values, given_up(self._grid, clean))
        return self._known[number]


class AblationSchedule(FixedSchedule):
    """Each block has its own sets of a profile's lines."""

    def roster(self, number: int) -> tuple[tuple[str, ...], int]:
        return ablation_names(self.study, number), number


# Keeps the random order of boots apart from those of blocks and squares.
_BOOT_STATES: Final = 2


class BootSchedule(FixedSchedule):
    """Blocks across reboots: rounds of boots, one for each state in random order, of several blocks each.

    A boot measures its own configurations of all blocks of its round, so that blocks span the reboots of a round. A
    look comes after each round, and compares the means of boots within rounds.
    """

    def __init__(self, study: ResolvedStudy, history: TrialHistory) -> None:
        self._size = block_count_of_boot(study.study)
        self._each = study.study.blocks_per_boot
        super().__init__(study, history)
        self.first -= self.first % self._size
        self._looked = self.first // self._size
        least, most = -(-self.limits.min_blocks // self._each), -(-self.limits.max_blocks // self._each)
        self.limits = replace(self.limits, min_blocks=least, max_blocks=most)

    def roster(self, number: int) -> tuple[tuple[str, ...], int]:
        return self.study.names, 0

    def block(self, number: int) -> tuple[Slot, ...]:
        """The first blocks of each boot are its warm-up."""
        design = self.study.study.design
        in_boot = number % self._size < self._size - self._each
        warm_up = number + 1 if in_boot else 0
        planned = block(number, self.study.names, design.seed, warm_up=warm_up, order=design.order)
        kept = self.history.slots(number)
        return planned if set(kept) <= set(planned) else kept

    def together(self, number: int) -> int:
        """Up to the end of the round."""
        return number - number % self._size + self._size - 1

    def parts(self, slots: Sequence[Slot]) -> Sequence[Sequence[Slot]]:
        """By round and state, as the boots follow each other."""

        def key(slot: Slot) -> tuple[int, int]:
            return boot_round(self.study.study, slot.block), self._rank(slot)

        ordered = sorted(slots, key=lambda slot: (*key(slot), slot.block, slot.position))
        return [list(own) for _, own in groupby(ordered, key=key)]

    def look(self, number: int) -> Stop | None:
        rounds, rest = divmod(number + 1, self._size)
        minutes = self.history.minutes
        spent = minutes >= self.limits.max_minutes
        if rest or not (is_look(rounds, self._looked, self.limits) or spent):
            return None
        self._looked = rounds
        self.found = self.findings(number)
        end = stop(self.found, rounds, minutes, self.limits, ())
        return None if end is None else Stop(end.why, end.words.replace("block", "round"))

    def tell(self, number: int, watcher: BlockWatcher) -> None:
        watcher.block_done(number, self.expected)

    def _rank(self, slot: Slot) -> int:
        # When the state of a slot is booted in its round.
        state = self.study.find(slot.configuration).boot
        return self._order(boot_round(self.study.study, slot.block)).index(state or BootState())

    def _order(self, round_: int) -> list[BootState]:
        states = self.study.boots
        keys = raw_bits((self.study.study.design.seed, round_, _BOOT_STATES), len(states))
        return [states[place] for place in sorted(range(len(states)), key=lambda place: (keys[place], place))]
