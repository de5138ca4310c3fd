"""What a gate found, for people: a sentence, a table of all figures, and what made a regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ajuste.model.gate import GateFigure, GateResult, GateWord, ProjectCommit
from ajuste.model.verdict import Word
from ajuste.model.wording import amount, change, listed, number, percent, shortened, visible_line
from ajuste.report.document import (
    Badge,
    Block,
    Column,
    CommandBlock,
    Item,
    Listing,
    Report,
    Row,
    RowGroup,
    Section,
    Table,
)
from ajuste.report.format import count_of

LOOKS: Final[dict[GateWord, tuple[Word, str]]] = {
    "pass": ("equivalent", "✓"),
    "regression": ("worsens", "✗"),
    "undecided": ("undecided", "?"),
    "failed": ("worsens", "!"),
}
"""The colour of each verdict, by the word of a comparison that has it, and its sign."""

_MOST_NAMED: Final = 3
_COLUMNS: Final = (
    Column("Benchmark", figure=False),
    Column("Metric", figure=False),
    Column("Base"),
    Column("Head"),
    Column("Change"),
    Column("Interval", optional=True),
    Column("Limit"),
    Column("Verdict", figure=False),
)


def gate_report(result: GateResult) -> Report:
    """The answer first."""
    rows = tuple(map(_row, result.benchmarks))
    table = Table(_COLUMNS, (RowGroup("", rows),), name="benchmarks")
    about = f"{result.base.label} → {result.head.label}"
    sections = (Section("", (table, *_told(result))),)
    return Report(title="Gate", headline=headline(result), question=about, sections=sections, stem="gate")


def headline(result: GateResult) -> str:
    """The answer in one sentence."""
    if failed := result.having("failed"):
        return f"{count_of(len({one.name for one in failed}), 'benchmark')} could not be measured: {_names(failed)}."
    worse = result.having("regression")
    if len(worse) == 1:
        (only,) = worse
        return f"Regression in {only.name}: {only.metric} {change_of(only)}, limit {percent(only.limit)}."
    if worse:
        said = [f"{one.name} {one.metric} {change_of(one)}" for one in worse[:_MOST_NAMED]]
        more = f" and {len(worse) - _MOST_NAMED} more" if len(worse) > _MOST_NAMED else ""
        return f"{count_of(len(worse), 'regression')}: {', '.join(said) if more else listed(said)}{more}."
    if unknown := result.having("undecided"):
        return f"Undecided: whether {_names(unknown)} got worse by more than the limit."
    return f"No regression: {count_of(len(result.benchmarks), 'figure')} within the limit."


def change_of(figure: GateFigure) -> str:
    """How much the head differs from the base, as people say it."""
    return "" if figure.estimate is None else change(figure.estimate, figure.scale, figure.unit)


def interval_of(figure: GateFigure) -> str:
    """From where to where the change is."""
    if figure.low is None and figure.high is None:
        return ""
    low, high = (change(bound, figure.scale, figure.unit) for bound in (figure.low, figure.high))
    return low if low == high else f"{low} to {high}"


def cause_of(figure: GateFigure) -> str:
    """The functions and system calls that make up a regression; empty if they are not known."""
    if not figure.functions:
        return ""
    first, *others = figure.functions
    share = f" ({percent(round(first.more / first.of, 2))} of the growth)" if 0 < first.more <= first.of else ""
    said = f"{first.name} carries out {number(first.more)} more instructions{share}"
    also = listed([f"{one.name} (+{number(one.more)})" for one in others])
    calls = [f"{one.name} is called {number(one.head)} times instead of {number(one.base)}" for one in figure.calls]
    return f"{said}{f'; then {also}' if also else ''}.{f' {listed(calls)}.' if calls else ''}"


def sentence_of(figure: GateFigure) -> str:
    """What is to be said of one figure beside its name."""
    if figure.verdict == "failed":
        return figure.reason.partition("\n")[0]
    interval = interval_of(figure)
    said = f"{figure.metric} {change_of(figure)}{f' ({interval})' if interval else ''}, limit {percent(figure.limit)}"
    parts = (said, cause_of(figure), culprits_of(figure), figure.reason)
    return " ".join(f"{part.rstrip('.')}." for part in parts if part)


def culprits_of(figure: GateFigure) -> str:
    """The commit that a regression came with; empty if that was not asked."""
    if not figure.culprits:
        return ""
    first, *others = (commit_words(commit) for commit in figure.culprits)
    return f"It came with {first}" if not others else f"It came with one of {listed([first, *others])}"


def commit_words(commit: ProjectCommit) -> str:
    """A commit as people know it, on one line."""
    if not commit.commit:
        return "the changes that are not committed"
    return " ".join(filter(None, (commit.short, shortened(visible_line(commit.subject)))))


def _names(figures: Sequence[GateFigure]) -> str:
    names = list(dict.fromkeys(one.name for one in figures))
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return (", ".join(names[:_MOST_NAMED]) if more else listed(names)) + more


def _row(figure: GateFigure) -> Row:
    word, sign = LOOKS[figure.verdict]
    means = ("" if mean is None else amount(mean, figure.unit) for mean in (figure.base, figure.head))
    verdict = Badge(word, sign, figure.verdict)
    change_and_limit = (change_of(figure), interval_of(figure), percent(figure.limit))
    return Row((figure.name, figure.metric, *means, *change_and_limit, verdict))


def _told(result: GateResult) -> list[Block]:
    """What is to be said of all that did not pass, and where there is more of it."""
    open_ones = [one for one in result.benchmarks if one.verdict != "pass"]
    if not open_ones:
        return []
    items = tuple(Item(one.name, sentence_of(one)) for one in open_ones)
    runs = tuple(dict.fromkeys(f"ajuste report {one.run}" for one in open_ones if one.run))
    return [Listing(items), *([CommandBlock("more", runs)] if runs else [])]
