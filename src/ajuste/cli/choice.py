"""The study that a command line chooses."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ajuste.catalogue.loader import Catalogue
from ajuste.cli import options
from ajuste.design.search.goal import Search
from ajuste.kernel.spec import KernelToBuild, parse_source, parse_spec, parse_study_spec, read_options, specs_to_build
from ajuste.machine.home import home
from ajuste.model.capability import Asked
from ajuste.model.error import Place, RequestError
from ajuste.model.fleet import FleetPlan
from ajuste.model.wording import visible_line
from ajuste.report.console import Console, sheet
from ajuste.report.display import Activity
from ajuste.run.experiment import built_kernels
from ajuste.run.testbed import RunOptions
from ajuste.study.builtin import find_study
from ajuste.study.command_line.guards import fleet_plan
from ajuste.study.command_line.request import Request, kernels_between_commas
from ajuste.study.job import DiskTable
from ajuste.study.overrides import relocated, with_factor_levels, with_parameters, without_levels
from ajuste.study.read import read_study
from ajuste.study.schema import Study
from ajuste.study.target import TargetTable

if TYPE_CHECKING:
    from ajuste.executor.cluster.keys import Cluster
    from ajuste.profile.placing import Placed


@dataclass(frozen=True)
class Choices:
    """What a command line says otherwise than the study does."""

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
    asked: Asked = Asked("study file"),  # noqa: B008
) -> Study:
    """The study of that name or file, with the choices of the command line. ``disk`` gives the name of one on this
    machine to a study that is about a disk, ``asked`` what the file may build. Raises RequestError.
    """
    kernel, target = choices.kernel, choices.target
    kernels = None if kernel is None else _kernels(kernel)
    study = read_study(find_study(name), catalogue, parse_kernel=partial(parse_study_spec, asked=asked))
    if study.patches:
        from ajuste.run.contained import with_patches  # few studies contain any

        study = with_patches(study, home())
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
    """Raises RequestError for a ``--disk`` that means nothing."""
    if disk is not None and (study.disk is None or not study.target.on_host):
        why = "the study uses no disk" if study.disk is None else "the guest has its own disk"
        raise RequestError(f"--disk {disk}: {why}", hint="omit --disk" if study.disk is None else "add --target host")


def _kernels(text: str) -> tuple[str, ...]:
    place = Place(f"--kernel {text}")
    specs = kernels_between_commas(text, place)
    for wanted in specs_to_build(specs).values():
        from ajuste.kernel.building.build import version_to_build

        try:
            version_to_build(wanted, home())
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


# What a person says about where trials are carried out, if not in this process.


@dataclass(frozen=True)
class Machines:
    """Where trials are carried out, and what they may do to this machine."""

    workers: options.Workers = None
    cluster: options.ClusterAddress = None
    cluster_keys: options.ClusterKeys = None
    insecure: options.Insecure = False
    accept_risk: options.AcceptRisk = False
    wait: options.Wait = None

    def means(self) -> RunOptions:
        """Return the same for an experiment, without a cluster. Raises RequestError."""
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
    """In which order the machines of a cluster begin, and what stops them all."""

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
    from ajuste.executor.cluster.keys import cluster_at

    return cluster_at(option, address, keys or home().cluster_keys, insecure=insecure, root=os.geteuid() == 0)


# What the profiles of a command line come to on the study's target, told before anything is measured.


def placed(
    specs: Sequence[str], target: TargetTable, catalogue: Catalogue, means: RunOptions, *, tell: bool
) -> tuple[Placed, ...]:
    """As ``run.placement.placed_profiles``; with ``tell`` what came of it is printed."""
    from ajuste.run.placement import placed_profiles  # few experiments have profiles

    _require_named(specs)
    with Activity() as activity:
        found = placed_profiles(specs, target, catalogue, replace(means, say=activity.say))
    if tell:
        from ajuste.profile.placing import profile_notes

        with sheet(Console(file=sys.stdout)) as out:
            for note in profile_notes(found):
                out.say(visible_line(note))
            out.blank()
    return found


def _require_named(specs: Sequence[str]) -> None:
    if not all(spec.strip() for spec in specs):
        from ajuste.profile.source import FORMS

        raise RequestError("found an empty name between commas", hint=f"give {FORMS}")


# Kernels that are built before a study is carried out: once all else of the request is known to be right.


def with_kernels_of_source(request: Request) -> Request:
    """``request`` with a ``kernel`` as ``--source`` says it: to be built without and with the changes. Raises
    RequestError.
    """
    if request.source is None:
        if request.patch or request.kernel_option:
            raise RequestError("--patch and --option require --source", hint="give one, such as --source debian:6.1")
        return request
    said = f"--source {request.source}"
    if not (request.patch or request.kernel_option):
        raise RequestError(
            f"{said} requires --patch or --option, to compare the kernel with and without it",
            hint="add --patch FILE or --option NAME=VALUE; build a single kernel with ajuste kernel build",
        )
    if request.kernel is not None:
        raise RequestError(f"{said} conflicts with --kernel {request.kernel}; remove one of them")
    try:
        base = KernelToBuild(source=parse_source(request.source))
    except RequestError as failure:
        raise failure.at(Place(said)) from None
    changes = {"options": read_options(request.kernel_option, "--option"), "patches": request.patch}
    return replace(request, kernel=f"{base},{base.model_copy(update=changes)}")


def built_for(
    study: Study, catalogue: Catalogue, means: RunOptions, *, quiet: bool, search: Search | None = None
) -> dict[str, str]:
    """The names of the kernels that ``study`` asks to build, by what it calls them, built by now. What else is wrong
    with it is said before. Raises RequestError, RunError where one cannot be built.
    """
    if not specs_to_build(study.kernels):
        return {}
    from ajuste.report.progress import BuildProgress

    with BuildProgress(quiet=quiet) as progress:
        return built_kernels(study, catalogue, replace(means, say=progress.say), progress, search)


def built_for_profiles(
    specs: Sequence[str], study: Study, catalogue: Catalogue, means: RunOptions, *, dry_run: bool, quiet: bool
) -> dict[str, str]:
    """As ``built_for``, where profiles are to be tried on the kernel: what is wrong with them is said before, too."""
    if not specs_to_build(study.kernels):
        return {}
    if dry_run:
        raise RequestError(
            "--dry-run does not build kernels, and a profile is tried on its kernel",
            hint="build the kernel first with ajuste kernel build",
            place=study.kernel_place(study.kernels[0]),
        )
    from ajuste.run.placement import check_profiles

    _require_named(specs)
    check_profiles(specs, study.target, catalogue, means)
    return built_for(study, catalogue, means, quiet=quiet)


def savable(request: Request, names: Mapping[str, str]) -> Request:
    """``request`` as a study file may say it: kernels that it may not build are called as in ``names``. Raises
    RequestError for one that is not among them.
    """
    found = {}
    for text in specs_to_build(request.kernels):
        try:
            parse_study_spec(text)
        except RequestError as failure:
            if text not in names:
                raise RequestError(
                    f"--save: {failure.message}", hint="build the kernel first, with ajuste kernel build"
                ) from None
            found[text] = names[text]
    return request.with_kernels(found)
