"""The results in the terminal: the answer, a table in the style of ``perf stat``, the verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste.model.wording import visible, visible_line
from ajuste.report.diagnosed import matters
from ajuste.report.environment import clock_name, warnings_of
from ajuste.report.format import count_of
from ajuste.report.headline import print_headlines
from ajuste.report.labels import Labels, fixed_levels, labels_of
from ajuste.report.lines import print_lines
from ajuste.report.listing import print_listing
from ajuste.report.listings import listings_of
from ajuste.report.metric_table import (
    deciding_metrics,
    described_with_effects,
    factor_columns,
    factor_key,
    is_screening,
    metric_rows,
    not_supported,
    print_metrics,
    verdicts_of,
)
from ajuste.report.proofs import proofs_listing
from ajuste.report.scheduling import say_explanation
from ajuste.report.sections import HISTORY_TITLE, history_sentences, search_sentences, surface_sentences
from ajuste.report.sheet import INDENT, Sheet, sheet
from ajuste.report.trials import excerpt_of
from ajuste.report.verdicts import LOOKS, effect_band, effect_style, print_factor_effects, verdict_text

_MOST_REASONS: Final = 24  # more verdicts than this are listed without their reasons
_MOST_DESCRIBED: Final = 32


def print_results(results: Results, console: Console, *, report: Path | None = None) -> None:
    """Print ``results``; ``report`` is the path of the HTML report, if one was written.

    Plain text where ``console`` is no terminal; nothing is cut off, at any width. Of very many configurations some.
    """
    labels = labels_of(results)
    excerpt = excerpt_of(results)
    shown = excerpt.results
    with sheet(console) as out:
        print_headlines(out, results, labels)
        out.blank()
        _print_title(out, results, labels)
        if excerpt.of_configurations and not is_screening(results):
            out.say(excerpt.of_configurations, style="yellow")
        _print_metrics(out, shown, labels)
        _print_verdicts(out, shown, labels)
        print_factor_effects(out, results, labels)
        print_surfaces(out, results, labels)
        print_lines(out, results)
        for listing in listings_of(shown, labels):
            print_listing(out, listing)
        if (proofs := proofs_listing(results)) is not None:
            print_listing(out, proofs)
        _print_described(out, shown, labels)
        _print_diagnostics(out, results)
        _print_answer(out, results)
        _print_explanations(out, results)
        _print_footer(out, results, report)


def _print_title(out: Sheet, results: Results, labels: Labels) -> None:
    out.say(visible_line(results.title), style="bold")
    out.say(
        f"{count_of(len(results.configurations), 'configuration')}, {count_of(results.blocks, 'block')}, "
        f"{count_of(results.tally.trials, 'trial')}, {clock_name(results)}, seed {results.seed}"
    )
    for line in (*factor_key(labels), *(f"fixed: {line}" for line in fixed_levels(labels))):
        out.say(line, indent=INDENT)


def _print_metrics(out: Sheet, results: Results, labels: Labels) -> None:
    # What no configuration has is told once below the table, and not in a row of its own.
    if is_screening(results):
        return  # The configurations of a screening design tell nothing one by one; the report has them.
    rows = tuple(row for row in metric_rows(results) if row.deciding or any(cell.measured for cell in row.cells))
    if not rows or not results.configurations:
        return
    out.heading("Mean ± standard deviation (* baseline)")
    print_metrics(out, results, rows, labels)
    said = [*(f"Not supported: {visible_line(line)}" for line in not_supported(results)), *remarks(results)]
    if said:
        out.blank()
    for remark in said:
        out.say(remark, style="yellow", indent=INDENT)


def remarks(results: Results) -> list[str]:
    """What a reader of the figures must know: values that became others, and trials that are in no figure."""
    return [*_changed_levels(results), *_left_out(results)]


def _changed_levels(results: Results) -> list[str]:
    """Levels that the kernel did not take as they were written."""
    return [
        f"{visible_line(factor)}: {visible_line(level)} was written, {visible_line(read)} was read back."
        for configuration in results.configurations
        for factor, level in configuration.levels.items()
        if (read := configuration.read_back.get(factor, level)) != level
    ]


def _left_out(results: Results) -> list[str]:
    """How many trials are in no figure, and why."""
    tally = results.tally
    counts = {"warm-up": tally.warm_up, "flagged": tally.flagged, "failed": tally.failed}
    said = [f"{count_of(count, f'{kind} trial')}" for kind, count in counts.items() if count]
    more = [f"and {count_of(tally.other_reasons, 'other reason')}"] if tally.other_reasons else []
    reasons = [*dict.fromkeys(map(visible_line, tally.reasons)), *more]
    return ([f"Left out of every figure: {', '.join(said)}."] if said else []) + [f"  {reason}" for reason in reasons]


def _print_verdicts(out: Sheet, results: Results, labels: Labels) -> None:
    deciding = deciding_metrics(results)
    if is_screening(results):
        return
    if not deciding:
        if len(results.configurations) > 1:
            out.heading("No verdict yet")
        return
    baseline = next((configuration for configuration in results.configurations if configuration.baseline), None)
    levels = zip(factor_columns(labels), labels.of(baseline) if baseline else (), strict=False)
    out.heading(f"Verdicts against the baseline {', '.join(f'{name} = {level}' for name, level in levels)}".rstrip())
    out.say(
        f"{100 * results.level:g} % intervals for all together; smallest effect that matters: "
        f"{effect_band(results.smallest_effect)}"
    )
    with_reasons = sum(verdict.deciding for verdict in results.verdicts) <= _MOST_REASONS
    for metric in results.metrics:
        if metric.name in deciding:
            _print_effects(out, results, verdicts_of(results, metric.name), metric, labels, with_reasons)
    if not with_reasons:
        out.say("The reasons are in the report.", indent=INDENT)


def print_surfaces(out: Sheet, results: Results, labels: Labels) -> None:
    """What is known of versions of the kernel and of the shape over numeric factors; pictures are in the report."""
    names = dict(zip((factor.name for factor in labels.factors), factor_columns(labels), strict=True))
    if results.tuning is not None:
        out.heading("The search")
        for sentence in search_sentences(results.tuning):
            out.say(sentence, indent=INDENT)
    histories = ((HISTORY_TITLE, said),) if (said := history_sentences(results, labels)) else ()
    for title, said in (*histories, *surface_sentences(results, labels, names)):
        out.heading(title)
        for sentence in said:
            out.say(sentence, indent=INDENT)


def _print_described(out: Sheet, results: Results, labels: Labels) -> None:
    metrics = described_with_effects(results)
    if not metrics:
        return
    out.heading("Other metrics; these did not decide when to stop")
    count = sum(len(verdicts_of(results, metric.name)) for metric in metrics)
    if count > _MOST_DESCRIBED:
        out.say(f"{count_of(count, 'effect')}: see the report.", indent=INDENT)
        return
    for metric in metrics:
        _print_effects(out, results, verdicts_of(results, metric.name), metric, labels, with_reasons=False)


def _print_effects(
    out: Sheet, results: Results, verdicts: tuple[Verdict, ...], metric: Metric, labels: Labels, with_reasons: bool
) -> None:
    """Configuration, estimate, interval and verdict, aligned; the reason of each below it."""
    styles = effect_style(verdicts, metric.unit)
    configurations = {configuration.name: configuration for configuration in results.configurations}
    out.blank()
    out.say(visible_line(metric.name), style="bold", indent=INDENT)
    lines = []
    for verdict in verdicts:
        style = styles[verdict.scale]
        configuration = configurations.get(verdict.configuration)
        name = labels.short(configuration) if configuration else visible_line(verdict.configuration)
        lines.append((name, style.estimate(verdict), style.interval(verdict)))
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    for line, verdict in zip(lines, verdicts, strict=True):
        table = Table.grid(padding=(0, 2, 0, 0))
        for width in widths:
            table.add_column(justify="right", min_width=min(width, out.width // 4), overflow="fold")
        table.add_column(overflow="fold")
        word = Text(verdict_text(verdict, results.smallest_effect), style=LOOKS[verdict.verdict].style)
        table.add_row(*(Text(cell) for cell in line), word)
        out.table(table, indent=2 * INDENT)
        if with_reasons and verdict.reason:
            out.say(visible_line(verdict.reason), style="dim", indent=4 * INDENT)


def _print_diagnostics(out: Sheet, results: Results) -> None:
    lines = matters(results)
    if lines:
        out.heading("Noise diagnostics")
    for line in lines:
        out.say(line, indent=INDENT)


def _print_answer(out: Sheet, results: Results) -> None:
    out.heading("Answer")
    out.say(visible(results.question), indent=INDENT, style="italic")
    out.say(visible(results.answer), indent=INDENT)
    out.say(f"Stopped: {visible_line(results.stopped_because).rstrip('.')}.", indent=INDENT)


def _print_explanations(out: Sheet, results: Results) -> None:
    for explanation in results.explanations:
        out.heading("Why")
        say_explanation(out, explanation, indent=INDENT)


def _print_footer(out: Sheet, results: Results, report: Path | None) -> None:
    out.blank()
    for note in warnings_of(results):
        out.say(f"Note: {visible_line(note)}")
    out.say(f"digest {visible_line(results.digest)}")
    if report is not None:
        out.line(f"report {visible_line(str(report))}")
