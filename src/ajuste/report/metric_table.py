"""What is known of metrics one by one: which decide, which could not be measured, and a table of all figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Results, Summary
from ajuste.model.verdict import Verdict
from ajuste.model.wording import count_of, visible_line
from ajuste.outputs.base import HARDWARE_METRICS
from ajuste.report.document import Cell, Column, Fact, Facts, Row, Subsection, Table
from ajuste.report.format import NOTHING, Labels, NumberFormat, common_format, spread_percent

NOT_SUPPORTED: Final = "not supported"


def deciding_metrics(results: Results) -> frozenset[str]:
    """Return the metrics that decide when the study stops: by verdicts, or by effects of factors."""
    every = (*results.verdicts, *results.effects, *results.lines)
    return frozenset(finding.metric for finding in every if finding.deciding)


def is_screening(results: Results) -> bool:
    """Return whether effects of factors or lines of a profile decide, and configurations are only described."""
    return bool(results.lines) or any(effect.deciding for effect in results.effects)


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
    costs = [explanation.costs for explanation in results.explanations if explanation.costs is not None]
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
        return Cell(fmt.text(summary.mean), _spread(summary, metric, fmt))
    if metric.name in configuration.not_supported:
        return Cell(NOT_SUPPORTED, missing=configuration.not_supported[metric.name])
    return Cell(NOTHING, missing="no clean trial")


def _spread(summary: Summary, metric: Metric, fmt: NumberFormat) -> str:
    if summary.sd is None:
        return ""
    return f"± {fmt.text(summary.sd)}" if metric.scale == "difference" else spread_percent(summary.sd, summary.mean)


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
    extent = span_text(summary, fmt)
    facts = (
        Fact("mean ± sd", f"{fmt.text(summary.mean)}{spread} {fmt.unit}".rstrip(), used),
        *(
            (Fact(f"{100 * results.level:g} % interval", f"{_between(summary, fmt)} (of the mean)"),)
            if summary.low is not None
            else ()
        ),
        *((Fact("median", fmt.with_unit(summary.median)),) if summary.median is not None else ()),
        Fact("min … max", f"{extent} {fmt.unit}".rstrip()) if extent != NOTHING else Fact("min … max", NOTHING),
        Fact("runs", count_of(summary.n, "run")),
    )
    return Subsection(title, (Facts(facts),))


def _between(summary: Summary, fmt: NumberFormat) -> str:
    high = "∞" if summary.high is None else fmt.text(summary.high)
    low = "−∞" if summary.low is None else fmt.text(summary.low)
    return f"{low} … {high} {fmt.unit}".rstrip()


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
