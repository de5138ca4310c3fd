"""The catalogue against the kernel that runs here: what should be there is, or a build option is missing."""

from __future__ import annotations

import os
from operator import attrgetter
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.catalogue.place import needed_options
from ajuste.executor.host.availability import HostMachine
from ajuste.model.tunable import Tunable
from looped import each

MACHINE = HostMachine()
SYSCTLS = [
    tunable
    for tunable in catalogue().tunables.values()
    if (where := tunable.place_in(MACHINE.version)) and where.kind == "sysctl" and not tunable.parts
]


@pytest.mark.skipif(MACHINE.options is None, reason="this kernel does not say how it was built")
@each(SYSCTLS, name=attrgetter("name"))
def test_a_sysctl_of_this_kernel_is_there_or_takes_an_option_that_is_off(tunable: Tunable) -> None:
    where = tunable.place_in(MACHINE.version)
    assert where is not None
    assert MACHINE.options is not None
    off = [option for option in needed_options(where, MACHINE.version) if option not in MACHINE.options]
    assert Path(where.path).exists() == (not off), off


def test_every_memory_setting_that_root_can_write_is_one_of_the_catalogue_or_left_out_on_purpose() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root sees all of them as writable")
    known = {where.path for tunable in SYSCTLS if (where := tunable.place_in(MACHINE.version))}
    dirty = {str(path) for path in Path("/proc/sys/vm").glob("dirty*")}
    assert len(dirty) >= 7
    assert dirty <= known
