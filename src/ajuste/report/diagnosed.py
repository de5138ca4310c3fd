"""What the diagnostics found, in words for terminal and page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ajuste.model.diagnostic import Diagnostic
from ajuste.model.results import Results
from ajuste.model.wording import visible_line

_WORTH_SAYING: Final = 0.06
"""An error rate that is not much more than the 5 % that a test promises is no news in a sentence."""


@dataclass(frozen=True)
class DiagnosedRow:
    """A diagnostic that found something: ``error`` is what it does to a naive test, ``marked`` if it matters."""

    title: str
    says: str
    error: str
    why: str
    marked: bool
    affected: bool


@dataclass(frozen=True)
class DiagnosedMetric:
    """One metric: ``naive`` is what batches would have said, ``absent`` names what was looked for and not found."""

    name: str
    title: str
    naive: str
    rows: tuple[DiagnosedRow, ...]
    absent: str

    @property
    def matters(self) -> bool:
        return any(row.marked for row in self.rows)


def diagnosed(results: Results) -> tuple[DiagnosedMetric, ...]:
    """All metrics on which anything was looked for."""
    if results.diagnostics is None:
        return ()
    titles = {metric.name: metric.title for metric in results.metrics}
    names = dict.fromkeys(one.metric for one in results.diagnostics.found)
    return tuple(_metric(results, name, titles.get(name, name)) for name in names)


def matters(results: Results) -> list[str]:
    """A line for each diagnostic that matters."""
    titles = {metric.name: metric.title for metric in results.metrics}
    own = results.diagnostics.found if results.diagnostics is not None else ()
    return [
        visible_line(f"{_title(one)}, {titles.get(one.metric, one.metric)}: {one.says} {_error(one)}{one.why}")
        for one in own
        if one.matters
    ]


def _metric(results: Results, name: str, title: str) -> DiagnosedMetric:
    assert results.diagnostics is not None
    own = [one for one in results.diagnostics.found if one.metric == name]
    naive = next((one.says for one in results.diagnostics.naive if one.metric == name), "")
    present = sorted((one for one in own if one.present), key=lambda one: not one.matters)
    return DiagnosedMetric(
        name=name,
        title=title,
        naive=naive,
        rows=tuple(
            DiagnosedRow(_title(one), one.says, _percent(one), one.why, one.matters, one.verdict_affected)
            for one in present
        ),
        absent=", ".join(one.kind for one in own if not one.present),
    )


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
