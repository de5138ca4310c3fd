"""How something was measured: the method, the settings, the trials that count in nothing, and all the data."""

from __future__ import annotations

from typing import Final

from ajuste.model.results import Results
from ajuste.model.wording import visible_line
from ajuste.report.document import (
    Cell,
    Column,
    Data,
    Download,
    Fact,
    Facts,
    Paragraph,
    Row,
    RowGroup,
    Section,
    Subsection,
    Table,
)
from ajuste.report.environment import clock_name
from ajuste.report.format import NOTHING, count_of
from ajuste.report.labels import Labels, fixed_levels
from ajuste.report.metric_table import deciding_metrics, is_screening, metric_shown, title_with_unit
from ajuste.report.plots.trials import kind_of, place_word
from ajuste.report.trials import trials_csv
from ajuste.report.verdicts import effect_band

_MOST_LISTED: Final = 1_000  # trials in the table of single trials
_MOST_LEFT_OUT: Final = 200  # trials that were flagged or failed, a line each


def method_facts(results: Results, labels: Labels) -> tuple[Fact, ...]:
    """Design, clock, seed, confidence: what the verdicts rest on."""
    compared = len(results.configurations) > 1
    level = f"{100 * results.level:g} %"
    confidence = f"{level} for all verdicts together" if compared else level
    deciding = ", ".join(metric.title for metric in results.metrics if metric.name in deciding_metrics(results))
    elsewhere = results.elsewhere
    origin = (
        (
            ("Files", ", ".join(elsewhere.files)),
            ("Read as", elsewhere.formats),
            ("Pairing", elsewhere.pairing),
            ("Intervals", elsewhere.inference),
        )
        if elsewhere
        else (
            ("Design", results.design),
            ("Fixed", ", ".join(fixed_levels(labels))),
            ("Blocks", _blocks(results)),
            ("Seed", str(results.seed)),
            ("Clock", clock_name(results).capitalize()),
        )
    )
    lines = (
        *origin,
        ("Deciding metrics", deciding or "none yet"),
        ("Confidence", confidence),
        ("Correction", results.correction if compared else ""),
        ("Correction of effects", "" if is_screening(results) else results.effects_correction),
        ("Smallest effect that matters", effect_band(results.smallest_effect) if compared else ""),
        ("Stopped because", "" if elsewhere else results.stopped_because),
    )
    trials = (Fact("Trials left out", items=each_left_out(results, labels)),) if each_left_out(results, labels) else ()
    return (*(Fact(name, text) for name, text in lines if text), *trials)


def _blocks(results: Results) -> str:
    own = [verdict.blocks for verdict in results.verdicts if verdict.deciding]
    if own and min(own) < results.blocks:
        return f"{results.blocks}; each comparison uses those with a clean trial of both, {min(own)} at least"
    return str(results.blocks)


def settings_parts(results: Results, labels: Labels) -> tuple[Subsection, ...]:
    """What each factor is, with its levels."""
    levels = {factor.name: factor.levels for factor in results.factors}
    parts = []
    for explained in results.explained:
        facts = (
            ("Unit", explained.unit),
            ("Default", explained.default),
            ("Where", explained.where),
            ("Value found in this kernel", explained.initial_value or ""),
            ("Levels studied", ", ".join(_written(labels, explained.name, x) for x in levels.get(explained.name, ()))),
        )
        note = (Paragraph(explained.note, "dim"),) if explained.note else ()
        blocks = (Paragraph(explained.what), Facts(tuple(Fact(name, text) for name, text in facts if text)), *note)
        parts.append(Subsection(explained.title or explained.name, blocks, explained.name))
    return tuple(parts)


def _written(labels: Labels, factor: str, level: str) -> str:
    said = labels.level(factor, level)
    return said if said == level else f"{said} ({level})"


def left_out(results: Results) -> tuple[str, ...]:
    """How many trials are in no figure, and why, in one line; nothing where all are in."""
    tally = results.tally
    counts = {"warm-up": tally.warm_up, "flagged": tally.flagged, "failed": tally.failed}
    said = [count_of(count, f"{kind} trial") for kind, count in counts.items() if count]
    more = [f"and {count_of(tally.other_reasons, 'other reason')}"] if tally.other_reasons else []
    reasons = "; ".join((*dict.fromkeys(map(visible_line, tally.reasons)), *more))
    return (f"Left out of every figure: {', '.join(said)}{f' ({reasons})' if reasons else ''}.",) if said else ()


def each_left_out(results: Results, labels: Labels) -> tuple[str, ...]:
    """A line for each trial that was flagged or failed, or the first of many; one for all warm-up trials."""
    names = {configuration.name: labels.short(configuration) for configuration in results.configurations}
    tally = results.tally
    lines = [
        f"Block {trial.block}, {names.get(trial.configuration, trial.configuration)}: {kind_of(trial)}, {trial.reason}"
        for trial in results.trials
        if kind_of(trial) in ("flagged", "failed")
    ][:_MOST_LEFT_OUT]
    if tally.flagged + tally.failed > len(lines):
        lines.append(f"and {tally.flagged + tally.failed - len(lines):,} more that were flagged or failed")
    warm_up = [f"{count_of(tally.warm_up, 'warm-up trial')}, before the first block that counts"]
    return (*(warm_up if tally.warm_up else []), *lines)


def data_of(results: Results, shown: Results, labels: Labels) -> Section:
    """Every value, as files and as a table, and what identifies the run."""
    every = "Every value" if results.elsewhere else "Every trial"
    noun = "value" if results.elsewhere else "trial"
    there = bool(results.trials) or not results.elsewhere
    whole = every if len(results.trials) == results.tally.trials else count_of(len(results.trials), noun)
    files = (
        *((Download("trials-csv", f"{whole} (CSV)", "csv", trials_csv(results)),) if there else ()),
        Download("results-json", "Everything (JSON)", "json", results.model_dump_json()),
    )
    listed = shown.trials[:_MOST_LISTED]
    which = every if len(listed) == results.tally.trials else f"The first {len(listed):,} that are drawn"
    table = _trials(shown, labels, f"{which} as a table") if there else None
    about = (
        "The digest covers every value that was read from the files."
        if results.elsewhere
        else "The digest covers all measurements and no time of the host. Under the virtual clock the same study "
        "and seed give the same digest."
    )
    own = (("Study", results.study), ("Run", results.run)) if not results.elsewhere else ()
    facts = (*own, ("Made", results.created), ("Ajuste", results.ajuste), ("Digest", results.digest))
    blocks = (
        Data(files, table),
        Facts(tuple(Fact(name, text) for name, text in facts if text)),
        Paragraph(about, "dim"),
    )
    return Section("Data", blocks, "data", "Data", depth="reference", open=True)


def _trials(shown: Results, labels: Labels, title: str) -> Table:
    names = {configuration.name: labels.short(configuration) for configuration in shown.configurations}
    elsewhere = shown.elsewhere is not None
    numbers = {metric.name: metric_shown(shown, metric) for metric in shown.metrics}
    own = (place_word(shown).capitalize(), *(() if elsewhere else ("Place", "Seed")))
    columns = (
        Column(labels.heading or "Configuration", figure=False),
        *map(Column, own),
        *(() if elsewhere else (Column("Status", figure=False),)),
        *(Column(title_with_unit(metric, numbers[metric.name])) for metric in shown.metrics),
    )
    rows = []
    for trial in shown.trials[:_MOST_LISTED]:
        reason = f": {trial.reason}" if trial.reason else ""
        run = () if elsewhere else (str(trial.position), str(trial.seed), f"{kind_of(trial)}{reason}")
        figures = (
            Cell(numbers[name].text(trial.metrics[name]) if name in trial.metrics else NOTHING) for name in numbers
        )
        rows.append(Row((names.get(trial.configuration, trial.configuration), str(trial.block), *run, *figures)))
    return Table(columns, (RowGroup("", tuple(rows)),), "trials", title)
