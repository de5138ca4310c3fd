"""``ajuste plan``: what a study would do, without doing it."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated

import typer

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.cli import options
from ajuste.cli.choice import Choices, chosen_study, require_disk_wanted
from ajuste.cli.options import Only, example, spread
from ajuste.executor.host.adoption import adopted_from
from ajuste.executor.host.availability import current_values
from ajuste.executor.host.caller import user_here
from ajuste.executor.host.disk import disk_in_plan
from ajuste.executor.host.host import HostExecutor
from ajuste.executor.host.rights import risks
from ajuste.machine.boot.loader import installed_kernel
from ajuste.machine.home import home
from ajuste.model.capability import Asked
from ajuste.report.console import Console
from ajuste.report.plan import PlannedPackageSet, PlannedStudy, plan_report
from ajuste.report.terminal import print_report
from ajuste.run.experiment import resolved_study
from ajuste.run.planning import planned_study
from ajuste.run.relevance import idle_from_the_start
from ajuste.run.testbed import RunOptions
from ajuste.study.command_line.request import Request
from ajuste.study.overrides import overridden
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import Study


@example(
    "ajuste plan granularity",
    "ajuste plan my-study.toml --json",
    "ajuste plan hackbench-granularity --parameter transport=pipes",
    "ajuste plan linpack-isolation --without 'isolation=in the kernel, interrupts off'",
)
@spread
def plan(
    study: options.StudyName,
    *,
    choices: Choices,
    request: Annotated[Request, Only("guest_cpus topology package")],
    disk: options.Disk = None,
    as_json: options.Json = False,
) -> None:
    """Show every write, command and trial of STUDY, and do nothing."""
    known = catalogue()
    rights = Asked("study file").planning
    chosen = chosen_study(study, known, choices, lambda _: disk_in_plan(disk), rights)
    require_disk_wanted(chosen, disk)
    show_plan(overridden(chosen, request, known), known, RunOptions(home()), as_json=as_json)


# Plans, for ``plan`` and ``compare --dry-run``.


def show_plan(study: Study, catalogue: Catalogue, run_options: RunOptions, *, as_json: bool) -> None:
    """Print every write, command and trial of ``study``, and do nothing."""
    planned = plan_of(study, catalogue, run_options)
    if as_json:
        typer.echo(planned.model_dump_json(indent=2))
    else:
        print_report(plan_report(planned), Console(file=sys.stdout))


def plan_of(study: Study, catalogue: Catalogue, run_options: RunOptions) -> PlannedStudy:
    """Return the plan of ``study``: every write, command and trial."""
    run_options = replace(run_options, dry=True)
    resolved = resolved_study(study, catalogue, run_options)
    no_chance = idle_from_the_start(resolved, catalogue)
    if study.target.on_host:
        for state in resolved.boots:
            if state.kernel:
                installed_kernel(state.kernel)
        now = _values_here(resolved, catalogue)
        accepted = [risk.what for risk in risks(resolved, catalogue)]
        user = "root" if study.workload.as_root else user_here()  # Without root it is refused.
        planned = planned_study(resolved, catalogue, now, user, no_chance, accepted)
        adopted = adopted_from(
            write.location for configuration in resolved.configurations for write in configuration.writes
        )
        return planned.model_copy(update={"notes": (*planned.notes, *map(str, adopted))})
    _require_kernels(study, run_options)
    planned = planned_study(resolved, catalogue, no_chance=no_chance)
    return planned.model_copy(update={"packages": _packages(study, run_options)})


def _require_kernels(study: Study, run_options: RunOptions) -> None:
    # Without the network: what no recent list has would be refused once the study runs.
    from ajuste.kernel.fetch import require_listed

    for spec in study.kernels:
        require_listed(spec, run_options.home)


def _packages(study: Study, run_options: RunOptions) -> PlannedPackageSet | None:
    if not study.target.packages:
        return None
    from ajuste.executor.guest.root import plan_packages

    package_plan = plan_packages(study.target.packages, run_options.home, run_options.say)
    return PlannedPackageSet(
        release=package_plan.release,
        asked=package_plan.names,
        versions={package.name: package.version for package in package_plan.packages},
        download_bytes=package_plan.download_bytes,
    )


def _values_here(resolved: ResolvedStudy, catalogue: Catalogue) -> dict[str, str]:
    # A tunable that cannot be read has the reason in place of its value.
    names = dict.fromkeys(write.tunable for configuration in resolved.configurations for write in configuration.writes)
    if not names:
        return {}
    with HostExecutor() as host:
        current = current_values(host, [catalogue.find_tunable(name) for name in names])
    return {name: current[name].problem if (value := current[name].value) is None else value for name in names}
