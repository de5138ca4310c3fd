"""``ajuste transfer``: whether what a guest answered holds on the machine itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ajuste.analysis.transfer import transfer as compared
from ajuste.cli.measuring import check_report
from ajuste.cli.options import Json, Verbose, example
from ajuste.machine.home import home
from ajuste.report.console import Console
from ajuste.report.html import write_report
from ajuste.report.terminal import print_report
from ajuste.report.transfer import transfer_report
from ajuste.run.outcome import results_of
from ajuste.store.store import Store


@example(
    "ajuste transfer nice-in-guest nice-on-host",
    "ajuste transfer nice-in-guest nice-on-host --json",
)
def transfer(
    guest: Annotated[
        str, typer.Argument(metavar="RUN-IN-GUEST", help="A run in a guest, or a study (its newest run).")
    ],
    host: Annotated[str, typer.Argument(metavar="RUN-ON-HOST", help="A run of the same on the host.")],
    html: Annotated[Path | None, typer.Option(help="Write the HTML report to this file.")] = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Compare the answers of a guest with those of the host.

    Shows the sign and the size of every effect side by side, and says which questions both answered alike. Both runs
    must compare the same configurations by the same metrics.
    """
    check_report(html)
    with Store(home().store_url) as store:
        found = compared(*(results_of(store.find_run(name), store) for name in (guest, host)))
    report = transfer_report(found)
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        print_report(report, Console(file=sys.stdout), verbose=verbose, path=html)
    if html is not None:
        write_report(report, html)
