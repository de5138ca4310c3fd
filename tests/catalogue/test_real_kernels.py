"""The catalogue against the kernels themselves: every tunable is where it says, and every knob there is, is in it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ajuste.catalogue.initial import initial_value
from ajuste.catalogue.loader import catalogue
from ajuste.catalogue.place import needed_options
from ajuste.home import home
from ajuste.kernel.fetch import fetch_kernel
from ajuste.model.event import Output
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Command, File, Plan, Read
from ajuste.model.tunable import Tunable
from ajuste.target.current import Current, current_values
from ajuste.target.vm import VmTarget
from ajuste.vm.guest_files import GuestFiles

pytestmark = [pytest.mark.vm, pytest.mark.timeout(600)]

FOLDERS = ("/proc/sys/kernel", "/sys/kernel/debug")
KNOB = r"(/proc/sys/kernel|/sys/kernel/debug)/(sched|numa_balancing)[^/]*(/.*)?"

# What the kernel only shows there, and files whose words are tunables of their own.
NO_TUNABLES = (
    r"/sys/kernel/debug/sched/debug",
    r"/sys/kernel/debug/sched_features",
    r"/sys/kernel/debug/sched/features",
    r".*/(sched_domain|sched/domains)/cpu\d+/domain\d+/(name|flags|groups_flags|level|group_asym_prefer_cpu)",
)


@dataclass(frozen=True)
class Guest:
    """What one kernel showed in one boot: values by tunable, the files with its knobs, and its features' words."""

    version: KernelVersion
    cpus: int
    options: frozenset[str]
    values: dict[str, Current]
    files: tuple[str, ...]
    features: frozenset[str]


@pytest.fixture(
    scope="module",
    params=[("debian:5.10", 1), ("debian:6.1", 2), ("debian:6.12", 1), ("debian:7", 1)],
    ids=lambda case: f"{case[0]} with {case[1]} CPU",
)
def guest(request: pytest.FixtureRequest) -> Iterator[Guest]:
    spec, cpus = request.param
    find = shutil.which("find")
    assert find, "findutils are needed"
    image = fetch_kernel(spec, home())
    assert image.config, "a packaged kernel has its build options beside it"
    files = GuestFiles(programs=(Path(find),))
    traces = ("-path", "/sys/kernel/debug/tracing", "-prune")
    knobs = ("-regextype", "posix-extended", "-type", "f", "-regex", KNOB, "-print")
    listing = Command(argv=(find, *FOLDERS, *traces, "-o", *knobs))
    with VmTarget(image, clock="virtual" if cpus == 1 else "wall", cpus=cpus, files=files, home=home()) as target:
        listed = target.run(Plan(id="list", workload=listing))
        paths = "".join(event.text for event in listed.events if isinstance(event, Output) and event.stream == "stdout")
        words = [path for path in paths.split() if path.endswith(("sched/features", "sched_features"))]
        read = target.run(Plan(id="words", reads=tuple(Read(tunable="words", location=File(path=p)) for p in words)))
        yield Guest(
            version=image.version,
            cpus=cpus,
            options=frozenset(re.findall(r"^CONFIG_(\w+)=y$", image.config.read_text(), re.MULTILINE)),
            values=current_values(target, [one_of(tunable, cpus) for tunable in present(image.version)]),
            files=tuple(paths.split()),
            features=frozenset(
                word.removeprefix("NO_") for event in read.events if event.event == "read" for word in value(event)
            ),
        )


def value(event) -> list[str]:
    assert event.value, event.error
    return event.value.split()


def present(version: KernelVersion) -> list[Tunable]:
    return [
        tunable
        for tunable in catalogue().tunables.values()
        if (where := tunable.place_in(version)) and where.kind != "process"
    ]


def one_of(tunable: Tunable, cpus: int) -> Tunable:
    """The instance of the last CPU."""
    last = {name: part.example for name, part in catalogue().parts.items()} | {"cpu": f"cpu{cpus - 1}"}
    return tunable.instance(last) if tunable.parts else tunable


def expected(tunable: Tunable, guest: Guest) -> bool:
    """Whether the guest must have it: its build options are on and, for domains, there are CPUs to balance."""
    where = tunable.place_in(guest.version)
    assert where is not None
    if tunable.subsystem == "scheduler-domains" and (guest.cpus == 1 or "sched_verbose" in where.note):
        return False
    return set(needed_options(where, guest.version)) <= guest.options


def test_every_tunable_is_readable_where_the_catalogue_says_and_no_other(guest: Guest) -> None:
    there = {tunable.name for tunable in present(guest.version) if expected(tunable, guest)}
    assert len(there) > 40
    shown = {
        tunable.name
        for tunable in present(guest.version)
        if guest.values[one_of(tunable, guest.cpus).name].value is not None
    }
    problems = {name: current.problem for name, current in guest.values.items() if current.problem}
    assert shown == there, problems


def test_every_knob_of_the_kernel_is_in_the_catalogue(guest: Guest) -> None:
    known = [
        re.sub(r"\\\{(\w+)\\\}", r"\1\\d+", re.escape(where.path))
        for tunable in present(guest.version)
        if (where := tunable.place_in(guest.version))
    ]
    assert len(guest.files) > 20
    assert [path for path in guest.files if not re.fullmatch("|".join([*known, *NO_TUNABLES]), path)] == []


def test_every_feature_of_the_kernel_is_in_the_catalogue_and_no_other(guest: Guest) -> None:
    known = {where.flag for t in present(guest.version) if (where := t.place_in(guest.version)) and where.flag}
    assert guest.features == known


def test_the_values_at_boot_are_those_of_the_rules(guest: Guest) -> None:
    said = {
        tunable.name: initial
        for tunable in present(guest.version)
        if expected(tunable, guest) and (initial := initial_value(tunable, guest.version, guest.cpus))
    }
    assert len(said) > 40
    assert {name: guest.values[one_of(catalogue().tunables[name], guest.cpus).name].value for name in said} == said


def test_a_choice_is_one_of_those_that_this_kernel_has(guest: Guest) -> None:
    for tunable in present(guest.version):
        current = guest.values[one_of(tunable, guest.cpus).name].value
        if tunable.type == "choice" and current is not None:
            assert catalogue().check_level(tunable, current, guest.version) == current
        if tunable.type == "integer" and current:
            assert catalogue().check_level(tunable, current) == current
