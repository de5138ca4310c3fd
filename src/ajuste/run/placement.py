"""Placement of profiles on a study's machine: this one, or a guest that is booted for it. tuned's own profiles are
fetched if it is not installed.
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
from ajuste.profile.meanings import wishes
from ajuste.profile.placing import Placed, PlacedProfile, place
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
    """Return the suite of a kernel's series, whose profiles are of the same age; empty for other kernels."""
    spec = parse_spec(kernel)
    if not isinstance(spec, PackagedKernel):
        return ""
    text = spec.release or spec.version
    series = kernel_sources()[spec.source].find_series(KernelVersion.parse(text if "." in text else f"{text}.0"))
    return series.suites[0].partition("-")[0] if series else ""


def fetch_tuned(suite: str, home: Home, say: Say) -> TunedTree:
    """Return tuned of ``suite``, or the newest if empty, from the cache or the distribution's archive.

    Raises RequestError if there is none or the disk is full, RunError if fetching fails.
    """
    root = home.cache / "tuned"
    with keeping_in(root, "tuned"):
        folder = root / (suite or "newest")
        if tree := _read_package(folder):
            return tree
        with locked(root / ".lock", waiting=lambda: say("waiting for another ajuste that is fetching tuned")):
            # Another process may have fetched it meanwhile.
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
        hold(folder)
    except (OSError, ValidationError):
        return None
    if find_any_damage(folder) is not None:
        return None
    return TunedTree(folder / "tree", record.package, record.suite)


def _fetch(folder: Path, suite: str, home: Home, say: Say) -> None:
    archive = package_lists(kernel_sources()[_SOURCE], home, say)
    archive.refresh()
    known = [package for package in archive.packages(["tuned"]) if not suite or suite in package.suites]
    if not known:
        raise RequestError(f"tuned not found in {suite or ', '.join(archive.suites)}", hint=install_hint("tuned"))
    package = max(known, key=lambda candidate: Version(candidate.version))
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
class _QueriedMachine:
    version: KernelVersion
    facts: MachineFacts
    instances: Callable[[Tunable], Sequence[str]]
    read: Read
    suite: str


def placed_profiles(
    specs: Sequence[str], target: TargetTable, catalogue: Catalogue, options: RunOptions
) -> tuple[Placed, ...]:
    """Return the settings of profiles on ``target``, in the order of ``specs``.

    A guest is booted for it; nothing is changed. Raises RequestError for a missing or invalid profile, RunError if a
    machine or a mirror is lost.
    """
    _require_once(specs)
    with _this_machine(catalogue) if target.on_host else _guest(target, options) as machine:
        sources = Sources(
            fetch=partial(_tuned, machine.suite, options),
            known=_sysctls(catalogue, machine.version),
            elsewhere=bool(machine.suite),
        )
        placed = []
        for profile in [read_profile(spec, sources, machine.facts) for spec in specs]:
            wanted, unmapped = wishes(profile, catalogue, machine.version, machine.instances)
            read = machine.read(list({wish.tunable.name: wish.tunable for wish in wanted}.values()))
            placed.append(place(profile, wanted, unmapped, read, catalogue, machine.version))
    return tuple(placed)


def check_profiles(specs: Sequence[str], table: TargetTable, catalogue: Catalogue, options: RunOptions) -> None:
    """Check profiles while the guest's kernel is not built yet.

    Raises RequestError for a missing or invalid profile, RunError if a mirror is lost.
    """
    from ajuste.kernel.builder import kernel_builder

    _require_once(specs)
    for wanted in specs_to_build([table.kernel] if table.kernel else ()).values():
        known = _sysctls(catalogue, kernel_builder().version_to_build(wanted, options.home))
        sources = Sources(fetch=partial(_tuned, "", options), known=known, elsewhere=False)
        for spec in specs:
            read_profile(spec, sources, _facts_of(table))


def _require_once(specs: Sequence[str]) -> None:
    if len(set(specs)) < len(specs):
        raise RequestError(f"a profile is given twice: {', '.join(specs)}", hint="give each profile only once")


def _facts_of(table: TargetTable) -> MachineFacts:
    return MachineFacts(tuple(range(table.cpus)), virtual=True)


def _tuned(fitting: str, options: RunOptions, suite: str) -> TunedTree:
    return fetch_tuned(suite or fitting, options.home, options.say)


def _sysctls(catalogue: Catalogue, version: KernelVersion) -> tuple[str, ...]:
    places = (tunable.place_in(version) for tunable in catalogue.tunables.values())
    return tuple(name for where in places if where and (name := sysctl_name(where.path)))


@contextmanager
def _this_machine(catalogue: Catalogue) -> Iterator[_QueriedMachine]:
    machine = HostMachine()
    virtual = take_virtualisation(InventorySource()).machine not in (None, "none")
    with HostExecutor() as target:

        def read(tunables: Sequence[Tunable]) -> Mapping[str, PlacedProfile]:
            instances = tunables_here(target, catalogue, tunables, machine)
            return {
                # A tunable that only root can read is not locked.
                instance.tunable.name: PlacedProfile(None, instance.locked)
                if instance.locked and not instance.locked.startswith(NEEDS_ROOT)
                else PlacedProfile(instance.current.value, instance.current.problem)
                for instance in instances
            }

        yield _QueriedMachine(
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
def _guest(table: TargetTable, options: RunOptions) -> Iterator[_QueriedMachine]:
    from ajuste.executor.guest.guest import GuestExecutor

    if table.kernel is None:
        raise RequestError("placing a profile in a guest requires one kernel", hint="choose one with --kernel")
    image = fetch_kernel(table.kernel, options.home, say=options.say)
    guest = GuestExecutor(
        image,
        clock=table.clock,
        cpus=table.cpus,
        memory_mib=table.memory_mib,
        instruction_ns=table.instruction_ns,
        files=GuestFiles(modules=table.modules),
        home=options.home,
        snapshot=False,
        kernel_arguments=table.kernel_arguments,
        nodes=table.nodes,
        turn_us=table.turn_us,
        parallel=table.parallel,
        topology=table.topology,
        say=options.say,
    )
    options.say(f"checking what a guest with {table.kernel} supports")
    with guest as target:
        yield _QueriedMachine(
            KernelVersion.parse(target.hello.kernel),
            _facts_of(table),
            partial(_in_guest, range(table.cpus)),
            partial(_read, target),
            suite_of_kernel(table.kernel),
        )


def _in_guest(cpus: Sequence[int], tunable: Tunable) -> Sequence[str]:
    # A guest has no disks.
    there = {"cpu": [f"cpu{cpu}" for cpu in cpus], "interface": ["lo"], "node": ["node0"]}
    return there.get(tunable.instances, [])


def _read(target: Executor, tunables: Sequence[Tunable]) -> Mapping[str, PlacedProfile]:
    current_by_name = current_values(target, tunables)
    return {name: PlacedProfile(current.value, current.problem) for name, current in current_by_name.items()}
