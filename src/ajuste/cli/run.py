"""``ajuste run``: carry out a study, to a verdict and a report."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli import options
from ajuste.cli.choice import Choices, FleetOptions, Machines, chosen_study, require_disk_wanted
from ajuste.cli.measuring import Expected, check_report, measure, with_reboots
from ajuste.cli.options import Only, example, option, spread
from ajuste.cli.showing import Showing, command_line
from ajuste.executor.host.disk import disk_for_run
from ajuste.machine.home import home
from ajuste.model.capability import Asked
from ajuste.model.error import Place, RequestError
from ajuste.report.console import Activity
from ajuste.run.testbed import RunOptions, kernel_testbed
from ajuste.study.command_line.conditions import fail_conditions
from ajuste.study.command_line.option import OUTPUT, RARE, VERDICT, Option
from ajuste.study.command_line.request import Request
from ajuste.study.job import DiskTable
from ajuste.study.overrides import overridden
from ajuste.study.schema import Study

if TYPE_CHECKING:
    from ajuste.report.expectations import Form


@example(
    "ajuste run granularity",
    "ajuste run my-study.toml --seed 7 --report report.html",
    "ajuste run my-study.toml --set sched_min_granularity_ns=3ms,30ms",
)
@spread
def run(
    context: typer.Context,
    study: options.StudyName,
    *,
    choices: Choices,
    request: Annotated[
        Request,
        Only(
            "guest_cpus machine topology package precision blocks reboots reboot_each",
            max_time=Option("Stop after this time, decided or not.", "DURATION", VERDICT),
        ),
    ],
    disk: options.Disk = None,
    loader: options.Loader = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure again; do not use the store's run.", rich_help_panel=OUTPUT)
    ] = False,
    snapshot: Annotated[
        bool, typer.Option(help="Start every trial from one snapshot, or boot for each trial.", rich_help_panel=RARE)
    ] = True,
    machines: Machines,
    fleet: FleetOptions,
    build: Annotated[
        bool,
        typer.Option(
            "--build",
            help="Allow STUDY to build patches and BPF schedulers on this machine: read it first.",
            rich_help_panel=RARE,
        ),
    ] = False,
    scheduler: options.SchedulerPrograms = None,
    fail_on: options.FailOn = None,
    junit: Annotated[
        Path | None, option("Write what the study expects as tests in JUnit XML.", "FILE", panel=RARE)
    ] = None,
    tap: Annotated[Path | None, option("... as TAP 14.", "FILE", panel=RARE)] = None,
    ktap: Annotated[Path | None, option("... as KTAP, as Linux's own tests.", "FILE", panel=RARE)] = None,
    showing: Showing,
) -> int:
    """Run STUDY to a verdict and a report.

    Boots its kernel, measures in randomised blocks, and stops when the answer is known.

    All measurements are kept. Run the same command again to resume, or to show a finished run.
    """
    check_report(showing.report)
    forms: dict[Form, Path | None] = {"junit": junit, "tap": tap, "ktap": ktap}
    tests = {form: path for form, path in forms.items() if path is not None}
    for form, path in tests.items():
        check_report(path, f"--{form}")
    known = catalogue()
    with ExitStack() as stack:

        def opened(table: DiskTable) -> str:
            return stack.enter_context(disk_for_run(disk, table.size_mib, accept_risk=machines.accept_risk))

        rights = Asked("study file", options=frozenset({"--build"} if build else ()))
        chosen = chosen_study(study, known, choices, opened, rights)
        require_disk_wanted(chosen, disk)
        chosen = overridden(chosen, request, known)
        cluster = machines.cluster_for(chosen)
        changed = (choices, request) != (Choices(), Request())
        notes: tuple[str, ...] = ()
        if chosen.schedulers or scheduler:
            with Activity(quiet=showing.silent) as activity:
                guests = kernel_testbed(RunOptions(home(), say=activity.say, rights=rights))
                extended = guests.with_schedulers(chosen, scheduler or ())
            chosen, notes = extended.study, extended.notes
        expected = _expected(chosen, tests, changed=changed, notes=notes)
        chosen = chosen.model_copy(update={"expect": None})  # It is no part of the question.
        return measure(
            chosen,
            known,
            showing,
            named=command_line(context),
            run_options=with_reboots(
                replace(
                    machines.run_options(),
                    snapshot=snapshot,
                    cluster=cluster,
                    fleet=fleet.plan(chosen, known, on_cluster=cluster is not None),
                ),
                loader,
                reboots=request.reboots,
            ),
            anew=lambda *_: fresh,
            fail_on=fail_conditions(fail_on or (), chosen, known),
            expected=expected,
        )


def _expected(study: Study, tests: Mapping[Form, Path], *, changed: bool, notes: tuple[str, ...]) -> Expected | None:
    if study.expect is None:
        if tests:
            form, path = next(iter(tests.items()))
            raise RequestError(
                "the study expects nothing: [expect] not found",
                hint="write one with ajuste reproduce RUN -o FILE",
                place=Place(f"--{form} {path}"),
            )
        return None
    return Expected(study.name, study.expect, tests, changed=changed, notes=notes)
