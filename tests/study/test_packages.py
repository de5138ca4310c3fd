"""A study whose guests have Debian packages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.study.command_line.request import Request, split_commands
from ajuste.study.command_line.study import adhoc_study
from ajuste.study.overrides import with_packages
from ajuste.study.read import read_study
from ajuste.study.resolve import resolve
from ajuste.study.resolved import ResolvedStudy, fingerprint
from ajuste.study.schema import Study
from ajuste.study.site import GUEST, Site

STUDY = """
schema = 1
name = "packages"
factor = []
workload.command = ["redis-server", "--version"]
analysis.metrics = ["elapsed"]

[target]
kernel = "debian:6.1"
{target}
"""
THERE = {"redis-server": "/usr/bin/redis-server", "sh": "/usr/bin/sh"}
IN_PACKAGES = Site(
    bundled=GUEST.bundled, directory=GUEST.directory, in_place=False, user=GUEST.user, find_there=THERE.get
)


def read(folder: Path, target: str) -> Study:
    file = folder / "study.toml"
    file.write_text(STUDY.format(target=target))
    return read_study(file, catalogue(), parse_kernel=parse_spec)


def ask(*words: str, **options: Any) -> Study:
    request = Request(split_commands(words or ("redis-server",)), **{"vm": True, **options})
    return adhoc_study(request, catalogue(), parse_kernel=parse_spec)


def resolved(study: Study, site: Site, host: dict[str, str] | None = None) -> ResolvedStudy:
    kernels = {spec: KernelVersion(major=6, minor=1) for spec in study.kernels}
    return resolve(study, catalogue(), kernels, (host or {}).get, site)


def test_lists_and_repeated_options_are_one_list() -> None:
    study = ask(package=("redis-server, redis-tools", "python3/trixie"))
    assert study.target.packages == ("redis-server", "redis-tools", "python3/trixie")


def test_with_packages_a_guest_has_more_memory_unless_it_is_said() -> None:
    assert ask().target.memory_mib == 256
    assert ask(package=("a1",)).target.memory_mib == 512
    assert ask(package=("a1",), memory="300M").target.memory_mib == 300


def test_more_packages_can_be_given_to_a_study(tmp_path: Path) -> None:
    plain, extended = read(tmp_path, ""), read(tmp_path, 'packages = ["redis-server"]\nmemory_mib = 700')
    assert with_packages(plain, ["a1,b1"]).target.packages == ("a1", "b1")
    assert with_packages(plain, ["a1"]).target.memory_mib == 512
    both = with_packages(extended, ["redis-tools", "redis-server"]).target
    assert (both.packages, both.memory_mib) == (("redis-server", "redis-tools"), 700)


@pytest.mark.parametrize("text", ["Redis", "a", "../x", "a b", "x/", "x/Trixie", "-x", "x=1", "x;y"])
def test_a_name_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(RequestError, match="expected the name of a Debian package"):
        ask(package=(text,))
    with pytest.raises(RequestError, match="packages"):
        read(tmp_path, f'packages = ["{text}"]')


def test_only_guests_have_packages(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="applies only to guests"):
        ask(vm=False, package=("redis-server",))
    file = tmp_path / "host.toml"
    file.write_text(STUDY.replace('kernel = "debian:6.1"', 'kind = "host"').format(target='packages = ["xx"]'))
    with pytest.raises(RequestError, match=r"target\.packages.*applies only to guests|applies only to guests"):
        read_study(file, catalogue(), parse_kernel=parse_spec)


def test_a_program_of_the_packages_comes_before_one_of_this_machine() -> None:
    host = {"redis-server": "/opt/redis-server", "make": "/usr/bin/make"}
    study = resolved(ask("redis-server", "--port", "7", package=("redis-server",)), IN_PACKAGES, host)
    assert study.configurations[0].workload.argv == ("/usr/bin/redis-server", "--port", "7")
    assert study.programs == ()
    assert resolved(ask("make", package=("redis-server",)), IN_PACKAGES, host).programs == ("/usr/bin/make",)


def test_a_program_that_is_nowhere_is_said_with_the_package_that_has_it() -> None:
    with pytest.raises(RequestError, match="not found in the packages or on this machine") as raised:
        resolved(ask("hackbench", package=("redis-server",)), IN_PACKAGES)
    assert raised.value.hint == "add its package: --package rt-tests"
    with pytest.raises(RequestError, match="not found in the packages") as raised:
        resolved(ask("nowhere", package=("redis-server",)), IN_PACKAGES)
    assert raised.value.hint == "add its package; find it at https://packages.debian.org/file:nowhere"


def test_what_has_no_packages_has_the_fingerprint_that_it_had(tmp_path: Path) -> None:
    plain = resolved(read(tmp_path, ""), IN_PACKAGES)
    assert "packages" not in plain.study.target.model_dump()
    packed = resolved(read(tmp_path, 'packages = ["redis-server"]\nmemory_mib = 256'), IN_PACKAGES)
    assert fingerprint(plain) != fingerprint(packed)
