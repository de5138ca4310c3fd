"""What the HTML report shows, as text ready to be laid out: the template decides nothing but the layout."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ajuste.model.kernel import Proof
from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Point, Results
from ajuste.model.verdict import Finding
from ajuste.report.comparison import facts_of, method_of
from ajuste.report.diagnosed import DiagnosedMetric, diagnosed
from ajuste.report.environment import Branch, clock_name, environment_of, warnings_of
from ajuste.report.format import count_of
from ajuste.report.headline import Headline, headlines
from ajuste.report.labels import Labels, fixed_levels, labels_of
from ajuste.report.lines import HEADS, LineGroup, line_groups, role_counts
from ajuste.report.listing import Listing
from ajuste.report.listings import listings_of
from ajuste.report.metric_table import (
    Row,
    deciding_metrics,
    described_with_effects,
    is_screening,
    metric_rows,
    not_supported,
    verdicts_of,
)
from ajuste.report.plots.curve import curve_plot
from ajuste.report.plots.factor_effects import interaction_plots, pareto_plots
from ajuste.report.plots.forest import forest_plots, lines_plot
from ajuste.report.plots.heatmap import heatmap_plot
from ajuste.report.plots.plot import Plot
from ajuste.report.plots.predicted import predicted_plot
from ajuste.report.plots.small import small_plot
from ajuste.report.plots.timelines import timelines_plot
from ajuste.report.plots.trials import course_plot, kind_of, trials_plot
from ajuste.report.proofs import proofs_of
from ajuste.report.scheduling import SchedulingSection, scheduling_sections
from ajuste.report.sections import SurfaceSection, history_sections, search_sections, surface_sections
from ajuste.report.trials import Excerpt, excerpt_of
from ajuste.report.verdicts import (
    LOOKS,
    ORDER,
    Badge,
    VerdictGroup,
    badges_of,
    effect_band,
    effect_groups,
    effects_of,
    named,
    verdict_groups,
)

_HIGHEST_LEAD = 420  # CSS pixels
_MOST_LISTED = 1_000  # trials in the table of single trials
_MOST_LEFT_OUT = 200  # trials that were flagged or failed, a line each


@dataclass(frozen=True)
class MetricSection:
    """A deciding metric with its badges and plots."""

    title: str
    what: str
    badges: tuple[Badge, ...]
    plots: tuple[Plot, ...]


@dataclass(frozen=True)
class Column:
    """A configuration in a table's head: its levels as said, as written, and what was read back if it differs."""

    levels: tuple[str, ...]
    written: tuple[str, ...]
    read_back: str
    baseline: bool


@dataclass(frozen=True)
class ReportSetting:
    """A factor explained; ``facts`` are its unit, default, place and the value found."""

    name: str
    title: str
    what: str
    facts: tuple[tuple[str, str], ...]
    levels: tuple[tuple[str, str], ...]
    note: str


@dataclass(frozen=True)
class Page:
    results: Results
    labels: Labels
    headlines: tuple[Headline, ...]
    apply: str
    lead: Plot | None
    excerpt: str
    warnings: tuple[str, ...]
    facts: tuple[str, ...]
    surfaces: tuple[SurfaceSection, ...]
    sections: tuple[MetricSection, ...]
    verdicts: tuple[VerdictGroup, ...]
    effects: tuple[VerdictGroup, ...]
    lines: tuple[LineGroup, ...]
    line_heads: tuple[str, ...]
    described_verdicts: tuple[VerdictGroup, ...]
    listings: tuple[Listing, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    not_supported: tuple[str, ...]
    diagnosed: tuple[DiagnosedMetric, ...]
    courses: dict[str, Plot]
    small: tuple[Plot, ...]
    timelines: Plot | None
    scheduling: tuple[SchedulingSection, ...]
    settings: tuple[ReportSetting, ...]
    proofs: tuple[tuple[str, Proof], ...]
    method: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...]
    environment: tuple[Branch, ...]
    meanings: tuple[tuple[Badge, str], ...]
    trials: tuple[Point, ...]

    @property
    def contents(self) -> tuple[tuple[str, str], ...]:
        """Where the parts of the page begin, and what they are called."""
        parts = (
            ("verdicts-title", "Verdicts", self.verdicts),
            ("effects-title", "Factors", self.effects),
            ("surface-1-title", "Surface", self.surfaces),
            ("section-1", "Trials", self.sections),
            ("timelines-title", "Timelines", self.timelines),
            ("scheduling-title", "Why", self.scheduling),
            ("diagnostics-title", "Noise", self.diagnosed),
            ("metrics-title", "All metrics", self.rows),
            ("settings-title", "Settings", self.settings),
            ("method-title", "Method", self.method),
            ("environment-title", "Environment", self.environment),
            ("data-title", "Data", True),
        )
        return tuple((name, title) for name, title, there in parts if there)

    @property
    def plots(self) -> tuple[Plot, ...]:
        timelines = (self.timelines,) if self.timelines else ()
        return (
            *((self.lead,) if self.lead else ()),
            *(plot for surface in self.surfaces for plot in surface.plots),
            *(plot for section in self.sections for plot in section.plots),
            *timelines,
            *(plot for section in self.scheduling for plot in section.plots),
            *self.courses.values(),
            *self.small,
        )


def page_of(results: Results) -> Page:
    """Everything that the report of ``results`` shows."""
    labels = labels_of(results)
    deciding = deciding_metrics(results)
    decided = [metric for metric in results.metrics if metric.name in deciding]
    others = [metric for metric in results.metrics if metric.name not in deciding]
    excerpt = excerpt_of(results)
    shown = excerpt.results
    described = list(described_with_effects(shown))
    found_first = headlines(results, labels)
    sections = [_section(results, excerpt, metric, labels, f"metric-{place}") for place, metric in enumerate(decided)]
    lead, sections = _lead(sections)
    small = [small_plot(shown, metric, labels, f"small-{place}") for place, metric in enumerate(others)]
    return Page(
        results=results,
        labels=labels,
        headlines=found_first,
        apply=_apply(results, found_first),
        lead=lead,
        excerpt=excerpt.remark,
        warnings=warnings_of(results),
        facts=_facts(results),
        surfaces=(
            *search_sections(results, labels),
            *history_sections(results, labels),
            *surface_sections(results, labels),
        ),
        sections=tuple(sections),
        verdicts=() if is_screening(results) else verdict_groups(shown, decided, labels),
        effects=effect_groups(results, decided, labels),
        lines=line_groups(results, decided),
        line_heads=HEADS,
        described_verdicts=verdict_groups(
            shown, [*decided, *described] if is_screening(results) else described, labels
        ),
        listings=listings_of(shown, labels),
        columns=tuple(_column(configuration, labels) for configuration in shown.configurations),
        rows=metric_rows(shown),
        not_supported=not_supported(results),
        diagnosed=(found := diagnosed(results)),
        courses=_courses(results, found),
        small=tuple(plot for plot in small if plot is not None),
        timelines=timelines_plot(results, labels, "timelines"),
        scheduling=scheduling_sections(results, labels),
        settings=_settings(results, labels),
        proofs=tuple(proofs_of(results).items()),
        method=method_of(results, results.elsewhere) if results.elsewhere else _method(results, labels),
        left_out=_left_out(results, labels),
        environment=environment_of(results.environment),
        meanings=tuple(
            (Badge(word, LOOKS[word].sign, word), LOOKS[word].meaning)
            for word in ORDER
            if any(found.verdict == word and found.metric in deciding for found in _deciding_findings(results))
        ),
        trials=shown.trials[:_MOST_LISTED],
    )


def _lead(sections: list[MetricSection]) -> tuple[Plot | None, list[MetricSection]]:
    """The plot of effects on the first metric, which stands beside the answer if it is not too high for that, and the
    sections without it.
    """
    for plot in sections[0].plots if sections else ():
        if plot.height <= _HIGHEST_LEAD and any(kind in plot.name for kind in ("-forest", "-pareto", "-lines")):
            rest = replace(sections[0], plots=tuple(one for one in sections[0].plots if one is not plot))
            return plot, [rest, *sections[1:]]
    return None, sections


def _apply(results: Results, found: Sequence[Headline]) -> str:
    """The command that puts the best configuration to use; empty where none is better."""
    winner = next((one.winner for one in found[:1]), "")
    can_be_set = {explained.name for explained in results.explained if explained.where}
    if not winner or not results.run or not all(factor.name in can_be_set for factor in results.factors):
        return ""
    return shlex.join(["ajuste", "export", results.run, winner])


def _facts(results: Results) -> tuple[str, ...]:
    if results.elsewhere:
        return facts_of(results)
    return (
        count_of(len(results.configurations), "configuration"),
        count_of(results.blocks, "block"),
        count_of(results.tally.trials, "trial"),
        clock_name(results),
        f"stopped: {results.stopped_because}",
    )


def _section(results: Results, excerpt: Excerpt, metric: Metric, labels: Labels, name: str) -> MetricSection:
    shown = excerpt.results
    # A line needs all of its levels: of a grid with too many configurations the heat map has them.
    drawn = any(surface.metric == metric.name for surface in results.surfaces)
    drawn = drawn or results.tuning is not None  # What a search has tried makes no lines, and its map is drawn.
    lines = () if drawn or (excerpt.of_configurations and len(labels.factors) > 1) else labels.factors
    plots = (
        lines_plot(results, metric, f"{name}-lines"),
        predicted_plot(shown, metric, labels, f"{name}-predicted"),
        *(() if is_screening(results) else _plots_of_configurations(shown, metric, labels, name)),
        *pareto_plots(results, metric, labels, f"{name}-pareto"),
        *interaction_plots(results, metric, labels, f"{name}-interaction"),
        *(curve_plot(results, metric, factor, labels, f"{name}-curve-{place}") for place, factor in enumerate(lines)),
        None if drawn else heatmap_plot(results, metric, labels, f"{name}-heatmap"),
    )
    return MetricSection(
        title=metric.title,
        what=metric.what,
        badges=_badges(results, metric.name),
        plots=tuple(plot for plot in plots if plot is not None),
    )


def _badges(results: Results, metric: str) -> tuple[Badge, ...]:
    if results.lines:
        return role_counts(results, metric)
    return badges_of((effects_of if is_screening(results) else verdicts_of)(results, metric))


def _plots_of_configurations(results: Results, metric: Metric, labels: Labels, name: str) -> tuple[Plot | None, ...]:
    """Not of a screening design: none of its configurations tells anything by itself."""
    drawn = not results.elsewhere or any(metric.name in trial.metrics for trial in results.trials)
    trials = trials_plot(results, metric, labels, f"{name}-trials") if drawn else None
    return (trials, *forest_plots(results, metric, labels, f"{name}-forest"))


def _courses(results: Results, found: tuple[DiagnosedMetric, ...]) -> dict[str, Plot]:
    """Of the metrics on which something matters."""
    names = [one.name for one in found if one.matters]
    plots = {
        metric.name: course_plot(results, metric, f"course-{place}")
        for place, metric in enumerate(results.metrics)
        if metric.name in names
    }
    return {name: plot for name, plot in plots.items() if plot is not None}


def _deciding_findings(results: Results) -> Sequence[Finding]:
    return (*results.lines, *results.effects) if is_screening(results) else (*results.verdicts, *results.effects)


def _column(configuration: Measured, labels: Labels) -> Column:
    levels = labels.of(configuration) or (configuration.name,)
    varied = {factor.name for factor in labels.factors}
    written = tuple(level for name, level in configuration.levels.items() if name in varied)
    changed = [
        f"{factor} = {read}"
        for factor, read in configuration.read_back.items()
        if configuration.levels.get(factor, read) != read
    ]
    return Column(
        levels=levels,
        written=written if written != levels else (),
        read_back=", ".join(changed),
        baseline=configuration.baseline,
    )


def _settings(results: Results, labels: Labels) -> tuple[ReportSetting, ...]:
    levels = {f.name: tuple((labels.level(f.name, x), x) for x in f.levels) for f in results.factors}
    return tuple(
        ReportSetting(
            name=explained.name,
            title=explained.title,
            what=explained.what,
            facts=tuple(
                (name, text)
                for name, text in (
                    ("Unit", explained.unit),
                    ("Default", explained.default),
                    ("Where", explained.where),
                    ("Value found in this kernel", explained.initial_value or ""),
                )
                if text
            ),
            levels=levels.get(explained.name, ()),
            note=explained.note,
        )
        for explained in results.explained
    )


def _method(results: Results, labels: Labels) -> tuple[tuple[str, str], ...]:
    deciding = ", ".join(row.metric.title for row in metric_rows(results) if row.deciding) or "none yet"
    return (
        *((("Design", results.design),) if results.design else ()),
        *((("Fixed", ", ".join(fixed)),) if (fixed := fixed_levels(labels)) else ()),
        ("Blocks", _blocks(results)),
        ("Seed", str(results.seed)),
        ("Clock", clock_name(results).capitalize()),
        ("Deciding metrics", deciding),
        ("Confidence", f"{100 * results.level:g} % for all verdicts together"),
        ("Correction", results.correction),
        *((("Correction of effects", results.effects_correction),) if _of_its_own(results) else ()),
        ("Smallest effect that matters", effect_band(results.smallest_effect)),
        ("Stopped because", results.stopped_because),
    )


def _of_its_own(results: Results) -> bool:
    """Whether the effects of factors are a family besides that of the verdicts."""
    return bool(results.effects_correction) and not is_screening(results)


def _blocks(results: Results) -> str:
    own = [verdict.blocks for verdict in results.verdicts if verdict.deciding]
    if own and min(own) < results.blocks:
        return f"{results.blocks}; each comparison uses those with a clean trial of both, {min(own)} at least"
    return str(results.blocks)


def _left_out(results: Results, labels: Labels) -> tuple[str, ...]:
    """A line for each trial that was flagged or failed, or the first of many; one for all warm-up trials."""
    configurations = {configuration.name: configuration for configuration in results.configurations}
    tally = results.tally
    lines = [
        f"Block {trial.block}, {named(trial.configuration, configurations, labels)}: {kind_of(trial)}, {trial.reason}"
        for trial in results.trials
        if kind_of(trial) in ("flagged", "failed")
    ][:_MOST_LEFT_OUT]
    if tally.flagged + tally.failed > len(lines):
        lines.append(f"and {tally.flagged + tally.failed - len(lines):,} more that were flagged or failed")
    warm_up = [f"{count_of(tally.warm_up, 'warm-up trial')}, before the first block that counts"]
    return (*(warm_up if tally.warm_up else []), *lines)
