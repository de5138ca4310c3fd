"""``ajuste transfer``: compare the answers of a guest with those of the host, and show the atlas of all comparisons."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import ValidationError

from ajuste.catalogue.loader import catalogue
from ajuste.cli.measuring import check_report
from ajuste.cli.options import Json, Verbose, example
from ajuste.machine.files import read_kept, replace_file
from ajuste.machine.home import home
from ajuste.model.base import first_problem
from ajuste.model.error import RequestError
from ajuste.model.wording import change, count_of, percent
from ajuste.report.console import Console
from ajuste.report.document import Block, Column, Fact, Facts, Paragraph, Report, Row, RowGroup, Section, Table
from ajuste.report.format import NOTHING
from ajuste.report.html import write_report
from ajuste.report.terminal import print_report
from ajuste.run.outcome import results_of
from ajuste_guest.transfer.answers import (
    Atlas,
    KindAgreement,
    Transfer,
    TransferAgreement,
    TransferRow,
    TransferSide,
    agreement,
    agreements,
    atlas_questions,
    merge_atlases,
    shipped_atlas,
)
from ajuste_guest.transfer.answers import transfer as compared


@example(
    "ajuste transfer nice-in-guest nice-on-host",
    "ajuste transfer nice-in-guest nice-on-host --add",
    "ajuste transfer",
)
def transfer(
    guest: Annotated[
        str | None, typer.Argument(metavar="RUN-IN-GUEST", help="A run in a guest, or a study (its newest run).")
    ] = None,
    host: Annotated[str | None, typer.Argument(metavar="RUN-ON-HOST", help="A run of the same on the host.")] = None,
    add: Annotated[bool, typer.Option("--add", help="Add what decides to your atlas.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write the HTML report to this file.")] = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Compare the answers of a guest with those of the host.

    Shows the sign and the size of every effect side by side, and says which questions both answered alike. Both runs
    must compare the same configurations by the same metrics. Without runs, shows the atlas: how often guests and hosts
    agreed, by what was varied.
    """
    check_report(html, "--html")
    if guest is None or host is None:
        if guest is not None or add:
            raise RequestError("transfer takes two runs", hint="name the run in the guest, then the one on the host")
        atlas = merge_atlases(shipped_atlas(), own_atlas())
        report, document = atlas_report(atlas), atlas.model_dump_json(indent=2)
    else:
        comparison = _compared(guest, host, add=add)
        report, document = transfer_report(comparison), comparison.model_dump_json(indent=2)
    if as_json:
        typer.echo(document)
    else:
        print_report(report, Console(file=sys.stdout), verbose=verbose, path=html)
    if html is not None:
        write_report(report, html)


def own_atlas() -> Atlas:
    """Return the atlas of this home; empty if nothing was added. Raises RequestError."""
    path = home().data / "atlas.json"
    try:
        return Atlas.model_validate_json(read_kept(path))
    except FileNotFoundError:
        return Atlas()
    except OSError as error:
        raise RequestError(
            f"cannot read {path}: {error.strerror}", hint="check that it is a file that you can read"
        ) from None
    except ValidationError as error:
        problem = f"{path} is not an atlas: {first_problem(error)}"
        raise RequestError(problem, hint="remove it, and add the runs again") from None


def _compared(guest: str, host: str, *, add: bool) -> Transfer:
    from ajuste.store.store import Store

    with Store(home().store_url) as store:
        in_guest, on_host = (results_of(store.find_run(name), store) for name in (guest, host))
    comparison = compared(in_guest, on_host)
    if add:
        questions = Atlas(questions=atlas_questions(comparison, in_guest, on_host, catalogue()))
        replace_file(
            home().data / "atlas.json", merge_atlases(own_atlas(), questions).model_dump_json(indent=1).encode()
        )
    return comparison


# A comparison as a report: guest and host side by side.


_AGREEMENT: Final[dict[TransferAgreement, str]] = {
    "same": "same",
    "opposite": "OPPOSITE",
    "different": "different",
    "undecided": "not known",
}


def transfer_report(comparison: Transfer) -> Report:
    """Return the report of a comparison: the answer, then every question metric by metric."""
    return Report(
        title="Does it transfer?",
        headline=comparison.answer,
        sections=(
            Section(
                title="Guest and host side by side",
                blocks=(
                    _table([row for row in comparison.rows if row.deciding] or comparison.rows, intervals=False),
                    *_left_out(comparison),
                    *(Paragraph(note) for note in comparison.notes),
                ),
                name="side-by-side",
                about="The effect of each configuration against the baseline on the metrics that decide.",
            ),
            Section(
                title="All metrics, with intervals",
                blocks=(_table(comparison.rows, intervals=True),),
                name="intervals",
                depth="detail",
            ),
            Section(title="The runs", blocks=(_runs(comparison),), name="runs", depth="detail"),
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


def _left_out(comparison: Transfer) -> tuple[Block, ...]:
    sides = (("guest", comparison.only_guest), ("host", comparison.only_host))
    return tuple(
        Paragraph(f"Only the {name} was asked: {', '.join(questions[:10])}{' …' if len(questions) > 10 else ''}.")
        for name, questions in sides
        if questions
    )


def _runs(comparison: Transfer) -> Facts:
    return Facts(
        tuple(
            Fact(name, run.run, parts=(
                Fact("study", run.study),
                Fact("clock", run.clock),
                Fact("confidence", percent(run.level)),
                Fact("digest", run.digest[:16]),
            ))
            for name, run in (("guest", comparison.guest), ("host", comparison.host))
        )
    )  # fmt: skip


def atlas_report(atlas: Atlas) -> Report:
    """Return the report of an atlas: how often guests and hosts agreed, by what was varied, then each question."""
    every = agreement("all", atlas.questions)
    return Report(
        title="Where guests answer as hosts do",
        headline=(
            f"Guest and host agree in sign on {every.same} of {count_of(every.decided, 'question')} that both decided, "
            f"of {every.questions} asked; the signs are opposite on {every.opposite}, and on "
            f"{every.decided - every.same - every.opposite} one side alone sees an effect."
        ),
        sections=(
            Section(
                title="By what was varied", blocks=(_kinds_table((*agreements(atlas.questions), every)),), name="kinds"
            ),
            Section(title="Question by question", blocks=(_questions_table(atlas),), name="questions", depth="detail"),
        ),
        stem="atlas",
    )


def _kinds_table(kinds: Sequence[KindAgreement]) -> Table:
    columns = ("questions", "decided", "same sign", "opposite", "rank correlation", "size off by")
    rows = (
        Row(
            (
                kind.kind,
                str(kind.questions),
                str(kind.decided),
                percent(kind.same / kind.decided) if kind.decided else NOTHING,
                str(kind.opposite),
                NOTHING if kind.rank is None else f"{kind.rank:.2f}".replace("-", "−"),
                NOTHING if kind.size is None else f"×{kind.size:.1f}",
            )
        )
        for kind in kinds
    )
    return Table.of((Column("varied", figure=False), *map(Column, columns)), rows, name="kinds")


def _questions_table(atlas: Atlas) -> Table:
    return Table(
        columns=(
            Column("question", figure=False),
            Column("metric", figure=False),
            Column("guest", figure=False),
            Column("host", figure=False),
            Column("agreement", figure=False),
        ),
        groups=tuple(
            RowGroup(
                kind,
                tuple(
                    Row(
                        (
                            f"{question.question}: {question.row.configuration}",
                            question.row.metric,
                            _side(question.row, question.row.guest, intervals=False),
                            _side(question.row, question.row.host, intervals=False),
                            _AGREEMENT[question.row.agreement],
                        ),
                        marked=question.row.agreement in ("opposite", "different"),
                    )
                    for question in atlas.questions
                    if question.kind == kind
                ),
            )
            for kind in dict.fromkeys(question.kind for question in atlas.questions)
        ),
        name="questions",
    )
