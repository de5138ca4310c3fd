"""The section on the lines of a profile that was taken apart, and the picture of each metric."""

from __future__ import annotations

from typing import Final

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.verdict import LINES
from ajuste.report.document import Section
from ajuste.report.format import Labels
from ajuste.report.plots.plot import Plot
from ajuste.report.tables import deciding_metrics
from ajuste.report.verdicts import word_meanings
from ajuste_search.ablation.plot import lines_plot
from ajuste_search.ablation.table import line_table

PLACE: Final = "answer"

_ABOUT: Final = (
    "The effect of the whole profile is divided among its lines. A line's share is the effect that it adds when lines "
    "are added one by one, averaged over all orders (its Shapley value). The other columns show the effect of the line "
    "alone and as the last line."
)


def sections(results: Results, labels: Labels) -> tuple[Section, ...]:  # noqa: ARG001 - lines have their names
    """Return the section with the table of all lines."""
    deciding = deciding_metrics(results)
    table = line_table(results, [metric for metric in results.metrics if metric.name in deciding])
    if table is None:
        return ()
    return (Section("What each line does", (table, word_meanings(LINES.of(results))), "lines", "Lines", _ABOUT),)


def plots(results: Results, metric: Metric, name: str) -> tuple[Plot, ...]:
    """Return the shares of the lines."""
    plot = lines_plot(results, metric, f"{name}-lines")
    return () if plot is None else (plot,)
