"""Placement of profiles on a study's machine: this one, or a guest that is booted for it."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ajuste.catalogue.loader import Catalogue
from ajuste.catalogue.place import sysctl_name
from ajuste.catalogue.programs import install_hint
from ajuste.executor.executor import Executor
from ajuste.executor.host.availability import NEEDS_ROOT, HostMachine, current_values, instances_here, tunables_here
from ajuste.executor.host.host import HostExecutor
from ajuste.kernel.spec import PackagedKernel, kernel_sources, parse_spec, specs_to_build
from ajuste.machine.inventory.software import take_virtualisation
from ajuste.machine.inventory.source import InventorySource
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.tunable import Tunable
from ajuste.run.testbed import RunOptions, UnpackedPackage, has_testbed, kernel_testbed
from ajuste.study.profile import Placed
from ajuste.study.target import TargetTable
from ajuste_profiles.meanings import wishes
from ajuste_profiles.placing import Reading, place
from ajuste_profiles.source import FORMS, Sources, read_profile
from ajuste_profiles.tuned import MachineFacts


def suite_of_kernel(kernel: str) -> str:
    """Return the suite of a kernel's series, whose profiles are of the same age; empty for other kernels."""
    spec = parse_spec(kernel)
    if not isinstance(spec, PackagedKernel):
        return ""
    text = spec.release or spec.version
    series = kernel_sources()[spec.source].find_series(KernelVersion.parse(text if "." in text else f"{text}.0"))
    return series.suites[0].partition("-")[0] if series else ""


Read = Callable[[Sequence[Tunable]], Mapping[str, Reading]]


@dataclass(frozen=True)
class _QueriedMachine:
    version: KernelVersion
    facts: MachineFacts
    instances: Callable[[Tunable], Sequence[str]]
    read: Read
    suite: str


class Placement:
    """The placement that the core asks for (``ajuste.run.placement.ProfilePlacement``)."""

    def placed(
        self, specs: Sequence[str], target: TargetTable, catalogue: Catalogue, options: RunOptions
    ) -> tuple[Placed, ...]:
        _require_names(specs)
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

    def check(self, specs: Sequence[str], target: TargetTable, catalogue: Catalogue, options: RunOptions) -> None:
        _require_names(specs)
        for kernel in specs_to_build([target.kernel] if target.kernel else ()):
            known = _sysctls(catalogue, kernel_testbed(options).kernel_version(kernel))
            sources = Sources(fetch=partial(_tuned, "", options), known=known, elsewhere=False)
            for profile in specs:
                read_profile(profile, sources, _facts_of(target))


def _require_names(specs: Sequence[str]) -> None:
    if not all(spec.strip() for spec in specs):
        raise RequestError("found an empty name between commas", hint=f"give {FORMS}")
    if len(set(specs)) < len(specs):
        raise RequestError(f"a profile is given twice: {', '.join(specs)}", hint="give each profile only once")


def _facts_of(table: TargetTable) -> MachineFacts:
    return MachineFacts(tuple(range(table.cpus)), virtual=True)


def _tuned(fitting: str, options: RunOptions, suite: str) -> UnpackedPackage:
    if not has_testbed("guest"):
        raise RequestError("tuned is not installed", hint=install_hint("tuned"))
    return kernel_testbed(options).tuned(suite or fitting)


def _sysctls(catalogue: Catalogue, version: KernelVersion) -> tuple[str, ...]:
    places = (tunable.place_in(version) for tunable in catalogue.tunables.values())
    return tuple(name for where in places if where and (name := sysctl_name(where.path)))


@contextmanager
def _this_machine(catalogue: Catalogue) -> Iterator[_QueriedMachine]:
    machine = HostMachine()
    virtual = take_virtualisation(InventorySource()).machine not in (None, "none")
    with HostExecutor() as target:

        def read(tunables: Sequence[Tunable]) -> Mapping[str, Reading]:
            instances = tunables_here(target, catalogue, tunables, machine)
            return {
                # A tunable that only root can read is not locked.
                instance.tunable.name: Reading(None, instance.locked)
                if instance.locked and not instance.locked.startswith(NEEDS_ROOT)
                else Reading(instance.current.value, instance.current.problem)
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
    if table.kernel is None:
        raise RequestError("placing a profile in a guest requires one kernel", hint="choose one with --kernel")
    guest = kernel_testbed(replace(options, snapshot=False)).bare(table)
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


def _read(target: Executor, tunables: Sequence[Tunable]) -> Mapping[str, Reading]:
    current_by_name = current_values(target, tunables)
    return {name: Reading(current.value, current.problem) for name, current in current_by_name.items()}
