"""The course of a run: what was tried so far, and which trials each block holds, by study and trials alone."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from types import MappingProxyType

from ajuste.analysis.pairs import clean_trials, given_up, sampled
from ajuste.analysis.results import findings
from ajuste.design.blocks import block, members
from ajuste.design.refinement import Grid, KnownSurface, grid_of, known
from ajuste.design.stopping import review_from, reviews
from ajuste.model.trial import Slot, Trial
from ajuste.model.verdict import Finding
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.settings import ablation_names


class Schedule:
    """The trials of a run as they come in, by block and position.

    A run that was interrupted has the very same blocks when it goes on: which configurations a block holds depends on
    the trials before the last review only (see ``design.stopping``), never on when a process ended.
    """

    def __init__(
        self, study: ResolvedStudy, trials: Iterable[Trial] = (), machines: Mapping[int, str] = MappingProxyType({})
    ) -> None:
        self._study = study
        self._machines = dict(machines)
        self._kept: dict[int, dict[int, list[Trial]]] = {}
        self._found: dict[int, tuple[Finding, ...]] = {}
        self._known: dict[int, KnownSurface] = {}
        self._spans = Spans()
        for one in trials:
            self.add(one)

    def add(self, trial: Trial, machine: str = "") -> None:
        """Keep a trial, attempt after attempt, of one of several machines. What its programs printed is kept of the
        first block only.
        """
        if machine:
            self._machines[trial.slot.block] = machine
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

    def machine_of(self, number: int) -> str:
        """Which of several machines has a block; empty if none has it yet."""
        return self._machines.get(number, "")

    def attempts(self, slot: Slot) -> Sequence[Trial]:
        """What was tried in that slot."""
        return self._kept.get(slot.block, {}).get(slot.position, [])

    def seconds_of(self, number: int) -> float | None:
        """How long the trials of a block took, if it was measured."""
        seconds = [own[-1].host_seconds for own in self._kept.get(number, {}).values()]
        return sum(seconds) if seconds else None

    @property
    def minutes(self) -> float:
        """For how many minutes of the host's time at least one trial was running."""
        return self._spans.minutes

    @property
    def last_complete(self) -> int:
        """The last block of which, and of all before it, every slot was tried; 0 if there is none."""
        number = 0
        while self._is_complete(number):
            number += 1
        return max(0, number - 1)

    def _is_complete(self, number: int) -> bool:
        kept = len(self._kept.get(number, ()))
        return kept > 0 and (kept == len(self._roster(number)[0]) or kept == len(self.block(number)))

    def block(self, number: int) -> tuple[Slot, ...]:
        """The slots of a block. One that was begun under another analysis or budget, and so planned otherwise, is left
        as it is.
        """
        design = self._study.study.design
        names, since = self._roster(number)
        planned = block(number, names, design.seed, warm_up=design.warm_up, order=design.order, since=since)
        kept = [own[0].slot for _, own in sorted(self._kept.get(number, {}).items())]
        return planned if set(kept) <= set(planned) else tuple(kept)

    def findings(self, number: int) -> tuple[Finding, ...]:
        """What can be said after block ``number``, all of whose trials are kept."""
        if number not in self._found:
            self._found[number] = findings(self._study, self.trials(number), self._machines)
        return self._found[number]

    @cached_property
    def _grid(self) -> Grid:
        return grid_of(self._study.factors, [one.configuration for one in self._study.configurations])

    def known(self, number: int) -> KnownSurface:
        """How well the surfaces of a study that is refined are known after block ``number``."""
        if number not in self._known:
            clean = clean_trials(self.trials(number))
            effect = self._study.study.analysis.smallest_effect
            values = sampled(self._grid, clean, self._study.deciding, effect)
            self._known[number] = known(self._grid, values, given_up(self._grid, clean))
        return self._known[number]

    def last_alike(self, number: int) -> int | None:
        """The last block that certainly holds what block ``number`` does; ``None`` where all blocks do."""
        warm_up = self._study.study.design.warm_up
        if self._study.study.allocation == "refine":
            return max(number, warm_up + self._study.study.budget.min_blocks - 1)
        if not self._narrows:
            return None
        return warm_up + review_from(max(1, number - warm_up + 1), self._study.study.budget.min_blocks) - 1

    @property
    def _narrows(self) -> bool:
        """Whether later blocks may hold fewer configurations."""
        return self._study.study.allocation == "undecided" and len(self._study.names) > 2

    def _roster(self, number: int) -> tuple[tuple[str, ...], int]:
        """The configurations of a block, and the first block from which on it was just these."""
        warm_up, names = self._study.study.design.warm_up, self._study.names
        if self._study.study.design.combine == "ablation":
            return ablation_names(self._study, number), number
        since = warm_up if number >= warm_up else 0
        if self._study.study.allocation == "refine":
            if number < warm_up + self._study.study.budget.min_blocks:
                return self._grid.coarse, since
            return self.known(number - 1).following, number
        if not self._narrows or number < warm_up:
            return names, since
        for review in reviews(self._study.study.budget.min_blocks):
            if review > number - warm_up:
                break
            following = members(self._study.names, self._study.baseline, self.findings(warm_up + review - 1))
            if following != names:
                names, since = following, warm_up + review
        return names, since


# Spans of time: for how long at least one of several things went on.


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
