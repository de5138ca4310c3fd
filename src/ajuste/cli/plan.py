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
from ajuste.executor.host.disk import disk_in_plan
from ajuste.machine.home import home
from ajuste.model.capability import Asked
from ajuste.report.console import Console
from ajuste.report.plan import PlannedStudy, plan_report
from ajuste.report.terminal import print_report
from ajuste.run.experiment import resolved_study
from ajuste.run.testbed import RunOptions, testbed_for
from ajuste.study.command_line.request import Request
from ajuste.study.overrides import overridden
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
    return testbed_for(study, run_options).planned(resolved_study(study, catalogue, run_options), catalogue)
