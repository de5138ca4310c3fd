"""The steps of a bisection, on played measurements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.cli.choice import Choices, chosen_study
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.study.schema import Study
from ajuste_kernels.bisection.session import BisectionSession, StepMeasurement, step_study
from ajuste_stats.sign_intervals import fewest_blocks

if TYPE_CHECKING:
    from packages.kernels.tests.bisection.conftest import Lab

In = Callable[["Lab"], Callable[[str, int], BisectionSession]]


def opened(session_in: In, lab: Lab, bad: str = "bad") -> BisectionSession:
    session = session_in(lab)("good", 3)
    session.measure_ends(bad, bad)
    return session


def test_a_candidate_has_the_difference_or_has_it_not(session_in: In, lab: type[Lab]) -> None:
    session = opened(session_in, lab({"bad": 2.0, "middle": 1.9}))
    assert session.test("middle", lambda: "middle") == "there"
    assert session.test("early", lambda: "early") == "absent"
    assert [(step.candidate, step.outcome, step.run) for step in session.steps] == [
        ("bad", "there", "run-bad"),
        ("middle", "there", "run-middle"),
        ("early", "absent", "run-early"),
    ]


def test_a_small_difference_is_not_the_one_that_is_sought(session_in: In, lab: type[Lab]) -> None:
    assert opened(session_in, lab({"bad": 4.0, "other": 1.3})).test("other", lambda: "other") == "absent"


def test_an_undecided_step_goes_on_with_more_blocks(session_in: In, lab: type[Lab]) -> None:
    played = lab({"bad": 2.0, "near": 1.45}, width=0.6)
    assert opened(session_in, played).test("near", lambda: "near") == "there"
    blocks = [count for kernel, count in played.measured if kernel == "near"]
    assert blocks == sorted(set(blocks))
    assert len(blocks) > 1


def test_what_stays_undecided_is_said_to_be_so_when_the_budget_is_spent(session_in: In, lab: type[Lab]) -> None:
    played = lab({"bad": 2.0, "half": 2.0**0.5})
    session = opened(session_in, played)
    assert session.test("half", lambda: "half") == "undecided"
    assert played.measured[-1] == ("half", session.study.budget.max_blocks)


def test_what_cannot_be_measured_is_noted_and_goes_by(session_in: In, lab: type[Lab]) -> None:
    session = opened(session_in, lab({"bad": 2.0}, frozenset({"dead"})))
    assert session.test("dead", lambda: "dead") == "unusable"
    assert session.steps[-1].note == "dead does not boot"

    def unbuildable() -> str:
        raise RunError("fair.c:7: error: expected a semicolon", of_candidate=True)

    assert session.test("broken", unbuildable) == "unusable"
    assert "fair.c:7" in session.steps[-1].note


@pytest.mark.parametrize("error", [RequestError("no disk space left"), RunError("the store cannot be written")])
def test_what_says_nothing_of_the_candidate_ends_the_bisection(
    error: AjusteError, session_in: In, lab: type[Lab]
) -> None:
    session = opened(session_in, lab({"bad": 2.0}))

    def failing() -> str:
        raise error

    with pytest.raises(type(error), match=error.message):
        session.test("middle", failing)
    assert [step.candidate for step in session.steps] == ["bad"]


def test_ends_that_do_not_differ_leave_nothing_to_seek(session_in: In, lab: type[Lab]) -> None:
    with pytest.raises(RunError, match="no significant difference between bad and good in elapsed"):
        opened(session_in, lab({"bad": 1.0}))


def test_an_end_that_does_not_boot_is_an_error(session_in: In, lab: type[Lab]) -> None:
    with pytest.raises(RequestError, match="bad does not boot"):
        opened(session_in, lab({}, frozenset({"bad"})))


def test_a_step_asks_about_two_kernels_and_nothing_else() -> None:
    study = chosen_study("granularity", catalogue(), Choices())
    step = step_study(study, "elapsed", "debian:5.10", "debian:6.1", 5)
    assert [(factor.name, factor.levels) for factor in step.factors] == [("kernel", ("debian:5.10", "debian:6.1"))]
    assert (step.analysis.metrics, step.target.kernel) == (("elapsed",), None)
    assert step.workload == study.workload
    # Five verdicts, all of which hold together with 95 %.
    assert step.analysis.confidence == pytest.approx(0.99)


def test_this_machine_has_no_kernels_to_choose_from() -> None:
    study = chosen_study("granularity", catalogue(), Choices())
    here = study.model_copy(update={"target": study.target.model_copy(update={"kind": "host"})})
    with pytest.raises(RequestError, match="a bisection requires guests"):
        step_study(here, "elapsed", "a", "b", 1)


def test_a_step_has_as_many_blocks_as_an_interval_requires(session_in: In, lab: type[Lab]) -> None:
    study = session_in(lab())("good", 3).study
    few = study.model_copy(update={"budget": study.budget.model_copy(update={"min_blocks": 3, "max_blocks": 6})})
    for tests in (1, 5, 12):
        step = step_study(few, "elapsed", "a", "b", tests)
        assert step.budget.max_blocks == max(6, fewest_blocks(1 - step.analysis.confidence))
    assert step.budget.max_blocks > 6


def test_a_candidate_without_the_difference_takes_no_more_blocks_than_an_interval_requires(
    session_in: In, lab: type[Lab]
) -> None:
    played = lab({"bad": 4.0})
    session = opened(session_in, played)
    studies: list[Study] = []

    def measure(study: Study) -> StepMeasurement:
        studies.append(study)
        return played(study)

    session.measure = measure
    assert session.test("early", lambda: "early") == "absent"
    (study,) = studies
    required = fewest_blocks(1 - study.analysis.confidence)
    assert study.budget.min_blocks == study.budget.max_blocks == max(required, session.study.budget.min_blocks)
    assert study.budget.max_blocks < session.study.budget.max_blocks
