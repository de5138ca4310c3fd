"""The budget of advice, shared by its stages: time, or a number of trials."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ajuste.model.error import RequestError
from ajuste.model.wording import count_of, listed
from ajuste.report.format import duration

LOOK: Final = 0.15
SCREEN: Final = 0.35
LIMIT: Final = 0.15
SEARCH: Final = 0.1
ABLATION: Final = 0.1
PROOF: Final = 0.15
"""Shares of the stages; together 1."""

FEWEST_TRIALS: Final = 120
"""Trials with which every stage can do its work, on few settings."""

MIN_BLOCKS: Final = 3
"""Blocks of the screen of a quiet workload: it only ranks, as the proof decides."""

_SEVERAL_LEVELS: Final = 8
_MOST_MINUTES: Final = 100_000.0
_FASTEST_S: Final = 0.02


@dataclass(frozen=True)
class Budget:
    """The seconds and the trials that all stages together may take; None is no limit.

    With a limit of trials alone, advice in a guest under the virtual clock is the same on every machine. Raises
    RequestError for too few trials.
    """

    seconds: float | None = None
    trials: int | None = None

    def __post_init__(self) -> None:
        if self.trials is not None and self.trials < FEWEST_TRIALS:
            raise RequestError(
                f"--max-trials {self.trials}: too few to find and to prove anything",
                hint=f"give at least {FEWEST_TRIALS}",
            )

    def __str__(self) -> str:
        limits = [] if self.seconds is None else [duration(self.seconds)]
        return listed(limits if self.trials is None else [*limits, count_of(self.trials, "trial")])

    def table(self, share: float, configurations: int, *, min_blocks: int, max_blocks: int = 30) -> dict[str, float]:
        """Return the budget table of a stage's study of so many configurations: the same whenever it is resumed."""
        minutes = _MOST_MINUTES if self.seconds is None else share * self.seconds / 60
        if self.trials is not None:
            max_blocks = max(min_blocks, min(max_blocks, int(share * self.trials / configurations)))
        return {"min_blocks": min_blocks, "max_blocks": max_blocks, "max_minutes": minutes}

    def configurations(self, share: float, blocks: int) -> float:
        """Return how many configurations there are trials for in so many blocks."""
        return math.inf if self.trials is None else share * self.trials / blocks

    def blocks(self, wanted: int, trial_s: float, parallel: int) -> int:
        """Return at most ``wanted`` blocks of the screen, fewer where several levels would not fit in otherwise."""
        enough = (
            blocks
            for blocks in range(wanted, MIN_BLOCKS, -1)
            if self._screened(trial_s, blocks, parallel) > _SEVERAL_LEVELS
        )
        return next(enough, MIN_BLOCKS)

    def levels(self, trial_s: float, blocks: int, parallel: int) -> float:
        """Return how many levels the screen has time and trials for in so many blocks, beside the machine as it is:
        all where it is infinite. Raises RequestError if it is none.
        """
        most = self._screened(trial_s, blocks, parallel)
        if most < 2 and self.seconds is not None:
            minutes = math.ceil(2 * trial_s * blocks / (SCREEN * parallel) / 60)
            raise RequestError(
                f"a trial takes {duration(trial_s)}: too long to try anything in {duration(self.seconds)}",
                hint=f"give at least {count_of(minutes, 'minute')}: --max-time {minutes}m",
            )
        return most - 1

    def _screened(self, trial_s: float, blocks: int, parallel: int) -> float:
        # Configurations that there is time and trials for.
        most = self.configurations(SCREEN, blocks)
        if self.seconds is None:
            return most
        return min(most, SCREEN * self.seconds * parallel / (max(trial_s, _FASTEST_S) * blocks))
