"""A workload's parameters become arguments, never a shell's."""

from __future__ import annotations

import pytest

from ajuste.catalogue.level import arguments, check_parameters
from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste.model.workload import Parameter, WorkloadKind

HACKBENCH = catalogue().workloads["hackbench"]


def test_numbers_and_choices_take_their_places() -> None:
    assert arguments(HACKBENCH, {"mode": "threads", "transport": "pipes", "groups": " 3 "}) == (
        *("-T", "-p", "-g", "3", "-l", "100", "-s", "100", "-f", "20"),
    )


def test_a_choice_may_stand_for_no_argument_at_all() -> None:
    assert "" not in arguments(HACKBENCH, {"transport": "sockets"})
    assert len(arguments(HACKBENCH, {"transport": "sockets"})) == len(arguments(HACKBENCH, {"transport": "inet"})) - 1


def test_all_parameters_are_told_with_their_defaults() -> None:
    assert check_parameters(HACKBENCH, {"loops": "7"}) == {
        **{name: parameter.default for name, parameter in HACKBENCH.parameters.items()},
        "loops": "7",
    }


def test_a_flag_is_there_or_not_and_a_number_may_be_part_of_a_word() -> None:
    kind = WorkloadKind(
        name="x",
        title="X",
        what="It.",
        program="x",
        arguments=("{quiet}", "--size={size}M"),
        parameters={
            "quiet": Parameter(what="Q", type="flag", default="0", choices={"0": (), "1": ("-q", "-q")}),
            "size": Parameter(what="S", default="1", minimum=1, maximum=9),
        },
    )
    assert arguments(kind, {}) == ("--size=1M",)
    assert arguments(kind, {"quiet": "on", "size": "9"}) == ("-q", "-q", "--size=9M")
    with pytest.raises(RequestError, match=r"expected 0 \(off\) or 1 \(on\)"):
        arguments(kind, {"quiet": "2"})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"group": "3"}, "did you mean groups?"),
        ({"groups": "0"}, "out of range; expected between 1 and 1000"),
        ({"groups": "$(reboot)"}, "not a whole number"),
        ({"size": "0"}, "bytes"),
        ({"mode": "thread"}, "did you mean threads?"),
        ({"transport": "carrier pigeon"}, "sockets, pipes, inet"),
    ],
)
def test_wrong_parameters_say_what_would_be_right(parameters: dict[str, str], message: str) -> None:
    with pytest.raises(RequestError) as raised:
        arguments(HACKBENCH, parameters)
    assert message in f"{raised.value.message} {raised.value.hint}"


def test_a_placeholder_without_a_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match="arguments use"):
        WorkloadKind(name="x", title="X", what="It.", program="x", arguments=("{size}",))


@pytest.mark.parametrize("name", ["fio.data", "/dev/nullb0", "a/b-c_d+e@f.1"])
def test_plain_names_of_files_are_taken(name: str) -> None:
    kind = catalogue().workloads["fio"]
    assert f"--filename={name}" in arguments(kind, {"file": name})


@pytest.mark.parametrize("name", ["", "/", "a:b", "-x", "a b", "$(x)", "a\nb", "/dev//x", "a/", "é", "a\\b"])
def test_names_that_could_mean_anything_else_are_refused(name: str) -> None:
    with pytest.raises(RequestError, match="expected a file name"):
        arguments(catalogue().workloads["fio"], {"file": name})
