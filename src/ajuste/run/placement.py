"""Profiles on the machine that a study is for: this one, or a guest that is booted to be asked; with tuned's own,
fetched where it is not installed.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from debian.debian_support import Version
from pydantic import ValidationError

from ajuste.catalogue.loader import Catalogue
from ajuste.catalogue.place import sysctl_name
from ajuste.catalogue.programs import install_hint
from ajuste.executor.executor import Executor
from ajuste.executor.guest.initramfs import GuestFiles
from ajuste.executor.host.availability import NEEDS_ROOT, HostMachine, current_values, instances_here, tunables_here
from ajuste.executor.host.host import HostExecutor
from ajuste.kernel.archive.archive import PackageGone
from ajuste.kernel.cache import find_any_damage, keeping_in, put_in_place, write_inventory
from ajuste.kernel.candidate import TREE, unpacked
from ajuste.kernel.fetch import fetch_kernel, package_lists
from ajuste.kernel.spec import PackagedKernel, kernel_sources, parse_spec, specs_to_build
from ajuste.machine.files import hold, locked, read_kept
from ajuste.machine.home import Home
from ajuste.machine.inventory.software import take_virtualisation
from ajuste.machine.inventory.source import InventorySource
from ajuste.model.base import BaseModel
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.kernel import KernelVersion
from ajuste.model.tunable import Tunable
from ajuste.model.wording import Say
from ajuste.profile.placing import Placed, PlacedProfile, place, wishes
from ajuste.profile.profile import MachineFacts
from ajuste.profile.source import Sources, TunedTree, read_profile
from ajuste.run.testbed import RunOptions
from ajuste.study.target import TargetTable

_SOURCE: Final = "debian"
_RECORD: Final = "package.json"
_SPARE_BYTES: Final = 4_000_000


class _Record(BaseModel):
    package: str
    suite: str


def suite_of_kernel(kernel: str) -> str:
    """The suite that a kernel's series is from, so that its profiles are of the same time; empty for other kernels."""
    spec = parse_spec(kernel)
    if not isinstance(spec, PackagedKernel):
        return ""
    text = spec.release or spec.version
    series = kernel_sources()[spec.source].find_series(KernelVersion.parse(text if "." in text else f"{text}.0"))
    return series.suites[0].partition("-")[0] if series else ""


def fetch_tuned(suite: str, home: Home, say: Say) -> TunedTree:
    """tuned of that suite (of an empty one: the newest), from the cache or else from the distribution's archive.

    Raises RequestError where there is none or the disk is too full, RunError where fetching fails.
    """
    root = home.cache / "tuned"
    with keeping_in(root, "tuned"):
        folder = root / (suite or "newest")
        if tree := _read_package(folder):
            return tree
        with locked(root / ".lock", waiting=lambda: say("waiting for another ajuste that is fetching tuned")):
            if tree := _read_package(folder):
                return tree
            try:
                _fetch(folder, suite, home, say)
            except AjusteError as failure:
                raise type(failure)(
                    f"tuned is not installed, and {failure.message}", hint=install_hint("tuned")
                ) from None
        if tree := _read_package(folder):
            return tree
    raise RunError(f"cannot read back the tuned stored in {folder}", hint=install_hint("tuned"))


def _read_package(folder: Path) -> TunedTree | None:
    try:
        record = _Record.model_validate_json(read_kept(folder / _RECORD))
    except (OSError, ValidationError):
        return None
    if _gone_or_damaged(folder):
        return None
    return TunedTree(folder / "tree", record.package, record.suite)


def _gone_or_damaged(folder: Path) -> bool:
    try:
        hold(folder)
    except OSError:
        return True
    return find_any_damage(folder) is not None


def _fetch(folder: Path, suite: str, home: Home, say: Say) -> None:
    archive = package_lists(kernel_sources()[_SOURCE], home, say)
    archive.refresh()
    known = [package for package in archive.packages(["tuned"]) if not suite or suite in package.suites]
    if not known:
        raise RequestError(f"tuned not found in {suite or ', '.join(archive.suites)}", hint=install_hint("tuned"))
    package = max(known, key=lambda one: Version(one.version))
    record = _Record(package=str(package), suite=suite or (package.suites[0] if package.suites else ""))
    try:
        with unpacked([package], folder.parent, archive, "tuned", say, spare_bytes=_SPARE_BYTES) as temporary:
            entry = temporary / "entry"
            entry.mkdir()
            (temporary / TREE).rename(entry / "tree")
            (entry / _RECORD).write_text(record.model_dump_json(), encoding="utf-8")
            write_inventory(entry)
            put_in_place(entry, folder, aside=temporary / "damaged")
    except PackageGone as gone:
        raise RunError(str(gone)) from None


Read = Callable[[Sequence[Tunable]], Mapping[str, PlacedProfile]]


@dataclass(frozen=True)
class _Asked:
    # A machine that can be asked: what a profile wants to know, what there is several times, and values.
    version: KernelVersion
    facts: MachineFacts
    instances: Callable[[Tunable], Sequence[str]]
    read: Read
    suite: str


def placed_profiles(
    specs: Sequence[str], target: TargetTable, catalogue: Catalogue, means: RunOptions
) -> tuple[Placed, ...]:
    """What the profiles come to on ``target``, in the order given.

    A guest is booted for it, and nothing is changed. Raises RequestError for profiles that are not there or not right,
    RunError where a machine or a mirror is lost.
    """
    _require_once(specs)
    ask = _this_machine(catalogue) if target.on_host else _guest(target, means)
    with ask as asked:
        sources = Sources(
            fetch=partial(_tuned, asked.suite, means),
            known=_sysctls(catalogue, asked.version),
            elsewhere=bool(asked.suite),
        )
        found = []
        for profile in [read_profile(spec, sources, asked.facts) for spec in specs]:
            wanted, unmapped = wishes(profile, catalogue, asked.version, asked.instances)
            read = asked.read(list({wish.tunable.name: wish.tunable for wish in wanted}.values()))
            found.append(place(profile, wanted, unmapped, read, catalogue, asked.version))
    return tuple(found)


def check_profiles(specs: Sequence[str], table: TargetTable, catalogue: Catalogue, means: RunOptions) -> None:
    """Whether the profiles are there and right, while the kernel of the guest is still to be built.

    Raises RequestError, RunError where a mirror is lost.
    """
    from ajuste.kernel.building.build import version_to_build

    _require_once(specs)
    for wanted in specs_to_build([table.kernel] if table.kernel else ()).values():
        known = _sysctls(catalogue, version_to_build(wanted, means.home))
        sources = Sources(fetch=partial(_tuned, "", means), known=known, elsewhere=False)
        for spec in specs:
            read_profile(spec, sources, _facts_of(table))


def _require_once(specs: Sequence[str]) -> None:
    if len(set(specs)) < len(specs):
        raise RequestError(f"a profile is given twice: {', '.join(specs)}", hint="give each profile only once")


def _facts_of(table: TargetTable) -> MachineFacts:
    return MachineFacts(tuple(range(table.cpus)), virtual=True)


def _tuned(fitting: str, means: RunOptions, suite: str) -> TunedTree:
    return fetch_tuned(suite or fitting, means.home, means.say)


def _sysctls(catalogue: Catalogue, version: KernelVersion) -> tuple[str, ...]:
    places = (tunable.place_in(version) for tunable in catalogue.tunables.values())
    return tuple(name for where in places if where and (name := sysctl_name(where.path)))


@contextmanager
def _this_machine(catalogue: Catalogue) -> Iterator[_Asked]:
    machine = HostMachine()
    virtual = take_virtualisation(InventorySource()).machine not in (None, "none")
    with HostExecutor() as target:

        def read(tunables: Sequence[Tunable]) -> Mapping[str, PlacedProfile]:
            found = tunables_here(target, catalogue, tunables, machine)
            return {
                one.tunable.name: PlacedProfile(None, one.locked)
                if one.locked and not one.locked.startswith(NEEDS_ROOT)
                else PlacedProfile(one.current.value, one.current.problem)
                for one in found
            }

        yield _Asked(
            machine.version,
            MachineFacts(
                tuple(sorted(os.sched_getaffinity(0))),
                platform.machine(),
                Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace"),
                virtual,
            ),
            lambda tunable: instances_here(catalogue, tunable, machine.version),
            read,
            suite="",
        )


@contextmanager
def _guest(table: TargetTable, means: RunOptions) -> Iterator[_Asked]:
    from ajuste.executor.guest.guest import GuestExecutor

    if table.kernel is None:
        raise RequestError("placing a profile in a guest requires one kernel", hint="choose one with --kernel")
    image = fetch_kernel(table.kernel, means.home, say=means.say)
    guest = GuestExecutor(
        image,
        clock=table.clock,
        cpus=table.cpus,
        memory_mib=table.memory_mib,
        instruction_ns=table.instruction_ns,
        files=GuestFiles(modules=table.modules),
        home=means.home,
        snapshot=False,
        kernel_arguments=table.kernel_arguments,
        nodes=table.nodes,
        turn_us=table.turn_us,
        parallel=table.parallel,
        topology=table.topology,
        say=means.say,
    )
    means.say(f"checking what a guest with {table.kernel} supports")
    with guest as target:
        yield _Asked(
            KernelVersion.parse(target.hello.kernel),
            _facts_of(table),
            partial(_in_guest, range(table.cpus)),
            partial(_read, target),
            suite_of_kernel(table.kernel),
        )


def _in_guest(cpus: Sequence[int], tunable: Tunable) -> Sequence[str]:
    # A guest has its CPUs, one node and the loopback interface; disks it has none.
    there = {"cpu": [f"cpu{cpu}" for cpu in cpus], "interface": ["lo"], "node": ["node0"]}
    return there.get(tunable.instances, [])


def _read(target: Executor, tunables: Sequence[Tunable]) -> Mapping[str, PlacedProfile]:
    found = current_values(target, tunables)
    return {name: PlacedProfile(current.value, current.problem) for name, current in found.items()}
