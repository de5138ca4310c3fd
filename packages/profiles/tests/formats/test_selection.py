"""Selection of what is exported: only what the verdicts support."""

from __future__ import annotations

from typing import Any

import pytest

from ajuste.model.error import RequestError
from ajuste.model.explained import Explained
from ajuste.model.results import Measured, Results
from ajuste.model.trial import Factor
from ajuste_profiles.winner import supported
from verdicts import decided, verdict


def results(*verdicts: Any) -> Results:
    names = dict.fromkeys(verdict.configuration for verdict in verdicts)
    made = (Measured(name="now", levels={}, baseline=True), *(Measured(name=n, levels={}) for n in names))
    return decided(verdicts=verdicts, configurations=made)


def test_the_best_is_the_one_that_gains_most_at_the_least() -> None:
    measured = results(
        verdict("lucky", "improves", estimate=0.5, low=0.2, high=0.95),
        verdict("sure", "improves", estimate=0.7, low=0.69, high=0.71),
        verdict("same", "equivalent"),
    )
    assert supported(measured) == "sure"


def test_higher_may_be_better() -> None:
    rate = {"metric": "rate", "unit": "1/s", "direction": "higher"}
    measured = results(
        verdict("a", "improves", estimate=1.4, low=1.3, high=1.5, **rate),
        verdict("b", "improves", estimate=1.6, low=1.1, high=2.0, **rate),
    )
    assert supported(measured) == "a"


def test_what_worsens_another_metric_is_not_exported() -> None:
    both = [verdict("a", "improves", high=0.9), verdict("a", "worsens", metric="latency")]
    with pytest.raises(RequestError, match="no configuration of the run R is known to be better than now") as refused:
        supported(results(*both))
    assert "worsens another" in str(refused.value.hint)
    with pytest.raises(RequestError, match="latency: worsens"):
        supported(results(*both), "a")


def test_a_metric_that_is_only_described_does_not_matter() -> None:
    described = verdict("a", "worsens", metric="faults", deciding=False)
    assert supported(results(verdict("a", "improves", high=0.9), described)) == "a"


def test_an_undecided_run_exports_nothing_and_says_how_to_go_on() -> None:
    with pytest.raises(RequestError, match="1 × undecided") as refused:
        supported(results(verdict("a")))
    assert "larger budget" in str(refused.value.hint)
    with pytest.raises(RequestError, match="does not support using it: elapsed: undecided"):
        supported(results(verdict("a")), "a")


def test_what_only_differs_must_be_asked_for_by_name() -> None:
    measured = results(verdict("a", "differs", metric="switches", direction="none"))
    with pytest.raises(RequestError) as refused:
        supported(measured)
    assert "name the configuration" in str(refused.value.hint)
    assert supported(measured, "a") == "a"


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    measured = results(verdict("vm.swappiness=10", "improves", high=0.9))
    with pytest.raises(RequestError, match="no configuration") as refused:
        supported(measured, "vm.swapiness=10")
    assert "vm.swappiness=10" in str(refused.value.hint)
    with pytest.raises(RequestError, match="is the baseline"):
        supported(measured, "now")


@pytest.mark.parametrize("wanted", ["knob_ns=750ms vm.x=1", "knob_ns=750 ms vm.x=1", "knob_ns = 0.75s vm.x = 1"])
def test_a_level_may_have_its_unit(wanted: str) -> None:
    name = "knob_ns=750000000 vm.x=1"
    factors = tuple(Factor(name=factor, levels=("0", "1"), baseline="0") for factor in ("knob_ns", "vm.x"))
    explained = (Explained(name="knob_ns", title="", what="", unit="ns"),)
    measured = results(verdict(name, "improves", high=0.9)).model_copy(
        update={"factors": factors, "explained": explained}
    )
    assert supported(measured, wanted) == name
    with pytest.raises(RequestError, match="no configuration") as refused:
        supported(measured, "knob_ns=700ms vm.x=1")
    assert name in str(refused.value.hint)
