"""The ranking of three configurations or more: a sentence that names the winner, and a row for each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.verdict import Ranked, Ranking
from ajuste.model.wording import in_sentence, listed, percent, visible_line
from ajuste.report.document import Badge, Block, Column, Paragraph, Row, RowGroup, Section, Table
from ajuste.report.format import number, shown_as
from ajuste.report.labels import Labels
from ajuste.report.metric_table import configuration_name, mean_cell, metric_shown, title_with_unit
from ajuste.report.verdicts import LOOKS, effect_band, known

_MOST_NAMED: Final = 6
"""Of more contenders these are named and the rest counted."""
_MOST_IN_A_LINE: Final = 4
"""Configurations; more are easier to read in a table."""
_SECONDS: Final = ("s", "ms", "us", "µs", "ns")


def ranking_sections(results: Results, metrics: Sequence[Metric], labels: Labels) -> tuple[Section, ...]:
    """Of those of ``metrics`` that have a ranking."""
    by_metric = {ranking.metric: ranking for ranking in results.rankings}
    chosen = [(metric, by_metric[metric.name]) for metric in metrics if metric.name in by_metric]
    if not chosen:
        return ()
    first = chosen[0][1]
    about = (
        f"Each configuration against the best. {percent(first.level)} intervals for all "
        f"{first.comparisons} comparisons of any two together, so they hold although the figures chose the best."
    )
    names = _names(results, labels)
    blocks: list[Block] = [Paragraph(ranking_sentence(metric, ranking, names)) for metric, ranking in chosen]
    groups = tuple(_group(results, metric, ranking, labels) for metric, ranking in chosen)
    ratios = all(one.scale == "ratio" for _, ranking in chosen for one in ranking.others)
    columns = (
        Column("Configuration", figure=False),
        Column("Mean", optional=True),
        Column("Times the best" if ratios else "Against the best"),
        Column("Interval"),
        Column("", figure=False),
    )
    brief = len(first.others) < _MOST_IN_A_LINE
    blocks.append(Table(columns, groups, "ranking-table", "Ranking", brief=brief))
    return (Section("Ranking", tuple(blocks), "ranking", "Ranking", about),)


def ranking_sentence(metric: Metric, ranking: Ranking, names: Mapping[str, str]) -> str:
    """The best, and what cannot be distinguished from it; ``names`` are those that configurations are called by."""
    winner, rest = names[ranking.winner], [names[name] for name in ranking.contenders[1:]]
    title = in_sentence(visible_line(metric.title))
    if all(one.low is None and one.high is None for one in ranking.others):
        return f"By {title}, {winner} has the best mean so far; there are too few blocks for intervals."
    if not rest:
        others = "both others" if len(ranking.others) == 2 else f"all {len(ranking.others)} others"
        return f"By {title}, {winner} is best: {others} are worse for certain."
    said = rest if len(rest) <= _MOST_NAMED else [*rest[: _MOST_NAMED - 1], f"{len(rest) - _MOST_NAMED + 1} more"]
    return f"By {title}, {winner} has the best mean; {listed(said)} cannot be distinguished from it."


def _group(results: Results, metric: Metric, ranking: Ranking, labels: Labels) -> RowGroup:
    by_name = {one.name: one for one in results.configurations}
    shown = metric_shown(results, metric)

    def row(name: str, estimate: str, interval: str, badge: Badge, remark: str = "") -> Row:
        one = by_name[name]
        cells = (configuration_name(one, labels), mean_cell(one, metric, shown), estimate, interval, badge)
        return Row(cells, remark)

    text = "best" if len(ranking.contenders) == 1 else "best mean"
    rows = [row(ranking.winner, "", "", Badge("improves", LOOKS["improves"].sign, text))]
    rows += [
        row(one.configuration, *_figures(one), _badge(one, results.smallest_effect), one.reason)
        for one in ranking.others
    ]
    title = title_with_unit(metric, shown)
    return RowGroup(title, tuple(rows), _summary(metric, ranking, _names(results, labels)))


def _summary(metric: Metric, ranking: Ranking, names: Mapping[str, str]) -> str:
    """Such as ``b takes 2.31 (2.20 to 2.43) times as long as a; c takes 3.04 (2.95 to 3.13)``."""
    said: list[str] = []
    for one in ranking.others:
        estimate, interval = _figures(one)
        if one.scale == "difference":
            verb, times = "has", f"more than {names[ranking.winner]}"
        elif metric.unit in _SECONDS:
            verb, times = "takes", f"times as long as {names[ranking.winner]}"
        else:
            verb, times = "has", f"times as much as {names[ranking.winner]}"
        said.append(f"{names[one.configuration]} {verb} {estimate} ({interval}) {times if not said else ''}".rstrip())
    return f"{'; '.join(said)}."


def _names(results: Results, labels: Labels) -> dict[str, str]:
    return {one.name: labels.setting(one) for one in results.configurations}


def _badge(one: Ranked, smallest_effect: float) -> Badge:
    text = {"worsens": "worse", "undecided": "may be as good", "equivalent": f"within {effect_band(smallest_effect)}"}
    return Badge(one.verdict, LOOKS[one.verdict].sign, text.get(one.verdict, one.verdict))


def _figures(one: Ranked) -> tuple[str, str]:
    """``2.31`` and ``2.20 to 2.43``; of differences with the unit."""
    bounds = [known(value) for value in (one.estimate, one.low, one.high)]
    finite = [value for value in bounds if value is not None]
    if one.scale == "difference":
        shown = shown_as(finite, one.unit)
        said = [None if value is None else f"{shown.signed(value)} {shown.unit}".rstrip() for value in bounds]
    else:
        decimals = _decimals(bounds)
        said = [None if value is None else number(value, decimals) for value in bounds]
    estimate, low, high = said
    if low is None and high is None:
        interval = "no interval yet"
    elif low is None or high is None:
        interval = f"at least {low}" if low is not None else f"at most {high}"
    else:
        interval = f"{low} to {high}"
    return estimate or "–", interval


def _decimals(bounds: Sequence[float | None]) -> int:
    """So many that the width has two digits and the ratio three, two below 1."""
    estimate, low, high = bounds
    power = math.floor(math.log10(max(estimate or 1.0, 1e-9)))
    least = max(0, 2 - power) if power >= 0 else 1 - power
    width = 0.0 if low is None or high is None else (high - low) / 2
    return min(6, max(least, 1 - math.floor(math.log10(width)) if width > 0 else 0))
