"""The results of a search: all that was tried, and the verdicts of the check alone."""

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
from ajuste.analysis.summary import measured, with_quantile_columns, with_quantiles
from ajuste.analysis.verdict import family, judge
from ajuste.design.stopping import Why
from ajuste.model.facets import DESIGN
from ajuste.model.measurements import measurements
from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Results
from ajuste.model.search import Leg, Search
from ajuste.model.surface import CORRELATIONS, SURFACES
from ajuste.model.trial import Configuration, Trial
from ajuste.model.verdict import RANKINGS, Ranking, Verdict
from ajuste.model.wording import amount, change, count_of, in_sentence, listed, percent
from ajuste.study.resolved import ResolvedStudy
from ajuste_search.tuning.goal import Goal, resolve_goal
from ajuste_search.tuning.limits import kept_limits
from ajuste_search.tuning.model import ExpectedMap, Importance, KeptLimit, SearchStep, Tuning
from ajuste_search.tuning.phases import (
    Ledger,
    Suggestion,
    build_ledger,
    expected_map,
    finalists,
    importances,
    tried,
)
from ajuste_search.tuning.sampler import Space, Tried, build_space
from ajuste_search.tuning.samplers import TITLES
from ajuste_search.tuning.surrogate import Surrogate


@dataclass(frozen=True)
class SearchState:
    """A search that was carried out: the study with all suggestions, the trials in the order of the design."""

    resolved: ResolvedStudy
    trials: tuple[Trial, ...]

    @property
    def legs(self) -> tuple[Leg, ...]:
        """Return what each block was for."""
        return self.resolved.legs

    @property
    def search(self) -> Search:
        return self.resolved.search or Search(objectives=())

    @cached_property
    def goal(self) -> Goal:
        return resolve_goal(self.search, self.resolved.deciding)

    @cached_property
    def space(self) -> Space:
        return build_space(self.resolved.factors)

    @cached_property
    def suggestions(self) -> dict[str, Suggestion]:
        """Return all that was tried, in the order in which it was suggested; the baseline first."""
        names = dict.fromkeys([self.resolved.baseline, *(name for leg in self.legs for name in leg.names)])
        suggestions = {}
        for name in names:
            all_levels = self.resolved.find(name).configuration.levels
            levels = {axis.name: all_levels[axis.name] for axis in self.space.axes}
            point = tuple(axis.levels.index(levels[axis.name]) for axis in self.space.axes)
            suggestions[name] = Suggestion(name, point, levels)
        return suggestions

    @cached_property
    def ledger(self) -> Ledger:
        return build_ledger(self.trials, self.suggestions, self.resolved.baseline, self._find_name)

    def _find_name(self, levels: Mapping[str, str]) -> str | None:
        point = self.space.find_point(levels)
        return next((name for name, suggestion in self.suggestions.items() if suggestion.point == point), None)

    @cached_property
    def tried(self) -> dict[str, Tried]:
        return tried(self.ledger, self.suggestions, self.space, self.goal)

    @cached_property
    def first_check(self) -> int | None:
        return next((number for number, leg in enumerate(self.legs) if leg.phase == "check"), None)

    @cached_property
    def chosen(self) -> tuple[str, ...]:
        """Return what was checked; before the check the most promising."""
        if self.first_check is not None:
            return self.legs[self.first_check].names
        distinct = {name: point for name, point in self.tried.items() if self.ledger.same.get(name) == name}
        others = [name for name in distinct if name != self.resolved.baseline]
        return tuple(finalists(others, distinct, len(self.goal.objectives))) if others else ()

    @cached_property
    def checks(self) -> list[Trial]:
        first = self.first_check
        return [] if first is None else [trial for trial in self.trials if trial.slot.block >= first]

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Return the verdicts of the check alone: nothing in it took part in the choice of what is checked."""
        analysis = self.resolved.study.analysis
        judged = judge(
            self.compared,
            self.checks,
            self.resolved.deciding,
            self.resolved.described,
            confidence=analysis.confidence,
            smallest_effect=analysis.smallest_effect,
            order_matters=self.resolved.study.target.clock == "wall",
        )
        wanted = {metric.name for metric in self.goal.objectives}
        return tuple(verdict.model_copy(update={"deciding": verdict.metric in wanted}) for verdict in judged)

    @cached_property
    def rankings(self) -> tuple[Ranking, ...]:
        """Return the rankings of the check alone: nothing is shown to exceed what is called best there."""
        analysis = self.resolved.study.analysis
        return rankings(
            self.compared,
            clean_trials(self.checks),
            self.goal.objectives,
            family(self.compared, self.resolved.deciding, analysis.confidence),
            smallest_effect=analysis.smallest_effect,
            order_matters=self.resolved.study.target.clock == "wall",
        )

    @property
    def compared(self) -> list[Configuration]:
        """Return the baseline, and what was checked."""
        return [self.resolved.find(name).configuration for name in (self.resolved.baseline, *self.chosen)]

    @property
    def correction(self) -> str:
        group = family(self.compared, self.resolved.deciding, self.resolved.study.analysis.confidence)
        return group.describe(len(self.resolved.deciding))

    @property
    def alpha(self) -> float:
        """Return the error rate of one interval of the check."""
        return family(self.compared, self.resolved.deciding, self.resolved.study.analysis.confidence).alpha


def assemble_search(
    resolved: ResolvedStudy,
    record: Record,
    *,
    stopped: Why,
    **more: Any,
) -> Results:
    """Return the results of a search; arguments as of ``analysis.results.assemble``."""
    trials = tuple(record.whole(range(len(record.measurements))))
    names = {resolved.baseline, *(name for leg in resolved.legs for name in leg.names)}
    known = tuple(c for c in resolved.configurations if c.configuration.name in names)
    explored = resolved.model_copy(update={"configurations": known})
    state = SearchState(explored, trials)
    results = assemble(explored, record, stopped=stopped, **more)
    tuning = _tuning(state)
    smallest = resolved.study.analysis.smallest_effect
    return results.model_copy(
        update={
            "question": search_question(tuning, state.goal.objectives, state.space.size),
            "answer": search_answer(tuning, state.verdicts, state.goal.objectives, smallest),
            "verdicts": state.verdicts if state.chosen else (),
            "configurations": _as_checked(results.configurations, state),
            **RANKINGS.document(state.rankings if state.chosen else ()),
            "correction": state.correction if state.chosen else results.correction,
            **DESIGN.document(_design(tuning)),
            "tuning": tuning.model_dump(mode="json"),
            **SURFACES.document(()),
            **CORRELATIONS.document(()),
            "notes": (*results.notes, *tuning.same),
        }
    )


def _as_checked(configurations: Sequence[Measured], state: SearchState) -> tuple[Measured, ...]:
    if not state.checks:
        return tuple(configurations)
    metrics = (*state.resolved.deciding, *state.resolved.described)
    clean = clean_trials(with_quantile_columns(measurements(state.checks), metrics))
    checked = {
        configuration.name: configuration
        for configuration in with_quantiles(measured(state.compared, clean), clean, metrics)
    }
    return tuple(checked.get(configuration.name, configuration) for configuration in configurations)


def _tuning(state: SearchState) -> Tuning:
    goal, ledger = state.goal, state.ledger
    steps = _steps(state)
    limits = kept_limits(goal.limits, state.chosen, state.verdicts, state.checks, state.alpha) if state.checks else ()
    allowed = bool(state.chosen) and state.tried[state.chosen[0]].allowed
    searched = [step.changes[0] for step in steps if step.phase in ("explore", "replicate") and step.allowed]
    sign = max if goal.objectives[0].direction == "higher" else min
    shares, expected, flat = _model(state)
    names = {name for leg in state.legs for name in leg.names}
    return Tuning(
        objectives=tuple(metric.name for metric in goal.objectives),
        scales=tuple("ratio" if ledger.as_ratio(metric) else "difference" for metric in goal.objectives),
        constraints=state.search.constraints,
        sampler=TITLES[state.search.sampler],
        allowed=state.search.trials,
        trials=sum(1 + len(leg.names) for leg in state.legs if leg.phase != "warm-up"),
        tried=len(names),
        steps=steps,
        chosen=state.chosen,
        winner=state.chosen[0] if allowed else None,
        first_check=state.first_check,
        check_blocks=counted_blocks(state.checks, (state.resolved.baseline, *state.chosen), state.resolved.baseline),
        best_trial=sign(searched) if searched and len(goal.objectives) == 1 else None,
        limits=limits,
        importance=shares,
        expected=expected,
        flat=flat,
        same=tuple(
            f"{name} became the same configuration as {first}, and counts as that one."
            for name, first in ledger.same.items()
            if name != first and name in state.tried
        ),
    )


def _steps(state: SearchState) -> tuple[SearchStep, ...]:
    steps = []
    for number, by_name in sorted(state.ledger.blocks.items()):
        only = Ledger(state.resolved.baseline, {number: by_name}, {}, {}, frozenset())
        for name in by_name:
            changes = [only.changes(name, metric) for metric in state.goal.objectives]
            if name == state.resolved.baseline or not all(map(len, changes)):
                continue
            natural = tuple(_natural(state, place, float(change[0])) for place, change in enumerate(changes))
            allowed = name in state.tried and state.tried[name].allowed
            phase = state.legs[number].phase
            steps.append(SearchStep(configuration=name, block=number, phase=phase, changes=natural, allowed=allowed))
    return tuple(steps)


def _natural(state: SearchState, place: int, change: float) -> float:
    # Convert from the scale of a model, on which smaller is better, to a ratio or a difference.
    metric = state.goal.objectives[place]
    value = -change if metric.direction == "higher" else change
    return math.exp(value) if state.ledger.as_ratio(metric) else value


def _model(state: SearchState) -> tuple[tuple[Importance, ...], ExpectedMap | None, bool]:
    # Return the importances, a map and whether the surface is flat, by a model of the first objective.
    distinct = {name: point for name, point in state.tried.items() if state.ledger.same.get(name) == name}
    if len(distinct) < 3 or not state.chosen:
        return (), None, False
    values = [point.values[0] for point in distinct.values()]
    errors = [(point.variances or (0.0,))[0] / point.runs for point in distinct.values()]
    surface = Surrogate(np.array([point.row for point in distinct.values()]), values, errors)
    shares = importances(state.space, surface, state.resolved.study.design.seed)
    at = state.suggestions[state.chosen[0]].point
    mapped = expected_map(state.space, surface, shares, at, lambda value: _natural(state, 0, value))
    averages, _ = surface.predict(np.array([point.row for point in distinct.values()]))
    zone = math.log1p(state.resolved.study.analysis.smallest_effect)
    as_ratio = state.ledger.as_ratio(state.goal.objectives[0])
    flat = surface.flat or (as_ratio and float(np.ptp(averages)) < zone)
    return shares, mapped, flat


def _design(tuning: Tuning) -> str:
    phases = [
        f"Searched with {tuning.trials} of at most {tuning.allowed} trials ({tuning.sampler}): blocks of the baseline "
        f"and of the most promising configurations, in random order",
        "then replicates of the best against the baseline, without those that are certainly worse",
        "then a check of the choice in separate blocks, which alone decide its verdict",
    ]
    return "; ".join(phases) + "."


def search_answer(
    tuning: Tuning, verdicts: Sequence[Verdict], objectives: Sequence[Metric], smallest_effect: float
) -> str:
    """Answer in a sentence or two; ``verdicts`` are those of the check."""
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
        finding = (
            f"No setting matters here: {_tried(tuning)}, and even the best, {tuning.winner}, makes no difference of "
            f"more than ±{zone}: {effect}."
        )
    elif verdict.verdict == "improves":
        finding = f"The best of {_count(tuning)} is {tuning.winner}: {effect}, {_fresh(tuning)}."
    elif verdict.verdict == "undecided":
        finding = (
            f"The most promising of {_count(tuning)} is {tuning.winner}: {effect}, {_fresh(tuning)}, "
            f"which does not decide it yet."
        )
    else:
        finding = (
            f"Nothing better than the baseline was found: of {_count(tuning)} the most promising is "
            f"{tuning.winner}: {effect}, {_fresh(tuning)}."
        )
    naive = ""
    if not tuning.flat and tuning.best_trial is not None and verdict.scale == tuning.scales[0]:
        best_change = change(tuning.best_trial, tuning.scales[0], verdict.unit)
        naive = f"The best single trial of the search had shown {best_change}."
    return " ".join(filter(None, (finding, naive, *_limits(tuning, tuning.winner))))


def search_question(tuning: Tuning, objectives: Sequence[Metric], combinations: int) -> str:
    """Return the question of a search, whatever its study asks."""
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


def _front(tuning: Tuning, by_name: dict[tuple[str, str], Verdict], objectives: Sequence[Metric]) -> str:
    parts = [
        f"{name}: {', '.join(_effect(by_name[name, metric.name], metric) for metric in objectives)}"
        for name in tuning.chosen
    ]
    noun = "one configuration is" if len(parts) == 1 else f"{len(parts)} configurations are"
    titles = listed([in_sentence(metric.title) for metric in objectives])
    sentence = f"Between {titles}, {noun} worth choosing from, {_fresh(tuning)}: {'; '.join(parts)}."
    return " ".join((sentence, *(text for name in tuning.chosen for text in _limits(tuning, name))))


def _nothing_allowed(tuning: Tuning, by_name: dict[tuple[str, str], Verdict], objectives: Sequence[Metric]) -> str:
    nearest = tuning.chosen[0]
    constraints = "the constraint" if len(tuning.constraints) == 1 else "all constraints"
    effects = ", ".join(_effect(by_name[nearest, metric.name], metric) for metric in objectives)
    sentence = f"None of {_count(tuning)} keeps {constraints}. The nearest is {nearest}: {effects}."
    return " ".join((sentence, *_limits(tuning, nearest)))


def _limits(tuning: Tuning, name: str) -> list[str]:
    words = {"yes": "is kept", "no": "is broken", "unknown": "may be kept or broken"}
    return [
        f'The constraint "{limit.text}" {words[limit.holds]} by {name}: {_range(limit)}.'
        for limit in tuning.limits
        if limit.configuration == name
    ]


def _range(limit: KeptLimit) -> str:
    def say(value: float | None) -> str:
        return change(value, "ratio", "") if limit.relative else "?" if value is None else amount(value, limit.unit)

    return f"{say(limit.estimate)} ({say(limit.low)} to {say(limit.high)})"
