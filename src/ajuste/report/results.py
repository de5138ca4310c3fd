"""The report of a run, or of results that were measured elsewhere: the one place where it is put together."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from ajuste.model.boot import BOOT_KERNEL, is_boot_name
from ajuste.model.continuation import CONTINUATION, REPRODUCE
from ajuste.model.explained import EXPLAINED
from ajuste.model.live import LIVE
from ajuste.model.metric import Metric
from ajuste.model.origin import ELSEWHERE, IMPORTED
from ajuste.model.results import Results
from ajuste.model.trial import SETTINGS_FACTOR
from ajuste.model.verdict import EFFECTS, LINES
from ajuste.model.wording import count_of, listed, visible_line
from ajuste.report.document import (
    Block,
    CommandBlock,
    Fact,
    Facts,
    Folded,
    Meanings,
    Paragraph,
    Picture,
    Report,
    Section,
    Subsection,
    Verdicts,
)
from ajuste.report.facets import compared_configurations, facet_sections
from ajuste.report.format import Labels, fixed_levels, result_labels
from ajuste.report.headline import Headline, first_sentence, headlines, unsettled_sections
from ajuste.report.listings import listing_sections
from ajuste.report.method import (
    clock_name,
    clock_notes,
    data_section,
    environment_facts,
    left_out,
    method_facts,
    noise_sections,
    note_sections,
    other_notes,
    settings_parts,
)
from ajuste.report.pictures import metric_pictures
from ajuste.report.plots.trials import small_plot
from ajuste.report.tables import (
    deciding_metrics,
    described,
    described_with_effects,
    effect_table,
    is_screening,
    measured_metrics,
    metric_matrix,
    metric_verdicts,
    not_supported,
    ranking_sections,
    verdict_table,
)
from ajuste.report.trials import make_excerpt
from ajuste.report.verdicts import counted, counted_lines, effect_band, metric_effects, word_meanings

_FROM_OTHERS: Final = "Imported from a bundle: others measured it, and nothing here proves how."
_HIGHEST_LEAD: Final = 420  # CSS pixels


def results_report(results: Results, metrics: Sequence[str] = ()) -> Report:
    """Return the report of ``results``; of very many configurations only some are shown.

    ``metrics`` names the metrics to show first; by default those that decide.
    """
    labels = result_labels(results)
    excerpt = make_excerpt(results)
    subset = _compared(excerpt.results)
    deciding = deciding_metrics(results)
    decided = [metric for metric in results.metrics if metric.name in deciding]
    first = [metric for metric in results.metrics if metric.name in metrics] or decided
    answers = headlines(results, labels)
    order = [answer.metric for answer in answers]
    decided.sort(key=lambda metric: order.index(metric.name) if metric.name in order else len(order))
    pictures = {
        metric.name: metric_pictures(results, excerpt, metric, labels, f"metric-{place}")
        for place, metric in enumerate(decided)
    }
    notes = _important(results)
    noise = noise_sections(results, notes)
    lead = _lead(decided, pictures)
    figures = _figures(subset, first, labels)
    applied = _apply(results, answers)
    sections = (
        *_answer(results),
        *_verdicts(results, subset, first, labels),
        *ranking_sections(results, first, labels),
        *_effects(results, decided, labels),
        *figures,
        *facet_sections(results, labels, "answer"),
        *note_sections(notes, clock_notes(results) if results.clock == "virtual" else ()),
        *noise[:-1],
        *unsettled_sections(results, labels),
        *listing_sections(subset, labels),
        *facet_sections(results, labels, "metrics"),
        *_metrics(decided, pictures, lead),
        *facet_sections(results, labels, "last"),
        *noise[-1:],
        *_others(subset, first, labels, screening=is_screening(results)),
        *_about(results, labels),
        *_again(results, after_next_step=bool(applied or CONTINUATION.of(results))),
        data_section(results, subset, labels),
    )
    return Report(
        title=results.title,
        headline=first_sentence(results, answers),
        question=results.question,
        lead=(
            *((Paragraph(_FROM_OTHERS, name="imported"),) if IMPORTED.of(results) else ()),
            *(Paragraph(answer.sentence) for answer in answers[1:]),
            _counts(results, decided),
            *applied,
            *((lead,) if lead else ()),
            Paragraph(_facts(results), "dim"),
            *((Paragraph(excerpt.remark, "dim", name="excerpt"),) if excerpt.remark else ()),
        ),
        sections=sections,
        stem="-".join(re.findall(r"[A-Za-z0-9]+", results.study))[:60] or "results",
    )


def _compared(results: Results) -> Results:
    # Without what was only tried: its figures chose what was compared, and would look better than they are.
    names = compared_configurations(results)
    return results.model_copy(update={"configurations": tuple(c for c in results.configurations if c.name in names)})


def _counts(results: Results, decided: Sequence[Metric]) -> Block:
    if not decided:
        text = "No verdict yet." if len(results.configurations) > 1 else "Nothing is compared."
        return Paragraph(text, "dim")
    counts = []
    for metric in decided:
        if LINES.of(results):
            lines = [line for line in LINES.of(results) if line.metric == metric.name and line.kind == "line"]
            counts.append((metric.title, counted_lines(lines)))
        else:
            findings = metric_effects if is_screening(results) else metric_verdicts
            counts.append((metric.title, counted(findings(results, metric.name))))
    return Verdicts(tuple(counts))


def _lead(decided: Sequence[Metric], pictures: dict[str, tuple[Picture, ...]]) -> Picture | None:
    for picture in pictures[decided[0].name] if decided else ():
        of_effects = any(kind in picture.plot.name for kind in ("-forest", "-pareto", "-lines"))
        if of_effects and picture.plot.height <= _HIGHEST_LEAD:  # a higher one leaves no room beside the answer
            return picture
    return None


def _apply(results: Results, answers: Sequence[Headline]) -> tuple[CommandBlock, ...]:
    # The command that puts the best configuration to use, where one is better and all of it can be set.
    winner = next((answer.winner for answer in answers[:1]), "")
    can_be_set = {explained.name for explained in EXPLAINED.of(results) if explained.where}
    if (
        not winner
        or not results.run
        or IMPORTED.of(results)
        or not all(factor.name in can_be_set for factor in results.factors)
    ):
        return ()
    at_boot = [factor.name for factor in results.factors if is_boot_name(factor.name)]
    if BOOT_KERNEL in at_boot:
        return ()
    form = ("--format", "tuned") if at_boot else ()
    return (CommandBlock("apply", (shlex.join(["ajuste", "export", results.run, winner, *form]),)),)


def _facts(results: Results) -> str:
    blocks = (results.counted_blocks,) if results.blocks else ()
    configurations = count_of(len(results.configurations), "configuration")
    if elsewhere := ELSEWHERE.of(results):
        values = count_of(elsewhere.values, "value")
        formats = visible_line(elsewhere.formats)
        return " · ".join((configurations, *blocks, values, f"from {formats}", "measured elsewhere"))
    trials = results.tally.words("slice" if results.is_live else "trial")
    stopped = visible_line(results.stopped_because).rstrip(".").removeprefix("stopped ")
    facts = (configurations, *blocks, trials, clock_name(results), f"seed {results.seed}", f"stopped: {stopped}")
    return " · ".join(facts)


def _answer(results: Results) -> tuple[Section, ...]:
    if not results.answer:
        return ()
    title = "The answer with its figures"
    return (Section(title, (Paragraph(results.answer, name="answer"),), "answer-section", depth="detail"),)


def _verdicts(results: Results, subset: Results, metrics: Sequence[Metric], labels: Labels) -> tuple[Section, ...]:
    no_slices = results.is_live and not results.facets[LIVE]["slices"]
    table = None if is_screening(results) or no_slices else verdict_table(subset, metrics, labels, "verdicts")
    if table is None:
        return ()
    fixed = "".join(f" {line} everywhere." for line in fixed_levels(labels))
    confidence = f"{100 * results.level:g} % intervals for all verdicts together"
    correction = f" ({visible_line(results.correction)})" if results.correction else ""
    conditions = [visible_line(factor.name) for factor in labels.factors if factor.name in labels.conditions]
    there = f" at its level of {listed(conditions)}" if any(c.against for c in results.configurations) else ""
    against = f"the baseline{there}"
    about = (
        f"Each configuration against {against}; {confidence}{correction}. The smallest effect that matters is "
        f"{effect_band(results.smallest_effect)}.{fixed}"
    )
    return (Section("Verdicts", (table, _meanings(results)), "verdicts-section", "Verdicts", about),)


def _meanings(results: Results) -> Meanings:
    deciding = deciding_metrics(results)
    effects = EFFECTS.of(results)
    compared = (*LINES.of(results), *effects) if is_screening(results) else (*results.verdicts, *effects)
    return word_meanings([finding for finding in compared if finding.metric in deciding])


def _effects(results: Results, decided: Sequence[Metric], labels: Labels) -> tuple[Section, ...]:
    table = effect_table(results, decided, labels)
    if table is None:
        return ()
    interaction = (
        " A row with × is an interaction: how much the effect of the first step differs once the second one is taken."
        if any(effect.kind == "interaction" for effect in EFFECTS.of(results))
        else ""
    )
    about = (
        f"Each effect is averaged over the levels of all other factors; {100 * results.level:g} % intervals for all "
        f"effects together.{interaction} The smallest effect that matters is {effect_band(results.smallest_effect)}."
    )
    meanings = (_meanings(results),) if is_screening(results) else ()
    return (Section("What each factor does", (table, *meanings), "effects", "Factors", about),)


def _figures(subset: Results, first: Sequence[Metric], labels: Labels) -> tuple[Section, ...]:
    # For metrics without verdicts: those that were requested, or all where nothing is compared.
    if is_screening(subset):
        return ()
    wanted = (
        [metric for metric in first if not metric_verdicts(subset, metric.name)] if first else measured_metrics(subset)
    )
    if not wanted:
        return ()
    if len(subset.configurations) == 1:
        [only] = subset.configurations
        known = [m for m in wanted if m.name in only.metrics and only.metrics[m.name].low is not None]
        parts = tuple(described(subset, only, metric, labels) for metric in known or wanted)
        return (Section("Figures", parts, "figures-section", "Figures"),)
    table = metric_matrix(subset, wanted, labels, "wanted")
    return (Section("Figures", (table,), "figures-section", "Figures", "Mean ± standard deviation."),)


def _important(results: Results) -> tuple[str, ...]:
    known = ((explained.name, explained.initial_value) for explained in EXPLAINED.of(results))
    values = [f"{visible_line(name)} = {visible_line(value)}" for name, value in known if value]
    named = values and any(factor.name == SETTINGS_FACTOR for factor in results.factors)
    current = (f"Values before the run: {', '.join(values)}.",) if named else ()
    elsewhere = ELSEWHERE.of(results)
    inference = (elsewhere.inference,) if elsewhere and len(results.configurations) > 1 else ()
    emulated = () if results.clock == "virtual" else clock_notes(results)
    # Levels that the kernel did not take as they were written.
    changed = [
        f"{factor}: {level} was written, {read} was read back."
        for configuration in results.configurations
        for factor, level in configuration.levels.items()
        if (read := configuration.read_back.get(factor, level)) != level
    ]
    return (*changed, *left_out(results), *emulated, *inference, *other_notes(results), *current)


def _metrics(
    decided: Sequence[Metric], pictures: dict[str, tuple[Picture, ...]], lead: Picture | None
) -> tuple[Section, ...]:
    sections: list[Section] = []
    for place, metric in enumerate(decided):
        rest = tuple(picture for picture in pictures[metric.name] if picture is not lead)
        if rest:
            sections.append(Section(metric.title, rest, f"section-{place}", "" if sections else "Trials", metric.what))
    return tuple(sections)


def _others(subset: Results, first: Sequence[Metric], labels: Labels, *, screening: bool) -> tuple[Section, ...]:
    covered = {metric.name for metric in first} if not screening else set()
    others = [metric for metric in subset.metrics if metric.name not in covered]
    measured = [metric for metric in measured_metrics(subset) if metric.name not in covered]
    if not first and len(subset.configurations) > 1:
        measured = []
    small = [small_plot(subset, metric, labels, f"small-{place}") for place, metric in enumerate(others)]
    plots = tuple(Picture(plot) for plot in small if plot is not None)
    effects = verdict_table(
        subset, [*first, *described_with_effects(subset)] if screening else others, labels, "others"
    )
    blocks: tuple[Block, ...] = (
        *((metric_matrix(subset, measured, labels, "metrics"),) if measured else ()),
        *(Paragraph(line, "dim") for line in not_supported(subset)),
        *((Folded("Plots", plots),) if plots else ()),
        *((Folded("Effects", (effects,)),) if effects is not None else ()),
    )
    about = "Mean ± standard deviation. These metrics did not decide when to stop."
    return (Section("Other metrics", blocks, "metrics-section", "Other metrics", about, "reference"),) if blocks else ()


def _about(results: Results, labels: Labels) -> Iterator[Section]:
    settings: tuple[Subsection, ...] = settings_parts(results, labels)
    if settings:
        yield Section("What the settings do", settings, "settings", "Settings", depth="reference")
    title = "How it was analysed" if ELSEWHERE.of(results) else "How it was measured"
    yield Section(title, (Facts(method_facts(results, labels)),), "method", "Method", depth="reference")
    environment: tuple[Fact, ...] = environment_facts(results.environment)
    if environment:
        yield Section("Environment", (Facts(environment),), "environment", "Environment", depth="reference")


def _again(results: Results, *, after_next_step: bool) -> tuple[Section, ...]:
    commands = (CommandBlock("again", REPRODUCE.of(results), verbose=after_next_step),) if REPRODUCE.of(results) else ()
    digest = (Paragraph(f"Digest {results.digest}", "dim", verbose=True),) if results.digest else ()
    return (Section("Reproduce", (*commands, *digest), "reproduce"),) if commands or digest else ()
