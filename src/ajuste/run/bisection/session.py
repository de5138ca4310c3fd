"""What a bisection did and found, as one document."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from ajuste.analysis.signs import fewest_blocks
from ajuste.catalogue.loader import Catalogue
from ajuste.design.bisection import Outcome, confidence_of_each
from ajuste.kernel.building.configuration import OptionsConflict
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
from ajuste.study.measures import deciding_metrics
from ajuste.study.schema import FactorTable, SchedulerTable, Study
from ajuste.study.settings import SCHED_EXT

Kind = Literal["versions", "options", "revisions"]


class Step(BaseModel):
    """One candidate against the good end. ``verdict`` and ``run`` are there if it was measured, ``report`` is the file
    of its report; ``note`` says why it could not be, or how its trials failed.
    """

    candidate: str
    kernel: str = ""
    outcome: Outcome
    verdict: Verdict | None = None
    run: str = ""
    report: str = ""
    note: str = ""


class BisectionResult(BaseModel):
    """``culprits`` are the versions or revisions with one of which the difference came, oldest first, or the options
    that together make it. ``good`` is known not to have it, ``among`` is how many candidates there were. The first of
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
        """Whether there is nothing that could not be told and might be to blame instead."""
        if self.kind == "options":
            return all(step.outcome in ("there", "absent", "impossible") for step in self.steps)
        return len(self.culprits) == 1

    def answer(self) -> str:
        """In a sentence."""
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


# What the verdict of one step of a bisection says of the difference that is sought.


STALLS: Final = "stalls"
"""The metric of a bisection whose bad end fails trials: its workload or guest hangs, its scheduler does not load or is
ejected."""

CERTAIN: Final = frozenset({"improves", "worsens", "differs"})


def is_difference(ends: Verdict) -> bool:
    """Whether the bad end certainly differs from the good one, so that there is something to seek."""
    return ends.verdict in CERTAIN and ends.estimate is not None


def outcome_of(ends: Verdict, candidate: Verdict) -> Outcome:
    """Whether the difference between the ends is in ``candidate``, both compared with the good end.

    It is there where the whole interval of the candidate lies beyond half of that difference, absent where the whole
    interval does not reach half of it; otherwise the measurements do not decide it. Ratios are halved on the
    logarithmic scale. So a small difference of another step is not taken for the one that you look for.
    """
    sought = _size(ends.estimate, ends.scale == "ratio")
    ratio = candidate.scale == "ratio"
    if candidate.scale != ends.scale or candidate.estimate is None or not sought:
        return "undecided"
    low = -math.inf if candidate.low is None else _size(candidate.low, ratio)
    high = math.inf if candidate.high is None else _size(candidate.high, ratio)
    if sought < 0:
        sought, low, high = -sought, -high, -low
    half = sought / 2
    if low > half:
        return "there"
    return "absent" if high < half else "undecided"


@dataclass(frozen=True)
class Failures:
    """How many trials of one level failed, and why the last of them did."""

    trials: int = 0
    failed: int = 0
    reason: str = ""

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.failed} of {count_of(self.trials, 'trial')} failed{reason}"


def trials_without_failure(bad: Failures, confidence: float) -> int:
    """How many trials must go well until a candidate is distinguished from the bad end, some of whose trials failed: as
    many as would all go well there with a probability of at most 1 - ``confidence``.
    """
    if bad.failed >= bad.trials:
        return 1
    return math.ceil(math.log(1 - confidence) / math.log(1 - bad.failed / bad.trials))


def _size(value: float | None, ratio: bool) -> float:
    if value is None:
        return 0.0
    if not ratio:
        return value
    return math.log(value) if value > 0 else -math.inf


# The steps of a bisection: each a run of the study in the store, so that what was measured is never measured again.


# A step that is undecided goes on with so many times its blocks, up to the study's budget.
_MORE: Final = 2


@dataclass(frozen=True)
class StepMeasurement:
    """What a run of a study with one deciding metric came to; ``report`` is the file of its report. There is a verdict
    unless trials failed.
    """

    verdict: Verdict | None
    run: str
    report: str
    good: Failures = Failures()
    candidate: Failures = Failures()


StudyOfStep = Callable[[Study, str, str, str, int], Study]
"""Makes the study of a step: of a study, the metric, the good end, a candidate, and how many verdicts there will be."""


@dataclass
class BisectionSession:
    """Measures candidates against ``good``. ``measure`` carries out a study, or goes on with it where its budget is
    larger now, and raises RequestError or RunError where it cannot. ``tests`` is about how many verdicts the search
    takes: all of them together have the study's confidence. Where trials of the bad end fail, Ajuste searches for what
    makes them fail.
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
        """The bad end first; ``good`` is how the good one is called. Raises RequestError where its kernel cannot be
        measured, RunError where it does not certainly differ from the good one: then there is nothing to seek.
        """
        good = good or self.good
        self.say(f"the ends: {label} against {good}")
        found = self._measured(kernel)
        self._require_sound(found, good)
        verdict = found.verdict
        if found.candidate.failed:
            if self.metric != STALLS:
                self.say(f"trials of {label} fail, so the search is for what makes them fail, not for {self.metric}")
            self.metric, self._bad = STALLS, found.candidate
            self.steps.append(self._step(label, kernel, "there", found))
            return
        if self.metric == STALLS or verdict is None:
            raise RunError(
                f"all {count_of(found.candidate.trials, 'trial')} of {label} succeeded, so there is nothing to bisect",
                hint=f"give a --metric, another study or a larger budget; see ajuste report {found.run}",
            )
        ends: Outcome = "there" if is_difference(verdict) else "undecided"
        if verdict.verdict == "equivalent":
            ends = "absent"
        self.steps.append(self._step(label, kernel, ends, found))
        if ends != "there":
            raise RunError(
                f"no significant difference between {label} and {good} in {self.metric} ({verdict.verdict}: "
                f"{verdict.reason.rstrip('.')}), so there is nothing to bisect",
                hint=f"try another --metric or study, or a larger budget; see ajuste report {found.run}",
            )
        self._ends = verdict

    def test(self, label: str, kernel: Callable[[], str]) -> Outcome:
        """Whether the difference is in a candidate. ``kernel`` gives its spec, and may build it first; what cannot be
        built or booted is unusable, and options that exclude each other are impossible.
        """
        self.say(f"step {len(self.steps)} of about {max(self.tests - 1, len(self.steps))}: {label}{self._left()}")
        began = time.monotonic()
        spec = ""
        try:
            spec = kernel()
            step = self._tested(label, spec)
        except AjusteError as error:
            outcome: Outcome = "impossible" if isinstance(error, OptionsConflict) else "unusable"
            step = Step(candidate=label, kernel=spec, outcome=outcome, note=str(error).partition("\n")[0])
        self._seconds.append(time.monotonic() - began)
        self.steps.append(step)
        self.say(f"  {label}: {step.outcome}{f' ({step.note})' if step.note else ''}")
        return step.outcome

    def _tested(self, label: str, spec: str) -> Step:
        if spec == self.good:
            return Step(candidate=label, kernel=spec, outcome="absent", note="the same as the good end")
        found = self._measured(spec)
        self._require_sound(found, self.good)
        return self._step(label, spec, self._outcome(found), found)

    def _step(self, label: str, kernel: str, outcome: Outcome, found: StepMeasurement) -> Step:
        by_failures = self.metric == STALLS or found.candidate.failed > 0
        return Step(
            candidate=label,
            kernel=kernel,
            outcome=outcome,
            verdict=None if by_failures else found.verdict,
            run=found.run,
            report=found.report,
            note=str(found.candidate) if by_failures else "",
        )

    def _outcome(self, found: StepMeasurement) -> Outcome:
        candidate = found.candidate
        if self.metric == STALLS:
            if candidate.failed:
                return "there"
            return "absent" if candidate.trials >= self._trials_needed() else "undecided"
        # Another regression than the one that is sought hides it.
        if candidate.failed or found.verdict is None:
            return "unusable"
        assert self._ends is not None, "measuring both ends first"
        return outcome_of(self._ends, found.verdict)

    def _require_sound(self, found: StepMeasurement, good: str) -> None:
        if found.good.failed:
            raise RunError(
                f"the good end {good} fails as well: {found.good}",
                hint=f"give an older --good, or another study; see ajuste report {found.run}",
            )

    def _trials_needed(self) -> int:
        return trials_without_failure(self._bad, confidence_of_each(self.study.analysis.confidence, self.tests))

    def _left(self) -> str:
        left = self.tests - len(self.steps)
        if not self._seconds or left < 1:
            return ""
        return f", about {duration(left * sum(self._seconds) / len(self._seconds))} left"

    def _measured(self, kernel: str) -> StepMeasurement:
        # What was measured of `kernel`, with more blocks until it tells or the budget is spent.
        metric = self.study.analysis.metrics[0] if self.metric == STALLS else self.metric
        study = self.study_of_step(self.study, metric, self.good, kernel, self.tests)
        if self._bad.failed:
            blocks = min(study.budget.max_blocks, max(study.budget.min_blocks, self._trials_needed()))
            study = _with_blocks(study, blocks, blocks)
        most = study.budget.max_blocks
        if self._ends is not None:
            # Half of the difference is excluded long before the verdict of the study itself is decided.
            least = max(study.budget.min_blocks, fewest_blocks(1 - study.analysis.confidence))
            study = _with_blocks(study, min(most, least), min(most, least))
        while True:
            found = self.measure(study)
            verdict, budget = found.verdict, study.budget
            if verdict is None or self._ends is None or self._outcome(found) != "undecided":
                return found
            blocks = min(most, _MORE * max(verdict.blocks, budget.min_blocks))
            if verdict.blocks >= most or blocks <= budget.min_blocks:
                return found
            study = _with_blocks(study, blocks, blocks)


def _with_blocks(study: Study, least: int, most: int) -> Study:
    limits = {"min_blocks": least, "max_blocks": most}
    return study.model_copy(update={"budget": study.budget.model_copy(update=limits)})


def step_study(study: Study, metric: str, good: str, kernel: str, tests: int) -> Study:
    """``study`` as a question about two kernels and one metric: its workload at the settings that each kernel has by
    itself, its factors left out. Raises RequestError.
    """
    asked = _study_of_two(study, metric, FactorTable(name=KERNEL_FACTOR, levels=(good, kernel)), tests)
    return asked.model_copy(update={"target": study.target.model_copy(update={"kernel": None})})


def scheduler_study(study: Study, metric: str, good: SchedulerTable, candidate: SchedulerTable, tests: int) -> Study:
    """The same about two BPF schedulers on the study's kernel. Raises RequestError."""
    asked = _study_of_two(study, metric, FactorTable(name=SCHED_EXT, levels=(good.name, candidate.name)), tests)
    # Each trial proves that its scheduler was loaded; a kernel's own ones are not needed.
    proofs = tuple(name for name in study.target.prove if name != SCHED_EXT)
    return asked.model_copy(
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


# Carrying out one step's study: in the store, with a display while it runs and a report when it is done.


@dataclass(frozen=True)
class Measuring:
    """``named`` is the command of the bisection as it was typed. What is in the store is not measured again."""

    catalogue: Catalogue
    means: RunOptions
    named: str
    quiet: bool = False

    def __call__(self, study: Study) -> StepMeasurement:
        """Raises RequestError for a kernel that does not boot or a study that it cannot carry out, RunError where
        measuring failed.
        """
        metric = deciding_metrics(study, self.catalogue)[0]
        with measured(study, self.catalogue, self.means, named=self.named, quiet=self.quiet) as found:
            run, results, trials = found.run, found.results(), found.store.trials(found.run)
        good, candidate = (
            _failures(trials, f"{factor.name}={level}") for factor in study.factors for level in factor.levels
        )
        failed = good.failed or candidate.failed
        if run.stopped == "failed" and not failed:
            raise RunError(f"the study failed: {run.stopped_because}")
        verdict = next((one for one in results.verdicts if one.metric == metric.name), None)
        if verdict is None and not failed:
            raise RunError(f"nothing could be said of {metric.name}: {run.stopped_because}")
        report = self.means.home.reports / f"{run.id}.html"
        write_report(results_report(results), report)
        return StepMeasurement(verdict, run.id, str(report), good, candidate)


def _failures(trials: Sequence[Trial], configuration: str) -> Failures:
    own = [trial for trial in trials if trial.slot.configuration == configuration]
    reasons = [trial.reason for trial in own if trial.status == "failed"]
    return Failures(len(own), len(reasons), reasons[-1].partition("\n")[0] if reasons else "")
