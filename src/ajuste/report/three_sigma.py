"""What the 3-sigma rule would have said, beside the verdicts."""

from __future__ import annotations

from typing import Final

from ajuste.model.metric import Metric
from ajuste.model.results import Results, ThreeSigma
from ajuste.report.format import NOTHING, Shown, count_of
from ajuste.report.labels import Labels
from ajuste.report.listing import Group, Line, Listing
from ajuste.report.rows import metric_shown
from ajuste.report.verdict_words import LOOKS

_LEAD: Final = (
    "The rule calls two configurations different where their means are further apart than three standard deviations "
    "of the difference: of that of two single values, or of that of two means."
)
_SOURCE: Final = 'The rule: F. Pukelsheim, "The Three Sigma Rule", The American Statistician 48(2), 1994.'
_COLUMNS: Final = (
    "Mean",
    "± 3 sd of single values",
    "± 3 sd of the mean",
    "Rule, single values",
    "Rule, means",
    "Verdict",
)


def three_sigma_listing(results: Results, labels: Labels) -> Listing | None:
    """The table, or ``None`` if the study did not ask for it."""
    groups = tuple(
        Group(f"{metric.title}{f', in {shown.unit}' if (shown := metric_shown(results, metric)).unit else ''}", lines)
        for metric in results.metrics
        if (lines := _lines(results, metric, labels))
    )
    if not groups:
        return None
    disagreeing = sum(row.disagrees for row in results.three_sigma)
    cases = f"disagree in {count_of(disagreeing, 'case')}" if disagreeing else "agree here"
    said = f"Rule and verdict {cases}."
    return Listing("three-sigma", "What the 3-sigma rule says", f"{_LEAD} {said}", _COLUMNS, groups, _SOURCE)


def _lines(results: Results, metric: Metric, labels: Labels) -> tuple[Line, ...]:
    shown = metric_shown(results, metric)
    configurations = {configuration.name: configuration for configuration in results.configurations}
    return tuple(
        Line(
            name=labels.short(configurations[row.configuration]),
            cells=_cells(row, shown),
            remark=row.why,
            marked=row.disagrees,
        )
        for row in results.three_sigma
        if row.metric == metric.name and row.configuration in configurations
    )


def _cells(row: ThreeSigma, shown: Shown) -> tuple[str, ...]:
    verdict = "baseline" if row.verdict is None else f"{LOOKS[row.verdict].sign} {row.verdict}"
    return (
        shown.text(row.mean),
        _range(row.values, shown),
        _range(row.means, shown),
        _word(row.values_differ),
        _word(row.means_differ),
        verdict,
    )


def _range(ends: tuple[float, float] | None, shown: Shown) -> str:
    return NOTHING if ends is None else f"{shown.text(ends[0])} … {shown.text(ends[1])}"


def _word(differs: bool | None) -> str:
    return NOTHING if differs is None else "different" if differs else "not different"
