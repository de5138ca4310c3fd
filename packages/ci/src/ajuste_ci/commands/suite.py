"""``ajuste suite``: several workloads as one experiment over the same configurations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Literal

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli import options
from ajuste.cli.choice import built_for, with_kernels_of_source
from ajuste.cli.measuring import check_report
from ajuste.cli.options import Only, example, option, spread
from ajuste.cli.plan import plan_of, show_plan
from ajuste.cli.showing import Showing, command_line
from ajuste.machine.home import home
from ajuste.model.error import RequestError
from ajuste.report.console import Activity, Console
from ajuste.run.testbed import RunOptions
from ajuste.study.command_line.option import Option
from ajuste.study.command_line.request import Request
from ajuste.study.schema import Study
from ajuste_ci.suite.file import builtin_suites, find_suite
from ajuste_ci.suite.run import SuiteRequest, SuiteRun
from ajuste_ci.suite.showing import show_suite


@example(
    "ajuste suite",
    "ajuste suite scheduler --kernel debian:6.1,debian:6.12 --dry-run",
)
@spread
def suite(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[SUITE]", help="A built-in suite or a suite file; without it, list the built-in suites."
        ),
    ] = None,
    members: Annotated[
        list[str] | None, typer.Argument(metavar="[MEMBER]...", help="The members to measure (default: all).")
    ] = None,
    *,
    request: Annotated[
        Request,
        Only(
            "set nice policy cpus cgroup_weight kernel source patch kernel_option vm clock guest_cpus memory topology "
            "one_at_a_time baseline min_effect confidence blocks seed",
            max_time=Option(
                "Stop after this time, decided or not; members get equal parts (default: the suite's).", "DURATION"
            ),
        ),
    ],
    keep_going: Annotated[
        bool, option("Leave out members that cannot be measured or that fail.", None, "--keep-going")
    ] = False,
    accept_risk: options.AcceptRisk = False,
    wait: options.Wait = None,
    dry_run: options.DryRun = False,
    fresh: options.Fresh = False,
    form: Annotated[
        Literal["lkml"] | None, option("lkml: print plain-text tables for a mail.", None, "--format")
    ] = None,
    showing: Showing,
) -> int:
    """Measure several workloads as one experiment.

    Measures each member of a suite under the same configurations, one after the other, and shows one table. All
    verdicts hold together with the confidence of the suite.
    """
    if form is not None and showing.as_json:
        raise RequestError("--format lkml conflicts with --json", hint="remove one of them")
    if name is None:
        _list_suites(as_json=showing.as_json)
        return 0
    check_report(showing.report)
    chosen, place = find_suite(name), home()
    request = with_kernels_of_source(request)
    activity = Activity(log=True, quiet=showing.silent)
    run_options = RunOptions(place, accept_risk=accept_risk, wait_s=options.wait_seconds(wait), say=activity.say)
    wanted = SuiteRequest(chosen, chosen.chosen(tuple(members or ())), request, keep_going=keep_going, fresh=fresh)
    run = SuiteRun(wanted, catalogue(), run_options, command_line(context), quiet=showing.silent)
    if dry_run:
        _show_plans(chosen.table.name, run.studies, run_options, as_json=showing.as_json)
        return 0
    first = next(iter(run.studies.values()))
    if names := built_for(first, catalogue(), run_options, quiet=showing.silent):
        run = run.on_kernels(names)
    with activity:  # The measurement of each member has its own display.
        run.check()
    try:
        result = run.carry_out()
    except BaseException:
        if (partial := run.so_far()) is not None:
            show_suite(partial, place, showing, lkml=form == "lkml")
        raise
    show_suite(result, place, showing, lkml=form == "lkml")
    return 1 if run.failed else 0


def _show_plans(name: str, studies: Mapping[str, Study], run_options: RunOptions, *, as_json: bool) -> None:
    if not as_json:
        for study in studies.values():
            show_plan(study, catalogue(), run_options, as_json=False)
        return
    plans = {
        member: plan_of(study, catalogue(), run_options).model_dump(mode="json") for member, study in studies.items()
    }
    typer.echo(json.dumps({"suite": name, "members": plans}, indent=2, ensure_ascii=False))


def _list_suites(*, as_json: bool) -> None:
    suites = builtin_suites()
    if as_json:
        rows = [
            {
                "name": suite.table.name,
                "title": suite.table.title,
                "members": [member.name for member in suite.table.members],
            }
            for suite in suites
        ]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    console = Console(soft_wrap=True)
    for suite in suites:
        console.print(suite.table.name, style="bold")
        console.print(f"    {suite.table.title}\n    {', '.join(member.name for member in suite.table.members)}")
