"""The steps of a bisection: each a run of the study in the store, so that what was measured is never measured again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ajuste.analysis.step import is_difference, outcome_of
from ajuste.design.bisection import Outcome, confidence_of_each
from ajuste.kernel.bisect.found import Step
from ajuste.kernel.build.options import OptionsConflict
from ajuste.model.configuration import KERNEL_FACTOR
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.verdict import Verdict
from ajuste.report.format import duration
from ajuste.study.schema import FactorTable, Study

_MORE: Final = 2
"""A step that is undecided goes on with so many times its blocks, up to the study's budget."""


@dataclass(frozen=True)
class Measured:
    """What a run of a study with one deciding metric came to; ``report`` is the file of its report."""

    verdict: Verdict
    run: str
    report: str


@dataclass
class Session:
    """Measures candidates against the kernel ``good``. ``measure`` carries out a study, or goes on with it where its
    budget is larger now, and raises RequestError or RunError where it cannot. ``tests`` is about how many verdicts the
    search takes: all of them together have the study's confidence.
    """

    study: Study
    metric: str
    good: str
    measure: Callable[[Study], Measured]
    tests: int
    say: Callable[[str], None]
    steps: list[Step] = field(default_factory=list)
    _ends: Verdict | None = None
    _seconds: list[float] = field(default_factory=list)

    def measure_ends(self, kernel: str, label: str) -> None:
        """The bad end first. Raises RequestError where its kernel cannot be measured, RunError where it does not
        certainly differ from the good one: then there is nothing to seek.
        """
        self.say(f"the ends: {label} against {self.good}")
        found = self._measured(kernel, None)
        verdict = found.verdict
        ends: Outcome = "there" if is_difference(verdict) else "undecided"
        if verdict.verdict == "equivalent":
            ends = "absent"
        self.steps.append(_step(label, kernel, ends, found))
        if ends != "there":
            raise RunError(
                f"{label} does not certainly differ from {self.good} in {self.metric} ({verdict.verdict}: "
                f"{verdict.reason.rstrip('.')}): there is nothing to seek",
                hint=f"another --metric or study, or a larger budget; ajuste report {found.run} shows it",
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
            assert self._ends is not None, "the ends are measured first"
            found = self._measured(spec, self._ends)
        except AjusteError as error:
            outcome: Outcome = "impossible" if isinstance(error, OptionsConflict) else "unusable"
            step = Step(candidate=label, kernel=spec, outcome=outcome, note=str(error).partition("\n")[0])
        else:
            outcome = outcome_of(self._ends, found.verdict)
            step = _step(label, spec, outcome, found)
        self._seconds.append(time.monotonic() - began)
        self.steps.append(step)
        self.say(f"  {label}: {step.outcome}{f' ({step.note})' if step.note else ''}")
        return step.outcome

    def _left(self) -> str:
        left = self.tests - len(self.steps)
        if not self._seconds or left < 1:
            return ""
        return f", about {duration(left * sum(self._seconds) / len(self._seconds))} left"

    def _measured(self, kernel: str, ends: Verdict | None) -> Measured:
        """The verdict on ``kernel``, with more blocks until it tells or the budget is spent."""
        study = step_study(self.study, self.metric, self.good, kernel, self.tests)
        while True:
            found = self.measure(study)
            budget = study.budget
            told = ends is None or outcome_of(ends, found.verdict) != "undecided"
            blocks = min(budget.max_blocks, _MORE * max(found.verdict.blocks, budget.min_blocks))
            if told or found.verdict.blocks >= budget.max_blocks or blocks <= budget.min_blocks:
                return found
            study = study.model_copy(update={"budget": budget.model_copy(update={"min_blocks": blocks})})


def _step(label: str, kernel: str, outcome: Outcome, found: Measured) -> Step:
    return Step(
        candidate=label, kernel=kernel, outcome=outcome, verdict=found.verdict, run=found.run, report=found.report
    )


def step_study(study: Study, metric: str, good: str, kernel: str, tests: int) -> Study:
    """``study`` as a question about two kernels and one metric: its workload at the settings that each kernel has by
    itself, its factors left out. Raises RequestError.
    """
    if study.target.kind == "host":
        raise RequestError(f"{study.name} is measured on this machine, which has one kernel", hint="--target vm")
    analysis = study.analysis.model_copy(
        update={
            "metrics": (metric,),
            "confidence": min(0.9999, confidence_of_each(study.analysis.confidence, tests)),
            "explain": False,
            "prediction": None,
            "three_sigma": False,
        }
    )
    return study.model_copy(
        update={
            "name": f"bisect-{study.name}"[:64],
            "title": f"{study.title or study.name}: {kernel} against {good}",
            "question": f"Does {kernel} differ from {good} in {metric}?",
            "factors": (FactorTable(name=KERNEL_FACTOR, levels=(good, kernel)),),
            "target": study.target.model_copy(update={"kernel": None}),
            "analysis": analysis,
            "design": study.design.model_copy(update={"combine": "all", "allocation": None}),
        }
    )
