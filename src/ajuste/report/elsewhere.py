"""Results that were measured elsewhere, in the terminal; and what reports say of how they were analysed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rich.console import Console

from ajuste.model.metric import Metric
from ajuste.model.results import Elsewhere, Results
from ajuste.report.comparison import print_metric, print_one
from ajuste.report.format import count_of
from ajuste.report.headline import print_headlines
from ajuste.report.labels import Labels, labels_of
from ajuste.report.listing import print_listing
from ajuste.report.listings import listings_of
from ajuste.report.metric_table import print_metrics
from ajuste.report.rows import metric_rows, verdicts_of
from ajuste.report.sheet import INDENT, Sheet, sheet
from ajuste.report.verdict_words import effect_band
from ajuste.report.visible import visible_line

_MOST_REASONS: Final = 24  # more verdicts than this are listed without their reasons
_MOST_COLUMNS: Final = 16


def print_analysis(results: Results, console: Console, *, report: Path | None = None) -> None:
    """Print ``results``; ``report`` is the path of the HTML report. Nothing is cut off, at any width."""
    labels = labels_of(results)
    with sheet(console) as out:
        print_headlines(out, results, labels)
        out.say(", ".join(facts_of(results)), style="dim")
        decided = decided_metrics(results)
        for metric in decided:
            if len(results.configurations) == 1:
                print_one(out, results, results.configurations[0], metric)
            else:
                print_metric(out, results, metric, labels)
                _print_reasons(out, results, metric)
        for listing in listings_of(results, labels):
            print_listing(out, listing)
        _print_described(out, results, decided, labels)
        _print_notes(out, results, report)


def decided_metrics(results: Results) -> list[Metric]:
    """The metrics that a person asked about; all, where nothing is compared."""
    deciding = {verdict.metric for verdict in results.verdicts if verdict.deciding}
    return [metric for metric in results.metrics if not results.verdicts or metric.name in deciding]


def facts_of(results: Results) -> tuple[str, ...]:
    """How much was read, and of what."""
    assert results.elsewhere is not None
    blocks = (count_of(results.blocks, "block"),) if results.blocks else ()
    return (
        count_of(len(results.configurations), "configuration"),
        *blocks,
        count_of(results.elsewhere.values, "value"),
        f"from {visible_line(results.elsewhere.formats)}",
        "measured elsewhere",
    )


def method_of(results: Results, elsewhere: Elsewhere) -> tuple[tuple[str, str], ...]:
    """How they were analysed, line by line."""
    deciding = ", ".join(metric.title for metric in decided_metrics(results))
    compared = len(results.configurations) > 1
    level = f"{100 * results.level:g} %"
    lines = (
        ("Files", ", ".join(elsewhere.files)),
        ("Read as", elsewhere.formats),
        ("Pairing", elsewhere.pairing),
        ("Intervals", elsewhere.inference),
        ("Deciding metrics", deciding),
        (
            "Confidence",
            f"{level} for all verdicts together" if compared else level,
        ),
        ("Correction", results.correction if compared else ""),
        ("Smallest effect that matters", effect_band(results.smallest_effect) if compared else ""),
    )
    return tuple((name, text) for name, text in lines if text)


def _print_reasons(out: Sheet, results: Results, metric: Metric) -> None:
    """Why each verdict is what it is, where they are few enough to be read."""
    if sum(verdict.deciding for verdict in results.verdicts) > _MOST_REASONS:
        return
    for verdict in verdicts_of(results, metric.name):
        out.say(f"{visible_line(verdict.configuration)}: {visible_line(verdict.reason)}", style="dim", indent=INDENT)


def _print_described(out: Sheet, results: Results, decided: list[Metric], labels: Labels) -> None:
    names = {metric.name for metric in decided}
    rows = tuple(row for row in metric_rows(results) if row.metric.name not in names)
    if rows and len(results.configurations) <= _MOST_COLUMNS:
        columns = ", ".join(labels.short(each) + ("*" if each.baseline else "") for each in results.configurations)
        out.heading(f"Described only: mean ± standard deviation of {columns}")
        print_metrics(out, results, rows, labels)


def _print_notes(out: Sheet, results: Results, report: Path | None) -> None:
    out.blank()
    if results.elsewhere is not None and len(results.configurations) > 1:
        out.say(
            f"{100 * results.level:g} % intervals for all verdicts together ({visible_line(results.correction)}); "
            f"smallest effect that matters: {effect_band(results.smallest_effect)}. * is the baseline.",
            style="dim",
        )
        out.say(f"Note: {results.elsewhere.inference}")
    for note in results.notes:
        out.say(f"Note: {visible_line(note)}")
    if report is not None:
        out.line(f"report {visible_line(str(report))}")
