"""The table of metrics in the style of ``perf stat``: value ± spread for every metric and configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ajuste.model.metric import Metric
from ajuste.model.results import Results, Summary
from ajuste.model.verdict import Verdict
from ajuste.report.format import NOTHING, Shown, shown_as, spread_percent

NOT_SUPPORTED: Final = "not supported"


@dataclass(frozen=True)
class Cell:
    """One figure. ``value`` is text without a unit, ``spread`` such as ``± 1.2 %`` (empty below two trials).

    Without a figure ``value`` says so in words and ``reason`` why.
    """

    value: str
    spread: str = ""
    reason: str = ""
    measured: bool = True

    @property
    def text(self) -> str:
        return f"{self.value} {self.spread}".rstrip()


@dataclass(frozen=True)
class Row:
    """One metric over all configurations, in their order and in one unit."""

    metric: Metric
    unit: str
    shown: Shown
    cells: tuple[Cell, ...]
    deciding: bool


def metric_rows(results: Results) -> tuple[Row, ...]:
    """A row for every metric: those that decide first, then the others as the results have them."""
    deciding = deciding_metrics(results)
    ordered = [m for m in results.metrics if m.name in deciding] + [
        m for m in results.metrics if m.name not in deciding
    ]
    return tuple(_row(results, metric, metric.name in deciding) for metric in ordered)


def deciding_metrics(results: Results) -> frozenset[str]:
    """The names of the metrics that decide when the study stops: by verdicts, or by effects of factors."""
    every = (*results.verdicts, *results.effects, *results.lines)
    return frozenset(found.metric for found in every if found.deciding)


def is_screening(results: Results) -> bool:
    """Whether the effects of factors, or the lines of a profile, decide, and configurations are only described."""
    return bool(results.lines) or any(effect.deciding for effect in results.effects)


def verdicts_of(results: Results, metric: str) -> tuple[Verdict, ...]:
    """The verdicts on one metric, in the order of the configurations."""
    order = {configuration.name: place for place, configuration in enumerate(results.configurations)}
    mine = [verdict for verdict in results.verdicts if verdict.metric == metric]
    return tuple(sorted(mine, key=lambda verdict: order.get(verdict.configuration, len(order))))


def described_with_effects(results: Results) -> tuple[Metric, ...]:
    """The metrics that do not decide, as far as an effect on them is known for any configuration."""
    deciding = deciding_metrics(results)
    known = {verdict.metric for verdict in results.verdicts if verdict.estimate is not None}
    return tuple(m for m in results.metrics if m.name in known and m.name not in deciding)


def not_supported(results: Results) -> tuple[str, ...]:
    """Why metrics could not be measured: a line for each reason, ``cycles, instructions: No such device``."""
    titles: dict[str, list[str]] = {}
    for metric in results.metrics:
        reasons = (c.not_supported.get(metric.name) for c in results.configurations if metric.name not in c.metrics)
        for reason in dict.fromkeys(reason for reason in reasons if reason is not None):
            titles.setdefault(reason, []).append(metric.name)
    return tuple(f"{', '.join(names)}: {reason}" for reason, names in titles.items())


def metric_shown(results: Results, metric: Metric) -> Shown:
    """Unit and decimals for the means of one metric."""
    summaries = _summaries(results, metric)
    return shown_as([s.mean for s in summaries], metric.unit, [s.sd for s in summaries if s.sd is not None])


def _row(results: Results, metric: Metric, deciding: bool) -> Row:
    shown = metric_shown(results, metric)
    cells = []
    for configuration in results.configurations:
        summary = configuration.metrics.get(metric.name)
        if summary is not None:
            cells.append(_measured(summary, metric, shown))
        elif metric.name in configuration.not_supported:
            cells.append(Cell(NOT_SUPPORTED, reason=configuration.not_supported[metric.name], measured=False))
        else:
            cells.append(Cell(NOTHING, reason="no clean trial", measured=False))
    return Row(metric=metric, unit=shown.unit, shown=shown, cells=tuple(cells), deciding=deciding)


def _measured(summary: Summary, metric: Metric, shown: Shown) -> Cell:
    if summary.sd is None:
        spread = ""
    elif metric.scale == "difference":
        spread = f"± {shown.text(summary.sd)}"
    else:
        spread = spread_percent(summary.sd, summary.mean)
    return Cell(value=shown.text(summary.mean), spread=spread)


def _summaries(results: Results, metric: Metric) -> list[Summary]:
    return [c.metrics[metric.name] for c in results.configurations if metric.name in c.metrics]
