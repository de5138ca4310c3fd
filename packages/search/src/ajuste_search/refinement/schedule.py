"""The schedule of a grid that is refined, and its end."""

from __future__ import annotations

from ajuste.analysis.pairs import clean_trials
from ajuste.design.stopping import Stop, StoppingLimits, time_words
from ajuste.model.wording import count_of
from ajuste.run.schedule import FixedSchedule, TrialHistory
from ajuste.study.resolve import Resolver
from ajuste.study.resolved import ResolvedStudy
from ajuste_search.refinement.grid import KnownSurface, build_grid, known
from ajuste_search.refinement.measured import given_up, sampled


class RefinedSchedule(FixedSchedule):
    """Schedules the coarse points of a grid first, then those where the surface is least known."""

    follows_from_trials = True

    def __init__(self, study: ResolvedStudy, history: TrialHistory, resolver: Resolver | None = None) -> None:
        self._grid = build_grid(study.factors, [resolved.configuration for resolved in study.configurations])
        self._known: dict[int, KnownSurface] = {}
        super().__init__(study, history, resolver)

    def roster(self, number: int) -> tuple[tuple[str, ...], int]:
        if number < self._warm_up + self.limits.min_blocks:
            return self._grid.coarse, super().roster(number)[1]
        return self._known_after(number - 1).following, number

    def last_alike(self, number: int) -> int | None:
        return max(number, self._warm_up + self.limits.min_blocks - 1)

    def _judge(self, number: int, measured: int, minutes: float) -> Stop | None:
        return stop_refining(self._known_after(number), measured, minutes, self.limits)

    def _known_after(self, number: int) -> KnownSurface:
        if number not in self._known:
            clean = clean_trials(self.history.trials(number))
            values = sampled(self._grid, clean, self.study.deciding, self.study.study.analysis.smallest_effect)
            self._known[number] = known(self._grid, values, given_up(self._grid, clean))
        return self._known[number]


def stop_refining(surfaces: KnownSurface, blocks: int, minutes: float, limits: StoppingLimits) -> Stop | None:
    """Return whether to stop a study that is refined: when its surfaces are known, or the budget is spent."""
    done = f"{count_of(blocks, 'block')}, with {surfaces.measured} of {surfaces.points} configurations measured"
    if surfaces.worst <= 1 and blocks >= limits.min_blocks and 60 * minutes >= limits.min_seconds:
        return Stop("decided", f"the surface has the requested precision everywhere after {done}")
    still = f"the largest error of the surface is {surfaces.worst:.1f} times the requested one"
    if surfaces.worst <= 1:
        still = "the surface has the requested precision"
    if blocks >= limits.max_blocks:
        return Stop("budget", f"reached the limit of blocks after {done}; {still}")
    if minutes >= limits.max_minutes:
        return Stop("time", f"reached the limit of {time_words(limits.max_minutes)} after {done}; {still}")
    return None
