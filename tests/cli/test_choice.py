"""The study that a command line chooses, with its parameters."""

from __future__ import annotations

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.cli.choice import Choices, chosen_study
from ajuste.model.error import RequestError


def test_parameters_of_the_workload_can_be_chosen() -> None:
    study = chosen_study("hackbench-granularity", catalogue(), Choices(parameter=["transport=pipes", "mode=processes"]))
    assert study.workload.parameters["transport"] == "pipes"
    assert study.workload.parameters["mode"] == "processes"
    assert study.workload.parameters["groups"] == "5"


@pytest.mark.parametrize("wrong", ["transport", "=pipes", "transport=", "transport=smoke", "smoke=pipes"])
def test_a_wrong_parameter_names_the_option(wrong: str) -> None:
    with pytest.raises(RequestError) as caught:
        chosen_study("hackbench-granularity", catalogue(), Choices(parameter=[wrong]))
    assert str(caught.value.place).startswith("--parameter")


def test_several_kernels_are_a_factor_of_which_the_first_is_the_baseline() -> None:
    study = chosen_study("numa-kernel", catalogue(), Choices("mine:base, mine:non-numa", without=["nodes=off"]))
    first, nodes = study.factors
    assert (first.name, first.levels, first.baseline_level) == ("kernel", ("mine:base", "mine:non-numa"), "mine:base")
    assert nodes.levels == ("known",)
    assert study.kernels == first.levels


@pytest.mark.parametrize("wrong", ["mine:base,mine:base", "mine:base,", "debian:6.1,nonsense", "debian:5.10,debian:7"])
def test_kernels_that_cannot_be_compared_are_refused(wrong: str) -> None:
    name = "kernel-history" if wrong == "debian:5.10,debian:7" else "granularity"  # which compares kernels already
    with pytest.raises(RequestError):
        chosen_study(name, catalogue(), Choices(wrong))
