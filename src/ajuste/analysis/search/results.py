"""The results of a search: everything that was tried, and the verdict of the check alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ajuste.analysis.pairs import clean_trials, counted_blocks
from ajuste.analysis.ranking import rankings
from ajuste.analysis.record import Record
from ajuste.analysis.results import assemble
from ajuste.analysis.search.ledger import Ledger, Suggestion, build_ledger, kept_limits, tried
from ajuste.analysis.search.phases import expected_map, finalists, importances
from ajuste.analysis.sequence import with_quantile_columns, with_quantiles
from ajuste.analysis.summary import measured
from ajuste.analysis.verdict import family, judge
from ajuste.design.search.goal import Goal, Search, goal_of
from ajuste.design.search.sampler import Space, Tried, space_of
from ajuste.design.search.samplers import TITLES
from ajuste.design.search.surrogate import Surrogate
from ajuste.design.stopping import Why
from ajuste.model.measurements import measurements
from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Results
from ajuste.model.trial import Configuration, Trial
from ajuste.model.tuning import ExpectedMap, Importance, KeptLimit, Leg, SearchStep, Tuning
from ajuste.model.verdict import Ranking, Verdict
from ajuste.model.wording import amount, change, count_of, in_sentence, listed, percent
from ajuste.study.resolved import ResolvedStudy


@dataclass(frozen=True)
class SearchState:
    """A search that was carried out: the study with all that was suggested, the trials in the order of the design."""

    resolved: ResolvedStudy
    trials: tuple[Trial, ...]

    @property
    def legs(self) -> tuple[Leg, ...]:
        """What each block was for."""
        return self.resolved.legs

    @property
    def search(self) -> Search:
        return self.resolved.search or Search(objectives=())

    @cached_property
    def goal(self) -> Goal:
        return goal_of(self.search, self.resolved.deciding)

    @cached_property
    def space(self) -> Space:
        return space_of(self.resolved.factors)

    @cached_property
    def asked(self) -> dict[str, Suggestion]:
        """All that was tried, in the order in which it was suggested; the baseline first."""
        names = dict.fromkeys([self.resolved.baseline, *(name for leg in self.legs for name in leg.names)])
        found = {}
        for name in names:
            levels = self.resolved.find(name).configuration.levels
            own = {axis.name: levels[axis.name] for axis in self.space.axes}
            point = tuple(axis.levels.index(own[axis.name]) for axis in self.space.axes)
            found[name] = Suggestion(name, point, own)
        return found

    @cached_property
    def ledger(self) -> Ledger:
        return build_ledger(self.trials, self.asked, self.resolved.baseline, self._name_of)

    def _name_of(self, levels: Mapping[str, str]) -> str | None:
        """Of a configuration that was asked for, in whatever phase."""
        point = self.space.point_of(levels)
        return next((name for name, one in self.asked.items() if one.point == point), None)

    @cached_property
    def tried(self) -> dict[str, Tried]:
        return tried(self.ledger, self.asked, self.space, self.goal)

    @cached_property
    def first_check(self) -> int | None:
        return next((number for number, leg in enumerate(self.legs) if leg.phase == "check"), None)

    @cached_property
    def chosen(self) -> tuple[str, ...]:
        """What was checked; before the check the most promising."""
        if self.first_check is not None:
            return self.legs[self.first_check].names
        own = {name: one for name, one in self.tried.items() if self.ledger.same.get(name) == name}
        others = [name for name in own if name != self.resolved.baseline]
        return tuple(finalists(others, own, len(self.goal.objectives))) if others else ()

    @cached_property
    def checks(self) -> list[Trial]:
        """The trials of the check."""
        first = self.first_check
        return [] if first is None else [one for one in self.trials if one.slot.block >= first]

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Of the check alone: nothing in it took part in the choice of what is checked."""
        analysis = self.resolved.study.analysis
        found = judge(
            self.compared,
            self.checks,
            self.resolved.deciding,
            self.resolved.described,
            confidence=analysis.confidence,
            smallest_effect=analysis.smallest_effect,
            order_matters=self.resolved.study.target.clock == "wall",
        )
        wanted = {metric.name for metric in self.goal.objectives}
        return tuple(one.model_copy(update={"deciding": one.metric in wanted}) for one in found)

    @cached_property
    def rankings(self) -> tuple[Ranking, ...]:
        """Of the check alone, as the verdicts are: what is called best there nothing else is shown to exceed."""
        analysis = self.resolved.study.analysis
        return rankings(
            self.compared,
            clean_trials(self.checks),
            self.goal.objectives,
            confidence=analysis.confidence,
            smallest_effect=analysis.smallest_effect,
            order_matters=self.resolved.study.target.clock == "wall",
        )

    @property
    def compared(self) -> list[Configuration]:
        """The baseline, and what was checked."""
        return [self.resolved.find(name).configuration for name in (self.resolved.baseline, *self.chosen)]

    @property
    def correction(self) -> str:
        group = family(self.compared, self.resolved.deciding, self.resolved.study.analysis.confidence)
        return group.describe(len(self.chosen), len(self.resolved.deciding))

    @property
    def alpha(self) -> float:
        """The error rate of one interval of the check."""
        return family(self.compared, self.resolved.deciding, self.resolved.study.analysis.confidence).alpha


def assemble_search(
    resolved: ResolvedStudy,
    record: Record,
    *,
    stopped: Why,
    **more: Any,
) -> Results:
    """The results of a search; arguments as of ``analysis.results.assemble``."""
    trials = tuple(record.whole(range(len(record.measurements))))
    names = {resolved.baseline, *(name for leg in resolved.legs for name in leg.names)}
    known = tuple(c for c in resolved.configurations if c.configuration.name in names)
    own = resolved.model_copy(update={"configurations": known})
    found = SearchState(own, trials)
    results = assemble(own, record, stopped=stopped, **more)
    tuning = _tuning(found)
    smallest = resolved.study.analysis.smallest_effect
    return results.model_copy(
        update={
            "question": search_question(tuning, found.goal.objectives, found.space.size),
            "answer": search_answer(tuning, found.verdicts, found.goal.objectives, smallest),
            "verdicts": found.verdicts if found.chosen else (),
            "configurations": _as_checked(results.configurations, found),
            "rankings": found.rankings if found.chosen else (),
            "correction": found.correction if found.chosen else results.correction,
            "design": _design(tuning),
            "tuning": tuning,
            "surfaces": (),
            "correlations": (),
            "notes": (*results.notes, *tuning.same),
        }
    )


def _as_checked(configurations: Sequence[Measured], found: SearchState) -> tuple[Measured, ...]:
    """Return ``configurations``, those that were checked with the figures of the check, which the verdicts are of."""
    if not found.checks:
        return tuple(configurations)
    metrics = (*found.resolved.deciding, *found.resolved.described)
    clean = clean_trials(with_quantile_columns(measurements(found.checks), metrics))
    checked = {one.name: one for one in with_quantiles(measured(found.compared, clean), clean, metrics)}
    return tuple(checked.get(one.name, one) for one in configurations)


def _tuning(found: SearchState) -> Tuning:
    goal, ledger = found.goal, found.ledger
    steps = _steps(found)
    limits = kept_limits(goal.limits, found.chosen, found.verdicts, found.checks, found.alpha) if found.checks else ()
    allowed = bool(found.chosen) and found.tried[found.chosen[0]].allowed
    searched = [one.changes[0] for one in steps if one.phase in ("explore", "replicate") and one.allowed]
    sign = max if goal.objectives[0].direction == "higher" else min
    shares, expected, flat = _model(found)
    names = {name for leg in found.legs for name in leg.names}
    return Tuning(
        objectives=tuple(metric.name for metric in goal.objectives),
        scales=tuple("ratio" if ledger.as_ratio(metric) else "difference" for metric in goal.objectives),
        constraints=found.search.constraints,
        sampler=TITLES[found.search.sampler],
        allowed=found.search.trials,
        trials=sum(1 + len(leg.names) for leg in found.legs if leg.phase != "warm-up"),
        tried=len(names),
        steps=steps,
        chosen=found.chosen,
        winner=found.chosen[0] if allowed else None,
        first_check=found.first_check,
        check_blocks=counted_blocks(found.checks, (found.resolved.baseline, *found.chosen), found.resolved.baseline),
        best_trial=sign(searched) if searched and len(goal.objectives) == 1 else None,
        limits=limits,
        importance=shares,
        expected=expected,
        flat=flat,
        same=_same(found),
    )


def _steps(found: SearchState) -> tuple[SearchStep, ...]:
    """Every configuration of every block that has the baseline too, in the order of the design."""
    steps = []
    for number, own in sorted(found.ledger.blocks.items()):
        only = Ledger(found.resolved.baseline, {number: own}, {}, {}, frozenset())
        for name in own:
            changes = [only.changes(name, metric) for metric in found.goal.objectives]
            if name == found.resolved.baseline or not all(map(len, changes)):
                continue
            natural = tuple(_natural(found, place, float(change[0])) for place, change in enumerate(changes))
            allowed = name in found.tried and found.tried[name].allowed
            phase = found.legs[number].phase
            steps.append(SearchStep(configuration=name, block=number, phase=phase, changes=natural, allowed=allowed))
    return tuple(steps)


def _natural(found: SearchState, place: int, change: float) -> float:
    """From the scale of a model, on which smaller is better, to a ratio or a difference."""
    metric = found.goal.objectives[place]
    value = -change if metric.direction == "higher" else change
    return math.exp(value) if found.ledger.as_ratio(metric) else value


def _model(found: SearchState) -> tuple[tuple[Importance, ...], ExpectedMap | None, bool]:
    """What a model of the first objective says at the end: importances, a map, and whether the surface is flat."""
    own = {name: one for name, one in found.tried.items() if found.ledger.same.get(name) == name}
    if len(own) < 3 or not found.chosen:
        return (), None, False
    values = [one.values[0] for one in own.values()]
    errors = [(one.variances or (0.0,))[0] / one.runs for one in own.values()]
    surface = Surrogate(np.array([one.row for one in own.values()]), values, errors)
    shares = importances(found.space, surface, found.resolved.study.design.seed)
    at = found.asked[found.chosen[0]].point
    mapped = expected_map(found.space, surface, shares, at, lambda value: _natural(found, 0, value))
    means, _ = surface.predict(np.array([one.row for one in own.values()]))
    zone = math.log1p(found.resolved.study.analysis.smallest_effect)
    as_ratio = found.ledger.as_ratio(found.goal.objectives[0])
    flat = surface.flat or (as_ratio and float(np.ptp(means)) < zone)
    return shares, mapped, flat


def _same(found: SearchState) -> tuple[str, ...]:
    """Suggestions that became the same configuration."""
    return tuple(
        f"{name} became the same configuration as {first}, and counts as that one."
        for name, first in found.ledger.same.items()
        if name != first and name in found.tried
    )


def _design(tuning: Tuning) -> str:
    phases = [
        f"Searched with {tuning.trials} of at most {tuning.allowed} trials ({tuning.sampler}): blocks of the baseline "
        f"and of the most promising configurations, in random order",
        "then replicates of the best against the baseline, without those that are certainly worse",
        "then a check of the choice in separate blocks, which alone decide its verdict",
    ]
    return "; ".join(phases) + "."


# What a search has found, in a sentence or two.


def search_answer(
    tuning: Tuning, verdicts: Sequence[Verdict], objectives: Sequence[Metric], smallest_effect: float
) -> str:
    """The answer; ``verdicts`` are those of the check."""
    if not tuning.chosen:
        return f"The search is not finished; {_tried(tuning)} so far."
    by_name = {(v.configuration, v.metric): v for v in verdicts}
    if not tuning.check_blocks:
        return f"{_tried(tuning).capitalize()}; the most promising, {tuning.chosen[0]}, is not checked yet."
    if tuning.winner is None:
        return _nothing_allowed(tuning, by_name, objectives)
    if len(objectives) > 1:
        return _front(tuning, by_name, objectives)
    verdict = by_name[tuning.winner, objectives[0].name]
    zone = percent(smallest_effect)
    effect = _effect(verdict, objectives[0])
    if verdict.verdict == "equivalent" and tuning.flat:
        said = (
            f"No setting matters here: {_tried(tuning)}, and even the best, {tuning.winner}, makes no difference of "
            f"more than ±{zone}: {effect}."
        )
    elif verdict.verdict == "improves":
        said = f"The best of {_count(tuning)} is {tuning.winner}: {effect}, {_fresh(tuning)}."
    elif verdict.verdict == "undecided":
        said = (
            f"The most promising of {_count(tuning)} is {tuning.winner}: {effect}, {_fresh(tuning)}, "
            f"which does not decide it yet."
        )
    else:
        said = (
            f"Nothing better than the baseline was found: of {_count(tuning)} the most promising is "
            f"{tuning.winner}: {effect}, {_fresh(tuning)}."
        )
    naive = "" if tuning.flat else _naive(tuning, verdict)
    return " ".join(filter(None, (said, naive, *_limits(tuning, tuning.winner))))


def search_question(tuning: Tuning, objectives: Sequence[Metric], combinations: int) -> str:
    """What a search asks, whatever its study does."""
    titles = [in_sentence(metric.title) for metric in objectives]
    so_that = f", so that {listed(list(tuning.constraints))}" if tuning.constraints else ""
    if len(titles) > 1:
        return f"Which of {combinations:,} combinations are best between {listed(titles)}{so_that}?"
    most = "highest" if objectives[0].direction == "higher" else "lowest"
    return f"Which of {combinations:,} combinations has the {most} {titles[0]}{so_that}?"


def _count(tuning: Tuning) -> str:
    return "1 configuration that was tried" if tuning.tried == 1 else f"{tuning.tried} configurations that were tried"


def _tried(tuning: Tuning) -> str:
    return "1 configuration was tried" if tuning.tried == 1 else f"{tuning.tried} configurations were tried"


def _fresh(tuning: Tuning) -> str:
    return f"measured in {count_of(tuning.check_blocks, 'fresh block')} that were not used for the choice"


def _effect(verdict: Verdict, metric: Metric) -> str:
    return f"{in_sentence(metric.title)} {verdict.effect} ({verdict.interval})"


def _naive(tuning: Tuning, verdict: Verdict) -> str:
    if tuning.best_trial is None or verdict.scale != tuning.scales[0]:
        return ""
    said = change(tuning.best_trial, tuning.scales[0], verdict.unit)
    return f"The best single trial of the search had shown {said}."


def _front(tuning: Tuning, by_name: dict[tuple[str, str], Verdict], objectives: Sequence[Metric]) -> str:
    parts = [
        f"{name}: {', '.join(_effect(by_name[name, metric.name], metric) for metric in objectives)}"
        for name in tuning.chosen
    ]
    noun = "one configuration is" if len(parts) == 1 else f"{len(parts)} configurations are"
    titles = listed([in_sentence(metric.title) for metric in objectives])
    said = f"Between {titles}, {noun} worth choosing from, {_fresh(tuning)}: {'; '.join(parts)}."
    return " ".join((said, *(text for name in tuning.chosen for text in _limits(tuning, name))))


def _nothing_allowed(tuning: Tuning, by_name: dict[tuple[str, str], Verdict], objectives: Sequence[Metric]) -> str:
    nearest = tuning.chosen[0]
    constraints = "the constraint" if len(tuning.constraints) == 1 else "all constraints"
    effects = ", ".join(_effect(by_name[nearest, metric.name], metric) for metric in objectives)
    said = f"None of {_count(tuning)} keeps {constraints}. The nearest is {nearest}: {effects}."
    return " ".join((said, *_limits(tuning, nearest)))


def _limits(tuning: Tuning, name: str) -> list[str]:
    words = {"yes": "is kept", "no": "is broken", "unknown": "may be kept or broken"}
    return [
        f'The constraint "{one.text}" {words[one.holds]} by {name}: {_range(one)}.'
        for one in tuning.limits
        if one.configuration == name
    ]


def _range(one: KeptLimit) -> str:
    def say(value: float | None) -> str:
        return change(value, "ratio", "") if one.relative else "?" if value is None else amount(value, one.unit)

    return f"{say(one.estimate)} ({say(one.low)} to {say(one.high)})"
