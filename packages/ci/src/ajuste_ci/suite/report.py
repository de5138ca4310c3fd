"""Report of a suite, for people: a sentence, one table of all members, and where each member's report is."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ajuste.model.continuation import REPRODUCE
from ajuste.model.metric import Metric
from ajuste.model.results import Measured
from ajuste.model.verdict import Verdict, is_extreme
from ajuste.model.wording import amount, change, count_of, listed, percent, visible_line
from ajuste.report.document import (
    Block,
    Cell,
    Column,
    CommandBlock,
    Entry,
    Folded,
    Item,
    Listing,
    Paragraph,
    Picture,
    Report,
    Row,
    RowGroup,
    Section,
    Table,
)
from ajuste.report.format import NOTHING, Labels, result_labels
from ajuste.report.method import clock_name, clock_notes, note_sections, other_notes
from ajuste.report.plots.forest import forest_plots
from ajuste.report.verdicts import ORDER, verdict_text, word_badge
from ajuste_ci.suite.model import SuiteMean, SuiteMember, SuiteResult
from ajuste_share.mail import attached, compose_mail, tested_on
from ajuste_stats.terms import Direction, Scale, Word

_BETTER: Final[dict[Direction, str]] = {"lower": "lower is better", "higher": "higher is better"}
_NOTHING: Final = "Nothing was measured."
_VERBS: Final[dict[Word, tuple[str, str]]] = {
    "improves": ("improves", "improve"),
    "worsens": ("worsens", "worsen"),
    "differs": ("differs", "differ"),
    "equivalent": ("is equivalent", "are equivalent"),
    "undecided": ("is undecided", "are undecided"),
}
_ENDS: Final = {"decided": "all decided", "budget": "limit of blocks", "time": "limit of time"}
_STATES: Final = {"complete": "", "partial": " It was interrupted; run the same command again to resume."}


def suite_report(result: SuiteResult, pages: Path | None = None, page: Path | None = None) -> Report:
    """Return the answer and the members, with links from ``page`` to their reports in ``pages``."""
    labels = result_labels(result.results)
    sentences = _answers(result, labels)
    reports = (
        Listing(tuple(_item(member, pages, page) for member in result.members if member.run)),
        CommandBlock("again", REPRODUCE.of(result.results)),
        Paragraph(f"Digest {result.results.digest}", "dim", verbose=True),
    )
    sections = (
        Section("Members", tuple(_tables(result, labels)), "members", "Members", _about(result)),
        *note_sections(tuple(_notes(result)), clock_notes(result.results)),
        *_pictures(result, labels),
        Section("Reports of the members", reports, "runs", "Reports"),
    )
    return Report(
        title=result.results.title,
        headline=sentences[0],
        lead=(*map(Paragraph, sentences[1:]), Paragraph(_facts(result), "dim")),
        sections=sections,
        stem=result.results.study,
    )


def suite_mail(
    result: SuiteResult, studies: Mapping[str, str] = MappingProxyType({}), remarks: Sequence[str] = ()
) -> str:
    """Return the members as a mail, in the tables of ``compose_mail``, then each study file in ``studies``. ``remarks``
    follow the kernels.
    """
    sentences = [*_answers(result, result_labels(result.results)), *_notes(result), *clock_notes(result.results)]
    metrics = [metric.name for metric in result.results.metrics]
    introduction = [result.results.title, *sentences, *tested_on(result.results, remarks), _facts(result)]
    text = compose_mail(result.results, metrics, introduction, figures=False)
    return text + "".join(attached(study, name, f"{name}.toml") for name, study in studies.items())


def _answers(result: SuiteResult, labels: Labels) -> list[str]:
    first, *others = _sentences(result, labels)
    compared = result.results.clock == "virtual" and bool(result.results.verdicts)
    return [f"In emulation, {first}" if compared else first, *others]


def _sentences(result: SuiteResult, labels: Labels) -> Iterator[str]:
    measured = [member for member in result.members if member.metrics]
    others = [configuration for configuration in result.results.configurations if not configuration.baseline]
    for configuration in others:
        verdicts = [verdict for verdict in result.results.verdicts if verdict.configuration == configuration.name]
        counts = Counter(verdict.verdict for verdict in verdicts)
        outcomes = listed([f"{counts[w]} {_VERBS[w][0 if counts[w] == 1 else 1]}" for w in ORDER if counts[w]])
        means = [_mean_words(mean) for mean in result.means if mean.configuration == configuration.name]
        what = "members" if len(verdicts) == len(measured) else "metrics"
        added = f" The geometric mean changes by {listed(means)}." if means else ""
        yield f"{labels.setting(configuration)}: of {len(verdicts)} {what} {outcomes}.{added}"
    if not others:
        yield f"Nothing is compared: {count_of(len(measured), 'member')} measured." if measured else _NOTHING


def _mean_words(mean: SuiteMean) -> str:
    interval = _interval(mean.low, mean.high, like=mean.estimate)
    within = f" ({interval})" if interval else ""
    return f"{change(mean.estimate, 'ratio', '')}{within} where {_BETTER[mean.direction]}"


def _interval(
    low: float | None, high: float | None, scale: Scale = "ratio", unit: str = "", like: float | None = None
) -> str:
    if low is None or high is None:
        return ""
    return f"{change(low, scale, unit, like=like)} to {change(high, scale, unit, like=like)}"


def _facts(result: SuiteResult) -> str:
    results = result.results
    configurations = count_of(len(results.configurations), "configuration")
    members = count_of(sum(bool(member.metrics) for member in result.members), "member")
    trials = results.tally.words()
    clock = (clock_name(results),) if results.clock else ()
    level = f"{percent(results.level)} intervals for all {result.comparisons} comparisons together"
    held = (level,) if result.comparisons else ()
    return (
        " · ".join((configurations, members, trials, *clock, f"seed {results.seed}", *held))
        + "."
        + _STATES[result.state]
    )


def _about(result: SuiteResult) -> str:
    if not result.comparisons:
        return "Mean of each member."
    return (
        f"Each configuration against the baseline; {percent(result.results.level)} intervals for all "
        f"{result.comparisons} comparisons of all members together (Bonferroni). The smallest effect that matters is "
        f"{percent(result.results.smallest_effect)}. Geometric means are of ratios to the baseline, one of each "
        "member, where lower or where higher is better."
    )


# The tables.


def _tables(result: SuiteResult, labels: Labels) -> Iterator[Block]:
    baseline = next((configuration for configuration in result.results.configurations if configuration.baseline), None)
    if baseline is None:
        return
    others = [configuration for configuration in result.results.configurations if not configuration.baseline]
    heads = [
        column for configuration in others for column in (Column(labels.short(configuration)), Column("", figure=False))
    ]
    columns = (Column("Member", figure=False), Column(labels.short(baseline)), *heads)
    verdicts = {(verdict.metric, verdict.configuration): verdict for verdict in result.results.verdicts}
    rows = [_row(metric, baseline, others, verdicts) for metric in result.results.metrics]
    rows += [row for direction in _BETTER if (row := _mean_row(result, direction, others)) is not None]
    yield Table.of(columns, rows, "members-table")
    if others:
        yield Folded("Intervals", (_intervals(result, labels, others, verdicts),))


def _row(metric: Metric, baseline: Measured, others: list[Measured], verdicts: dict[tuple[str, str], Verdict]) -> Row:
    summary = baseline.metrics.get(metric.name)
    cells: list[Entry] = [
        metric.name,
        Cell(NOTHING, missing="no clean trial") if summary is None else amount(summary.mean, metric.unit),
    ]
    for configuration in others:
        verdict = verdicts.get((metric.name, configuration.name))
        if verdict is None or verdict.estimate is None:
            cells += [NOTHING, verdict.verdict if verdict else ""]
        else:
            cells += [verdict.effect, word_badge(verdict.verdict)]
    return Row(tuple(cells))


def _mean_row(result: SuiteResult, direction: Direction, others: list[Measured]) -> Row | None:
    by_configuration = {mean.configuration: mean for mean in result.means if mean.direction == direction}
    if not by_configuration:
        return None
    cells: list[Entry] = [f"mean ({direction})", ""]
    for configuration in others:
        mean = by_configuration.get(configuration.name)
        if mean is None:
            cells += [NOTHING, ""]
        else:
            cells += [change(mean.estimate, "ratio", ""), word_badge(mean.verdict)]
    return Row(tuple(cells))


def _intervals(
    result: SuiteResult, labels: Labels, others: list[Measured], verdicts: dict[tuple[str, str], Verdict]
) -> Table:
    columns = (
        Column("Member", figure=False),
        Column("Metric", figure=False, optional=True),
        Column("Change"),
        Column("Interval"),
        Column("", figure=False),
    )
    smallest = result.results.smallest_effect
    groups = []
    for configuration in others:
        rows = []
        for metric in result.results.metrics:
            verdict = verdicts.get((metric.name, configuration.name))
            if verdict is None:
                continue
            interval = _interval(verdict.low, verdict.high, verdict.scale, verdict.unit, verdict.estimate) or NOTHING
            badge = word_badge(verdict.verdict, verdict_text(verdict, smallest))
            title = metric.title.partition(": ")[2]
            effect = NOTHING if verdict.estimate is None else verdict.effect
            rows.append(Row((metric.name, title, effect, interval, badge), verdict.reason))
        rows += [
            Row(
                (
                    f"mean ({mean.direction})",
                    "geometric mean",
                    change(mean.estimate, "ratio", ""),
                    _interval(mean.low, mean.high, like=mean.estimate) or NOTHING,
                    word_badge(mean.verdict),
                )
            )
            for mean in result.means
            if mean.configuration == configuration.name
        ]
        groups.append(RowGroup(labels.setting(configuration), tuple(rows)))
    return Table(columns, tuple(groups), "intervals-table", "Intervals")


def _notes(result: SuiteResult) -> Iterator[str]:
    for member in result.members:
        if member.reason:
            yield f"Left out: {member.name}: {visible_line(member.reason).rstrip('.')}."
        elif not member.metrics:
            yield f"Not measured yet: {member.name}."
    far = {v.metric for v in result.results.verdicts if v.scale == "ratio" and is_extreme(v.estimate)}
    if far:
        names = listed([member.name for member in result.members if far & set(member.metrics)])
        yield f"No geometric mean includes a change of more than 10 times: {names}."
    counted = {name for mean in result.means for name in mean.members}
    apart = [
        member.name
        for member in result.members
        if member.metrics and member.name not in counted and not far & {*member.metrics}
    ]
    if counted and apart:
        yield (
            f"Not in a geometric mean: {listed(apart)}. A mean needs ratios of at least two members with the same "
            "better direction."
        )
    yield from map(visible_line, other_notes(result.results))


def _pictures(result: SuiteResult, labels: Labels) -> tuple[Section, ...]:
    plots = [
        plot
        for place, metric in enumerate(result.results.metrics)
        for plot in forest_plots(result.results, metric, labels, f"member-{place}")
    ]
    names = {f"member-{place}": metric.title for place, metric in enumerate(result.results.metrics)}
    pictures = tuple(Picture(plot, names[plot.name.rpartition("-")[0]]) for plot in plots)
    return (Section("Effects", pictures, "effects", "Effects"),) if pictures else ()


def _item(member: SuiteMember, pages: Path | None, page: Path | None) -> Item:
    link = ""
    if pages is not None and page is not None:
        link = os.path.relpath(pages / f"{member.run}.html", page.parent)
    blocks, end = count_of(member.blocks, "block"), _ENDS.get(member.stopped, member.stopped)
    outcome = f"{blocks}, {end}" if member.metrics else "failed"
    return Item(member.name, f"ajuste report {member.run}", outcome, link=link)
