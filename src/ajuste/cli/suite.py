"""``ajuste suite``: several workloads as one experiment over the same configurations."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli import options
from ajuste.cli.choice import built_for, with_kernels_of_source
from ajuste.cli.measuring import check_report
from ajuste.cli.options import Only, example, option, spread
from ajuste.cli.plan import plan_of, show_plan
from ajuste.cli.saving import study_text
from ajuste.cli.showing import Showing, command_line, contents_of, open_report
from ajuste.machine.cache import REPORTS, make_room
from ajuste.machine.files import write_text
from ajuste.machine.home import Home, home
from ajuste.model.continuation import REPRODUCE
from ajuste.model.error import RequestError
from ajuste.model.suite import SuiteRecord, SuiteResult
from ajuste.report.console import Activity, Console
from ajuste.report.html import write_report
from ajuste.report.markdown import markdown as markdown_of
from ajuste.report.results import results_report
from ajuste.report.suite import suite_mail, suite_report
from ajuste.report.terminal import print_report
from ajuste.run.outcome import results_of
from ajuste.run.suite import SuiteRequest, SuiteRun, stored_result
from ajuste.run.testbed import RunOptions
from ajuste.study.command_line.option import Option
from ajuste.study.command_line.request import Request
from ajuste.study.schema import Study
from ajuste.study.suite import builtin_suites, find_suite


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


def _mail_of(result: SuiteResult, place: Home) -> str:
    from ajuste.run.shared_study import shared_study  # few suites are for a mail
    from ajuste.store.store import Store

    with Store(place.store_url) as store:
        runs = {member.name: store.find_run(member.run) for member in result.members if member.run}
    shared = {name: shared_study(run, place) for name, run in runs.items()}
    remarks = dict.fromkeys(remark for study in shared.values() for remark in study.remarks)
    command = REPRODUCE.of(result.results)[0] if REPRODUCE.of(result.results) else f"ajuste report {result.id}"
    if any(study.built for study in shared.values()):  # No command of this machine names a kernel that others have.
        again = tuple(f"ajuste run {name}.toml --build" for name in shared)
        result = result.model_copy(update={"results": result.results.with_facet(REPRODUCE, again)})
    texts = {
        name: study_text(each.study.document(), "" if each.built else f"{command} (member {name})")
        for name, each in shared.items()
    }
    return suite_mail(result, texts, tuple(remarks))


def show_suite(result: SuiteResult, place: Home, showing: Showing, *, lkml: bool) -> None:
    """Print a suite, the answer first; then write its page, and those of its members."""
    from ajuste.store.store import Store

    path = showing.report or place.reports / f"{result.id}.html"
    page = suite_report(result, place.reports, path)
    if showing.as_json:
        typer.echo(result.model_dump_json(indent=2))
    elif lkml:
        typer.echo(_mail_of(result, place), nl=False)
    else:
        print_report(page, Console(file=sys.stdout), verbose=showing.verbose, path=path)
    sys.stdout.flush()
    write_report(page, path, contents_of(result))
    with Store(place.store_url) as store:
        for member in result.members:
            if member.metrics:
                member_results = results_of(store.find_run(member.run), store)
                write_report(
                    results_report(member_results), place.reports / f"{member.run}.html", contents_of(member_results)
                )
    make_room(REPORTS, place)
    if showing.browser:
        open_report(path)


def show_stored(
    record: SuiteRecord,
    place: Home,
    showing: Showing,
    markdown: Path | None,
    *,
    lkml: bool,
) -> None:
    """Show a suite again, as ``ajuste report`` does."""
    from ajuste.store.store import Store

    with Store(place.store_url) as store:
        result = stored_result(record, store)
    if markdown is not None:
        write_text(markdown, markdown_of(suite_report(result)))
    show_suite(result, place, showing, lkml=lkml)
