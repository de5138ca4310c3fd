"""Tables of verdicts, of the effects of factors, and of the lines of a profile that was taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ajuste.model.metric import Metric, Scale
from ajuste.model.results import Measured, Results
from ajuste.model.verdict import Bounds, FactorEffect, LineEffect, Verdict
from ajuste.model.wording import percent, visible_line
from ajuste.report.document import Badge, Cell, Column, Row, RowGroup, Table
from ajuste.report.format import NOTHING, ShownNumber, number
from ajuste.report.labels import Labels, numeric_levels
from ajuste.report.metric_table import (
    configuration_name,
    extent_of,
    is_screening,
    mean_cell,
    metric_shown,
    title_with_unit,
    verdicts_of,
)
from ajuste.report.verdicts import (
    LOOKS,
    EffectStyle,
    badge,
    effect_name,
    effect_style,
    effects_of,
    lines_on,
    role_text,
    verdict_text,
)

_MOST_IN_A_LINE: Final = 4
"""Configurations; more are easier to read in a table."""
_MOST_EFFECTS: Final = 24
"""Of more effects of factors than this the summary names those that matter most."""
_MOST_SAID: Final = 4
_EFFECT: Final = (Column("Effect"), Column("Interval"), Column("Verdict", figure=False))


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
        figures = (configuration_name(configuration, labels), *_measured(configuration, metric, shown))
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
        mean = shown.with_unit(summary.mean) if summary is not None else "no figure"
        told = _told(results, verdicts.get(configuration.name), styles)
        said.append(f"{mean} {word} {labels.short(configuration)}{told}")
    return f"{visible_line(metric.title)}: {'; '.join(said)}."


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
        *(Column(title) for title in ("Share", "Interval")),
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
                Badge(one.verdict, LOOKS[one.verdict].sign, role_text(one)),
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
