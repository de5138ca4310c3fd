"""The figures of a student's own runs and data: what answers are compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from ajuste.model.error import RequestError
from ajuste.model.results import Results
from ajuste.model.three_sigma import THREE_SIGMA
from ajuste.model.verdict import Verdict
from ajuste.outputs.format import ResultSource
from ajuste.run.outcome import results_of, with_three_sigma
from ajuste.store.store import Run, Store
from ajuste.study.resolved import ResolvedStudy
from ajuste_analyse.files import read_source
from ajuste_analyse.verdicts import TableQuestion, analyse_table
from ajuste_course.sheet import AskStep, Figure, MeasureStep, PredictStep, Sheet, SimulateStep
from ajuste_course.simulation import BASE, made_configuration, made_data
from ajuste_course.student import drawn, filled_for
from ajuste_course.study import configuration_name
from ajuste_course.workbook import Prediction, Workbook, predictions_before

FIRST_LOOK: Final = 3
"""Blocks before the first look of a student who peeks."""
PEEKING_LEVEL: Final = 0.05


@dataclass(frozen=True)
class Outcome:
    """The results of a step; ``resolved`` is its study, None of made data."""

    results: Results
    resolved: ResolvedStudy | None

    def configuration(self, wanted: str) -> str:
        """Return the name of a configuration that the sheet names. Raises RequestError."""
        if self.resolved is not None:
            return configuration_name(self.resolved, wanted)
        return made_configuration(wanted)

    def verdict(self, configuration: str, metric: str) -> Verdict | None:
        """Return the verdict on a configuration, None where there is none."""
        name = self.configuration(configuration)
        verdicts = (each for each in self.results.verdicts if (each.configuration, each.metric) == (name, metric))
        return next(verdicts, None)


Outcomes: TypeAlias = Mapping[str, Outcome]
"""The outcomes of a sheet by the name of the step."""


def run_outcome(run: Run, store: Store) -> Outcome:
    """Return the outcome of a run in a store."""
    resolved = ResolvedStudy.model_validate_json(run.resolved)
    results = results_of(run, store)
    if not THREE_SIGMA.of(results) and len(resolved.configurations) > 1:
        with suppress(RequestError):  # effects of factors are not compared by this rule
            results = with_three_sigma(results, run, store)
    return Outcome(results, resolved)


def made_outcome(sheet: Sheet, step: SimulateStep, workbook: Workbook) -> Outcome:
    """Return what ``ajuste analyse`` finds in the student's made data."""
    data = made_data(sheet, step, workbook.student, workbook.seed(sheet, step.name))
    table = read_source(ResultSource(data.text(), step.name, Path(f"{step.name}.csv")))
    return Outcome(analyse_table(table, TableQuestion(baseline=BASE, smallest_effect=0.02, three_sigma=True)), None)


def outcomes_of(sheet: Sheet, workbook: Workbook, runs: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """Return all outcomes of a workbook: those of its ``runs``, and of the made data of its sheet."""
    made = {
        step.name: made_outcome(sheet, step, workbook)
        for step in sheet.kind(SimulateStep)
        if all(predicted.name in workbook.predictions for predicted in predictions_before(sheet, step.name))
    }
    return {**runs, **made}


def figure(wanted: Figure, outcomes: Outcomes) -> float | str | None:
    """Return a figure, None if the run does not have it. Raises RequestError for a name that it does not know."""
    outcome = outcomes.get(wanted.study)
    if outcome is None:
        return None
    results, name = outcome.results, outcome.configuration(wanted.configuration)
    if wanted.of == "blocks":
        return float(results.blocks or max((point.block + 1 for point in results.trials), default=0))
    summaries = {each.name: each.metrics.get(wanted.metric) for each in results.configurations}
    baseline = next((each.name for each in results.configurations if each.baseline), "")
    summary, reference = summaries.get(name), summaries.get(baseline)
    if wanted.of in ("mean", "median", "sd", "n"):
        value = None if summary is None else getattr(summary, wanted.of)
        return None if value is None else float(value)
    if wanted.of == "ratio":
        return summary.mean / reference.mean if summary and reference and reference.mean else None
    if wanted.of == "three-sigma":
        rows = (row for row in THREE_SIGMA.of(results) if (row.configuration, row.metric) == (name, wanted.metric))
        differs = next((row.means_differ for row in rows), None)
        return None if differs is None else "differs" if differs else "same"
    if wanted.of == "peeks":
        return float(_peeks(results, wanted.metric, baseline, name))
    verdict = outcome.verdict(wanted.configuration, wanted.metric)
    if verdict is None:
        return None
    if wanted.of == "verdict":
        return verdict.verdict
    if wanted.of == "change":
        ratio = ratio_of(verdict)
        return None if ratio is None else (ratio - 1) * 100
    value = getattr(verdict, wanted.of)
    return None if value is None else float(value)


def ratio_of(verdict: Verdict) -> float | None:
    """Return the ratio to the baseline, also where a metric is compared by differences; None where there is none."""
    if verdict.scale == "ratio":
        return verdict.estimate if verdict.estimate and verdict.estimate > 0 else None
    return verdict.new / verdict.old if verdict.old and verdict.new and verdict.new / verdict.old > 0 else None


def _peeks(results: Results, metric: str, baseline: str, name: str) -> int:
    # How often somebody who does a paired t test after each block finds p < 0.05, which holds for one look only.
    by_block: dict[str, dict[int, float]] = {baseline: {}, name: {}}
    for point in results.trials:
        if point.configuration in by_block and point.status == "ok" and not point.warm_up and metric in point.metrics:
            by_block[point.configuration][point.block] = point.metrics[metric]
    blocks = sorted(by_block[baseline].keys() & by_block[name].keys())
    pairs = [(by_block[baseline][block], by_block[name][block]) for block in blocks]
    looks = range(FIRST_LOOK, len(pairs) + 1)
    return sum(_different(pairs[:look]) for look in looks)


def _different(pairs: Sequence[tuple[float, float]]) -> bool:
    from scipy.stats import ttest_rel  # few sheets ask for it

    if len({other - base for base, other in pairs}) < 2:
        return any(base != other for base, other in pairs)
    base, other = zip(*pairs, strict=True)
    return bool(ttest_rel(base, other).pvalue < PEEKING_LEVEL)


def right_answer(sheet: Sheet, step: AskStep, student: str, outcomes: Outcomes) -> float | int | None:
    """Return the right answer to a question: the number of the choice, or the number; None where nothing says it."""
    if step.answer is not None:
        return step.answer
    if step.figure is None:
        return None
    values = drawn(sheet, student)
    value = figure(filled_for(step.figure, values), outcomes)
    if value is None:
        return None
    if step.answer_by == "choice":
        return _choice(step, value)
    if isinstance(value, str):
        return None
    if step.per is not None:
        divisor = figure(filled_for(step.per, values), outcomes)
        return value / divisor if isinstance(divisor, float) and divisor else None
    return value


def _choice(step: AskStep, value: float | str) -> int | None:
    # A value may be a word, several (`improves|worsens`), or a range of a number: `..0.05`, `0.05..`.
    for number, text in enumerate(step.values, 1):
        if isinstance(value, str):
            if value in text.split("|"):
                return number
        elif ".." in text:
            low, _, high = text.partition("..")
            if (not low or value >= float(low)) and (not high or value < float(high)):
                return number
        elif math.isclose(value, float(text), rel_tol=1e-9):
            return number
    return None


def is_right(step: AskStep, value: float | str, right: float) -> bool:
    """Return whether an answer is right within the question's tolerance; a whole number may be off by rounding."""
    if isinstance(value, str):
        return False
    if step.answer_by == "choice":
        return value == right
    return abs(value - right) <= step.tolerance * abs(right) + _rounding(right)


def _rounding(right: float) -> float:
    # Three significant digits are enough for anybody.
    return 0.0 if right == 0 else 0.5 * 10.0 ** (math.floor(math.log10(abs(right))) - 2)


@dataclass(frozen=True)
class Predicted:
    """The outcome of a prediction: whether its direction, and its size, are right; None where that is not known.

    ``estimate`` is the measured ratio.
    """

    direction: bool | None
    size: bool | None
    estimate: float | None


def judged(step: PredictStep, sheet: Sheet, student: str, prediction: Prediction, outcomes: Outcomes) -> Predicted:
    """Compare a prediction with what was measured."""
    outcome = outcomes.get(step.study)
    wanted = filled_for(step, drawn(sheet, student))
    verdict = outcome and outcome.verdict(wanted.configuration, wanted.metric)
    if not verdict or verdict.estimate is None:
        return Predicted(None, None, None)
    changed = verdict.verdict in ("improves", "worsens", "differs")
    ratio = ratio_of(verdict)
    if prediction.direction == "same":
        return Predicted(not changed, not changed, ratio)
    grows = verdict.estimate > (1 if verdict.scale == "ratio" else 0)
    right = changed and grows == (prediction.direction == "rises")
    if ratio is None or ratio == 1:
        return Predicted(right, None, ratio)
    size = abs(math.log(prediction.ratio)) / abs(math.log(ratio))
    return Predicted(right, right and 1 / step.within <= size <= step.within, ratio)


def expectation_problems(step: MeasureStep, sheet: Sheet, student: str, outcome: Outcome) -> list[str]:
    """Return what of the sheet's mechanism the figures do not show."""
    problems = []
    for expected in filled_for(step, drawn(sheet, student)).expect:
        verdict = outcome.verdict(expected.configuration, expected.metric)
        word = verdict.verdict if verdict else "no verdict"
        if word not in expected.verdict:
            wanted = " or ".join(expected.verdict)
            problems.append(f"{expected.configuration} on {expected.metric}: expected {wanted}, found {word}")
    return problems
