"""A scheduler written in BPF is a level like any other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.study.read import read_study
from ajuste.study.resolve import resolve
from ajuste.study.resolved import Machine, ResolvedStudy

SCHEDULERS = ('name = "sched_min_granularity_ns"\nlevels = [750000, 7500000]', 'name = "sched_ext"\nlevels = LEVELS')


@pytest.fixture
def resolved(write: Callable[..., Path]) -> Callable[..., ResolvedStudy]:
    def resolving(levels: str, version: str = "6.12", *more: tuple[str, str]) -> ResolvedStudy:
        factor = (SCHEDULERS[0], SCHEDULERS[1].replace("LEVELS", levels))
        kernel = ('kernel = "debian:5.10"', 'kernel = "mine:ext"')
        study = read_study(write(factor, kernel, *more), catalogue())
        return resolve(study, catalogue(), {"mine:ext": KernelVersion.parse(version)}, lambda name: f"/bin/{name}")

    return resolving


def test_it_is_loaded_before_the_workload_and_unloaded_after_it(resolved: Callable[..., ResolvedStudy]) -> None:
    setup = ('kind = "matrix"', 'kind = "matrix"\nsetup = ["true"]\ncleanup = ["true"]')
    study = resolved('["none", "scx_simple"]', "6.12", setup)
    plain, loaded = study.configurations
    assert [command.argv for command in plain.before + plain.after] == [("/bin/true",)] * 2
    program = "/ajuste/bin/ajuste-workloads"
    assert loaded.before == (*plain.before, loaded.before[-1])
    assert loaded.before[-1].argv == (program, "scheduler", "load", "/ajuste/schedulers/scx_simple")
    assert loaded.after[0].argv == (program, "scheduler", "unload")
    assert loaded.after[1:] == plain.after
    assert not loaded.writes
    assert study.names == ("sched_ext=none", "sched_ext=scx_simple")


def test_a_guest_has_the_schedulers_of_all_its_configurations(resolved: Callable[..., ResolvedStudy]) -> None:
    study = resolved('["none", "scx_qmap", "scx_central"]')
    assert study.schedulers_on(Machine("mine:ext")) == ("scx_qmap", "scx_central")
    assert study.schedulers_on(Machine("debian:6.12")) == ()


def test_it_can_be_one_of_several_settings(resolved: Callable[..., ResolvedStudy]) -> None:
    settings = '["own", "simple"]\nsettings.own = {}\nsettings.simple = { sched_ext = "scx_simple" }'
    study = resolved(settings, "6.12", ('"sched_ext"', '"scheduler"'))
    assert [configuration.scheduler for configuration in study.configurations] == ["", "scx_simple"]


def test_a_kernel_that_is_too_old_and_a_scheduler_that_is_unknown_are_refused(
    resolved: Callable[..., ResolvedStudy],
) -> None:
    with pytest.raises(
        RequestError, match=r"sched_ext is not supported by Linux 6\.1; kernels that have it: 6\.12 and later"
    ):
        resolved('["none", "scx_simple"]', "6.1")
    with pytest.raises(RequestError, match=r"expected one of none, scx_simple"):
        resolved('["none", "simple"]')


def test_a_host_keeps_its_own_scheduler(resolved: Callable[..., ResolvedStudy]) -> None:
    host = ('kernel = "mine:ext"', 'kind = "host"')
    with pytest.raises(RequestError, match="BPF schedulers are not supported on the host"):
        resolved('["none", "scx_simple"]', "6.12", host)
