"""The study that a command line chooses, with its parameters."""

from __future__ import annotations

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.cli.choice import chosen_study
from ajuste.model.error import RequestError


def test_parameters_of_the_workload_can_be_chosen() -> None:
    study = chosen_study("hackbench-granularity", catalogue(), None, None, None, ["transport=pipes", "mode=processes"])
    assert study.workload.parameters["transport"] == "pipes"
    assert study.workload.parameters["mode"] == "processes"
    assert study.workload.parameters["groups"] == "5"


@pytest.mark.parametrize("wrong", ["transport", "=pipes", "transport=", "transport=smoke", "smoke=pipes"])
def test_a_wrong_parameter_names_the_option(wrong: str) -> None:
    with pytest.raises(RequestError) as caught:
        chosen_study("hackbench-granularity", catalogue(), None, None, None, [wrong])
    assert str(caught.value.place).startswith("--parameter")
