"""Trying settings: a screen of each level by itself, then the combinations of those that help."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ajuste.design.search.sampler import Search
from ajuste.model.error import RequestError, RunError
from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste.model.wording import count_of
from ajuste.report.format import duration
from ajuste.run.experiment import MeasuredExperiment
from ajuste.study.command_line.study import AS_IT_IS
from ajuste_advise.candidates import STAGE, Choice
from ajuste_advise.model import Candidate, Stage, Tried
from ajuste_advise.question import Question, named_level, one_factor, setting_factor

MIN_BLOCKS: Final = 3
_FOR_INTERVAL: Final = 7
"""Blocks after which most levels of a quiet workload are decided; an interval requires 6."""

SCREEN_SHARE: Final = 0.45
SEARCH_SHARE: Final = 0.15
MOST_TOGETHER: Final = 4
"""Maximum number of settings whose combinations are searched."""

_MOST_COMBINATIONS: Final = 16
_MOST_PROMISING: Final = 2
_TRIES: Final = 6


@dataclass(frozen=True)
class Screen:
    """The findings of the screen: every level by itself on the objective."""

    stage: Stage
    tried: tuple[Tried, ...]

    def helpful(self, smallest_effect: float) -> dict[str, list[Tried]]:
        """Return the levels that certainly help, by setting, the best of each and the best setting first.

        Where none is certain, these are the most promising ones: the proof decides, not the screen.
        """
        ranked = sorted(self.tried, key=gain, reverse=True)
        certain = [row for row in ranked if row.verdict is not None and row.verdict.verdict == "improves"]
        promising = [row for row in ranked if gain(row) > smallest_effect and row.verdict and row.verdict.is_open]
        by_setting: dict[str, list[Tried]] = {}
        for row in certain or promising[:_MOST_PROMISING]:
            by_setting.setdefault(row.setting, []).append(row)
        return by_setting

    @property
    def at_most(self) -> float | None:
        """Return the largest improvement that a level may still have, as a share; None where one is not known."""
        limits = [_largest_gain(row.verdict) for row in self.tried if row.verdict is not None]
        known = [limit for limit in limits if limit is not None]
        return max((0.0, *known)) if limits and len(known) == len(limits) else None


def gain(row: Tried) -> float:
    """Return how much better a level is, as a logarithm or difference; 0 where nothing is known."""
    return 0.0 if row.verdict is None else _gain(row.verdict, row.verdict.estimate) or 0.0


def _gain(verdict: Verdict, value: float | None) -> float | None:
    if value is None or (verdict.scale == "ratio" and value <= 0):
        return None
    size = math.log(value) if verdict.scale == "ratio" else value
    return -size if verdict.direction == "lower" else size


def _largest_gain(verdict: Verdict) -> float | None:
    # As a share of the baseline: 0.04 where it is at most 4 % better.
    bound = verdict.low if verdict.direction == "lower" else verdict.high
    if bound is None or verdict.scale != "ratio":
        return None
    return 1 - bound if verdict.direction == "lower" else bound - 1


def most_levels(question: Question, trial_s: float, parallel: int) -> int:
    """Return how many levels there is time to screen. Raises RequestError if there is none for even one."""
    seconds = question.minutes(SCREEN_SHARE) * 60
    levels = int(seconds * parallel / (max(trial_s, 0.02) * _FOR_INTERVAL)) - 1
    if levels < 1:
        needed = math.ceil(trial_s * _FOR_INTERVAL * 2 / (SCREEN_SHARE * parallel) / 60)
        raise RequestError(
            f"a trial takes {duration(trial_s)}: too long to try anything in {duration(question.allowed_s)}",
            hint=f"allow at least {count_of(needed, 'minute')}: --max-time {needed}m",
        )
    return levels


def screen(question: Question, choice: Choice) -> Screen:
    """Try each level of the candidates by itself. Levels with which the workload fails are left out, and named."""
    failed: dict[tuple[str, str], str] = {}
    count = sum(len(candidate.levels) for candidate in choice.candidates)
    question.say(f"3/4 find: {count_of(len(choice.candidates), 'setting')}, {count_of(count, 'level')}, each by itself")
    for _ in range(_TRIES):
        levels = [
            (candidate.setting, level)
            for candidate in choice.candidates
            for level in candidate.levels
            if (candidate.setting, level) not in failed
        ]
        study = question.study(
            STAGE,
            [one_factor("setting", levels)],
            analysis={"metrics": [question.objective]},
            budget={"min_blocks": MIN_BLOCKS, "max_minutes": question.minutes(SCREEN_SHARE)},
        )
        with question.measured(study, may_fail=True) as measurement:
            broken = _broken(measurement) if measurement.run.stopped == "failed" else {}
            if measurement.run.stopped == "failed" and not broken:
                raise measurement.failure("the workload as it is")
            if not broken:
                results = measurement.results()
                return Screen(
                    stage_of("screen", results), _tried(choice.candidates, results, question.objective, failed)
                )
        failed |= broken
    raise RunError("settings make the workload fail again and again", hint="see ajuste report for the runs")


def _broken(measurement: MeasuredExperiment) -> dict[tuple[str, str], str]:
    # The levels with which every trial of the first block broke, and why; nothing if the baseline broke, too.
    resolved = measurement.experiment.resolved
    whole: dict[str, str] = {}
    for trial in measurement.store.trials(measurement.run):
        name = trial.slot.configuration
        whole[name] = "" if trial.status == "ok" else whole.get(name, trial.reason)
    if whole.get(resolved.baseline):
        return {}
    sets = resolved.study.factors[-1].settings
    return {
        pair: reason
        for name, reason in whole.items()
        if reason
        for level in resolved.find(name).configuration.levels.values()
        for pair in sets.get(level, {}).items()
    }


def _tried(
    candidates: Sequence[Candidate], results: Results, objective: str, failed: Mapping[tuple[str, str], str]
) -> tuple[Tried, ...]:
    names = {level: measured.name for measured in results.configurations for level in measured.levels.values()}
    verdicts = {verdict.configuration: verdict for verdict in results.verdicts if verdict.metric == objective}
    return tuple(
        Tried(
            setting=candidate.setting,
            level=level,
            verdict=verdicts.get(names.get(named_level((candidate.setting, level)), "")),
            problem=failed.get((candidate.setting, level), ""),
        )
        for candidate in candidates
        for level in candidate.levels
    )


def stage_of(name: str, results: Results) -> Stage:
    """Return the stage that a run was, for the advice."""
    return Stage.model_validate(
        {"name": name, "run": results.run, "trials": results.tally.trials, "answer": results.answer}
    )


@dataclass(frozen=True)
class Best:
    """The best combination: the level of each setting that is changed."""

    lines: Mapping[str, str]
    stages: tuple[Stage, ...] = field(default=())


def search(question: Question, helpful: Mapping[str, Sequence[Tried]]) -> Best:
    """Find the best combination of levels that help by themselves; with one setting that is its best level."""
    several = dict(list(_without_companions(question, helpful).items())[:MOST_TOGETHER])
    alone = {setting: rows[0].level for setting, rows in several.items()}
    if len(several) < 2:
        return Best(alone)
    question.say(f"3/4 find: combinations of {count_of(len(several), 'setting')}")
    combinations = math.prod(len(rows) + 1 for rows in several.values())
    factors = [setting_factor(setting, [row.level for row in rows]) for setting, rows in several.items()]
    minutes = question.minutes(SEARCH_SHARE)
    if combinations <= _MOST_COMBINATIONS:
        study = question.study(
            "search",
            factors,
            analysis={"metrics": [question.objective]},
            design={"combine": "all", "allocation": "best"},
            budget={"min_blocks": MIN_BLOCKS, "max_minutes": minutes},
        )
        with question.measured(study) as measurement:
            results = measurement.results()
        winner = next((ranking.winner for ranking in results.rankings if ranking.metric == question.objective), "")
    else:
        study = question.study(
            "search", factors, analysis={"metrics": [question.objective]}, budget={"max_minutes": minutes}
        )
        with question.measured(study, Search(objectives=(question.objective,))) as measurement:
            results = measurement.results()
        winner = results.tuning.winner or "" if results.tuning is not None else ""
    levels = next((measured.levels for measured in results.configurations if measured.name == winner), alone)
    lines = {setting: level for setting, level in levels.items() if level != AS_IT_IS and setting in several}
    return Best(lines or alone, (stage_of("search", results),))


def _without_companions(question: Question, helpful: Mapping[str, Sequence[Tried]]) -> dict[str, Sequence[Tried]]:
    # Of settings that the kernel changes together only the best.
    chosen: dict[str, Sequence[Tried]] = {}
    for setting, rows in helpful.items():
        tunable = question.catalogue.find_tunable(setting)
        if not any(name.partition("[")[0] in tunable.companions for name in chosen):
            chosen[setting] = rows
    return chosen
