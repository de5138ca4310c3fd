"""The lines of a profile that was taken apart: what each does, as text ready to be laid out, and in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, get_args

from rich.text import Text

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.verdict import Bounds, LineEffect, Role
from ajuste.model.wording import visible_line
from ajuste.report.format import NOTHING, number
from ajuste.report.sheet import INDENT, Sheet, plain_table
from ajuste.report.verdicts import LOOKS, Badge, EffectStyle, effect_band, effect_style

HEADS: Final = ("share", "interval", "of the whole", "alone", "as the last")


@dataclass(frozen=True)
class LineRow:
    """One line, or the whole; ``figures`` are under ``HEADS``. ``remark`` is what these do not tell."""

    name: str
    sets: str
    figures: tuple[str, ...]
    badge: Badge
    remark: str
    whole: bool


@dataclass(frozen=True)
class LineGroup:
    """The lines on one metric, the whole first, then from the largest share to the smallest."""

    metric: str
    rows: tuple[LineRow, ...]


def lines_on(results: Results, metric: str) -> tuple[LineEffect, ...]:
    """The whole, then the lines from the largest share to the smallest."""
    mine = [one for one in results.lines if one.metric == metric]
    return tuple(sorted(mine, key=lambda one: (one.kind != "whole", -_size(one))))


def _size(line: LineEffect) -> float:
    if line.estimate is None:
        return 0.0
    ratio = line.scale == "ratio" and line.estimate > 0
    return max(line.estimate, 1 / line.estimate) if ratio else abs(line.estimate)


def line_groups(results: Results, metrics: Sequence[Metric]) -> tuple[LineGroup, ...]:
    """The lines on each of ``metrics``; nothing where no profile was taken apart."""
    groups = (LineGroup(metric.title, _rows(results, metric)) for metric in metrics)
    return tuple(group for group in groups if group.rows)


def _rows(results: Results, metric: Metric) -> tuple[LineRow, ...]:
    found = lines_on(results, metric.name)
    styles = effect_style(found, metric.unit)
    return tuple(
        LineRow(
            name="the whole profile" if one.kind == "whole" else visible_line(one.line),
            sets=_sets(one),
            figures=_figures(one, styles[one.scale]),
            badge=Badge(one.verdict, LOOKS[one.verdict].sign, role_text(one)),
            remark=visible_line(one.remark or (one.reason if one.role in ("depends", "undecided") else "")),
            whole=one.kind == "whole",
        )
        for one in found
    )


def role_text(line: LineEffect) -> str:
    """``helps``, ``useless``, ``undecided, about 12 more blocks``."""
    if line.role == "undecided" and line.more_blocks is not None:
        return f"undecided, about {line.more_blocks:,} more block{'' if line.more_blocks == 1 else 's'}"
    return line.role


def role_counts(results: Results, metric: str) -> tuple[Badge, ...]:
    """A badge for each role with the number of lines that have it."""
    lines = [one for one in results.lines if one.metric == metric and one.kind == "line"]
    roles: dict[Role, list[LineEffect]] = {}
    for line in lines:
        roles.setdefault(line.role, []).append(line)
    return tuple(
        Badge(own[0].verdict, LOOKS[own[0].verdict].sign, f"{role}: {len(own)} of {len(lines)} lines")
        for role in get_args(Role)
        if (own := roles.get(role))
    )


def _sets(line: LineEffect) -> str:
    levels = dict.fromkeys(line.sets.values())
    if not levels:
        return ""
    more = f" in {len(line.sets)} places" if len(line.sets) > 1 else ""
    return visible_line(", ".join(levels) + more)


def _figures(line: LineEffect, style: EffectStyle) -> tuple[str, ...]:
    part = NOTHING if line.part is None else f"{number(100 * line.part, 0)} %"
    if line.kind == "whole":
        return (style.estimate(line), style.interval(line), part, "", "")
    sides = (style.estimate(_with(line, bounds)) for bounds in (line.alone, line.last))
    return (style.estimate(line), style.interval(line), part, *sides)


def _with(line: LineEffect, bounds: Bounds) -> LineEffect:
    return line.model_copy(update=bounds.model_dump())


def print_lines(out: Sheet, results: Results) -> None:
    """A table for each metric; nothing where no profile was taken apart."""
    metrics = [metric for metric in results.metrics if lines_on(results, metric.name)]
    for metric, group in zip(metrics, line_groups(results, metrics), strict=True):
        out.heading(f"What each line does: {visible_line(metric.title)}")
        out.say(
            f"Shares of what the whole does, {100 * results.level:g} % intervals for all together; smallest effect "
            f"that matters: {effect_band(results.smallest_effect)}",
        )
        _print_group(out, group)


def _print_group(out: Sheet, group: LineGroup) -> None:
    table = plain_table()
    for head in ("", "set to", *HEADS, ""):
        figure = head in HEADS
        table.add_column(head, justify="right" if figure else "left", overflow="fold")
    for row in group.rows:
        word = Text(f"{row.badge.sign} {row.badge.text}", style=LOOKS[row.badge.word].style)
        table.add_row(Text(row.name, style="bold" if row.whole else ""), row.sets, *map(Text, row.figures), word)
    out.blank()
    if out.fits(table):
        out.table(table)
    else:
        _print_blocks(out, group)
    for row in group.rows:
        if row.remark:
            out.say(f"{row.name}: {row.remark}", style="dim", indent=INDENT)


def _print_blocks(out: Sheet, group: LineGroup) -> None:
    """A few lines for each where the table is too wide."""
    for row in group.rows:
        setting = f" = {row.sets}" if row.sets else ""
        name = Text(f"{row.name}{setting}  ") + Text(row.badge.text, style=LOOKS[row.badge.word].style)
        out.say(name, indent=INDENT)
        figures = (f"{head} {figure}" for head, figure in zip(HEADS, row.figures, strict=True) if figure)
        out.say(", ".join(figures), indent=2 * INDENT)
