"""Trying settings: a screen of each level by itself, then the combinations of those that help."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ajuste.model.error import RunError
from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste.model.wording import count_of
from ajuste.run.experiment import MeasuredExperiment
from ajuste.study.command_line.study import AS_IT_IS
from ajuste_advise.budget import LIMIT, MIN_BLOCKS, SCREEN, SEARCH
from ajuste_advise.candidates import STAGE, Choice
from ajuste_advise.model import Candidate, Stage, StageName, Tried, better_by, gain
from ajuste_advise.question import Question, named_level, one_factor, setting_factor
from ajuste_search.tuning.goal import Constraint

MOST_SCREEN_BLOCKS: Final = 20
MOST_TOGETHER: Final = 4
"""Maximum number of settings whose combinations are searched."""

# As many as four settings of two levels have; with more levels than that, each setting has its best one only.
_MOST_COMBINATIONS: Final = 2**MOST_TOGETHER
_TRIES: Final = 6


@dataclass(frozen=True)
class Screen:
    """The findings of the screen: every level by itself on the objective."""

    stage: Stage
    tried: tuple[Tried, ...]

    def promising(self, smallest_effect: float) -> dict[str, list[Tried]]:
        """Return the levels that look better by more than ``smallest_effect``, the best setting and level first."""
        by_setting: dict[str, list[Tried]] = {}
        for row in sorted(self.tried, key=lambda row: row.gain, reverse=True):
            if row.keeps and row.gain > smallest_effect:
                by_setting.setdefault(row.setting, []).append(row)
        return by_setting

    @property
    def certain(self) -> dict[str, list[Tried]]:
        """Return the levels that are certainly better by themselves, as those that are promising."""
        sure = [row for row in self.tried if row.verdict is not None and row.verdict.verdict == "improves"]
        return Screen(self.stage, tuple(sure)).promising(0.0)

    @property
    def at_most(self) -> float | None:
        """Return the largest improvement that a level may still have, as a share; None where one is not known."""
        limits = [_largest_gain(row.verdict) for row in self.tried if row.verdict is not None]
        known = [limit for limit in limits if limit is not None]
        return max((0.0, *known)) if limits and len(known) == len(limits) else None


def _largest_gain(verdict: Verdict) -> float | None:
    # As a share of the baseline: 0.04 where it is at most 4 % better.
    return better_by(verdict, verdict.low if verdict.direction == "lower" else verdict.high)


def screen_blocks(question: Question, spread: float) -> int:
    """Return how many blocks the screen needs so that an effect that matters stands out of a ``spread`` like this."""
    needed = 2 * (spread / question.smallest_effect) ** 2
    return min(MOST_SCREEN_BLOCKS, max(MIN_BLOCKS, math.ceil(needed)))


def smallest_seen(spread: float, blocks: int) -> float:
    """Return the effect, as a share, that stands out of a ``spread`` in so many blocks: what ``screen_blocks`` asks."""
    return spread * math.sqrt(2 / blocks)


def screen(question: Question, choice: Choice, blocks: int) -> Screen:
    """Try each level of the candidates by itself. Levels with which the workload fails are left out, and named."""
    count = sum(len(candidate.levels) for candidate in choice.candidates)
    question.say(f"3/4 find: {count_of(len(choice.candidates), 'setting')}, {count_of(count, 'level')}, each by itself")
    return _screened(question, choice, SCREEN, blocks, blocks)


def limit(question: Question, choice: Choice, blocks: int) -> Screen:
    """Go on with the screen, to find out how much better any level may still be."""
    question.say("4/4 nothing is proved: how much better could any setting still be?")
    return _screened(question, choice, SCREEN + LIMIT, blocks)


def _screened(question: Question, choice: Choice, share: float, min_blocks: int, max_blocks: int = 30) -> Screen:
    failed: dict[tuple[str, str], str] = {}
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
            analysis={"metrics": list(question.metrics)},
            budget=question.budget.table(share, len(levels) + 1, min_blocks=min_blocks, max_blocks=max_blocks),
        )
        with question.measured(study, may_fail=True) as measurement:
            broken = _broken(measurement) if measurement.run.stopped == "failed" else {}
            if measurement.run.stopped == "failed" and not broken:
                raise measurement.failure("the workload as it is")
            if not broken:
                results = measurement.results()
                tried = _tried(question, choice.candidates, results, question.limits(measurement), failed)
                return Screen(stage_of("screen", results), tried)
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
    question: Question,
    candidates: Sequence[Candidate],
    results: Results,
    limits: Sequence[Constraint],
    failed: Mapping[tuple[str, str], str],
) -> tuple[Tried, ...]:
    names = {level: measured.name for measured in results.configurations for level in measured.levels.values()}
    verdicts = {
        verdict.configuration: question.directed(verdict)
        for verdict in results.verdicts
        if verdict.metric == question.objective
    }
    return tuple(
        Tried(
            setting=setting,
            level=level,
            verdict=(verdict := verdicts.get(name := names.get(named_level((setting, level)), ""))),
            gain=0.0 if verdict is None else gain(verdict),
            problem=failed.get((setting, level), ""),
            keeps=question.keeps(limits, results, name),
        )
        for setting, level in ((candidate.setting, level) for candidate in candidates for level in candidate.levels)
    )


def stage_of(name: StageName, results: Results) -> Stage:
    """Return the stage that a run was, for the advice."""
    tally = results.tally
    return Stage(
        name=name,
        run=results.run,
        trials=tally.trials,
        blocks=results.blocks,
        failed=tally.failed,
        answer=results.answer,
    )


@dataclass(frozen=True)
class Best:
    """The best combination: the level of each setting that is changed."""

    lines: Mapping[str, str]
    stages: tuple[Stage, ...] = ()


def search(question: Question, promising: Mapping[str, Sequence[Tried]]) -> Best:
    """Find the best combination of promising levels: the fewest settings that reach it, up to what matters.

    With one setting that is its best level.
    """
    several = dict(list(_without_companions(question, promising).items())[:MOST_TOGETHER])
    if len(several) < 2:
        return Best({setting: rows[0].level for setting, rows in several.items()})
    question.say(f"3/4 find: combinations of {count_of(len(several), 'setting')}")
    most = min(_MOST_COMBINATIONS, question.budget.configurations(SEARCH, MIN_BLOCKS))
    if _combinations(several) > most:
        several = {setting: rows[:1] for setting, rows in several.items()}
    while _combinations(several) > most:
        several.popitem()
    study = question.study(
        "search",
        [setting_factor(setting, [row.level for row in rows]) for setting, rows in several.items()],
        analysis={"metrics": list(question.metrics)},
        budget=question.budget.table(SEARCH, _combinations(several), min_blocks=MIN_BLOCKS, max_blocks=MIN_BLOCKS),
    )
    with question.measured(study) as measurement:
        results, limits = measurement.results(), question.limits(measurement)
    gains = _gains_of_combinations(question, results, limits)
    return Best(fewest(gains, question.smallest_effect), (stage_of("search", results),))


def _combinations(several: Mapping[str, Sequence[Tried]]) -> int:
    return math.prod(len(rows) + 1 for rows in several.values())


def fewest(gains: Mapping[tuple[tuple[str, str], ...], float], smallest_effect: float) -> dict[str, str]:
    """Return the combination of the fewest levels that is as good as the best, up to ``smallest_effect``; nothing
    where none is better than all as it is.
    """
    best = max(gains.values(), default=0.0)
    enough = [lines for lines, by in gains.items() if 0 < by >= best - smallest_effect]
    enough.sort(key=lambda lines: (len(lines), -gains[lines]))
    return dict(enough[0]) if enough else {}


def _gains_of_combinations(
    question: Question, results: Results, limits: Sequence[Constraint]
) -> dict[tuple[tuple[str, str], ...], float]:
    # By the settings that a combination changes.
    levels = {
        measured.name: tuple((setting, level) for setting, level in measured.levels.items() if level != AS_IT_IS)
        for measured in results.configurations
    }
    return {
        levels[verdict.configuration]: gain(question.directed(verdict))
        for verdict in results.verdicts
        if verdict.metric == question.objective and question.keeps(limits, results, verdict.configuration)
    }


def _without_companions(question: Question, helpful: Mapping[str, Sequence[Tried]]) -> dict[str, Sequence[Tried]]:
    # Of settings that the kernel changes together only the best.
    chosen: dict[str, Sequence[Tried]] = {}
    for setting, rows in helpful.items():
        tunable = question.catalogue.find_tunable(setting)
        if not any(name.partition("[")[0] in tunable.companions for name in chosen):
            chosen[setting] = rows
    return chosen
