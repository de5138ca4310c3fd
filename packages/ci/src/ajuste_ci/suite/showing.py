"""A suite, measured or from the store: its page, its figures and its mail."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ajuste.cli.saving import study_text
from ajuste.cli.showing import Showing, contents_of, open_report
from ajuste.machine.cache import REPORTS, make_room
from ajuste.machine.files import write_text
from ajuste.machine.home import Home
from ajuste.model.continuation import REPRODUCE
from ajuste.report.console import Console
from ajuste.report.html import write_report
from ajuste.report.markdown import markdown as markdown_of
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report
from ajuste.run.outcome import results_of
from ajuste_ci.suite.model import SuiteRecord, SuiteResult
from ajuste_ci.suite.report import suite_mail, suite_report
from ajuste_ci.suite.run import find_record, stored_result

if TYPE_CHECKING:
    from ajuste.store.store import Store


def _mail_of(result: SuiteResult, place: Home) -> str:
    from ajuste.store.store import Store
    from ajuste_share.shared_study import shared_study  # few suites are for a mail

    with Store(place.store_url) as store:
        runs = {member.name: store.find_run(member.run) for member in result.members if member.run}
    shared = {name: shared_study(run, place) for name, run in runs.items()}
    remarks = dict.fromkeys(remark for study in shared.values() for remark in study.remarks)
    commands = REPRODUCE.of(result.results)
    command = commands[0] if commands else f"ajuste report {result.id}"
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
    from ajuste.store.store import Store  # plans need none

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


def find(store: Store, name: str) -> SuiteRecord | None:
    """Return the stored suite with the id ``name``, or the latest of this name (``suite-NAME``)."""
    return find_record(store, name)


def show(record: SuiteRecord, place: Home, showing: Showing, markdown: Path | None, *, lkml: bool) -> None:
    """Show a suite again, as ``ajuste report`` does."""
    from ajuste.store.store import Store

    with Store(place.store_url) as store:
        result = stored_result(record, store)
    if markdown is not None:
        write_text(markdown, markdown_of(suite_report(result)))
    show_suite(result, place, showing, lkml=lkml)
