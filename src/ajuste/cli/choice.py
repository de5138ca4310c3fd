"""The study that a command line chooses."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ajuste.catalogue.loader import Catalogue
from ajuste.cli import options
from ajuste.kernel.spec import KernelToBuild, parse_source, parse_spec, parse_study_spec, read_options, specs_to_build
from ajuste.machine.home import home
from ajuste.model.capability import Asked
from ajuste.model.cluster import Cluster, cluster_at
from ajuste.model.error import Place, RequestError
from ajuste.model.fleet import FleetPlan
from ajuste.model.wording import visible_line
from ajuste.report.console import Activity, Console, sheet
from ajuste.run.experiment import Resolving, built_kernels, resolved_study
from ajuste.run.testbed import RunOptions, kernel_testbed
from ajuste.study.builtin import find_study
from ajuste.study.command_line.conditions import fleet_plan
from ajuste.study.command_line.request import Request, kernels_between_commas
from ajuste.study.job import DiskTable
from ajuste.study.overrides import relocated, with_factor_levels, with_parameters, without_levels
from ajuste.study.profile import Placed, profile_notes
from ajuste.study.read import read_study
from ajuste.study.schema import Study
from ajuste.study.target import TargetTable


@dataclass(frozen=True)
class Choices:
    """The options that override parts of a study."""

    kernel: options.Kernel = None
    seed: options.Seed = None
    target: options.Target = None
    set: options.FactorLevels = None
    parameter: options.Parameter = None
    without: options.Without = None


def chosen_study(
    name: str,
    catalogue: Catalogue,
    choices: Choices,
    disk: Callable[[DiskTable], str] | None = None,
    rights: Asked = Asked("study file"),  # noqa: B008
) -> Study:
    """Return the study ``name``, built in or a file, with the overrides of the command line.

    ``disk`` names a disk of this machine for a study about one; ``rights`` limit which kernels the file may build.

    Raises:
        RequestError: The study is not found or malformed, or an override does not apply to it.
    """
    kernel, target = choices.kernel, choices.target
    kernels = None if kernel is None else _kernels(kernel)
    study = read_study(find_study(name), catalogue, parse_kernel=partial(parse_study_spec, rights=rights))
    if study.patches:
        study = kernel_testbed(RunOptions(home())).with_patches(study)
    study = with_factor_levels(study, choices.set or (), catalogue, parse_study_spec)
    study = without_levels(study, choices.without or ())
    if kernel is not None and any(factor.kernels for factor in study.factors):
        raise RequestError(f"--kernel {kernel}: the kernel is a factor of {name}; change its levels in the study")
    if target is not None:
        study = relocated(study, target, disk(study.disk) if target == "host" and disk and study.disk else "")
        if target == "vm" and not (kernel or study.kernels):
            raise RequestError("--target vm requires --kernel", hint="give one, such as --kernel debian:6.12")
    if kernel is not None and study.target.on_host:
        raise RequestError(
            f"--kernel {kernel}: conflicts with --target host, which runs the running kernel", hint="add --target vm"
        )
    study = study.with_choices(kernel=kernels, seed=choices.seed)
    return with_parameters(study, dict(map(_named, choices.parameter)), catalogue) if choices.parameter else study


def require_disk_wanted(study: Study, disk: str | None) -> None:
    """Raise RequestError where ``--disk`` has no effect."""
    if disk is not None and (study.disk is None or not study.target.on_host):
        why = "the study uses no disk" if study.disk is None else "the guest has its own disk"
        raise RequestError(f"--disk {disk}: {why}", hint="omit --disk" if study.disk is None else "add --target host")


def _kernels(text: str) -> tuple[str, ...]:
    place = Place(f"--kernel {text}")
    specs = kernels_between_commas(text, place)
    for wanted in specs_to_build(specs).values():
        from ajuste.kernel.builder import kernel_builder

        builder = kernel_builder()
        try:
            builder.version_to_build(wanted, home())
        except RequestError as failure:
            raise failure.at(place) from None
    if len({parse_spec(spec) for spec in specs}) < len(specs):
        raise RequestError(f"--kernel {text}: this kernel is named twice; expected different kernels")
    return specs


def _named(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name.strip() and value.strip()):
        raise RequestError("expected NAME=VALUE, such as mode=pipes", place=Place(f"--parameter {text}"))
    return name.strip(), value.strip()


# Options on where trials run, if not in this process.


@dataclass(frozen=True)
class Machines:
    """The options on where trials run, and what they may do to this machine."""

    workers: options.Workers = None
    cluster: options.ClusterAddress = None
    cluster_keys: options.ClusterKeys = None
    insecure: options.Insecure = False
    accept_risk: options.AcceptRisk = False
    wait: options.Wait = None

    def run_options(self) -> RunOptions:
        """Return the options of an experiment, without a cluster. Raises RequestError."""
        return RunOptions(
            home(), jobs=self.workers, accept_risk=self.accept_risk, wait_s=options.wait_seconds(self.wait)
        )

    def cluster_for(self, study: Study) -> Cluster | None:
        """Return the cluster that was asked for, or None.

        Raises:
            RequestError: The options conflict with each other or with the study.
        """
        if self.cluster is not None and self.workers is not None:
            raise RequestError("--cluster and --workers are mutually exclusive")
        if self.workers is not None and study.target.clock == "wall":
            raise RequestError(
                "--workers conflicts with the wall clock: trials on one machine would disturb each other",
                hint="share blocks among machines with --cluster (ajuste cluster worker --bench)",
            )
        if self.cluster is None:
            if self.cluster_keys is not None or self.insecure:
                raise RequestError("--cluster-keys and --insecure require --cluster")
            return None
        cluster = cluster_of("--cluster", self.cluster, self.cluster_keys, insecure=self.insecure)
        if study.target.clock == "wall" and not study.target.on_host:
            raise RequestError(
                "--cluster does not support guests under the wall clock",
                hint='remove --cluster, or set clock = "virtual"',
            )
        return cluster


@dataclass(frozen=True)
class FleetOptions:
    """The options on the order in which machines of a cluster begin, and on what stops them all."""

    canary: options.Canary = None
    machine_each: options.MachineEach = None
    guard: options.Guards = None

    def plan(self, study: Study, known: Catalogue, *, on_cluster: bool) -> FleetPlan | None:
        """Return the same for ``study``, or None if nothing was asked for. Raises RequestError."""
        return fleet_plan(self.canary, self.machine_each, self.guard or (), study, known, on_cluster=on_cluster)


def cluster_of(option: str, address: str, keys: Path | None, *, insecure: bool) -> Cluster:
    """Return the cluster whose scheduler is at ``address``.

    Raises:
        RequestError: The address is malformed or not allowed.
    """
    return cluster_at(option, address, keys or home().cluster_keys, insecure=insecure, root=os.geteuid() == 0)


# Profiles of a command line, resolved for the study's target before anything is measured.


def placed(
    specs: Sequence[str], target: TargetTable, catalogue: Catalogue, run_options: RunOptions, *, tell: bool
) -> tuple[Placed, ...]:
    """Return the profiles ``specs`` as ``target`` takes them; with ``tell``, print notes on them."""
    from ajuste.run.placement import profile_placement  # few experiments have profiles

    with Activity() as activity:
        profiles = profile_placement().placed(specs, target, catalogue, replace(run_options, say=activity.say))
    if tell:
        with sheet(Console(file=sys.stdout)) as out:
            for note in profile_notes(profiles):
                out.say(visible_line(note))
            out.blank()
    return profiles


# Kernels that are built before a study is carried out: once all else of the request is known to be right.


def with_kernels_of_source(request: Request) -> Request:
    """Return ``request`` with the kernels of ``--source``, built without and with the changes, as ``--kernel``.

    Raises:
        RequestError: The options conflict, or there is no change.
    """
    if request.source is None:
        if request.patch or request.kernel_option:
            raise RequestError("--patch and --option require --source", hint="give one, such as --source debian:6.1")
        return request
    source = f"--source {request.source}"
    if not (request.patch or request.kernel_option):
        raise RequestError(
            f"{source} requires --patch or --option, to compare the kernel with and without it",
            hint="add --patch FILE or --option NAME=VALUE; build a single kernel with ajuste kernel build",
        )
    if request.kernel is not None:
        raise RequestError(f"{source} conflicts with --kernel {request.kernel}; remove one of them")
    try:
        base = KernelToBuild(source=parse_source(request.source))
    except RequestError as failure:
        raise failure.at(Place(source)) from None
    changes = {"options": read_options(request.kernel_option, "--option"), "patches": request.patch}
    return replace(request, kernel=f"{base},{base.model_copy(update=changes)}")


def built_for(
    study: Study,
    catalogue: Catalogue,
    run_options: RunOptions,
    *,
    quiet: bool,
    resolving: Resolving = resolved_study,
) -> dict[str, str]:
    """Build the kernels that ``study`` needs; return their names by their specs in the study.

    Raises:
        RequestError: The study is wrong. It is checked before anything is built.
        RunError: A kernel cannot be built.
    """
    if not specs_to_build(study.kernels):
        return {}
    from ajuste.report.progress import BuildProgress

    with BuildProgress(quiet=quiet) as progress:
        return built_kernels(study, catalogue, replace(run_options, say=progress.say), progress, resolving)


def built_for_profiles(
    specs: Sequence[str], study: Study, catalogue: Catalogue, run_options: RunOptions, *, dry_run: bool, quiet: bool
) -> dict[str, str]:
    """Build kernels as ``built_for`` does, after a check of the profiles ``specs`` that are to be tried on them."""
    if not specs_to_build(study.kernels):
        return {}
    if dry_run:
        raise RequestError(
            "--dry-run does not build kernels, and a profile is tried on its kernel",
            hint="build the kernel first with ajuste kernel build",
            place=study.kernel_place(study.kernels[0]),
        )
    from ajuste.run.placement import profile_placement

    profile_placement().check(specs, study.target, catalogue, run_options)
    return built_for(study, catalogue, run_options, quiet=quiet)


def savable(request: Request, names: Mapping[str, str]) -> Request:
    """Return ``request`` as a study file may contain it: kernels that no file may build are replaced by ``names``.

    Raises:
        RequestError: Such a kernel is not among ``names``.
    """
    savable_names = {}
    for text in specs_to_build(request.kernels):
        try:
            parse_study_spec(text)
        except RequestError as failure:
            if text not in names:
                raise RequestError(
                    f"--save: {failure.message}", hint="build the kernel first, with ajuste kernel build"
                ) from None
            savable_names[text] = names[text]
    return request.with_kernels(savable_names)
