"""``ajuste compare``: the question on the command line."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli import options
from ajuste.cli.choice import (
    FleetOptions,
    Machines,
    built_for,
    built_for_profiles,
    placed,
    savable,
    with_kernels_of_source,
)
from ajuste.cli.measuring import check_report, measure, with_reboots
from ajuste.cli.options import example, spread
from ajuste.cli.showing import Showing, command_line
from ajuste.kernel.spec import parse_spec
from ajuste.machine.home import home
from ajuste.run.experiment import unless_going_on
from ajuste.run.testbed import RunOptions, kernel_testbed
from ajuste.study.command_line.conditions import fail_conditions
from ajuste.study.command_line.request import Request, split_commands
from ajuste.study.command_line.study import adhoc_document, adhoc_study, study_without_profiles
from ajuste.study.overrides import with_kernels
from ajuste.study.profile import Placed

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="COMMAND [ARGUMENT]... [-- COMMAND ...]",
        help="The command to measure: a program with arguments (run without a shell), or a workload of the catalogue. "
        "Separate several with --; each is compared with the first.",
        show_default=False,
    ),
]


@example(
    "ajuste compare -- sleep 0.01",
    "ajuste compare -- sleep 0.01 -- sleep 0.02",
    "ajuste compare --nice 0,10 --background spin --max-time 5s -- linpack reps_to=8",
    "ajuste compare --kernel debian:5.10 --nice 0,10 --background spin -- matrix size=100 repetitions=2",
    "ajuste compare --kernel debian:6.18 --set sched_ext=none,scx_mine --scheduler build/scx_mine -- hackbench",
    "ajuste compare --boot mitigations=default,off --reboots --dry-run -- hackbench groups=2",
    "ajuste compare --kernel build:debian:6.1,build:debian:6.1+NUMA=n --dry-run -- hackbench groups=2",
    "ajuste compare --screen --dry-run --nice 0,5 --set workload.mode=processes,threads --set workload.fds=4,8 "
    "--set workload.loops=10,20 --set workload.size=100,1000 -- hackbench",
)
@spread
def compare(
    context: typer.Context,
    words: Words = None,
    *,
    request: Request,
    loader: options.Loader = None,
    machines: Machines,
    fleet: FleetOptions,
    scheduler: options.SchedulerPrograms = None,
    fail_on: options.FailOn = None,
    save: options.Save = None,
    force: options.Force = False,
    dry_run: options.DryRun = False,
    fresh: options.Fresh = False,
    showing: Showing,
) -> int:
    """Measure a command, or compare commands or settings.

    Measures in randomised blocks until the answer is known, then restores all settings.
    """
    request = with_kernels_of_source(replace(request, commands=split_commands(tuple(words or ()))))
    check_report(showing.report)
    if save is not None:
        from ajuste.cli.saving import check_save, save_study

        check_save(save)
    known = catalogue()
    run_options = machines.run_options()
    typed, names = request, dict[str, str]()
    profiles: tuple[Placed, ...] = ()
    if request.profile:
        bare, specs = study_without_profiles(request, known, parse_kernel=parse_spec), request.profile.split(",")
        machines.cluster_for(bare)
        names = built_for_profiles(specs, bare, known, run_options, dry_run=dry_run, quiet=showing.silent)
        request = request.with_kernels(names)
        target = with_kernels(bare, names).target
        profiles = placed(specs, target, known, run_options, tell=not (showing.silent or dry_run))
    study = adhoc_study(request, known, profiles, parse_kernel=parse_spec)
    conditions = fail_conditions(fail_on or (), study, known)
    cluster = machines.cluster_for(study)
    run_options = replace(run_options, cluster=cluster, fleet=fleet.plan(study, known, on_cluster=cluster is not None))
    run_options = with_reboots(run_options, loader, reboots=request.reboots)
    if not dry_run:
        built = built_for(study, known, run_options, quiet=showing.silent)
        if built:
            names |= built
            request = request.with_kernels(names)
            study = adhoc_study(request, known, profiles, parse_kernel=parse_spec)
    if scheduler:
        study = kernel_testbed(RunOptions(home())).with_schedulers(study, scheduler).study
    command = command_line(context)
    if save is not None:
        document = adhoc_document(savable(typed, names), known, profiles)[0]
        tables = [{"name": table.name, "sha256": table.sha256} for table in study.schedulers]
        save_study(document | ({"scheduler": tables} if tables else {}), save, command, force=force)
    if dry_run:
        from ajuste.cli.plan import show_plan

        show_plan(study, known, run_options, as_json=showing.as_json)
        return 0

    return measure(
        study,
        known,
        showing,
        named=command,
        run_options=run_options,
        anew=unless_going_on(fresh),
        name_chosen=request.name is not None,
        fail_on=conditions,
    )
