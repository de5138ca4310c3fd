"""The whole way from a study file to its results, with trials of a known answer."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ajuste.analysis.results import assemble
from ajuste.catalogue.loader import catalogue
from ajuste.design.blocks import block
from ajuste.model.event import Written
from ajuste.model.explained import EXPLAINED
from ajuste.model.kernel import KernelVersion
from ajuste.model.results import Results
from ajuste.model.trial import Trial
from ajuste.study.builtin import find_study
from ajuste.study.read import read_study
from ajuste.study.resolve import resolve
from ajuste.study.resolved import ResolvedStudy

SWITCHES = {"750000": 135, "7500000": 68, "75000000": 12, "750000000": 1}


@pytest.fixture(scope="module")
def granularity() -> ResolvedStudy:
    study = read_study(find_study("granularity"), catalogue())
    return resolve(study, catalogue(), {"debian:5.10": KernelVersion(major=5, minor=10)}, lambda name: None)


def simulate(resolved: ResolvedStudy, blocks: int, warm_up: int = 0) -> list[Trial]:
    trials = []
    for number in range(blocks):
        noise = np.random.default_rng(number)
        for slot in block(number, resolved.names, 1, warm_up=warm_up):
            level = slot.configuration.partition("=")[2]
            write = Written(at_ns=1, tunable="sched_min_granularity_ns", asked=level, before="750000", after=level)
            metrics = {
                "involuntary-switches": float(SWITCHES[level] + noise.integers(-1, 2)),
                "elapsed": 2.0 * float(np.exp(noise.normal(0, 0.001))),
            }
            trials.append(
                Trial(slot=slot, status="ok", metrics=metrics, written=(write,), not_supported={"cycles": "no PMU"})
            )
    return trials


def made(resolved: ResolvedStudy, trials: list[Trial]) -> Results:
    return assemble(
        resolved, trials, run="r1", stopped="decided", stopped_because="all in", notes=("Mind this.",), created="now"
    )


def test_the_answer_and_verdicts_are_those_that_were_put_in(granularity: ResolvedStudy) -> None:
    results = made(granularity, simulate(granularity, 29))
    assert results.answer.startswith(
        "Involuntary context switches: each increase of sched_min_granularity_ns lowers it: 135 at 750 µs, "
    )
    verdicts = [v for v in results.verdicts if v.metric == "involuntary-switches"]
    assert [v.verdict for v in verdicts] == ["differs"] * 3
    assert [v.estimate for v in verdicts] == pytest.approx([-67, -123, -134], abs=1.5)
    assert {v.verdict for v in results.verdicts if v.metric == "elapsed"} == {"equivalent"}
    assert results.blocks == 29
    assert "3 comparisons" in results.correction
    assert len(results.trials) == 116
    assert [m.name for m in results.metrics] == ["involuntary-switches", "elapsed", "cycles"]
    assert results.configurations[2].read_back == {"sched_min_granularity_ns": "75000000"}
    assert results.configurations[0].not_supported == {"cycles": "no PMU"}
    assert EXPLAINED.of(results)[0].initial_value == "750000"
    assert EXPLAINED.of(results)[0].where == "/proc/sys/kernel/sched_min_granularity_ns"
    assert results.notes[-1] == "Mind this."
    assert "virtual clock" in results.notes[0]
    assert Results.model_validate_json(results.model_dump_json()) == results


def test_it_does_not_matter_in_which_order_the_trials_came(granularity: ResolvedStudy) -> None:
    trials = simulate(granularity, 6)
    shuffled = random.Random(1).sample(trials, len(trials))
    assert made(granularity, shuffled) == made(granularity, trials)


def test_warm_up_and_flagged_trials_are_shown_and_left_out(granularity: ResolvedStudy) -> None:
    trials = simulate(granularity, 7, warm_up=1)
    bad = trials[-1].model_copy(update={"status": "flagged", "reason": "exit code 3"})
    results = made(granularity, [*trials[:-1], bad])
    assert results.blocks == 6
    assert sum(point.warm_up for point in results.trials) == 4
    assert results.trials[-1].reason == "exit code 3"
    assert (results.tally.flagged, results.tally.reasons) == (1, {"exit code 3": 1})
    assert not any("exit code 3" in note for note in results.notes), "the tally says it once"


def test_nothing_measured_is_no_answer_but_a_document(granularity: ResolvedStudy) -> None:
    results = made(granularity, [])
    assert results.blocks == 0
    assert {v.verdict for v in results.verdicts} == {"undecided"}
    assert {v.reason for v in results.verdicts} == {"nothing was measured yet"}
    assert "undecided" in results.answer


@pytest.mark.parametrize(("kind", "one_boot"), [("host", True), ("vm", False)])
def test_a_run_of_this_machine_says_that_it_was_one_boot(
    granularity: ResolvedStudy, kind: str, *, one_boot: bool
) -> None:
    """Trials in guests have their own boots."""
    target = granularity.study.target.model_copy(update={"kind": kind})
    study = granularity.study.model_copy(update={"target": target})
    results = made(granularity.model_copy(update={"study": study}), simulate(granularity, 12))
    (note,) = (note for note in results.notes if "blocks cannot show" in note)
    assert ("boot" in note) is one_boot
    assert "build" in note
