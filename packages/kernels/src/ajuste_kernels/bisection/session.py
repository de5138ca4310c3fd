"""A bisection's steps: the study of each, its measurement and outcome, and the result as one document."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from ajuste.catalogue.loader import Catalogue
from ajuste.model.base import BaseModel
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.trial import KERNEL_FACTOR, Trial
from ajuste.model.verdict import Verdict
from ajuste.model.wording import count_of
from ajuste.report.format import duration
from ajuste.report.html import write_report
from ajuste.report.results import results_report
from ajuste.run.experiment import measured
from ajuste.run.testbed import RunOptions
from ajuste.study.factors import SCHED_EXT
from ajuste.study.metrics import deciding_metrics
from ajuste.study.schema import FactorTable, SchedulerTable, Study
from ajuste_kernels.building.configuration import OptionsConflict
from ajuste_stats.bisection import Outcome, confidence_of_each
from ajuste_stats.sign_intervals import fewest_blocks

Kind = Literal["versions", "options", "revisions"]

STALLS: Final = "stalls"
"""The metric of a bisection whose bad end fails trials: its workload or guest hangs, its scheduler does not load or is
ejected."""

CERTAIN: Final = frozenset({"improves", "worsens", "differs"})

# Factor by which an undecided step's blocks grow, up to the study's budget.
_MORE: Final = 2

StudyOfStep = Callable[[Study, str, str, str, int], Study]
"""Takes a study, the metric, the good end, a candidate and the number of verdicts; returns the study of a step."""


class Step(BaseModel):
    """A candidate against the good end. ``verdict``, ``run`` and the file ``report`` exist if it was measured; ``note``
    says why it was not, or how its trials failed.
    """

    candidate: str
    kernel: str = ""
    outcome: Outcome
    verdict: Verdict | None = None
    run: str = ""
    report: str = ""
    note: str = ""


class BisectionResult(BaseModel):
    """The result. ``culprits`` are the versions or revisions one of which brought the difference, oldest first, or the
    options that together make it. ``good`` does not have it; ``among`` is the number of candidates. The first of
    ``steps`` is the bad end.
    """

    kind: Kind
    study: str
    metric: str
    good: str
    bad: str
    among: int
    steps: tuple[Step, ...]
    culprits: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    @property
    def is_certain(self) -> bool:
        """Return whether no undecided or unusable candidate could be the culprit instead."""
        if self.kind == "options":
            return all(step.outcome in ("there", "absent", "impossible") for step in self.steps)
        return len(self.culprits) == 1

    def answer(self) -> str:
        """Return the result as a sentence."""
        if self.kind == "options":
            named = ", ".join(self.culprits)
            makes = "1 makes" if len(self.culprits) == 1 else f"{len(self.culprits)} make"
            text = f"Of {self.among} differing options, {makes} the difference: {named}"
            if self.is_certain:
                return f"{text}." if len(self.culprits) == 1 else f"{text}; all are required."
            return f"{text}. Some steps were undecided, so a smaller set may be enough."
        before = f"not yet in {self.good}"
        if len(self.culprits) == 1:
            return f"The difference first appears in {self.culprits[0]} (of {self.among} {self.kind}; {before})."
        named = ", ".join(self.culprits)
        return f"The difference first appears in one of {named}; the steps between them were undecided ({before})."


# From verdicts to outcomes.


def is_difference(ends: Verdict) -> bool:
    """Return whether the bad end differs significantly from the good one."""
    return ends.verdict in CERTAIN and ends.estimate is not None


def outcome_of(ends: Verdict, candidate: Verdict) -> Outcome:
    """Return whether ``candidate`` has the difference between the ends; both are compared with the good end.

    It has it if its whole interval lies beyond half of the difference, and lacks it if the whole interval lies below
    half; otherwise it is undecided. Ratios are halved on the logarithmic scale. So a small difference of another step
    is not mistaken for the one that is bisected.
    """
    sought = _size(ends.estimate, ends.scale == "ratio")
    ratio = candidate.scale == "ratio"
    if candidate.scale != ends.scale or candidate.estimate is None or not sought:
        return "undecided"
    low = -math.inf if candidate.low is None else _size(candidate.low, ratio)
    high = math.inf if candidate.high is None else _size(candidate.high, ratio)
    if sought < 0:
        # Mirror a decrease, so that only increases remain.
        sought, low, high = -sought, -high, -low
    half = sought / 2
    if low > half:
        return "there"
    return "absent" if high < half else "undecided"


@dataclass(frozen=True)
class Failures:
    """The trials of one level: their number, how many failed, and the reason of the last failure."""

    trials: int = 0
    failed: int = 0
    reason: str = ""

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.failed} of {count_of(self.trials, 'trial')} failed{reason}"


def trials_without_failure(bad: Failures, confidence: float) -> int:
    """Return how many trials must succeed to distinguish a candidate from a bad end with failures: as many as would all
    succeed there with a probability of at most 1 - ``confidence``.
    """
    if bad.failed >= bad.trials:
        return 1
    return math.ceil(math.log(1 - confidence) / math.log(1 - bad.failed / bad.trials))


def _size(value: float | None, ratio: bool) -> float:
    if value is None:
        return 0.0
    if not ratio:
        return value
    # The interval of a ratio may reach 0.
    return math.log(value) if value > 0 else -math.inf


# Each step is a run of the study in the store, so it is never measured twice.


@dataclass(frozen=True)
class StepMeasurement:
    """The verdict of a step's run, absent if trials failed, with the file of its ``report``."""

    verdict: Verdict | None
    run: str
    report: str
    good: Failures = Failures()
    candidate: Failures = Failures()


@dataclass
class BisectionSession:
    """Measures candidates against ``good``.

    ``measure`` carries out a study, or resumes it with a larger budget; it raises RequestError or RunError. ``tests``
    is the expected number of verdicts: all of them together have the study's confidence. If trials of the bad end
    fail, the session searches for the cause of the failures.
    """

    study: Study
    metric: str
    good: str
    measure: Callable[[Study], StepMeasurement]
    tests: int
    say: Callable[[str], None]
    study_of_step: StudyOfStep = field(default_factory=lambda: step_study)
    steps: list[Step] = field(default_factory=list)
    _ends: Verdict | None = None
    _bad: Failures = Failures()
    _seconds: list[float] = field(default_factory=list)

    def measure_ends(self, kernel: str, label: str, good: str = "") -> None:
        """Measure the bad end against the good one, which messages call ``good``. Raises RequestError if its kernel
        cannot be measured, RunError if the ends do not differ significantly.
        """
        good = good or self.good
        self.say(f"the ends: {label} against {good}")
        measurement = self._measured(kernel)
        self._require_sound(measurement, good)
        verdict = measurement.verdict
        if measurement.candidate.failed:
            if self.metric != STALLS:
                self.say(f"trials of {label} fail, so the search is for what makes them fail, not for {self.metric}")
            self.metric, self._bad = STALLS, measurement.candidate
            self.steps.append(self._step(label, kernel, "there", measurement))
            return
        if self.metric == STALLS or verdict is None:
            trials = count_of(measurement.candidate.trials, "trial")
            raise RunError(
                f"all {trials} of {label} succeeded, so there is nothing to bisect",
                hint=f"give a --metric, another study or a larger budget; see ajuste report {measurement.run}",
            )
        ends: Outcome = "there" if is_difference(verdict) else "undecided"
        if verdict.verdict == "equivalent":
            ends = "absent"
        self.steps.append(self._step(label, kernel, ends, measurement))
        if ends != "there":
            raise RunError(
                f"no significant difference between {label} and {good} in {self.metric} ({verdict.verdict}: "
                f"{verdict.reason.rstrip('.')}), so there is nothing to bisect",
                hint=f"try another --metric or study, or a larger budget; see ajuste report {measurement.run}",
            )
        self._ends = verdict

    def test(self, label: str, kernel: Callable[[], str]) -> Outcome:
        """Return whether a candidate has the difference. ``kernel`` returns its spec and may build it first. A kernel
        that cannot be built or booted is unusable; options that exclude each other are impossible. Raises all other
        errors, such as a full disk: they say nothing of the candidate.
        """
        done, seconds = len(self.steps), self._seconds
        left = self.tests - done
        about = f", about {duration(left * sum(seconds) / len(seconds))} left" if seconds and left >= 1 else ""
        self.say(f"step {done} of about {max(self.tests - 1, done)}: {label}{about}")
        began = time.monotonic()
        spec = ""
        try:
            spec = kernel()
            if spec == self.good:
                step = Step(candidate=label, kernel=spec, outcome="absent", note="the same as the good end")
            else:
                measurement = self._measured(spec)
                self._require_sound(measurement, self.good)
                step = self._step(label, spec, self._outcome(measurement), measurement)
        except AjusteError as error:
            if not error.of_candidate:
                raise
            outcome: Outcome = "impossible" if isinstance(error, OptionsConflict) else "unusable"
            step = Step(candidate=label, kernel=spec, outcome=outcome, note=str(error).partition("\n")[0])
        self._seconds.append(time.monotonic() - began)
        self.steps.append(step)
        self.say(f"  {label}: {step.outcome}{f' ({step.note})' if step.note else ''}")
        return step.outcome

    def _step(self, label: str, kernel: str, outcome: Outcome, measurement: StepMeasurement) -> Step:
        by_failures = self.metric == STALLS or measurement.candidate.failed > 0
        return Step(
            candidate=label,
            kernel=kernel,
            outcome=outcome,
            verdict=None if by_failures else measurement.verdict,
            run=measurement.run,
            report=measurement.report,
            note=str(measurement.candidate) if by_failures else "",
        )

    def _outcome(self, measurement: StepMeasurement) -> Outcome:
        candidate = measurement.candidate
        if self.metric == STALLS:
            if candidate.failed:
                return "there"
            return "absent" if candidate.trials >= self._trials_needed() else "undecided"
        # Its failures hide the metric, and the bad end does not fail: they are another regression.
        if candidate.failed or measurement.verdict is None:
            return "unusable"
        assert self._ends is not None, "measuring both ends first"
        return outcome_of(self._ends, measurement.verdict)

    def _require_sound(self, measurement: StepMeasurement, good: str) -> None:
        if measurement.good.failed:
            raise RunError(
                f"the good end {good} fails as well: {measurement.good}",
                hint=f"give an older --good, or another study; see ajuste report {measurement.run}",
            )

    def _trials_needed(self) -> int:
        return trials_without_failure(self._bad, confidence_of_each(self.study.analysis.confidence, self.tests))

    def _measured(self, kernel: str) -> StepMeasurement:
        metric = self.study.analysis.metrics[0] if self.metric == STALLS else self.metric
        study = self.study_of_step(self.study, metric, self.good, kernel, self.tests)
        if self._bad.failed:
            blocks = min(study.budget.max_blocks, max(study.budget.min_blocks, self._trials_needed()))
            study = _with_blocks(study, blocks, blocks)
        most = study.budget.max_blocks
        if self._ends is not None:
            # Half of the difference is excluded long before the verdict of the study itself is decided.
            blocks = min(most, max(study.budget.min_blocks, fewest_blocks(1 - study.analysis.confidence)))
            study = _with_blocks(study, blocks, blocks)
        while True:
            measurement = self.measure(study)
            verdict, budget = measurement.verdict, study.budget
            if verdict is None or self._ends is None or self._outcome(measurement) != "undecided":
                return measurement
            blocks = min(most, _MORE * max(verdict.blocks, budget.min_blocks))
            # The budget cannot grow any more.
            if verdict.blocks >= most or blocks <= budget.min_blocks:
                return measurement
            study = _with_blocks(study, blocks, blocks)


def _with_blocks(study: Study, least: int, most: int) -> Study:
    limits = {"min_blocks": least, "max_blocks": most}
    return study.model_copy(update={"budget": study.budget.model_copy(update=limits)})


def step_study(study: Study, metric: str, good: str, kernel: str, tests: int) -> Study:
    """Return ``study`` as a comparison of two kernels in one metric: without its factors, so each kernel has its own
    defaults. Raises RequestError.
    """
    question = _study_of_two(study, metric, FactorTable(name=KERNEL_FACTOR, levels=(good, kernel)), tests)
    # The kernel is a factor now, so the target has none.
    return question.model_copy(update={"target": study.target.model_copy(update={"kernel": None})})


def scheduler_study(study: Study, metric: str, good: SchedulerTable, candidate: SchedulerTable, tests: int) -> Study:
    """Return ``study`` as a comparison of two BPF schedulers on its kernel. Raises RequestError."""
    question = _study_of_two(study, metric, FactorTable(name=SCHED_EXT, levels=(good.name, candidate.name)), tests)
    # Each trial proves that its scheduler was loaded; a kernel's own ones are not needed.
    proofs = tuple(name for name in study.target.prove if name != SCHED_EXT)
    return question.model_copy(
        update={
            "schedulers": tuple({table.name: table for table in (good, candidate)}.values()),
            "target": study.target.model_copy(update={"prove": proofs}),
        }
    )


def _study_of_two(study: Study, metric: str, factor: FactorTable, tests: int) -> Study:
    if study.target.on_host:
        raise RequestError(f"{study.name} runs on this machine; a bisection requires guests", hint="add --target vm")
    good, candidate = factor.levels
    confidence = min(0.9999, confidence_of_each(study.analysis.confidence, tests))
    # Enough for the study alone may be too few for so many verdicts together.
    most = max(study.budget.max_blocks, fewest_blocks(1 - confidence))
    analysis = study.analysis.model_copy(
        update={
            "metrics": (metric,),
            "confidence": confidence,
            "explain": False,
            "prediction": None,
            "three_sigma": False,
        }
    )
    return study.model_copy(
        update={
            "name": f"bisect-{study.name}"[:64],
            "title": f"{study.title or study.name}: {candidate} against {good}",
            "question": f"Does {candidate} differ from {good} in {metric}?",
            "factors": (factor,),
            "expect": None,
            "analysis": analysis,
            "design": study.design.model_copy(update={"combine": "all", "allocation": None}),
            "budget": study.budget.model_copy(update={"max_blocks": most}),
        }
    )


# A step's study is carried out in the store, with a display while it runs and a report at the end.


@dataclass(frozen=True)
class Measuring:
    """Carries out studies of steps, or reuses their runs. ``named`` is the command of the bisection, as typed."""

    catalogue: Catalogue
    options: RunOptions
    named: str
    quiet: bool = False

    def __call__(self, study: Study) -> StepMeasurement:
        """Measure ``study``. Raises RequestError if a kernel does not boot, RunError if the run fails."""
        metric = deciding_metrics(study, self.catalogue)[0]
        with measured(study, self.catalogue, self.options, named=self.named, quiet=self.quiet) as measurement:
            run, results, trials = measurement.run, measurement.results(), measurement.store.trials(measurement.run)
        good, candidate = (
            _failures(trials, f"{factor.name}={level}") for factor in study.factors for level in factor.levels
        )
        failed = good.failed or candidate.failed
        if run.stopped == "failed" and not failed:
            raise RunError(f"the study failed: {run.stopped_because}", of_candidate=True)
        verdict = next((verdict for verdict in results.verdicts if verdict.metric == metric.name), None)
        if verdict is None and not failed:
            raise RunError(f"no verdict on {metric.name}: {run.stopped_because}", of_candidate=True)
        report = self.options.home.reports / f"{run.id}.html"
        write_report(results_report(results), report)
        return StepMeasurement(verdict, run.id, str(report), good, candidate)


def _failures(trials: Sequence[Trial], configuration: str) -> Failures:
    matches = [trial for trial in trials if trial.slot.configuration == configuration]
    reasons = [trial.reason for trial in matches if trial.status == "failed"]
    return Failures(len(matches), len(reasons), reasons[-1].partition("\n")[0] if reasons else "")
