"""Tables of metrics, verdicts and effects of factors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from ajuste.model.metric import Metric
from ajuste.model.origin import ELSEWHERE
from ajuste.model.results import Measured, Results, Summary
from ajuste.model.verdict import EFFECTS, LINES, RANKINGS, FactorEffect, Ranked, Ranking, Verdict
from ajuste.model.wording import count_of, in_sentence, listed, percent, sentence_start, visible_line
from ajuste.outputs.base import HARDWARE_METRICS
from ajuste.report.document import (
    Badge,
    Block,
    Cell,
    Column,
    Fact,
    Facts,
    Paragraph,
    Row,
    RowGroup,
    Section,
    Subsection,
    Table,
)
from ajuste.report.format import NOTHING, Labels, NumberFormat, common_format, number, numeric_levels, spread_percent
from ajuste.report.verdicts import (
    EffectStyle,
    badge,
    effect_band,
    effect_name,
    effect_style,
    known,
    metric_effects,
    verdict_text,
    word_badge,
)
from ajuste_stats.terms import Scale

NOT_SUPPORTED: Final = "not supported"

# Of more contenders these are named and the rest counted.
_MOST_NAMED: Final = 6

_SECONDS: Final = ("s", "ms", "us", "µs", "ns")

# Configurations; more are easier to read in a table.
_MOST_IN_A_LINE: Final = 4

# Of more effects of factors than this the summary names those that matter most.
_MOST_EFFECTS: Final = 24

_MOST_IN_SUMMARY: Final = 4
_SAME_FIGURE: Final = 0.01
_EFFECT: Final = (Column("Effect"), Column("Interval", verbose=True), Column("Verdict", figure=False))


def deciding_metrics(results: Results) -> frozenset[str]:
    """Return the metrics that decide when the study stops: by verdicts, or by effects of factors."""
    every = (*results.verdicts, *EFFECTS.of(results), *LINES.of(results))
    return frozenset(finding.metric for finding in every if finding.deciding)


def is_screening(results: Results) -> bool:
    """Return whether effects of factors or lines of a profile decide, and configurations are only described."""
    return bool(LINES.of(results)) or any(effect.deciding for effect in EFFECTS.of(results))


def metric_verdicts(results: Results, metric: str) -> tuple[Verdict, ...]:
    """Return the verdicts on one metric, in the order of the configurations."""
    order = {configuration.name: place for place, configuration in enumerate(results.configurations)}
    mine = [verdict for verdict in results.verdicts if verdict.metric == metric]
    return tuple(sorted(mine, key=lambda verdict: order.get(verdict.configuration, len(order))))


def described_with_effects(results: Results) -> tuple[Metric, ...]:
    """Return the metrics that do not decide but have a known effect in some configuration."""
    deciding = deciding_metrics(results)
    known = {verdict.metric for verdict in results.verdicts if verdict.estimate is not None}
    return tuple(m for m in results.metrics if m.name in known and m.name not in deciding)


def not_supported(results: Results) -> tuple[str, ...]:
    """Return why metrics could not be measured, a line for each reason.

    ``Not supported: cycles, instructions: No such device``. A guest under the virtual clock never has hardware
    counters; there other figures take their place.
    """
    titles: dict[str, list[str]] = {}
    emulated = HARDWARE_METRICS if results.clock == "virtual" else ()
    lines = []
    if any(metric in configuration.not_supported for metric in emulated for configuration in results.configurations):
        lines.append(f"This guest has no hardware counters. {_instead(results)}")
    for metric in results.metrics:
        if metric.name in emulated:
            continue
        reasons = (c.not_supported.get(metric.name) for c in results.configurations if metric.name not in c.metrics)
        for reason in dict.fromkeys(reason for reason in reasons if reason is not None):
            titles.setdefault(reason, []).append(metric.name)
    return (*lines, *(f"Not supported: {', '.join(names)}: {reason}" for reason, names in titles.items()))


def _instead(results: Results) -> str:
    from ajuste.model.explanation import EXPLANATIONS  # few runs have any

    costs = [explanation.costs for explanation in EXPLANATIONS.of(results) if explanation.costs is not None]
    if any(comparison.modelled is not None for comparison in costs):
        return "Instructions and modelled misses, counted in one more trial of two configurations, are under Costs."
    if costs:
        return "Instructions, counted in one more trial of two configurations, are under Costs."
    return "Use --metric instructions to count them, and --machine zen4-8c to model caches."


def mean_format(results: Results, metric: Metric) -> NumberFormat:
    """Return unit and decimals for the means of one metric."""
    summaries = [c.metrics[metric.name] for c in results.configurations if metric.name in c.metrics]
    return common_format([s.mean for s in summaries], metric.unit, [s.sd for s in summaries if s.sd is not None])


def measured_metrics(results: Results) -> list[Metric]:
    """Return the metrics that at least one configuration has."""
    return [
        m for m in results.metrics if any(m.name in configuration.metrics for configuration in results.configurations)
    ]


def title_with_unit(metric: Metric, fmt: NumberFormat) -> str:
    """Return the heading of a metric's column."""
    return f"{metric.title} ({fmt.unit})" if fmt.unit else metric.title


def mean_cell(configuration: Measured, metric: Metric, fmt: NumberFormat) -> Cell:
    """Return the mean with its standard deviation, or why there is none."""
    summary = configuration.metrics.get(metric.name)
    if summary is not None:
        spread = ""
        if summary.sd is not None:
            by_difference = metric.scale == "difference"
            spread = f"± {fmt.text(summary.sd)}" if by_difference else spread_percent(summary.sd, summary.mean)
        return Cell(fmt.text(summary.mean), spread)
    if metric.name in configuration.not_supported:
        return Cell(NOT_SUPPORTED, missing=configuration.not_supported[metric.name])
    return Cell(NOTHING, missing="no clean trial")


def metric_matrix(results: Results, metrics: Sequence[Metric], labels: Labels, name: str = "") -> Table:
    """Return a row for each metric, a column for each configuration."""
    rows = tuple(
        Row(
            (
                title_with_unit(metric, fmt := mean_format(results, metric)),
                *(mean_cell(configuration, metric, fmt) for configuration in results.configurations),
            )
        )
        for metric in metrics
    )
    heads = (Column(labels.named(configuration)) for configuration in results.configurations)
    return Table.of((Column(labels.heading or "Metric", figure=False), *heads), rows, name, matrix=True)


def described(results: Results, configuration: Measured, metric: Metric, labels: Labels) -> Subsection:
    """Return mean, interval, median and range of the only configuration."""
    title = f"{visible_line(metric.title)}: {labels.short(configuration)}"
    summary = configuration.metrics.get(metric.name)
    if summary is None:
        return Subsection(title, (Facts((Fact("mean", "no clean trial"),)),))
    fmt = mean_format(results, metric)
    spread = f" ± {fmt.text(summary.sd)}" if summary.sd is not None else ""
    used = _cpu_times(configuration) if metric.name == "elapsed" else ""
    low = "−∞" if summary.low is None else fmt.text(summary.low)
    high = "∞" if summary.high is None else fmt.text(summary.high)
    interval = f"{low} … {high} {fmt.unit}".rstrip()
    extent = span_text(summary, fmt)
    facts = (
        Fact("mean ± sd", f"{fmt.text(summary.mean)}{spread} {fmt.unit}".rstrip(), used),
        *(
            (Fact(f"{100 * results.level:g} % interval", f"{interval} (of the mean)"),)
            if summary.low is not None
            else ()
        ),
        *((Fact("median", fmt.with_unit(summary.median)),) if summary.median is not None else ()),
        Fact("min … max", f"{extent} {fmt.unit}".rstrip()) if extent != NOTHING else Fact("min … max", NOTHING),
        Fact("runs", count_of(summary.n, "run")),
    )
    return Subsection(title, (Facts(facts),))


def span_text(summary: Summary, fmt: NumberFormat) -> str:
    """Return the smallest and the largest value."""
    if summary.minimum is None or summary.maximum is None:
        return NOTHING
    return f"{fmt.text(summary.minimum)} … {fmt.text(summary.maximum)}"


def _cpu_times(configuration: Measured) -> str:
    # `(user 0.9 ms, system 2.3 ms)`, as hyperfine says them.
    times = [(name, configuration.metrics.get(f"{name}-time")) for name in ("user", "system")]
    texts = [
        f"{name} {common_format([time.mean], 's').with_unit(time.mean)}" for name, time in times if time is not None
    ]
    return f"({', '.join(texts)})" if texts else ""


# Tables of verdicts, of the effects of factors, of the lines of a profile that was taken apart; and the ranking of
# three configurations or more: a sentence that names the winner, and a row for each.


def ranking_sections(results: Results, metrics: Sequence[Metric], labels: Labels) -> tuple[Section, ...]:
    """Return the ranking by each of ``metrics`` that has one."""
    rankings = RANKINGS.of(results)
    chosen = [(metric, ranking) for metric in metrics for ranking in rankings if ranking.metric == metric.name]
    if not chosen:
        return ()
    first = chosen[0][1]
    about = (
        f"Each configuration against the best, on the evidence of the verdicts: with {percent(first.level)} confidence "
        f"none of the configurations marked worse is the best, on any metric."
    )
    names = _names(results, labels.choices if first.reference else labels)
    where = {ranking.reference: ranked_where(results, ranking, labels) for _, ranking in chosen}
    blocks: list[Block] = [
        Paragraph(ranking_sentence(metric, ranking, names, where[ranking.reference])) for metric, ranking in chosen
    ]
    groups = tuple(_ranked_group(results, metric, ranking, labels) for metric, ranking in chosen)
    ratios = all(ranked.scale == "ratio" for _, ranking in chosen for ranked in ranking.others)
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


def ranked_where(results: Results, ranking: Ranking, labels: Labels) -> str:
    """Return the level of the study's conditions at which configurations are ranked; empty where there are none."""
    reference = next((c for c in results.configurations if c.name == ranking.reference), None)
    return labels.condition(reference) if reference is not None else ""


def ranking_sentence(metric: Metric, ranking: Ranking, names: Mapping[str, str], where: str = "") -> str:
    """Return the best, and what cannot be distinguished from it; ``names`` are what configurations are called.

    ``where`` is the level of the study's conditions, if it has any.
    """
    winner, rest = names[ranking.winner], [names[name] for name in ranking.contenders[1:]]
    title = in_sentence(visible_line(metric.title))
    title += f" with {where}" if where else ""
    unbounded = all(ranked.low is None and ranked.high is None for ranked in ranking.others)
    if unbounded and len(rest) == len(ranking.others):
        return f"By {title}, {winner} has the best mean so far; there are too few blocks for intervals."
    luck = f" {ranking.luck}" if ranking.luck else ""
    if not rest:
        others = "both others" if len(ranking.others) == 2 else f"all {len(ranking.others)} others"
        return f"By {title}, {winner} is best: {others} are worse for certain.{luck}"
    named = rest if len(rest) <= _MOST_NAMED else [*rest[: _MOST_NAMED - 1], f"{len(rest) - _MOST_NAMED + 1} more"]
    return f"By {title}, {winner} has the best mean; {listed(named)} cannot be distinguished from it.{luck}"


def _ranked_group(results: Results, metric: Metric, ranking: Ranking, labels: Labels) -> RowGroup:
    by_name = {configuration.name: configuration for configuration in results.configurations}
    fmt = mean_format(results, metric)
    choices = labels.choices if ranking.reference else labels

    def row(name: str, estimate: str, interval: str, badge: Badge, remark: str = "") -> Row:
        configuration = by_name[name]
        cells = (
            _marked(configuration, results, choices),
            mean_cell(configuration, metric, fmt),
            estimate,
            interval,
            badge,
        )
        return Row(cells, remark)

    text = "best" if len(ranking.contenders) == 1 else "best mean"
    rows = [row(ranking.winner, "", "", word_badge("improves", text))]
    rows += [
        row(
            ranked.configuration,
            *_ranked_figures(ranked),
            _badge(ranked, results.smallest_effect),
            ranked.reason,
        )
        for ranked in ranking.others
    ]
    where = ranked_where(results, ranking, labels)
    title = title_with_unit(metric, fmt) + (f", with {where}" if where else "")
    return RowGroup(title, tuple(rows), _ranked_summary(metric, ranking, _names(results, choices), where))


def _ranked_summary(metric: Metric, ranking: Ranking, names: Mapping[str, str], where: str) -> str:
    # `Elapsed time: b takes 2.31 times as long as a (95 % interval 2.20 to 2.43); c takes 3.04 times as long (…)`.
    parts: list[str] = []
    for ranked in ranking.others:
        estimate, interval = _ranked_figures(ranked)
        if ranked.scale == "difference":
            effect = f"has {estimate} more"
            against = f" than {names[ranking.winner]}"
        else:
            effect = f"takes {estimate} times as long" if metric.unit in _SECONDS else f"has {estimate} times as much"
            against = f" as {names[ranking.winner]}"
        level = f"{percent(ranking.level)} interval " if " to " in interval else ""
        first = not parts
        parts.append(
            f"{names[ranked.configuration]} {effect}{against if first else ''} ({level if first else ''}{interval})"
        )
    title = sentence_start(visible_line(metric.title)) + (f" with {where}" if where else "")
    return f"{title}: {'; '.join(parts)}."


def _names(results: Results, labels: Labels) -> dict[str, str]:
    say = labels.setting if len(labels.factors) <= 1 else labels.short  # Of several factors the table has the names.
    return {configuration.name: say(configuration) for configuration in results.configurations}


def _badge(ranked: Ranked, smallest_effect: float) -> Badge:
    bounds = [bound for bound in (known(ranked.low), known(ranked.high)) if bound is not None]
    limits = (1 / (1 + smallest_effect), 1 + smallest_effect)
    small = ranked.scale == "ratio" and len(bounds) == 2 and all(limits[0] < bound < limits[1] for bound in bounds)
    text = {
        "worsens": "slightly worse" if small else "worse",
        "undecided": "may be as good",
        "equivalent": f"within {effect_band(smallest_effect)}",
    }
    return word_badge(ranked.verdict, text.get(ranked.verdict, ranked.verdict))


def _ranked_figures(ranked: Ranked) -> tuple[str, str]:
    # `2.31` and `2.20 to 2.43`; of differences with the unit.
    bounds = [known(value) for value in (ranked.estimate, ranked.low, ranked.high)]
    finite = [value for value in bounds if value is not None]
    if ranked.scale == "difference":
        fmt = common_format(finite, ranked.unit)
        texts = [None if value is None else f"{fmt.signed(value)} {fmt.unit}".rstrip() for value in bounds]
    else:
        decimals = _decimals(bounds)
        texts = [None if value is None else number(value, decimals) for value in bounds]
    estimate, low, high = texts
    if low is None and high is None:
        interval = "no interval yet"
    elif low is None or high is None:
        interval = f"at least {low}" if low is not None else f"at most {high}"
    else:
        interval = f"{low} to {high}"
    return estimate or "–", interval


def _decimals(bounds: Sequence[float | None]) -> int:
    # So many that the width has two digits and the ratio three, two below 1.
    estimate, low, high = bounds
    power = math.floor(math.log10(max(estimate or 1.0, 1e-9)))
    least = max(0, 2 - power) if power >= 0 else 1 - power
    width = 0.0 if low is None or high is None else (high - low) / 2
    return min(6, max(least, 1 - math.floor(math.log10(width)) if width > 0 else 0))


def verdict_table(results: Results, metrics: Sequence[Metric], labels: Labels, name: str) -> Table | None:
    """Return a row for each configuration: mean, effect against the baseline, and verdict."""
    chosen = [metric for metric in metrics if metric_verdicts(results, metric.name)]
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
    verdicts = metric_verdicts(results, metric.name)
    fmt = mean_format(results, metric)
    by_configuration = {verdict.configuration: verdict for verdict in verdicts}
    styles = effect_style(verdicts, metric.unit)
    rows = []
    for configuration in results.configurations:
        verdict = by_configuration.get(configuration.name)
        summary = configuration.metrics.get(metric.name)
        median = NOTHING if summary is None or summary.median is None else fmt.text(summary.median)
        extent = NOTHING if summary is None else span_text(summary, fmt)
        named = _marked(configuration, results, labels)
        figures = (named, mean_cell(configuration, metric, fmt), median, extent)
        if verdict is None:
            rows.append(Row((*figures, "", "", "")))
            continue
        style = styles[verdict.scale]
        effect = (style.estimate(verdict), style.interval(verdict), badge(verdict, results.smallest_effect))
        # Of a certain effect the interval and the verdict say what the reason does, but for what it has in brackets.
        certain = verdict.verdict in ("improves", "worsens", "differs") and "(" not in verdict.reason
        reason = "" if certain else verdict.reason
        rows.append(Row((*figures, *effect), remark=visible_line(reason)))
    quantile = "" if metric.quantile is None else f", the {percent(metric.quantile)} quantile"
    title = f"{title_with_unit(metric, fmt)}{quantile}"
    return RowGroup(title, tuple(rows), _summary(results, metric, fmt, styles, labels))


def _marked(configuration: Measured, results: Results, labels: Labels) -> str:
    baseline = not configuration.baseline and any(c.against == configuration.name for c in results.configurations)
    return f"{labels.named(configuration)}{' (baseline)' if baseline else ''}"


def _summary(
    results: Results, metric: Metric, fmt: NumberFormat, styles: dict[Scale, EffectStyle], labels: Labels
) -> str:
    # `135 at 750 µs; 67.9 at 7.5 ms (−66.8, differs)`.
    verdicts = {verdict.configuration: verdict for verdict in metric_verdicts(results, metric.name)}
    figures = {
        configuration.name: typical(configuration, verdicts, configuration.metrics[metric.name].mean)
        for configuration in results.configurations
        if metric.name in configuration.metrics
    }
    if any(verdict.scale == "ratio" and verdict.estimate is not None for verdict in verdicts.values()):
        fmt = fmt.at_least(3, figures.values())  # so that they give the percentage beside them, whatever their spread
    word = "at" if len(labels.factors) == 1 and numeric_levels(labels.factors[0]) is not None else "with"
    parts = []
    for configuration in results.configurations:
        figure = figures.get(configuration.name)
        mean = fmt.with_unit(figure) if figure is not None else "no figure"
        effect = ""
        if (verdict := verdicts.get(configuration.name)) is not None:
            words = verdict_text(verdict, results.smallest_effect)
            if ELSEWHERE.of(results) is not None and verdict.p_value is not None:
                words += f", p = {verdict.p_value:.2g}"
            effect = f" ({words})"
            if verdict.estimate is not None:
                size = styles[verdict.scale].estimate(verdict)
                old = _own_baseline(verdict, figures.get(results.reference(configuration.name)))
                effect = f" ({size}{f' from {fmt.with_unit(old)}' if old else ''}, {words})"
        parts.append(f"{mean} {word} {labels.short(configuration)}{effect}")
    return f"{visible_line(metric.title)}: {'; '.join(parts)}."


def _own_baseline(verdict: Verdict, usual: float | None) -> float | None:
    # The figure of the baseline that gives the percentage, if that of another verdict's blocks is shown.
    if not usual or not verdict.old or abs(verdict.old / usual - 1) <= _SAME_FIGURE:
        return None
    return verdict.old


def typical(configuration: Measured, verdicts: Mapping[str, Verdict], mean: float) -> float:
    """Return the figure on the scale of the estimates, which gives their percentages; the mean where it is unknown."""
    if (verdict := verdicts.get(configuration.name)) is not None:
        return mean if verdict.new is None else verdict.new
    against = "" if configuration.baseline else configuration.name
    return next((v.old for v in verdicts.values() if v.against == against and v.old is not None), mean)


def effect_table(results: Results, metrics: Sequence[Metric], labels: Labels) -> Table | None:
    """Return the effects of factors, each averaged over the levels of all others."""
    groups = tuple(_effects(results, metric, labels) for metric in metrics if metric_effects(results, metric.name))
    if not groups:
        return None
    rows = sum(len(group.rows) for group in groups)
    brief = not is_screening(results) or rows > _MOST_EFFECTS
    columns = (Column("Factor", figure=False), *_EFFECT)
    return Table(columns, groups, "effects-table", "Effects of the factors", brief=brief)


def _effects(results: Results, metric: Metric, labels: Labels) -> RowGroup:
    effects = metric_effects(results, metric.name)
    styles = effect_style(effects, metric.unit)
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
        for effect in effects
    )
    return RowGroup(metric.title, rows, f"{visible_line(metric.title)}: {_effects_summary(effects, styles, labels)}.")


def _effects_summary(effects: Sequence[FactorEffect], styles: dict[Scale, EffectStyle], labels: Labels) -> str:
    changing = [effect for effect in effects if effect.verdict not in ("equivalent", "undecided")]
    named = [
        f"{effect_name(effect, labels)} {styles[effect.scale].estimate(effect)} ({effect.verdict})"
        for effect in changing[:_MOST_IN_SUMMARY]
    ]
    more = [f"{len(changing) - _MOST_IN_SUMMARY} more"] if len(changing) > _MOST_IN_SUMMARY else []
    rest = [
        f"{count} {word}"
        for word in ("equivalent", "undecided")
        if (count := sum(effect.verdict == word for effect in effects))
    ]
    return "; ".join((*named, *more, *rest))
