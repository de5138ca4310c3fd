"""The built-in studies: their budgets can decide what they ask, and their headlines answer it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pytest

from ajuste.analysis.results import assemble, configurations
from ajuste.analysis.verdict import family
from ajuste.catalogue.loader import catalogue
from ajuste.model.kernel import KernelVersion
from ajuste.model.results import Results
from ajuste.model.trial import Slot, Trial
from ajuste.report.format import result_labels
from ajuste.report.headline import MOST_LEVELS, headlines
from ajuste.run.planning import planned_study
from ajuste.study.builtin import builtin_studies, find_study
from ajuste.study.read import read_study
from ajuste.study.resolve import HOST_KERNEL, resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste_stats.decision import blocks_to_decide
from looped import each
from tiers import slow


@dataclass(frozen=True)
class Asked:
    """The factors of a study's question: those that are chosen, and those that are circumstances."""

    choices: tuple[str, ...]
    conditions: tuple[str, ...] = ()


QUESTIONS: Final[Mapping[str, Asked]] = {
    "autogroup": Asked(("sched_autogroup_enabled",), ("processes",)),
    "desktop-kernels": Asked(("system",), ("load",)),
    "glxgears": Asked(("sched_autogroup_enabled",), ("processes",)),
    "granularity": Asked(("sched_min_granularity_ns",)),
    "hackbench-eevdf": Asked(("base_slice_ns",), ("sched_feat_run_to_parity", "sched_feat_wakeup_preemption")),
    "hackbench-granularity": Asked(("sched_min_granularity_ns", "sched_wakeup_granularity_ns")),
    "io-deadline-batch": Asked(("block.mq-deadline.fifo_batch[nullb0]",)),
    "io-scheduler": Asked(("block.scheduler[nullb0]",)),
    "journal-mode": Asked(("fs.data",)),
    "journal-sync": Asked(("fs.data",)),
    "kernel-history": Asked(("kernel",)),
    "kernel-messages": Asked(("kernel",), ("sched_feat_hrtick",)),
    "linpack-isolation": Asked(("isolation",)),
    "linpack-pinning": Asked(("affinity", "sched_min_granularity_ns"), ("load",)),
    "linpack-priority": Asked(("nice",), ("load",)),
    "mptcp-paths": Asked(("workload.protocol",), ("links",)),
    "nice-share": Asked(("task",)),
    "numa-kernel": Asked(("nodes",)),
    "numa-placement": Asked(("workload.policy",)),
    "sched-ext": Asked(("sched_ext",)),
    "wakeup-latency": Asked(("workload.policy", "preemption")),
    "writeback-delay": Asked(("vm.dirty_expire_centisecs", "vm.dirty_writeback_centisecs")),
}


def resolved(name: str) -> ResolvedStudy:
    study = read_study(find_study(name), catalogue())
    versions = {spec: version_of(spec) for spec in study.kernels} or {HOST_KERNEL: KernelVersion(major=6, minor=12)}
    return resolve(study, catalogue(), versions, lambda program: f"/bin/{program}")


def version_of(spec: str) -> KernelVersion:
    major, _, minor = spec.removeprefix("debian:").partition("/")[0].partition(".")
    return KernelVersion(major=int(major), minor=int(minor)) if minor else KernelVersion(major=6, minor=12)


def measured(study: ResolvedStudy, blocks: int) -> Results:
    """Return results where the last levels of what is chosen help together, at the last levels of the conditions."""
    question, generator = QUESTIONS[study.study.name], np.random.default_rng(2)
    varied = {factor.name: factor for factor in study.factors if len(factor.levels) > 1}
    trials = []
    for block in range(blocks):
        for position, made in enumerate(study.configurations):
            levels = made.configuration.levels
            helps = all(levels[name] == varied[name].levels[-1] for name in (*question.choices, *question.conditions))
            metrics = {
                metric.column: 100
                * (1 if not helps else 2 if metric.direction == "higher" else 0.5)
                * float(np.exp(generator.normal(0, 0.001)))
                for metric in study.deciding
            }
            place = (position + block) % len(study.configurations)
            slot = Slot(block=block, position=place, configuration=made.configuration.name, seed=block)
            trials.append(Trial(slot=slot, status="ok", metrics=metrics))
    return assemble(study, trials, run="R", stopped="decided", stopped_because="all verdicts decided")


def test_every_built_in_study_has_its_question_here() -> None:
    assert {study.name for study in builtin_studies()} == set(QUESTIONS)


@each(QUESTIONS)
def test_the_budget_can_decide_what_the_study_asks(name: str) -> None:
    study = resolved(name)
    compared = family(configurations(study), study.deciding, study.study.analysis.confidence)
    needed = blocks_to_decide(compared.alpha)
    assert needed <= study.study.budget.max_blocks
    assert not [note for note in planned_study(study, catalogue()).notes if "No verdict" in note]


@each(QUESTIONS)
def test_what_is_no_choice_is_a_condition(name: str) -> None:
    study, question = resolved(name), QUESTIONS[name]
    varied = {factor.name for factor in study.factors if len(factor.levels) > 1}
    assert {entry.name for entry in study.explained if entry.condition} == set(question.conditions)
    assert varied == {*question.choices, *question.conditions}
    for made in study.configurations:
        levels, reference = made.configuration.levels, made.configuration.against or study.baseline
        there = study.find(reference).configuration.levels
        if not made.configuration.baseline and made.configuration.against:
            assert all(there[condition] == levels[condition] for condition in question.conditions)


@pytest.mark.parametrize("names", [("linpack-priority", "linpack-isolation"), *slow(tuple(QUESTIONS))])
def test_the_headline_answers_the_question(names: tuple[str, ...]) -> None:
    problems = [problem for name in names for problem in unanswered(name)]
    assert not problems, "\n".join(problems)


def unanswered(name: str) -> list[str]:
    study, question = resolved(name), QUESTIONS[name]
    results = measured(study, 30)
    labels = result_labels(results)
    sentences = [headline.sentence for headline in headlines(results, labels)]
    words = [f"{name}: {sentence}" for sentence in sentences]
    wrong = [sentence for sentence in words if "on average over" in sentence or "ot settled" in sentence]
    if study.study.analysis.prediction is not None:
        return [] if "predict" in sentences[0] else words
    by_name = {factor.name: factor for factor in labels.factors}
    choice = next(factor for factor in labels.factors if factor.name in question.choices)
    level = labels.level(choice.name, choice.levels[-1])
    if not (level in sentences[0] and choice.name in sentences[0]):
        wrong.append(f"{sentences[0]} (nothing of {choice.name} = {level})")
    for condition in question.conditions:
        last = labels.level(condition, by_name[condition].levels[-1])
        if f"{condition} = {last}" not in sentences[0]:
            wrong.append(f"{sentences[0]} (not with {condition} = {last})")
    if len(question.conditions) == 1:
        (condition,) = question.conditions
        rest = [labels.level(condition, each_level) for each_level in by_name[condition].levels[:-1]]
        if len(rest) < MOST_LEVELS and not all(
            any(each_level in sentence for sentence in sentences[1:]) for each_level in rest
        ):
            wrong.append(f"{name}: {sentences} (not with {rest})")
    return wrong
