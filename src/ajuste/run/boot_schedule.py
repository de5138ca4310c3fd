"""The schedule of a run across reboots: the random order of the states in each round, and the look after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from ajuste.design.blocks import block
from ajuste.design.stopping import Stop, is_look, stop
from ajuste.model.boot import BootState
from ajuste.model.trial import Slot
from ajuste.run.schedule import BlockWatcher, FixedSchedule, TrialHistory
from ajuste.study.answerable import block_count_of_boot, boot_round
from ajuste.study.resolved import ResolvedStudy
from ajuste_stats.orders import raw_bits

# Keeps the random order of boots apart from those of blocks and squares.
_BOOT_STATES: Final = 2


class BootSchedule(FixedSchedule):
    """Schedules blocks across reboots: rounds with one boot of each state, in random order.

    A round has several blocks. Each boot measures the configurations of its state in all of them, so a block spans the
    reboots of its round. A look comes after each round, and compares the means of boots within rounds.
    """

    def __init__(self, study: ResolvedStudy, history: TrialHistory) -> None:
        self._size = block_count_of_boot(study.study)
        self._each = study.study.blocks_per_boot
        super().__init__(study, history)
        self.first -= self.first % self._size
        self._looked = self.first // self._size
        least, most = -(-self.limits.min_blocks // self._each), -(-self.limits.max_blocks // self._each)
        self.limits = replace(self.limits, min_blocks=least, max_blocks=most, unit="round")

    def roster(self, number: int) -> tuple[tuple[str, ...], int]:
        return self.study.names, 0

    def block(self, number: int) -> tuple[Slot, ...]:
        # The first blocks of each boot are its warm-up.
        design = self.study.study.design
        in_boot = number % self._size < self._size - self._each
        warm_up = number + 1 if in_boot else 0
        planned = block(number, self.study.names, design.seed, warm_up=warm_up, order=design.order)
        tried = self.history.slots(number)
        return planned if set(tried) <= set(planned) else tried

    def together(self, number: int) -> int:
        return number - number % self._size + self._size - 1

    def parts(self, slots: Sequence[Slot]) -> Sequence[Sequence[Slot]]:
        def key(slot: Slot) -> tuple[int, int]:
            # Within a round, its boots come in a random order of their states.
            states, round_ = self.study.boots, boot_round(self.study.study, slot.block)
            keys = raw_bits((self.study.study.design.seed, round_, _BOOT_STATES), len(states))
            order = [states[place] for place in sorted(range(len(states)), key=lambda place: (keys[place], place))]
            return round_, order.index(self.study.find(slot.configuration).boot or BootState())

        ordered = sorted(slots, key=lambda slot: (*key(slot), slot.block, slot.position))
        return [list(group) for _, group in groupby(ordered, key=key)]

    def look(self, number: int) -> Stop | None:
        rounds, rest = divmod(number + 1, self._size)
        minutes = self.history.minutes
        spent = minutes >= self.limits.max_minutes
        if rest or not (is_look(rounds, self._looked, self.limits) or spent):
            return None
        self._looked = rounds
        self.last_findings = self.findings(number)
        return stop(self.last_findings, rounds, minutes, self.limits, ())

    def tell(self, number: int, watcher: BlockWatcher) -> None:
        watcher.block_done(number, self.expected)
