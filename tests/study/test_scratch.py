"""The way from the options of a file system to the arguments of mkfs and mount."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import User
from ajuste.study.check import check
from ajuste.study.job import ScratchTable
from ajuste.study.resolve import resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import Study
from ajuste.study.site import GUEST, MAKE, MOUNT, MOUNT_POINT, QUIETLY, Site, scratch


def made(varied: dict[str, str] | None = None, site: Site = GUEST, **table: Any) -> tuple[tuple[str, ...], str]:
    planned = scratch(ScratchTable.model_validate(table), varied or {}, site, lambda name: f"/usr/sbin/{name}")
    return planned.make, planned.options


def test_options_go_to_mkfs_or_to_mount() -> None:
    make, mount = made(options={"block_size": 1024, "data": "journal", "lazy_init": 0}, mount_options="nodev")
    assert make == (
        *("/usr/sbin/mkfs.ext4", "-q", "-F", "-b", "1024"),
        *("-E", "lazy_itable_init=0,lazy_journal_init=0"),
    )
    assert mount == "nodev,data=journal"


def test_what_a_configuration_varies_goes_first() -> None:
    make, mount = made({"data": "writeback", "type": "ext3"}, options={"data": "journal", "fs.inode_size": 512})
    assert make == ("/usr/sbin/mkfs.ext3", "-q", "-F", "-I", "512")
    assert mount == "data=writeback"


def test_a_file_system_of_another_type_has_its_own_words() -> None:
    make, mount = made(filesystem="xfs", options={"block_size": 1024, "atime": "noatime"}, make_options=["-L", "x"])
    assert make == ("/usr/sbin/mkfs.xfs", "-q", "-f", "-b", "size=1024", "-L", "x")
    assert mount == "noatime"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"filesystem": "ext2", "options": {"data": "journal"}}, "fs.data is not supported by ext2"),
        ({"filesystem": "ntfs"}, 'file system "ntfs" is not supported'),
    ],
)
def test_what_a_type_does_not_have_is_refused(table: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        made(**table)


def test_without_a_device_it_is_a_file_of_that_size_where_the_caller_is() -> None:
    host = Site(bundled="/b", directory="/home/ada", in_place=True, user=User(uid=7, gid=7))
    in_file = scratch(ScratchTable(size_mib=64), {}, host, str)
    assert (in_file.size_bytes, in_file.directory, in_file.device, in_file.user) == (
        64 << 20,
        "/home/ada",
        "",
        host.user,
    )
    on_device = scratch(ScratchTable(device="/dev/sdz"), {}, host, str)
    assert (on_device.size_bytes, on_device.directory, on_device.device) == (0, "", "/dev/sdz")


def test_every_attribute_is_one_of_the_catalogue_and_every_one_of_the_catalogue_has_a_meaning() -> None:
    known = {name.removeprefix("fs.") for name in catalogue().tunables if name.startswith("fs.")}
    assert {attribute for attribute, _ in (*MAKE, *MOUNT)} | {"type"} == known
    assert {kind for _, kind in (*MAKE, *MOUNT)} <= set(QUIETLY)


def study(**more: Any) -> Study:
    document = {
        "name": "try",
        "factor": [{"name": "fs.data", "levels": ["ordered", "journal"]}],
        "workload": {"command": ["dd"], "prepare": ["true"]},
        "scratch": {},
        "target": {"kernel": "debian:6.1"},
        "analysis": {"metrics": ["elapsed"]},
    }
    return Study.model_validate(document | more)


def resolved(study: Study) -> ResolvedStudy:
    return resolve(study, catalogue(), {"debian:6.1": KernelVersion(major=6, minor=1)}, lambda name: f"/bin/{name}")


def test_each_configuration_has_its_file_system_and_works_in_it() -> None:
    resolved_study = resolved(study())
    systems = [c.scratch for c in resolved_study.configurations]
    assert [system.options for system in systems if system] == ["data=ordered", "data=journal"]
    assert {c.workload.directory for c in resolved_study.configurations} == {MOUNT_POINT}
    assert {command.directory for c in resolved_study.configurations for command in c.before} == {MOUNT_POINT}
    assert any(program.endswith("mkfs.ext4") for program in resolved_study.programs)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"scratch": None}, r"fs\.data requires a file system made for the trial; add \[scratch\]"),
        ({"scratch": {"options": {"blocksize": 1}}}, "unknown option; did you mean block_size"),
        ({"scratch": {"options": {"data": "maybe"}}}, "ordered"),
    ],
)
def test_a_wrong_scratch_is_told_with_its_place(more: dict[str, Any], words: str) -> None:
    (problem,) = check(study(**more), catalogue())
    assert re.search(words, problem.message)
