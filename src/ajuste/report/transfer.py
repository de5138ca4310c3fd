"""The report of a transfer: guest and host side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ajuste.analysis.transfer import Transfer, TransferAgreement, TransferRow, TransferSide
from ajuste.model.wording import change, percent
from ajuste.report.document import (
    Block,
    Column,
    Fact,
    Facts,
    Paragraph,
    Report,
    Row,
    RowGroup,
    Section,
    Table,
)
from ajuste.report.format import NOTHING

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
    low, middle, high = (change(value, row.scale, row.unit) for value in (side.low, side.estimate, side.high))
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
