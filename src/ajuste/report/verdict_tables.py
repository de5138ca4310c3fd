"""Tables of verdicts, of the effects of factors, of the lines of a profile that was taken apart; and the ranking of
three configurations or more: a sentence that names the winner, and a row for each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from ajuste.model.metric import Metric, Scale
from ajuste.model.results import Measured, Results
from ajuste.model.verdict import Bounds, FactorEffect, LineEffect, Ranked, Ranking, Verdict
from ajuste.model.wording import in_sentence, listed, percent, visible_line
from ajuste.report.document import Badge, Block, Cell, Column, Paragraph, Row, RowGroup, Section, Table
from ajuste.report.format import NOTHING, Labels, ShownNumber, number, numeric_levels, shown_as
from ajuste.report.metric_table import extent_of, is_screening, mean_cell, metric_shown, title_with_unit, verdicts_of
from ajuste.report.verdicts import (
    EffectStyle,
    badge,
    effect_band,
    effect_name,
    effect_style,
    effects_of,
    known,
    lines_on,
    role_text,
    verdict_text,
    word_badge,
)

_MOST_NAMED: Final = 6
"""Of more contenders these are named and the rest counted."""
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
    groups = tuple(_ranked_group(results, metric, ranking, labels) for metric, ranking in chosen)
    ratios = all(one.scale == "ratio" for _, ranking in chosen for one in ranking.others)
    columns = (
        Column("Configuration", figure=False),
        Column("Mean", optional=True),
        Column("Times the best" if ratios else "Against the best"),
        Column("Interval"),
        Column("Verdict", figure=False),
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
    luck = f" {ranking.luck}" if ranking.luck else ""
    if not rest:
        others = "both others" if len(ranking.others) == 2 else f"all {len(ranking.others)} others"
        return f"By {title}, {winner} is best: {others} are worse for certain.{luck}"
    said = rest if len(rest) <= _MOST_NAMED else [*rest[: _MOST_NAMED - 1], f"{len(rest) - _MOST_NAMED + 1} more"]
    return f"By {title}, {winner} has the best mean; {listed(said)} cannot be distinguished from it.{luck}"


def _ranked_group(results: Results, metric: Metric, ranking: Ranking, labels: Labels) -> RowGroup:
    by_name = {one.name: one for one in results.configurations}
    shown = metric_shown(results, metric)

    def row(name: str, estimate: str, interval: str, badge: Badge, remark: str = "") -> Row:
        one = by_name[name]
        cells = (labels.named(one), mean_cell(one, metric, shown), estimate, interval, badge)
        return Row(cells, remark)

    text = "best" if len(ranking.contenders) == 1 else "best mean"
    rows = [row(ranking.winner, "", "", word_badge("improves", text))]
    rows += [
        row(one.configuration, *_ranked_figures(one), _badge(one, ranking, results.smallest_effect), one.reason)
        for one in ranking.others
    ]
    title = title_with_unit(metric, shown)
    return RowGroup(title, tuple(rows), _ranked_summary(metric, ranking, _names(results, labels)))


def _ranked_summary(metric: Metric, ranking: Ranking, names: Mapping[str, str]) -> str:
    """Return such as ``b takes 2.31 times as long as a (95 % interval 2.20 to 2.43); c takes 3.04 times as long (2.95
    to 3.13)``.
    """
    parts: list[str] = []
    for one in ranking.others:
        estimate, interval = _ranked_figures(one)
        if one.scale == "difference":
            effect = f"has {estimate} more"
            against = f" than {names[ranking.winner]}"
        else:
            effect = f"takes {estimate} times as long" if metric.unit in _SECONDS else f"has {estimate} times as much"
            against = f" as {names[ranking.winner]}"
        level = f"{percent(ranking.level)} interval " if " to " in interval else ""
        first = not parts
        parts.append(
            f"{names[one.configuration]} {effect}{against if first else ''} ({level if first else ''}{interval})"
        )
    return f"{'; '.join(parts)}."


def _names(results: Results, labels: Labels) -> dict[str, str]:
    say = labels.setting if len(labels.factors) <= 1 else labels.short  # Of several factors the table has the names.
    return {one.name: say(one) for one in results.configurations}


def _badge(one: Ranked, ranking: Ranking, smallest_effect: float) -> Badge:
    if one.verdict == "undecided" and one.configuration not in ranking.contenders and one.low is not None:
        return word_badge("worsens", "slightly worse")
    text = {"worsens": "worse", "undecided": "may be as good", "equivalent": f"within {effect_band(smallest_effect)}"}
    return word_badge(one.verdict, text.get(one.verdict, one.verdict))


def _ranked_figures(one: Ranked) -> tuple[str, str]:
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


_MOST_IN_A_LINE: Final = 4
"""Configurations; more are easier to read in a table."""
_MOST_EFFECTS: Final = 24
"""Of more effects of factors than this the summary names those that matter most."""
_MOST_SAID: Final = 4
_EFFECT: Final = (Column("Effect"), Column("Interval", verbose=True), Column("Verdict", figure=False))


def verdict_table(results: Results, metrics: Sequence[Metric], labels: Labels, name: str) -> Table | None:
    """A row for each configuration: what was measured, the effect against the baseline, and its verdict."""
    chosen = [metric for metric in metrics if verdicts_of(results, metric.name)]
    if not chosen:
        return None
    centre = "Mean" if all(metric.quantile is None for metric in chosen) else "Mean or quantile"
    columns = (
        Column(labels.heading or "Configuration", figure=False),
        Column(centre),
        Column("Median", optional=True),
        Column("min … max", optional=True),
        *_EFFECT,
    )
    groups = tuple(_group(results, metric, labels) for metric in chosen)
    return Table(columns, groups, name, "Verdicts", brief=len(results.configurations) <= _MOST_IN_A_LINE)


def _group(results: Results, metric: Metric, labels: Labels) -> RowGroup:
    verdicts = verdicts_of(results, metric.name)
    shown = metric_shown(results, metric)
    by_configuration = {verdict.configuration: verdict for verdict in verdicts}
    styles = effect_style(verdicts, metric.unit)
    rows = []
    for configuration in results.configurations:
        verdict = by_configuration.get(configuration.name)
        figures = (labels.named(configuration), *_measured(configuration, metric, shown))
        if verdict is None:
            rows.append(Row((*figures, "", "", "")))
            continue
        style = styles[verdict.scale]
        effect = (style.estimate(verdict), style.interval(verdict), badge(verdict, results.smallest_effect))
        rows.append(Row((*figures, *effect), remark=visible_line(verdict.reason)))
    quantile = "" if metric.quantile is None else f", the {percent(metric.quantile)} quantile"
    title = f"{title_with_unit(metric, shown)}{quantile}"
    return RowGroup(title, tuple(rows), _summary(results, metric, shown, styles, labels))


def _measured(configuration: Measured, metric: Metric, shown: ShownNumber) -> tuple[Cell, str, str]:
    summary = configuration.metrics.get(metric.name)
    median = NOTHING if summary is None or summary.median is None else shown.text(summary.median)
    extent = NOTHING if summary is None else extent_of(summary, shown)
    return mean_cell(configuration, metric, shown), median, extent


def _summary(
    results: Results, metric: Metric, shown: ShownNumber, styles: dict[Scale, EffectStyle], labels: Labels
) -> str:
    """``135 at 750 µs; 67.9 at 7.5 ms (−66.8, differs)``."""
    verdicts = {verdict.configuration: verdict for verdict in verdicts_of(results, metric.name)}
    word = "at" if len(labels.factors) == 1 and numeric_levels(labels.factors[0]) is not None else "with"
    said = []
    for configuration in results.configurations:
        summary = configuration.metrics.get(metric.name)
        figure = _typical(configuration, verdicts, summary.mean) if summary is not None else None
        mean = shown.with_unit(figure) if figure is not None else "no figure"
        told = _told(results, verdicts.get(configuration.name), styles)
        said.append(f"{mean} {word} {labels.short(configuration)}{told}")
    return f"{visible_line(metric.title)}: {'; '.join(said)}."


def _typical(configuration: Measured, verdicts: Mapping[str, Verdict], mean: float) -> float:
    """On the scale of the estimates, so that the figures agree with the percentages; the mean where that is unknown."""
    if configuration.baseline:
        return next((one.old for one in verdicts.values() if one.old is not None), mean)
    own = verdicts.get(configuration.name)
    return own.new if own is not None and own.new is not None else mean


def _told(results: Results, verdict: Verdict | None, styles: dict[Scale, EffectStyle]) -> str:
    if verdict is None:
        return ""
    words = verdict_text(verdict, results.smallest_effect)
    return f" ({words})" if verdict.estimate is None else f" ({styles[verdict.scale].estimate(verdict)}, {words})"


def effect_table(results: Results, metrics: Sequence[Metric], labels: Labels) -> Table | None:
    """The effects of factors, each averaged over the levels of all others."""
    groups = tuple(_effects(results, metric, labels) for metric in metrics if effects_of(results, metric.name))
    if not groups:
        return None
    rows = sum(len(group.rows) for group in groups)
    brief = not is_screening(results) or rows > _MOST_EFFECTS
    columns = (Column("Factor", figure=False), *_EFFECT)
    return Table(columns, groups, "effects-table", "Effects of the factors", brief=brief)


def _effects(results: Results, metric: Metric, labels: Labels) -> RowGroup:
    found = effects_of(results, metric.name)
    styles = effect_style(found, metric.unit)
    rows = tuple(
        Row(
            (
                effect_name(effect, labels),
                styles[effect.scale].estimate(effect),
                styles[effect.scale].interval(effect),
                badge(effect, results.smallest_effect),
            ),
            remark=visible_line(effect.reason),
        )
        for effect in found
    )
    return RowGroup(metric.title, rows, f"{visible_line(metric.title)}: {_effects_said(found, styles, labels)}.")


def _effects_said(found: Sequence[FactorEffect], styles: dict[Scale, EffectStyle], labels: Labels) -> str:
    """Those that are there, and how many of the others are undecided."""
    there = [one for one in found if one.verdict not in ("equivalent", "undecided")]
    said = [
        f"{effect_name(one, labels)} {styles[one.scale].estimate(one)} ({one.verdict})" for one in there[:_MOST_SAID]
    ]
    more = [f"{len(there) - _MOST_SAID} more"] if len(there) > _MOST_SAID else []
    rest = [
        f"{count} {word}"
        for word in ("equivalent", "undecided")
        if (count := sum(one.verdict == word for one in found))
    ]
    return "; ".join((*said, *more, *rest))


# The lines of a profile: what each does of what the whole does.


def line_table(results: Results, metrics: Sequence[Metric]) -> Table | None:
    """The whole first, then the lines from the largest share to the smallest; ``None`` where there are none."""
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
    found = lines_on(results, metric.name)
    styles = effect_style(found, metric.unit)
    return tuple(
        Row(
            (
                Cell("the whole profile" if one.kind == "whole" else visible_line(one.line), _sets(one)),
                *_figures(one, styles[one.scale]),
                word_badge(one.verdict, role_text(one)),
            ),
            remark=visible_line(one.remark or (one.reason if one.role in ("depends", "undecided") else "")),
        )
        for one in found
    )


def _sets(line: LineEffect) -> str:
    levels = dict.fromkeys(line.sets.values())
    if not levels:
        return ""
    more = f" in {len(line.sets)} places" if len(line.sets) > 1 else ""
    return visible_line(f"= {', '.join(levels)}{more}")


def _figures(line: LineEffect, style: EffectStyle) -> tuple[str, ...]:
    part = NOTHING if line.part is None else f"{number(100 * line.part, 0)} %"
    if line.kind == "whole":
        return (style.estimate(line), style.interval(line), part, "", "")
    sides = (style.estimate(_with(line, bounds)) for bounds in (line.alone, line.last))
    return (style.estimate(line), style.interval(line), part, *sides)


def _with(line: LineEffect, bounds: Bounds) -> LineEffect:
    return line.model_copy(update=bounds.model_dump())
