"""The table of a profile's lines."""

from __future__ import annotations

from collections.abc import Sequence

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.verdict import LINES, LineEffect
from ajuste.model.wording import visible_line
from ajuste.report.document import Cell, Column, Row, RowGroup, Table
from ajuste.report.format import NOTHING, number
from ajuste.report.verdicts import effect_style, word_badge


def metric_lines(results: Results, metric: str) -> tuple[LineEffect, ...]:
    """Return the whole, then the lines from the largest share to the smallest."""
    mine = [line for line in LINES.of(results) if line.metric == metric]
    return tuple(sorted(mine, key=lambda line: (line.kind != "whole", -line.size)))


def role_text(line: LineEffect) -> str:
    """Return ``helps``, ``useless``, ``undecided, about 12 more blocks``."""
    return ", ".join(filter(None, (line.role, line.about_more if line.role == "undecided" else "")))


def line_table(results: Results, metrics: Sequence[Metric]) -> Table | None:
    """Return the whole, then the lines from the largest share to the smallest; ``None`` without any."""
    groups = tuple(RowGroup(metric.title, rows) for metric in metrics if (rows := _lines(results, metric)))
    if not groups:
        return None
    columns = (
        Column("Line", figure=False),
        Column("Share"),
        Column("Interval", verbose=True),
        *(Column(title, optional=True) for title in ("Of the whole", "Alone", "As the last")),
        Column("Verdict", figure=False),
    )
    return Table(columns, groups, "lines-table", "Lines of the profile")


def _lines(results: Results, metric: Metric) -> tuple[Row, ...]:
    lines = metric_lines(results, metric.name)
    styles = effect_style(lines, metric.unit)
    rows = []
    for line in lines:
        style, levels = styles[line.scale], ", ".join(dict.fromkeys(line.sets.values()))
        places = f" in {len(line.sets)} places" if len(line.sets) > 1 else ""
        name = "the whole profile" if line.kind == "whole" else visible_line(line.line)
        part = NOTHING if line.part is None else f"{number(100 * line.part, 0)} %"
        alone = last = ""
        if line.kind != "whole":
            alone, last = (style.estimate(line.model_copy(update=b.model_dump())) for b in (line.alone, line.last))
        cells = (
            Cell(name, visible_line(f"= {levels}{places}") if line.sets else ""),
            *(style.estimate(line), style.interval(line), part, alone, last),
            word_badge(line.verdict, role_text(line)),
        )
        remark = line.remark or (line.reason if line.role in ("depends", "undecided") else "")
        rows.append(Row(cells, remark=visible_line(remark)))
    return tuple(rows)
