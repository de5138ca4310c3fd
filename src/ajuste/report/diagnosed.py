"""What the diagnostics found in the noise, and what it would do to a naive test."""

from __future__ import annotations

from typing import Final

from ajuste.model.diagnostic import Diagnostic, Diagnostics
from ajuste.model.results import Results
from ajuste.model.wording import visible_line
from ajuste.report.document import Block, Column, Notes, Paragraph, Picture, Row, RowGroup, Section, Subsection, Table
from ajuste.report.plots.trials import course_plot

_WORTH_SAYING: Final = 0.06
"""An error rate that is not much more than the 5 % that a test promises is no news in a sentence."""

_COLUMNS: Final = (
    Column("What", figure=False),
    Column("Found", figure=False),
    Column("t test wrong in"),
    Column("Verdict", figure=False),
)


def noise_sections(results: Results) -> tuple[Section, ...]:
    """What matters, then all that was looked for, metric by metric; nothing where nothing was looked for."""
    diagnostics = results.diagnostics
    if diagnostics is None:
        return ()
    titles = {metric.name: metric.title for metric in results.metrics}
    names = dict.fromkeys(one.metric for one in diagnostics.found)
    parts = tuple(
        Subsection(titles.get(name, name), tuple(_metric(results, diagnostics, name, f"course-{place}")))
        for place, name in enumerate(names)
    )
    about = (
        "Problems found in the noise, and their effect on a comparison of two batches. At most "
        f"{100 * diagnostics.level:g} % of clean studies raise a false alarm."
    )
    found = matters(results)
    news = (Section("Noise diagnostics", (Notes(tuple(found), "Noise"),), "noise"),) if found else ()
    return (*news, Section("Diagnostics", parts, "diagnostics", "Noise", about, "detail"))


def matters(results: Results) -> list[str]:
    """A line for each diagnostic that matters."""
    titles = {metric.name: metric.title for metric in results.metrics}
    own = results.diagnostics.found if results.diagnostics is not None else ()
    return [
        visible_line(f"{_title(one)}, {titles.get(one.metric, one.metric)}: {one.says} {_error(one)}{one.why}")
        for one in own
        if one.matters
    ]


def _metric(results: Results, diagnostics: Diagnostics, name: str, plot: str) -> list[Block]:
    own = [one for one in diagnostics.found if one.metric == name]
    present = sorted((one for one in own if one.present), key=lambda one: not one.matters)
    absent = ", ".join(one.kind for one in own if not one.present)
    blocks: list[Block] = []
    blocks += [Paragraph(one.says) for one in diagnostics.naive if one.metric == name][:1]
    if present:
        blocks.append(Table(_COLUMNS, (RowGroup("", tuple(map(_row, present))),)))
    metric = next((one for one in results.metrics if one.name == name), None)
    if metric is not None and any(one.matters for one in present):
        course = course_plot(results, metric, plot)
        blocks += [Picture(course, metric.title)] if course is not None else []
    return [*blocks, *([Paragraph(f"Checked and not found: {absent}.", "dim")] if absent else [])]


def _row(one: Diagnostic) -> Row:
    verdict = f"{'Affected' if one.verdict_affected else 'Not affected'}. {one.why}"
    return Row((_title(one), one.says, _percent(one), verdict), marked=one.matters)


def _title(one: Diagnostic) -> str:
    return f"{one.kind[:1].upper()}{one.kind[1:]}"


def _percent(one: Diagnostic) -> str:
    if one.naive_error is None:
        return "–"
    share = 100 * one.naive_error
    return f"{share:.0f} %" if share >= 10 else f"{share:.1f} %"


def _error(one: Diagnostic) -> str:
    if one.naive_error is None or one.naive_error < _WORTH_SAYING:
        return ""
    return f"With this alone a t test on two batches is wrong in {_percent(one)} of cases instead of 5 %. "
