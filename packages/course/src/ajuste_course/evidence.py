"""Evidence on a hand-in: whether its figures are the student's own, and can be true."""

from __future__ import annotations

import hashlib
import math
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from ajuste.catalogue.loader import Catalogue
from ajuste.executor.stream import read_trial
from ajuste.model.error import AjusteError
from ajuste.model.event import Counter, EventsByKind, Exited, Output
from ajuste.model.trial import Observation, Slot, Trial
from ajuste.outputs.base import EXACT_METRICS, MODELLED_METRICS, base_metrics
from ajuste.outputs.trial_status import trial as read_again
from ajuste.run.experiment import resolved_study
from ajuste.run.runner import Watcher, schedule_of
from ajuste.run.schedule import TrialHistory
from ajuste.run.testbed import RunOptions
from ajuste.store.record import KeptRecord
from ajuste.study.commands import plan_for, trial_reading
from ajuste.study.resolved import ResolvedStudy
from ajuste_course.hand_in import OpenedHandIn
from ajuste_course.sheet import AskStep, MeasureStep, PredictStep, Sheet, figures_of
from ajuste_course.study import student_study
from ajuste_course.workbook import Workbook
from ajuste_share.verification import verify

FEWEST_COPIED: Final = 8
"""Words of a free text from which on two that are equal are shown: shorter ones may be alike by chance."""
_ROUNDING: Final = 1e-9
_MOST_LISTED: Final = 5
_NO_TIME: Final = "2000-01-01T00:00:00+00:00"

Weight = Literal["proof", "remark"]


@dataclass(frozen=True)
class Finding:
    """A fact that speaks against a hand-in: a *proof* that its figures are not the student's own or were changed, or a
    *remark* on what a person has to look at.
    """

    weight: Weight
    text: str


def study_findings(
    sheet: Sheet, step: MeasureStep, opened: OpenedHandIn, known: Catalogue, options: RunOptions
) -> tuple[list[Finding], ResolvedStudy | None]:
    """Compare a run's study with the one that the sheet gives this student; return it resolved where it is the same."""
    workbook, run = opened.about.workbook, opened.runs[step.name].run
    seed = workbook.seed(sheet, step.name)
    expected = student_study(sheet, step, workbook.student, seed, known)
    measured = ResolvedStudy.model_validate_json(run.resolved)
    if measured.study.name != expected.name:
        return [
            Finding("proof", f"{step.name}: the run is {measured.study.name}, not this student's {expected.name}")
        ], None
    if measured.study.design.seed != seed or run.seed != seed:
        return [
            Finding(
                "proof",
                f"{step.name}: the run has seed {run.seed}; this student's predictions give {seed}: a prediction was "
                "changed after measuring, or the figures are somebody else's",
            )
        ], None
    if measured.study.document() != expected.document():
        return [Finding("proof", f"{step.name}: {_difference(measured, expected.document())}")], None
    resolved = resolved_study(expected, known, options)
    if _levels(measured) != _levels(resolved):
        return [Finding("proof", f"{step.name}: the configurations of the run are not those of its study")], None
    return [], resolved


def _levels(resolved: ResolvedStudy) -> list[object]:
    return [each.configuration for each in resolved.configurations]


def _difference(measured: ResolvedStudy, expected: Mapping[str, object]) -> str:
    other = measured.study.document()
    parts = [name for name in {**other, **expected} if other.get(name) != expected.get(name)]
    levels = "; ".join(f"{factor.name} {', '.join(factor.levels)}" for factor in measured.factors)
    return f"the study differs from this student's in {', '.join(parts)}; it has {levels or 'one configuration'}"


def design_findings(step: str, resolved: ResolvedStudy, stopped: str, trials: Sequence[Trial]) -> list[Finding]:
    """Return where the trials are not those that the study plans, by its seed and by what was found before: trials of
    another seed, blocks that are missing, or more than it takes.
    """
    planned: dict[int, list[Trial]] = defaultdict(list)
    for trial in trials:
        # Whether a run ended by the time of its machine is not known here: the time counts nothing.
        timeless = trial.model_copy(update={"started": _NO_TIME, "host_seconds": 0.0})
        planned[trial.slot.block].append(timeless)
    history, end = TrialHistory(), None
    schedule = schedule_of(resolved, history)
    for number in range(len(planned)):
        if end is not None:
            return [Finding("proof", f"{step}: has blocks after {number}, where its study ends: {end.words}")]
        slots = {trial.slot for trial in planned[number]}
        if wrong := _not_planned(set(schedule.block(number)), slots):
            return [Finding("proof", f"{step}: block {number + 1} is not the one of this study and its seed: {wrong}")]
        for trial in planned[number]:
            history.add(trial)
        end = schedule.look(number)
    budget = resolved.study.budget
    if end is not None or budget.min_seconds:
        return []
    if stopped == "time":
        return [Finding("remark", f"{step}: ended after {len(planned)} blocks by the time that its machine took")]
    return [Finding("proof", f"{step}: has {len(planned)} blocks; its study goes on after them: some were left out")]


def _not_planned(planned: set[Slot], slots: set[Slot]) -> str:
    if planned == slots:
        return ""
    if {slot.configuration for slot in planned} != {slot.configuration for slot in slots}:
        lost = {slot.configuration for slot in planned} - {slot.configuration for slot in slots}
        return f"{', '.join(sorted(lost))} is missing" if lost else "it has more configurations"
    seeds = {slot.seed for slot in planned} ^ {slot.seed for slot in slots}
    return "the seed of its trials is another" if seeds else "its order is another"


def trial_findings(step: str, resolved: ResolvedStudy, trials: Iterable[Trial]) -> list[Finding]:
    """Return which trials have figures that do not follow from what the guest sent, or that nothing can have."""
    changed: list[str] = []
    impossible: list[str] = []
    failed: list[str] = []
    cpus = resolved.study.target.cpus or 1
    for trial in trials:
        name = f"block {trial.slot.block + 1}, {trial.slot.configuration}"
        if wrong := _changed(trial, resolved):
            changed.append(f"{name}: {wrong}")
        if wrong := _impossible(trial, cpus):
            impossible.append(f"{name}: {wrong}")
        if trial.status == "failed":
            failed.append(f"{name}: {trial.reason}")
    return [
        *([Finding("proof", f"{step}: figures were changed: {_listed(changed)}")] if changed else []),
        *([Finding("proof", f"{step}: figures that cannot be: {_listed(impossible)}")] if impossible else []),
        *([Finding("remark", f"{step}: trials that failed do not count: {_listed(failed)}")] if failed else []),
    ]


def _changed(trial: Trial, resolved: ResolvedStudy) -> str:
    # Figures are read again from the events of the guest, except for what events do not have.
    if trial.slot.configuration not in resolved.names:
        return "no such configuration"
    plan = plan_for(resolved, trial.slot, trial.attempt)
    stream = read_trial(trial.events.encode(), plan)
    if stream.problem:
        return "" if trial.status == "failed" else stream.problem
    observation = Observation(lines=stream.lines, events=stream.events)
    reread = read_again(trial.slot, trial.attempt, plan, observation, trial_reading(resolved, trial.slot.configuration))
    kinds = EventsByKind(stream.events)
    figures = reread.metrics
    if any(event.dropped_bytes for event in kinds.of(Output)):
        # Long output is not in the file as a whole: what was read from it is not known here.
        ends = [event for event in kinds.of(Exited) if event.role == "workload"]
        figures = base_metrics(ends[0], kinds.of(Counter))[0] if ends else {}
    elif trial.status != reread.status:
        return f"it is {trial.status}, by what the guest sent {reread.status}"
    elif more := trial.metrics.keys() - figures.keys() - {*EXACT_METRICS, *MODELLED_METRICS}:
        return f"{', '.join(sorted(more))}: the guest sent none"
    for metric, value in figures.items():
        if not math.isclose(trial.metrics.get(metric, math.nan), value, rel_tol=_ROUNDING):
            return f"{metric} is {trial.metrics.get(metric)}, the guest sent {value:g}"
    return ""


def _impossible(trial: Trial, cpus: int) -> str:
    for metric, value in trial.metrics.items():
        if not math.isfinite(value):
            return f"{metric} is {value}"
    clock, elapsed = trial.metrics.get("task-clock"), trial.metrics.get("elapsed")
    if clock is not None and elapsed is not None and clock / 1e3 > elapsed * cpus * 1.01:
        return f"{clock:g} ms of CPU time in {elapsed:g} s on {cpus} CPUs"
    return ""


def sample_of(trials: Sequence[Trial], metrics: Iterable[str], count: int, generator: random.Random) -> list[Trial]:
    """Return trials to measure again: half those that stand out most among their configuration, half at random."""
    clean = [trial for trial in trials if trial.status == "ok"]
    if len(clean) <= count:
        return clean
    outlying = sorted(clean, key=lambda trial: -_distance(trial, clean, metrics))[: count // 2]
    rest = [trial for trial in clean if trial not in outlying]
    chosen = [*outlying, *generator.sample(rest, count - len(outlying))]
    return sorted(chosen, key=lambda trial: (trial.slot.block, trial.slot.position))


def _distance(trial: Trial, trials: Sequence[Trial], metrics: Iterable[str]) -> float:
    distances = [0.0]
    for metric in metrics:
        values = sorted(
            t.metrics[metric]
            for t in trials
            if t.slot.configuration == trial.slot.configuration and metric in t.metrics
        )
        middle = values[len(values) // 2] if values else 0.0
        if middle > 0 and trial.metrics.get(metric, 0) > 0:
            distances.append(abs(math.log(trial.metrics[metric] / middle)))
    return max(distances)


def measured_again(
    step: str,
    opened: OpenedHandIn,
    resolved: ResolvedStudy,
    sample: Sequence[Trial],
    known: Catalogue,
    options: RunOptions,
    watcher: Watcher,
) -> list[Finding]:
    """Measure a sample of a run again, of the study that the sheet gives this student, and compare each trial."""
    run = replace(opened.runs[step].run, resolved=resolved.model_dump_json())
    try:
        verified = verify(run, sample, opened.runs[step].head.digest, known, options, watcher)
    except AjusteError as failure:
        return [Finding("remark", f"{step}: could not be measured again: {failure.message}")]
    if not verified.different:
        return []
    trials = f"{len(verified.different)} of {len(sample)} trials that were measured again differ"
    if verified.same_parts:
        return [Finding("proof", f"{step}: {trials}: {_listed(verified.different)}")]
    kernels = ", ".join(f"{spec} {then}, here {now}" for spec, (then, now) in verified.kernels.items())
    why = f"another kernel package ({kernels})" if kernels else "another QEMU, other programs or another Ajuste"
    return [Finding("remark", f"{step}: {trials}; it was measured with {why} than here, which changes figures, too")]


def asked_metrics(sheet: Sheet, step: str) -> list[str]:
    """Return the metrics of a step that predictions and questions are on."""
    figures = [figure for ask in sheet.kind(AskStep) for figure in figures_of(ask) if figure.study == step]
    names = [figure.metric for figure in figures] + [
        each.metric for each in sheet.kind(PredictStep) if each.study == step
    ]
    return list(dict.fromkeys(name for name in names if name))


@dataclass(frozen=True)
class Prints:
    """Parts of a hand-in that two students cannot have alike: trials by what the guest sent, and longer texts."""

    student: str
    trials: Mapping[str, str]
    texts: Mapping[str, str]


def prints_of(opened: OpenedHandIn) -> Prints:
    """Return the prints of a hand-in."""
    workbook = opened.about.workbook
    trials = {
        hashlib.sha256(trial.events.encode()).hexdigest(): step
        for step, stored in opened.runs.items()
        for trial in stored.trials
        if trial.events
    }
    return Prints(workbook.student, trials, _long_texts(workbook))


def _long_texts(workbook: Workbook) -> dict[str, str]:
    texts = {name: str(each.value) for name, each in workbook.answers.items() if isinstance(each.value, str)}
    texts |= {name: each.why for name, each in workbook.predictions.items()}
    plain = {name: " ".join(text.casefold().split()) for name, text in texts.items()}
    return {text: name for name, text in plain.items() if len(text.split()) >= FEWEST_COPIED}


def copies(all_prints: Sequence[Prints]) -> dict[str, list[Finding]]:
    """Return by student what they have in common with others: trials are a proof, texts a remark."""
    findings: dict[str, list[Finding]] = defaultdict(list)
    for weight, part in (("proof", "trials"), ("remark", "texts")):
        owners: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for prints in all_prints:
            for content, name in getattr(prints, part).items():
                owners[content].append((prints.student, name))
        common: dict[tuple[str, str, str], int] = defaultdict(int)
        for holders in owners.values():
            for student, name in holders:
                for other in {holder for holder, _ in holders} - {student}:
                    common[student, other, name] += 1
        for (student, other, name), count in sorted(common.items()):
            what = f"{count} trials are those of" if part == "trials" else "the words are those of"
            findings[student].append(Finding(weight, f"{name}: {what} {other}"))  # type: ignore[arg-type]
    return findings


def digest_findings(opened: OpenedHandIn) -> list[Finding]:
    """Return which results in the file are not those of its trials."""
    findings = []
    for step, stored in opened.runs.items():
        if stored.head.digest != KeptRecord(stored.run, stored.store).digest:
            findings.append(Finding("proof", f"{step}: the digest is not that of the trials"))
        if parts := opened.different.get(stored.run.id):
            version = "" if stored.run.ajuste == opened.about.ajuste else ", which another version may have computed"
            findings.append(
                Finding(
                    "remark", f"{step}: results in the file do not follow from its trials{version}: {', '.join(parts)}"
                )
            )
    return findings


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - _MOST_LISTED} more" if len(words) > _MOST_LISTED else ""
    return "; ".join(words[:_MOST_LISTED]) + more
