"""``ajuste transfer``: whether what a guest answered holds on the machine itself."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from ajuste.analysis.transfer import Transfer, TransferAgreement, TransferRow, TransferSide
from ajuste.analysis.transfer import transfer as compared
from ajuste.cli.measuring import check_report
from ajuste.cli.options import Json, Verbose, example
from ajuste.machine.home import home
from ajuste.model.wording import change, percent
from ajuste.report.console import Console
from ajuste.report.document import Block, Column, Fact, Facts, Paragraph, Report, Row, RowGroup, Section, Table
from ajuste.report.format import NOTHING
from ajuste.report.html import write_report
from ajuste.report.terminal import print_report
from ajuste.run.outcome import results_of


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
    from ajuste.store.store import Store

    check_report(html, "--html")
    with Store(home().store_url) as store:
        found = compared(*(results_of(store.find_run(name), store) for name in (guest, host)))
    report = transfer_report(found)
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        print_report(report, Console(file=sys.stdout), verbose=verbose, path=html)
    if html is not None:
        write_report(report, html)


# What a transfer shows, as a report: guest and host side by side.


_AGREEMENT: Final[dict[TransferAgreement, str]] = {
    "same": "same",
    "opposite": "OPPOSITE",
    "different": "different",
    "undecided": "not known",
}


def transfer_report(found: Transfer) -> Report:
    """The answer, then every question metric by metric."""
    return Report(
        title="Does it transfer?",
        headline=found.answer,
        sections=(
            Section(
                title="Guest and host side by side",
                blocks=(
                    _table([row for row in found.rows if row.deciding] or found.rows, intervals=False),
                    *_left_out(found),
                    *(Paragraph(note) for note in found.notes),
                ),
                name="side-by-side",
                about="The effect of each configuration against the baseline on the metrics that decide.",
            ),
            Section(
                title="All metrics, with intervals",
                blocks=(_table(found.rows, intervals=True),),
                name="intervals",
                depth="detail",
            ),
            Section(title="The runs", blocks=(_runs(found),), name="runs", depth="detail"),
        ),
        stem="transfer",
    )


def _table(rows: Sequence[TransferRow], *, intervals: bool) -> Table:
    metrics = dict.fromkeys(row.metric for row in rows)
    return Table(
        columns=(
            Column("configuration", figure=False),
            Column("guest", figure=False),
            Column("host", figure=False),
            Column("agreement", figure=False),
        ),
        groups=tuple(
            RowGroup(metric, tuple(_row(row, intervals=intervals) for row in rows if row.metric == metric))
            for metric in metrics
        ),
        name="transfer",
    )


def _row(row: TransferRow, *, intervals: bool) -> Row:
    agreement = _AGREEMENT[row.agreement]
    if row.size is not None:
        agreement += f", {row.size}" if row.size != "alike" else "; sizes may be equal"
    return Row(
        (row.configuration, *(_side(row, side, intervals=intervals) for side in (row.guest, row.host)), agreement),
        marked=row.agreement in ("opposite", "different"),
    )


def _side(row: TransferRow, side: TransferSide, *, intervals: bool) -> str:
    if side.estimate is None:
        return f"{side.verdict} {NOTHING}"
    bounds = (side.low, side.estimate, side.high)
    low, middle, high = (change(value, row.scale, row.unit, like=side.estimate) for value in bounds)
    return f"{side.verdict} {middle} ({low} to {high})" if intervals else f"{side.verdict} {middle}"


def _left_out(found: Transfer) -> tuple[Block, ...]:
    sides = (("guest", found.only_guest), ("host", found.only_host))
    return tuple(
        Paragraph(f"Only the {name} was asked: {', '.join(questions[:10])}{' …' if len(questions) > 10 else ''}.")
        for name, questions in sides
        if questions
    )


def _runs(found: Transfer) -> Facts:
    return Facts(
        tuple(
            Fact(name, run.run, parts=(
                Fact("study", run.study),
                Fact("clock", run.clock),
                Fact("confidence", percent(run.level)),
                Fact("digest", run.digest[:16]),
            ))
            for name, run in (("guest", found.guest), ("host", found.host))
        )
    )  # fmt: skip
