"""Slices: the stretches of time into which an experiment on a live system is cut."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Slice:
    """One stretch under one configuration, with one metric's ``value`` over it; ``None`` where there is none.

    ``number`` counts all slices from 0 in the order of time, ``block`` is what was drawn at random as one (see
    ``design.switchback``). ``begin_s`` and ``end_s`` bound the part that counts, after the wash-out, in seconds since
    the experiment began. ``control`` is a concurrent figure of the load, such as requests/s, that the configurations do
    not change. A slice with ``flags``, such as ``guard`` or ``changed by others``, does not count.
    """

    number: int
    block: int
    configuration: str
    begin_s: float
    end_s: float
    value: float | None = None
    control: float | None = None
    flags: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether there is a value that counts."""
        return not self.flags and self.value is not None and math.isfinite(self.value)
