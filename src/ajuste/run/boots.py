"""The schedule of a study across reboots: rounds of boots, one for each state in random order, of several blocks each.

A boot measures its own configurations of all blocks of its round, so that blocks span the reboots of a round, and the
means of boots are compared within rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from ajuste.design.blocks import block, raw_bits
from ajuste.design.stopping import Stop, is_look, stop
from ajuste.model.boot import BootState
from ajuste.model.trial import Slot
from ajuste.run.schedule import BlockWatcher, FixedSchedule, TrialHistory
from ajuste.study.answerable import block_count_of_boot, boot_round
from ajuste.study.resolved import ResolvedStudy

_STATES = 2
"""Keeps the random order of boots apart from those of blocks and squares."""


class BootSchedule(FixedSchedule):
    """Blocks in rounds of boots; a look comes after each round, and its units are rounds."""

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
        """When the state of a slot is booted in its round."""
        state = self.study.find(slot.configuration).boot
        return self._order(boot_round(self.study.study, slot.block)).index(state or BootState())

    def _order(self, round_: int) -> list[BootState]:
        states = self.study.boots
        keys = raw_bits((self.study.study.design.seed, round_, _STATES), len(states))
        return [states[place] for place in sorted(range(len(states)), key=lambda place: (keys[place], place))]
