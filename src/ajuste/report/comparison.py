"""The results of ``ajuste compare`` in the terminal: the answer first, then what it rests on."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ajuste.model.metric import Metric
from ajuste.model.results import Elsewhere, Measured, Results, Summary
from ajuste.model.trial import SETTINGS_FACTOR
from ajuste.model.verdict import Verdict
from ajuste.model.wording import percent, visible_line
from ajuste.report.diagnosed import matters
from ajuste.report.environment import clock_name, warnings_of
from ajuste.report.format import NOTHING, ShownNumber, count_of, shown_as, spread_percent
from ajuste.report.headline import print_headlines
from ajuste.report.labels import Labels, labels_of
from ajuste.report.lines import print_lines
from ajuste.report.listing import print_listing
from ajuste.report.listings import listings_of, machines_listing
from ajuste.report.metric_table import (
    deciding_metrics,
    is_screening,
    metric_rows,
    metric_shown,
    print_metrics,
    verdicts_of,
)
from ajuste.report.sheet import INDENT, Sheet, plain_table, sheet
from ajuste.report.terminal import print_surfaces, remarks
from ajuste.report.verdicts import LOOKS, effect_band, effect_style, print_factor_effects, verdict_text

_MOST_METRICS: Final = 16


def print_comparison(results: Results, console: Console, *, report: Path | None = None) -> None:
    """Print ``results``; ``report`` is the path of the HTML report. Nothing is cut off, at any width."""
    labels = labels_of(results)
    with sheet(console) as out:
        print_headlines(out, results, labels)
        out.say(_frame(results), style="dim")
        for metric in () if is_screening(results) else _headline(results):
            if len(results.configurations) == 1:
                print_one(out, results, results.configurations[0], metric)
            else:
                print_metric(out, results, metric, labels)
        print_factor_effects(out, results, labels)
        print_surfaces(out, results, labels)
        print_lines(out, results)
        if (machines := machines_listing(results, labels)) is not None:
            print_listing(out, machines)
        if not is_screening(results):
            _print_others(out, results, labels)
        _print_notes(out, results, report)


def _frame(results: Results) -> str:
    runs = count_of(results.tally.trials - results.tally.warm_up, "trial")
    blocks = "" if len(results.configurations) == 1 else f"{count_of(results.blocks, 'block')}, "
    return f"{blocks}{runs}, {clock_name(results)}, seed {results.seed}; {visible_line(results.stopped_because)}"


def _headline(results: Results) -> list[Metric]:
    deciding = deciding_metrics(results)
    if deciding:
        return [metric for metric in results.metrics if metric.name in deciding]
    known = {name for c in results.configurations for name, summary in c.metrics.items() if summary.low is not None}
    return [metric for metric in results.metrics if metric.name in known]


def print_one(out: Sheet, results: Results, configuration: Measured, metric: Metric) -> None:
    """Mean, interval, median and range of the only configuration."""
    summary = configuration.metrics.get(metric.name)
    out.blank()
    out.say(f"{visible_line(metric.title)}: {visible_line(configuration.name)}", style="bold")
    if summary is None:
        out.say("no clean trial", indent=INDENT)
        return
    shown = metric_shown(results, metric)
    table = plain_table(header=False)
    table.add_column(style="dim", overflow="fold")
    table.add_column(overflow="fold")
    spread = f" ± {shown.text(summary.sd)}" if summary.sd is not None else ""
    used = _cpu_times(configuration) if metric.name == "elapsed" else ""
    table.add_row("mean ± sd", Text(f"{shown.text(summary.mean)}{spread} {shown.unit}{used}".rstrip()))
    if summary.low is not None and summary.high is not None:
        interval = f"{shown.text(summary.low)} … {shown.text(summary.high)} {shown.unit}".rstrip()
        table.add_row(f"{100 * results.level:g} % interval", Text(f"{interval} (of the mean)"))
    if summary.median is not None:
        table.add_row("median", Text(shown.with_unit(summary.median)))
    extent = f"{_extent(summary, shown)} {shown.unit}".rstrip() if summary.minimum is not None else ""
    runs = count_of(summary.n, "run")
    table.add_row("min … max" if extent else "of", Text(f"{extent}, {runs}" if extent else runs))
    out.table(table)


def _cpu_times(configuration: Measured) -> str:
    """``  (user 0.9 ms, system 2.3 ms)``, as hyperfine says them."""
    times = [(name, configuration.metrics.get(f"{name}-time")) for name in ("user", "system")]
    said = [f"{name} {shown_as([time.mean], 's').with_unit(time.mean)}" for name, time in times if time is not None]
    return f"  ({', '.join(said)})" if said else ""


def print_metric(out: Sheet, results: Results, metric: Metric, labels: Labels) -> None:
    """A line for each configuration: mean, spread, median, range, and the effect with its verdict."""
    verdicts = {verdict.configuration: verdict for verdict in verdicts_of(results, metric.name)}
    shown = metric_shown(results, metric)
    unit = f" ({shown.unit})" if shown.unit else ""
    out.blank()
    out.say(f"{visible_line(metric.title)}{unit}", style="bold")
    rows = [_row(c, metric, shown, verdicts, results, labels) for c in results.configurations]
    heads = (visible_line(labels.heading), _centre(metric), "sd", "median", "min … max", "against *", "interval", "")
    table = plain_table()
    for place, head in enumerate(heads):
        is_text = place in (0, len(heads) - 1)
        table.add_column(Text(head), justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    if out.fits(table):
        out.table(table)
    else:
        _print_lines(out, heads, rows)


def _centre(metric: Metric) -> str:
    """What a summary's first figure is."""
    return "mean" if metric.quantile is None else f"{percent(metric.quantile)} quantile"


def _row(
    configuration: Measured,
    metric: Metric,
    shown: ShownNumber,
    verdicts: dict[str, Verdict],
    results: Results,
    labels: Labels,
) -> list[Text]:
    name = Text(labels.short(configuration) + ("*" if configuration.baseline else ""))
    summary = configuration.metrics.get(metric.name)
    figures = _figures(summary, shown) if summary is not None else [NOTHING] * 4
    verdict = verdicts.get(configuration.name)
    if verdict is None:
        return [name, *map(Text, figures), Text(""), Text(""), Text("")]
    style = effect_style(verdicts.values(), metric.unit)[verdict.scale]
    word = Text(verdict_text(verdict, results.smallest_effect), style=LOOKS[verdict.verdict].style)
    return [name, *map(Text, figures), Text(style.estimate(verdict)), Text(style.interval(verdict)), word]


def _figures(summary: Summary, shown: ShownNumber) -> list[str]:
    spread = spread_percent(summary.sd, summary.mean) if summary.sd is not None else NOTHING
    median = NOTHING if summary.median is None else shown.text(summary.median)
    return [shown.text(summary.mean), spread, median, _extent(summary, shown)]


def _extent(summary: Summary, shown: ShownNumber) -> str:
    if summary.minimum is None or summary.maximum is None:
        return NOTHING
    return f"{shown.text(summary.minimum)} … {shown.text(summary.maximum)}"


def _print_lines(out: Sheet, heads: tuple[str, ...], rows: list[list[Text]]) -> None:
    """On a narrow terminal: a paragraph for each configuration, with the verdict in its first line."""
    for name, mean, spread, median, extent, effect, interval, word in rows:
        out.say(Text.assemble(name, ("  ", ""), word), indent=INDENT)
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(style="dim")
        table.add_column(overflow="fold")
        table.add_row(heads[1], Text(f"{mean} {spread}"))
        table.add_row("median", Text(f"{median} ({extent})"))
        if effect.plain:
            table.add_row(heads[5], Text(f"{effect} ({interval})"))
        out.table(table, indent=2 * INDENT)


def _print_others(out: Sheet, results: Results, labels: Labels) -> None:
    """The metrics that are only described, in the style of ``perf stat``."""
    first = {metric.name for metric in _headline(results)}
    rows = tuple(
        row
        for row in metric_rows(results)
        if row.metric.name not in first and any(cell.measured and cell.value != "0" for cell in row.cells)
    )
    if rows and len(results.configurations) <= _MOST_METRICS:
        out.heading("Also measured: mean ± standard deviation (* baseline)" if labels.factors else "Also measured")
        print_metrics(out, results, rows, labels)


def _print_notes(out: Sheet, results: Results, report: Path | None) -> None:
    out.blank()
    for remark in remarks(results):
        out.say(remark, style="yellow")
    found = [f"{visible_line(e.name)} = {visible_line(e.initial_value)}" for e in results.explained if e.initial_value]
    if found and any(factor.name == SETTINGS_FACTOR for factor in results.factors):
        out.say(f"As it is: {', '.join(found)}")
    if len(results.configurations) > 1:
        out.say(
            f"{100 * results.level:g} % intervals for all verdicts together; smallest effect that matters: "
            f"{effect_band(results.smallest_effect)}. * is the baseline.",
            style="dim",
        )
    for line in matters(results):
        out.say(f"Noise: {line}")
    for note in warnings_of(results):
        out.say(f"Note: {visible_line(note)}")
    for command in results.reproduce:
        out.line(f"again  {visible_line(command)}")
    if report is not None:
        out.line(f"report {visible_line(str(report))}")


# Results that were measured elsewhere, in the terminal; and what reports say of how they were analysed.


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
        _print_analysis_notes(out, results, report)


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


def _print_analysis_notes(out: Sheet, results: Results, report: Path | None) -> None:
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
