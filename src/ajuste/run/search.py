"""The schedule of a search: each block follows from the trials before it and the seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product, takewhile

from ajuste.analysis.search.ledger import Ledger, Suggestion, build_ledger, kept_limits, tried
from ajuste.analysis.search.phases import AT_ONCE, ROUNDS, allotment, finalists, promising, survivors
from ajuste.analysis.verdict import family, judge
from ajuste.design.search.goal import Goal, Search, Standing, resolve_goal
from ajuste.design.search.sampler import Point, SamplerTask, Tried, build_space
from ajuste.design.search.samplers import make_sampler
from ajuste.design.stopping import Stop, StoppingLimits, hopeless
from ajuste.model.error import RunError
from ajuste.model.trial import Configuration, Slot
from ajuste.model.tuning import Leg
from ajuste.model.verdict import Verdict
from ajuste.model.wording import percent
from ajuste.outputs.trial import why_lost
from ajuste.run.schedule import BlockWatcher, Schedule, TrialHistory
from ajuste.study.resolve import Resolver
from ajuste.study.resolved import ResolvedStudy


class SearchSchedule(Schedule):
    """Its blocks hold the baseline and what is to be tried next. ``study`` grows by what was suggested.

    Raises RequestError for too few trials.
    """

    def __init__(self, study: ResolvedStudy, history: TrialHistory, resolver: Resolver) -> None:
        super().__init__(study, history)
        self.search: Search = study.search or Search(objectives=())
        self.goal: Goal = resolve_goal(self.search, study.deciding)
        budget = study.study.budget
        self.limits = StoppingLimits(budget.min_blocks, self.search.trials, budget.max_minutes)
        self._resolver = resolver
        self._space = build_space(study.factors)
        self._asked: dict[str, Suggestion] = {}
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
        """Without the baseline there is nothing to compare with."""
        lost = hopeless(
            self.history.trials(0), lambda one: one.slot.configuration == self.study.baseline and self.is_lost(one)
        )
        return None if lost is None else Stop("failed", f"{lost.slot.configuration}: {why_lost(lost)}")

    def look(self, number: int) -> Stop | None:
        minutes = self.limits.max_minutes
        if self.history.minutes < minutes:
            return None
        return Stop("time", f"the budget of {minutes:g} minutes is used up after {number + 1} blocks")

    def tell(self, number: int, watcher: BlockWatcher) -> None:
        watcher.block_done(number, ())
        watcher.search_stands(self.standing(number))

    def leg(self, number: int) -> Leg | Stop:
        """What block ``number`` is for, or why there is none. Needs all trials before it."""
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
        return number  # What comes next depends on every block.

    def standing(self, number: int) -> Standing:
        """How it stands after block ``number``."""
        ledger = self._ledger(number + 1)
        found = tried(ledger, self._asked, self._space, self.goal)
        others = [name for name in found if name != self.study.baseline]
        allowed = [name for name in others if found[name].allowed]
        best = min(allowed, key=lambda name: found[name].values[0], default=None)
        metric = self.goal.objectives[0]
        return Standing(
            phase=self._legs[number].phase,
            trials=sum(1 + len(leg.names) for leg in self._legs[: number + 1]),
            allowed=self.search.trials,
            tried=len(others),
            best=best,
            change=None if best is None else found[best].values[0],
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
        found = tried(ledger, self._asked, self._space, self.goal)
        before = self._legs[-1].phase if self._legs else "warm-up"
        if before in ("warm-up", "explore") and (leg := self._explore(ledger, found)) is not None:
            return leg
        if before == "check":
            return self._check(ledger, number)
        return self._replicate(ledger, found)

    def _explore(self, ledger: Ledger, found: Mapping[str, Tried]) -> Leg | None:
        begun = any(leg.phase == "explore" for leg in self._legs)
        count = AT_ONCE if begun else self._allotment.first - 1
        if begun and self._spent + 1 + count > self._allotment.explore:
            return None
        start = found or {self.study.baseline: self._start()}
        points = self._sampler.suggest(list(start.values()), count, self._taken(ledger))
        return Leg(phase="explore", names=tuple(self._ask(point) for point in points)) if points else None

    def _replicate(self, ledger: Ledger, found: Mapping[str, Tried]) -> Leg | Stop:
        own = {name: one for name, one in found.items() if ledger.same.get(name) == name}
        begun = [place for place, leg in enumerate(self._legs) if leg.phase == "replicate"]
        objectives = len(self.goal.objectives)
        names: tuple[str, ...] | list[str]
        if not begun:
            names = promising(own, self.study.baseline, objectives) if len(own) > 1 else []
            if not names or self.study.baseline not in own:
                return Stop("failed", f"none of {len(self._asked) - 1} configurations could be compared")
            if len(names) > 1 and self._spent + 1 + len(names) + self._allotment.check <= self.search.trials:
                return Leg(phase="replicate", names=tuple(names))
        else:
            analysis = self.study.study.analysis
            names = survivors(
                self._legs[-1].names,
                ledger.since(begun[0]),
                self.goal,
                confidence=analysis.confidence,
                smallest_effect=analysis.smallest_effect,
            )
            room = self._spent + 1 + len(names) + self._allotment.check <= self.search.trials
            if len(names) > 1 and len(begun) < ROUNDS and room:
                return Leg(phase="replicate", names=tuple(names))
        return Leg(phase="check", names=tuple(finalists(names, own, objectives)))

    def _check(self, ledger: Ledger, number: int) -> Leg | Stop:
        # The same again, until everything is certain or the trials are spent.
        leg = self._legs[-1]
        blocks = sum(one.phase == "check" for one in self._legs)
        if blocks >= self.study.study.budget.min_blocks and self._is_certain(leg, number):
            return Stop("decided", f"the choice is precise enough after {blocks} blocks of it")
        if self._spent + 1 + len(leg.names) > self.search.trials:
            within = percent(self.study.study.analysis.smallest_effect)
            spent = f"the budget of {self.search.trials} trials is used up"
            return Stop("budget", f"{spent} before the effect of the choice is known to within ±{within}")
        return leg

    def _is_certain(self, leg: Leg, number: int) -> bool:
        analysis = self.study.study.analysis
        first = next(place for place, one in enumerate(self._legs) if one.phase == "check")
        trials = [one for one in self.history.trials(number - 1) if one.slot.block >= first]
        chosen = [self._configuration(name) for name in (self.study.baseline, *leg.names)]
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
        kept = kept_limits(self.goal.limits, leg.names, verdicts, trials, alpha)
        return all(one.holds != "unknown" for one in kept) and all(
            one.verdict != "undecided" and _is_precise(one, analysis.smallest_effect)
            for one in verdicts
            if one.metric in wanted
        )

    def _configuration(self, name: str) -> Configuration:
        return self.study.find(name).configuration

    @property
    def _spent(self) -> int:
        return sum(1 + len(leg.names) for leg in self._legs if leg.phase != "warm-up")

    def _ledger(self, number: int) -> Ledger:
        # Of the blocks before `number`.
        return build_ledger(self.history.trials(number - 1), self._asked, self.study.baseline, self._name_of)

    def _name_of(self, levels: Mapping[str, str]) -> str | None:
        point = self._space.find_point(levels)
        return None if point is None else self._ask(point)

    def _taken(self, ledger: Ledger) -> set[Point]:
        # The points that become something tried, by what the kernel made of each level so far.
        became: list[dict[str, str]] = [{} for _ in self._space.axes]
        for name, first in ledger.same.items():
            for place, axis in enumerate(self._space.axes):
                became[place][self._asked[name].levels[axis.name]] = ledger.levels[first][axis.name]
        known = {tuple(ledger.levels[first][axis.name] for axis in self._space.axes) for first in ledger.levels}
        found: set[Point] = set()
        for values in known:
            alike = [
                [place for place, level in enumerate(axis.levels) if became[at].get(level, level) == values[at]]
                for at, axis in enumerate(self._space.axes)
            ]
            found.update(product(*alike))
        return found

    def _start(self) -> Tried:
        # The baseline, of which nothing is known but that it is the baseline.
        point = self._space.baseline
        nothing = (0.0,) * len(self.goal.objectives)
        row = self._space.row(self._space.point_levels(point))
        return Tried(point, row, nothing, nothing, (0.0,) * len(self.goal.limits))

    def _ask(self, point: Point) -> str:
        # The name of the configuration at `point`, which the study knows from now on.
        own = self._space.point_levels(point)
        levels = tuple(own.get(factor.name, factor.baseline) for factor in self.study.factors)
        made = self._resolver.configuration(levels)
        name = made.configuration.name
        if name not in self.study.names:
            self.study = self.study.model_copy(update={"configurations": (*self.study.configurations, made)})
        self._asked.setdefault(name, Suggestion(name, point, own))
        return name


def _is_precise(verdict: Verdict, smallest_effect: float) -> bool:
    # Whether the size of an effect is known to what matters: half its interval is no wider than that.
    if verdict.low is None or verdict.high is None:
        return False
    if verdict.scale == "difference":
        return True  # There is no telling what matters of it.
    return math.log(verdict.high / verdict.low) / 2 <= math.log1p(smallest_effect)
