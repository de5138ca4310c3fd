"""The schedule of a search: the trials before a block and the seed determine it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product, takewhile
from typing import Protocol, runtime_checkable

from ajuste.analysis.verdict import family, judge
from ajuste.design.stopping import Stop, StoppingLimits, hopeless
from ajuste.model.error import RunError
from ajuste.model.search import Leg, Search
from ajuste.model.trial import Slot
from ajuste.model.verdict import Verdict
from ajuste.model.wording import percent
from ajuste.outputs.trial_status import why_lost
from ajuste.run.schedule import BlockWatcher, Schedule, TrialHistory
from ajuste.study.resolve import Resolver
from ajuste.study.resolved import ResolvedStudy
from ajuste_search.tuning.goal import Goal, resolve_goal
from ajuste_search.tuning.limits import kept_limits
from ajuste_search.tuning.model import Standing
from ajuste_search.tuning.phases import (
    AT_ONCE,
    ROUNDS,
    Ledger,
    Suggestion,
    allotment,
    build_ledger,
    finalists,
    promising,
    survivors,
    tried,
)
from ajuste_search.tuning.sampler import Point, SamplerTask, Tried, build_space
from ajuste_search.tuning.samplers import make_sampler


@runtime_checkable
class SearchWatcher(Protocol):
    """A display that also shows how a search stands."""

    def search_stands(self, standing: Standing) -> None: ...


class SearchSchedule(Schedule):
    """Schedules the baseline and the next suggestions; ``study`` grows by them.

    Raises RequestError for too few trials.
    """

    def __init__(self, study: ResolvedStudy, history: TrialHistory, resolver: Resolver) -> None:
        super().__init__(study, history, resolver)
        self.search: Search = study.search or Search(objectives=())
        self.goal: Goal = resolve_goal(self.search, study.deciding)
        budget = study.study.budget
        self.limits = StoppingLimits(budget.min_blocks, self.search.trials, budget.max_minutes)
        self._resolver = resolver
        self._space = build_space(study.factors)
        self._suggested: dict[str, Suggestion] = {}
        self._legs: list[Leg] = []
        self._ask(self._space.baseline)
        objectives = len(self.goal.objectives)
        self._allotment = allotment(self.search.trials, len(self._space.axes), objectives, budget.min_blocks)
        task = SamplerTask(
            self._space, study.study.design.seed, self._allotment.explore, objectives, len(self.goal.limits)
        )
        self._sampler = make_sampler(self.search.sampler, task)

    def stop_before(self, number: int) -> Stop | None:
        leg = self.leg(number)
        return leg if isinstance(leg, Stop) else None

    def hopeless(self) -> Stop | None:
        # Without the baseline nothing can be compared.
        lost = hopeless(
            self.history.trials(0),
            lambda trial: trial.slot.configuration == self.study.baseline and self.is_lost(trial),
        )
        return None if lost is None else Stop("failed", f"{lost.slot.configuration}: {why_lost(lost)}")

    def look(self, number: int) -> Stop | None:
        minutes = self.limits.max_minutes
        if self.history.minutes < minutes:
            return None
        return Stop("time", f"the budget of {minutes:g} minutes is used up after {number + 1} blocks")

    def tell(self, number: int, watcher: BlockWatcher) -> None:
        watcher.block_done(number, ())
        if isinstance(watcher, SearchWatcher):
            watcher.search_stands(self.standing(number))

    def leg(self, number: int) -> Leg | Stop:
        """Return the leg of block ``number``, or the reason to stop. Needs all trials before it."""
        while len(self._legs) <= number:
            following = self._following(len(self._legs))
            if isinstance(following, Stop):
                return following
            self._legs.append(following)
            self.study = self.study.model_copy(update={"legs": tuple(self._legs)})
        return self._legs[number]

    def block(self, number: int) -> tuple[Slot, ...]:
        planned = super().block(number)
        if number < len(self._legs) and {slot.configuration for slot in planned} != {
            self.study.baseline,
            *self._legs[number].names,
        }:
            raise RunError(
                f"block {number} of the interrupted run does not match this sampler's suggestions; cannot resume",
                hint="start over with --fresh",
            )
        return planned

    def last_alike(self, number: int) -> int:
        return number  # The next leg depends on every block.

    def standing(self, number: int) -> Standing:
        """Return the standing after block ``number``."""
        ledger = self._ledger(number + 1)
        tried_points = tried(ledger, self._suggested, self._space, self.goal)
        others = [name for name in tried_points if name != self.study.baseline]
        allowed = [name for name in others if tried_points[name].allowed]
        best = min(allowed, key=lambda name: tried_points[name].values[0], default=None)
        metric = self.goal.objectives[0]
        return Standing(
            phase=self._legs[number].phase,
            trials=sum(1 + len(leg.names) for leg in self._legs[: number + 1]),
            allowed=self.search.trials,
            tried=len(others),
            best=best,
            change=None if best is None else tried_points[best].values[0],
            as_ratio=ledger.as_ratio(metric),
            metric=metric,
        )

    def roster(self, number: int) -> tuple[tuple[str, ...], int]:
        leg = self.leg(number)
        if isinstance(leg, Stop):
            return (self.study.baseline,), number
        alike = len(list(takewhile(lambda other: other == leg, reversed(self._legs[: number + 1]))))
        return (self.study.baseline, *leg.names), number + 1 - alike

    def _following(self, number: int) -> Leg | Stop:
        if number < self.study.study.design.warm_up:
            return Leg(phase="warm-up")
        ledger = self._ledger(number)
        tried_points = tried(ledger, self._suggested, self._space, self.goal)
        before = self._legs[-1].phase if self._legs else "warm-up"
        if before in ("warm-up", "explore") and (leg := self._explore(ledger, tried_points)) is not None:
            return leg
        if before == "check":
            return self._check(number)
        return self._replicate(ledger, tried_points)

    def _explore(self, ledger: Ledger, tried_points: Mapping[str, Tried]) -> Leg | None:
        exploring = any(leg.phase == "explore" for leg in self._legs)
        count = AT_ONCE if exploring else self._allotment.first - 1
        if exploring and self._spent + 1 + count > self._allotment.explore:
            return None
        start = list(tried_points.values())
        if not start:  # The baseline without trials.
            point = self._space.baseline
            nothing = (0.0,) * len(self.goal.objectives)
            row = self._space.row(self._space.point_levels(point))
            start = [Tried(point, row, nothing, nothing, (0.0,) * len(self.goal.limits))]
        points = self._sampler.suggest(start, count, self._taken(ledger))
        return Leg(phase="explore", names=tuple(self._ask(point) for point in points)) if points else None

    def _replicate(self, ledger: Ledger, tried_points: Mapping[str, Tried]) -> Leg | Stop:
        distinct = {name: point for name, point in tried_points.items() if ledger.same.get(name) == name}
        rounds = [place for place, leg in enumerate(self._legs) if leg.phase == "replicate"]
        objectives = len(self.goal.objectives)
        names: tuple[str, ...] | list[str]
        if not rounds:
            names = promising(distinct, self.study.baseline, objectives) if len(distinct) > 1 else []
            if not names or self.study.baseline not in distinct:
                return Stop("failed", f"none of {len(self._suggested) - 1} configurations could be compared")
            if len(names) > 1 and self._spent + 1 + len(names) + self._allotment.check <= self.search.trials:
                return Leg(phase="replicate", names=tuple(names))
        else:
            analysis = self.study.study.analysis
            names = survivors(
                self._legs[-1].names,
                ledger.since(rounds[0]),
                self.goal,
                confidence=analysis.confidence,
                smallest_effect=analysis.smallest_effect,
            )
            room = self._spent + 1 + len(names) + self._allotment.check <= self.search.trials
            if len(names) > 1 and len(rounds) < ROUNDS and room:
                return Leg(phase="replicate", names=tuple(names))
        return Leg(phase="check", names=tuple(finalists(names, distinct, objectives)))

    def _check(self, number: int) -> Leg | Stop:
        # The leg is repeated until everything is certain or the trials are spent.
        leg = self._legs[-1]
        blocks = sum(leg.phase == "check" for leg in self._legs)
        if blocks >= self.study.study.budget.min_blocks and self._is_certain(leg, number):
            return Stop("decided", f"the choice is precise enough after {blocks} blocks of it")
        if self._spent + 1 + len(leg.names) > self.search.trials:
            within = percent(self.study.study.analysis.smallest_effect)
            spent = f"the budget of {self.search.trials} trials is used up"
            return Stop("budget", f"{spent} before the effect of the choice is known to within ±{within}")
        return leg

    def _is_certain(self, leg: Leg, number: int) -> bool:
        analysis = self.study.study.analysis
        first = next(place for place, entry in enumerate(self._legs) if entry.phase == "check")
        trials = [trial for trial in self.history.trials(number - 1) if trial.slot.block >= first]
        chosen = [self.study.find(name).configuration for name in (self.study.baseline, *leg.names)]
        verdicts = judge(
            chosen,
            trials,
            self.study.deciding,
            confidence=analysis.confidence,
            smallest_effect=analysis.smallest_effect,
            order_matters=self.study.study.target.clock == "wall",
        )
        wanted = {metric.name for metric in self.goal.objectives}
        alpha = family(chosen, self.study.deciding, analysis.confidence).alpha
        limits = kept_limits(self.goal.limits, leg.names, verdicts, trials, alpha)
        return all(limit.holds != "unknown" for limit in limits) and all(
            verdict.verdict != "undecided" and _is_precise(verdict, analysis.smallest_effect)
            for verdict in verdicts
            if verdict.metric in wanted
        )

    @property
    def _spent(self) -> int:
        return sum(1 + len(leg.names) for leg in self._legs if leg.phase != "warm-up")

    def _ledger(self, number: int) -> Ledger:
        return build_ledger(self.history.trials(number - 1), self._suggested, self.study.baseline, self._name_of)

    def _name_of(self, levels: Mapping[str, str]) -> str | None:
        point = self._space.find_point(levels)
        return None if point is None else self._ask(point)

    def _taken(self, ledger: Ledger) -> set[Point]:
        # Points that the kernel would turn into a tried one, by what it made of each level so far.
        became: list[dict[str, str]] = [{} for _ in self._space.axes]
        for name, first in ledger.same.items():
            for place, axis in enumerate(self._space.axes):
                became[place][self._suggested[name].levels[axis.name]] = ledger.levels[first][axis.name]
        known = {tuple(ledger.levels[first][axis.name] for axis in self._space.axes) for first in ledger.levels}
        points: set[Point] = set()
        for values in known:
            alike = [
                [place for place, level in enumerate(axis.levels) if became[at].get(level, level) == values[at]]
                for at, axis in enumerate(self._space.axes)
            ]
            points.update(product(*alike))
        return points

    def _ask(self, point: Point) -> str:
        # Adds the configuration at `point` to the study, and returns its name.
        values = self._space.point_levels(point)
        levels = tuple(values.get(factor.name, factor.baseline) for factor in self.study.factors)
        made = self._resolver.configuration(levels)
        name = made.configuration.name
        if name not in self.study.names:
            self.study = self.study.model_copy(update={"configurations": (*self.study.configurations, made)})
        self._suggested.setdefault(name, Suggestion(name, point, values))
        return name


def _is_precise(verdict: Verdict, smallest_effect: float) -> bool:
    # Half of the interval is no wider than the smallest effect that matters.
    if verdict.low is None or verdict.high is None:
        return False
    if verdict.scale == "difference":
        return True  # The smallest effect is a ratio and does not apply.
    return math.log(verdict.high / verdict.low) / 2 <= math.log1p(smallest_effect)
