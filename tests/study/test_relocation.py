from __future__ import annotations

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste.study.builtin import find_study
from ajuste.study.check import check
from ajuste.study.overrides import relocated
from ajuste.study.read import read_study
from ajuste.study.schema import Study


def builtin(name: str) -> Study:
    return read_study(find_study(name), catalogue())


@pytest.mark.parametrize("name", ["nice-share", "linpack-priority", "linpack-pinning"])
def test_a_study_for_a_guest_makes_sense_on_this_machine_too(name: str) -> None:
    here = relocated(builtin(name), "host")
    assert (here.target.kind, here.target.clock, here.kernels) == ("host", "wall", ())
    assert check(here, catalogue()) == []


@pytest.mark.parametrize("name", ["writeback-delay", "journal-mode", "journal-sync"])
def test_a_file_system_of_a_studys_disk_is_on_the_one_of_this_machine(name: str) -> None:
    here = relocated(builtin(name), "host", "loop7")
    assert here.scratch is not None
    assert here.scratch.device == "/dev/loop7"
    keys = {key for sampler in here.workload.samplers for key in sampler.keys if "." in key}
    # Others write on this machine, too: only the disk's own figures are those of the trial.
    assert {timeline.key for timeline in here.workload.timelines} <= keys
    assert all(key.startswith("loop7.") for key in keys)
    assert "nullb0" not in here.model_dump_json()
    assert check(here, catalogue()) == []


def test_the_guests_disk_and_what_is_set_of_it_stay_behind() -> None:
    study = builtin("writeback-delay")
    plain = study.workload.model_copy(update={"samplers": (), "timelines": ()})
    here = relocated(study.model_copy(update={"disk": None, "workload": plain}), "host")
    assert here.scratch is not None
    assert here.scratch.device is None
    assert [factor.name for factor in here.factors] == ["vm.dirty_expire_centisecs", "vm.dirty_writeback_centisecs"]


def test_here_the_workload_has_its_parameters_for_this_machine() -> None:
    guest = builtin("linpack-priority")
    here = relocated(guest, "host")
    assert (guest.workload.parameters["reps_to"], here.workload.parameters["reps_to"]) == ("1", "200")


def test_parameters_for_this_machine_are_checked_like_the_others() -> None:
    study = builtin("linpack-priority")
    workload = study.workload.model_copy(update={"host_parameters": {"repetitions": "1"}})
    problems = check(study.model_copy(update={"workload": workload}), catalogue())
    assert [problem.path for problem in problems] == [("workload", "host_parameters", "repetitions")]


@pytest.mark.parametrize(
    ("name", "why"), [("journal-mode", "it uses the guest's disk nullb0"), ("linpack-isolation", "booting guests")]
)
def test_what_needs_a_guest_says_why(name: str, why: str) -> None:
    with pytest.raises(RequestError, match=why):
        relocated(builtin(name), "host")


def test_a_study_stays_as_it_is_where_it_belongs() -> None:
    study = builtin("granularity")
    assert relocated(study, "vm") is study


def test_a_study_for_this_machine_can_be_tried_in_a_guest() -> None:
    there = relocated(relocated(builtin("nice-share"), "host"), "vm")
    assert (there.target.kind, there.target.clock, there.kernels) == ("vm", "wall", ())


def test_a_study_of_a_disk_has_the_one_of_this_machine_wherever_it_names_its_own() -> None:
    here = relocated(builtin("io-scheduler"), "host", "loop7")
    assert [factor.name for factor in here.factors] == ["block.scheduler[loop7]"]
    assert here.workload.parameters["file"] == "/dev/loop7"
    assert here.workload.parameters["size_mib"] == "128"
    assert "nullb0" not in here.model_dump_json()
    assert check(here, catalogue()) == []


def test_a_study_of_a_disk_needs_one_here() -> None:
    with pytest.raises(RequestError, match="it uses the guest's disk nullb0"):
        relocated(builtin("io-scheduler"), "host")
