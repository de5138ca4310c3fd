"""Method of a measurement: its description, the settings, the excluded trials, and all the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from ajuste.machine.inventory.inventory import Inventory
from ajuste.model.boot import BOOTS
from ajuste.model.diagnostic import DIAGNOSTICS, Diagnostic, Diagnostics
from ajuste.model.explained import EXPLAINED
from ajuste.model.facets import DESIGN
from ajuste.model.fleet import FLEET
from ajuste.model.kernel import KERNEL_OPTIONS, PROOFS
from ajuste.model.origin import ELSEWHERE
from ajuste.model.plugins import isolated, load_each
from ajuste.model.relevance import RELEVANCE
from ajuste.model.results import Results
from ajuste.model.verdict import EFFECTS_CORRECTION
from ajuste.model.wording import count_of, listed, sentence_start, visible_line
from ajuste.report.document import (
    Block,
    Cell,
    Column,
    Data,
    Download,
    Fact,
    Facts,
    Notes,
    Paragraph,
    Picture,
    Row,
    Section,
    Subsection,
    Table,
    to_facts,
)
from ajuste.report.format import NOTHING, Labels, fixed_levels
from ajuste.report.inventory_page import inventory_page
from ajuste.report.listings import MOST_MACHINES
from ajuste.report.plots.trials import course_plot, place_word, trial_kind
from ajuste.report.tables import deciding_metrics, is_screening, mean_format, title_with_unit
from ajuste.report.trials import trials_csv
from ajuste.report.verdicts import effect_band

# The environment of a run as a tree of facts, and what its clock means for the figures.


# Levels of nesting that are shown as such.
_DEEPEST: Final = 6

VIRTUAL: Final = (
    "Measured under the virtual clock: an emulated CPU whose time is the count of its instructions. The figures repeat "
    "to the last digit on any machine. They say what the kernel does, not how fast any hardware is."
)

MODELLED: Final = (
    "Measured under the virtual clock: an emulated CPU with the time of a modelled machine, {machine}. The figures "
    "repeat to the last digit on any machine. They say what the kernel does and what a simple model of caches makes of "
    "it, not how fast any hardware is."
)

EMULATED: Final = (
    "Measured on an emulated CPU (QEMU without hardware virtualisation) with the ordinary clock. Compare the "
    "configurations with each other; the figures are not the speed of any hardware."
)

# An error rate that is not much more than the 5 % that a test promises is no news in a sentence.
_WORTH_SAYING: Final = 0.06

_COLUMNS: Final = (
    Column("What", figure=False),
    Column("Found", figure=False),
    Column("t test wrong in"),
    Column("Verdict", figure=False),
)

MOST_NOTES: Final = 2
"""Notes and remarks on noise that a terminal shows unless details are asked for."""

_MEANS: Final = "geometric in sentences, where they give the ratio beside them; arithmetic in tables"
_MOST_LISTED: Final = 1_000  # trials in the table of single trials
_MOST_LEFT_OUT: Final = 200  # trials that were flagged or failed, a line each

# What disturbs a trial, by how the reason begins: its figures differ from trial to trial.
_CAUSES: Final = (
    ("other work took ", "other work"),
    ("the hypervisor took ", "stolen CPU time"),
    ("a CPU was throttled ", "a hot CPU"),
)

_MOST_CAUSES: Final = 3


def environment_facts(environment: Mapping[str, Any]) -> tuple[Fact, ...]:
    """Return the environment as a tree of facts, with inventories folded."""
    elsewhere = {PROOFS, KERNEL_OPTIONS, RELEVANCE, BOOTS, FLEET}  # They have tables, or notes.
    facts = {name: value for name, value in environment.items() if name not in elsewhere}
    machines = list(facts.get("machines", {}).items())
    if len(machines) > MOST_MACHINES:
        others = f"{len(machines) - MOST_MACHINES:,} more; `ajuste report --json` has all"
        facts["machines"] = {**dict(machines[:MOST_MACHINES]), "others": others}
    return _facts(facts)


def _inventory(document: Any, depth: int) -> tuple[Fact, ...]:
    # What is not an inventory is shown as any other mapping.
    try:
        areas = inventory_page(Inventory.model_validate(document))
    except ValidationError:
        return _facts(document, depth) if isinstance(document, Mapping) else (Fact("?", str(document)),)
    return tuple(Fact(area.title, parts=area.facts) for area in areas)


def _facts(mapping: Mapping[str, Any], depth: int = 0) -> tuple[Fact, ...]:
    return tuple(
        Fact("inventory", parts=_inventory(value, depth + 1), folded=True)
        if name == "inventory" and depth < _DEEPEST
        else Fact(str(name), parts=_facts(value, depth + 1))
        if isinstance(value, Mapping) and depth < _DEEPEST
        else Fact(str(name), _as_text(value))
        for name, value in mapping.items()
    )


def _as_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_as_text(item) for item in value)
    return "–" if value is None else str(value)


# What the clock of a run means for its figures, in plain words.


def clock_notes(results: Results) -> tuple[str, ...]:
    """Return a note on the clock's effect on figures; empty for the wall clock of real CPUs."""
    notes = tuple(note for note in results.notes if _is_of_clock(results, note))
    if results.clock == "virtual":
        notes = notes or (VIRTUAL,)
    elif not notes and results.clock is not None and _is_emulated(results.environment):
        notes = (EMULATED,)
    return (*notes, *_notes_of_packages(results))


def _notes_of_packages(results: Results) -> Iterator[str]:
    for _, module in load_each("notes"):
        with isolated(module):
            yield from module.clock_notes(results)


def other_notes(results: Results) -> tuple[str, ...]:
    """Return the notes of ``results`` without those on the clock."""
    return tuple(note for note in results.notes if not _is_of_clock(results, note))


def _is_of_clock(results: Results, note: str) -> bool:
    word = "virtual clock" if results.clock == "virtual" else "emulated"
    return results.clock is not None and word in note.lower() and "emulated" in note.lower()


def clock_name(results: Results) -> str:
    """Return the clock that trials ran under."""
    return "virtual clock" if results.clock == "virtual" else "wall clock"


def _is_emulated(environment: Mapping[str, Any]) -> bool:
    return any(
        "accelerator" in name.lower() and value.strip().lower().startswith("tcg") for name, value in _texts(environment)
    )


def _texts(mapping: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in mapping.items():
        if isinstance(value, Mapping):
            yield from _texts(value) if name != "inventory" else ()
        else:
            yield str(name), str(value)


# What the diagnostics found in the noise, and what it would do to a naive test.


def note_sections(notes: tuple[str, ...], clock: tuple[str, ...]) -> tuple[Section, ...]:
    """Return the section of notes; the headline sums up those on the ``clock``, so only details have them."""
    blocks = (Notes(notes, most=MOST_NOTES), Notes(clock, verbose=True))
    filled = tuple(block for block in blocks if block.texts)
    return (Section("Notes", filled, "notes"),) if filled else ()


def noise_sections(results: Results, notes: Sequence[str] = ()) -> tuple[Section, ...]:
    """Return the diagnostics that matter, then all by metric; empty if there are none. ``notes`` stand above."""
    diagnostics = DIAGNOSTICS.of(results)
    if diagnostics is None:
        return ()
    titles = {metric.name: metric.title for metric in results.metrics}
    names = dict.fromkeys(diagnostic.metric for diagnostic in diagnostics.found)
    parts = tuple(
        Subsection(titles.get(name, name), tuple(_metric(results, diagnostics, name, f"course-{place}")))
        for place, name in enumerate(names)
    )
    about = (
        "Problems found in the noise, and their effect on a comparison of two batches. At most "
        f"{100 * diagnostics.level:g} % of clean studies raise a false alarm."
    )
    remarks = matters(results)
    most = max(0, MOST_NOTES - len(notes))
    news = (Section("Noise diagnostics", (Notes(tuple(remarks), "Noise", most),), "noise"),) if remarks else ()
    return (*news, Section("Diagnostics", parts, "diagnostics", "Noise", about, "detail"))


def matters(results: Results) -> list[str]:
    """Return a line for each diagnostic that matters."""
    titles = {metric.name: metric.title for metric in results.metrics}
    known = DIAGNOSTICS.of(results)
    diagnostics = known.found if known is not None else ()
    return [
        visible_line(f"{sentence_start(d.kind)}, {titles.get(d.metric, d.metric)}: {d.says} {_error(d)}{d.why}")
        for d in diagnostics
        if d.matters
    ]


def _metric(results: Results, diagnostics: Diagnostics, name: str, plot: str) -> list[Block]:
    diagnoses = [diagnostic for diagnostic in diagnostics.found if diagnostic.metric == name]
    present = sorted((d for d in diagnoses if d.present), key=lambda d: not d.matters)
    absent = ", ".join(diagnostic.kind for diagnostic in diagnoses if not diagnostic.present)
    blocks: list[Block] = []
    blocks += [Paragraph(naive.says) for naive in diagnostics.naive if naive.metric == name][:1]
    if present:
        blocks.append(Table.of(_COLUMNS, map(_row, present)))
    metric = next((candidate for candidate in results.metrics if candidate.name == name), None)
    if metric is not None and any(diagnostic.matters for diagnostic in present):
        course = course_plot(results, metric, plot)
        blocks += [Picture(course, metric.title)] if course is not None else []
    return [*blocks, *([Paragraph(f"Checked and not found: {absent}.", "dim")] if absent else [])]


def _row(diagnostic: Diagnostic) -> Row:
    verdict = f"{'Affected' if diagnostic.verdict_affected else 'Not affected'}. {diagnostic.why}"
    return Row(
        (sentence_start(diagnostic.kind), diagnostic.says, _percent(diagnostic), verdict), marked=diagnostic.matters
    )


def _percent(diagnostic: Diagnostic) -> str:
    if diagnostic.naive_error is None:
        return "–"
    share = 100 * diagnostic.naive_error
    return f"{share:.0f} %" if share >= 10 else f"{share:.1f} %"


def _error(diagnostic: Diagnostic) -> str:
    if diagnostic.naive_error is None or diagnostic.naive_error < _WORTH_SAYING:
        return ""
    return f"With this alone a t test on two batches is wrong in {_percent(diagnostic)} of cases instead of 5 %. "


def method_facts(results: Results, labels: Labels) -> tuple[Fact, ...]:
    """Return the basis of the verdicts: design, clock, seed, confidence."""
    compared = len(results.configurations) > 1
    level = f"{100 * results.level:g} %"
    confidence = f"{level} for all verdicts together" if compared else level
    blocks = results.counted_blocks if results.of_rounds else str(results.blocks)
    paired = [verdict.blocks for verdict in results.verdicts if verdict.deciding]
    if paired and min(paired) < results.blocks:
        blocks += f"; each comparison uses those with a clean trial of both, {min(paired)} at least"
    deciding = ", ".join(metric.title for metric in results.metrics if metric.name in deciding_metrics(results))
    elsewhere = ELSEWHERE.of(results)
    origin = (
        (
            ("Files", ", ".join(elsewhere.files)),
            ("Read as", elsewhere.formats),
            ("Pairing", elsewhere.pairing),
            ("Intervals", elsewhere.inference),
        )
        if elsewhere
        else (
            ("Design", DESIGN.of(results)),
            ("Fixed", ", ".join(fixed_levels(labels))),
            ("Blocks", blocks),
            ("Seed", str(results.seed)),
            ("Clock", clock_name(results).capitalize()),
        )
    )
    lines = (
        *origin,
        ("Deciding metrics", deciding or "none yet"),
        ("Means", _MEANS if any(verdict.scale == "ratio" for verdict in results.verdicts) else ""),
        ("Confidence", confidence),
        ("Correction", results.correction if compared else ""),
        ("Correction of effects", "" if is_screening(results) else EFFECTS_CORRECTION.of(results)),
        ("Smallest effect that matters", effect_band(results.smallest_effect) if compared else ""),
        ("Stopped because", "" if elsewhere else results.stopped_because),
    )
    omitted = each_left_out(results, labels)
    return (*to_facts(*lines), *((Fact("Trials left out", items=omitted),) if omitted else ()))


def settings_parts(results: Results, labels: Labels) -> tuple[Subsection, ...]:
    """Return a description of each factor, with its levels."""
    levels = {factor.name: factor.levels for factor in results.factors}
    parts = []
    for explained in EXPLAINED.of(results):
        studied = [(level, labels.level(explained.name, level)) for level in levels.get(explained.name, ())]
        facts = (
            ("Unit", explained.unit),
            ("Default", explained.default),
            ("Where", explained.where),
            ("Value found in this kernel", explained.initial_value or ""),
            ("Levels studied", ", ".join(text if text == level else f"{text} ({level})" for level, text in studied)),
        )
        note = (Paragraph(explained.note, "dim"),) if explained.note else ()
        blocks = (Paragraph(explained.what), Facts(to_facts(*facts)), *note)
        parts.append(Subsection(explained.title or explained.name, blocks, explained.name))
    return tuple(parts)


def left_out(results: Results) -> tuple[str, ...]:
    """Return the number of disturbed and failed trials with the reasons, in one line; empty without any."""
    tally = results.tally
    disturbed = tally.flagged + tally.failed
    if not disturbed:
        return ()
    every = "slices" if results.is_live else "trials"
    slots = Counter((trial.configuration, trial.block) for trial in results.trials if trial.status == "flagged")
    all_repeated = max(slots.values(), default=0) < 2
    if results.clock == "wall" and not results.is_live and not tally.failed and all_repeated:
        became = "repeated"
    elif tally.flagged and tally.failed:
        became = f"left out, {tally.failed:,} of them failed"
    else:
        became = "failed" if tally.failed else "left out"
    causes = list(dict.fromkeys(cause for reason in tally.reasons for cause in _causes(reason)))
    more = len(causes) - _MOST_CAUSES + tally.other_reasons
    words = [*causes[:_MOST_CAUSES], *([count_of(more, "other reason")] if more > 0 else [])]
    return (f"{disturbed:,} of {tally.counted:,} {every} {became}{f': {listed(words)}' if words else ''}.",)


def _causes(reason: str) -> list[str]:
    # The causes in the reason of one trial, each without its figures where it has a name.
    parts = [part.partition(" for up to ")[0] for part in visible_line(reason).split("; ")]
    return [next((cause for begin, cause in _CAUSES if part.startswith(begin)), part) for part in parts]


def each_left_out(results: Results, labels: Labels) -> tuple[str, ...]:
    """Return a line for each flagged or failed trial, or the first of many; one for all warm-up trials."""
    names = labels.by_name(results)
    tally = results.tally
    lines = [
        f"Block {t.block}, {names.get(t.configuration, t.configuration)}: {trial_kind(t)}, {t.reason}"
        for t in results.trials
        if trial_kind(t) in ("flagged", "failed")
    ][:_MOST_LEFT_OUT]
    if tally.flagged + tally.failed > len(lines):
        lines.append(f"and {tally.flagged + tally.failed - len(lines):,} more that were flagged or failed")
    warm_up = [f"{count_of(tally.warm_up, 'warm-up trial')}, before the first block that counts"]
    return (*(warm_up if tally.warm_up else []), *lines)


def data_section(results: Results, subset: Results, labels: Labels) -> Section:
    """Return every value, as files and as a table, and the identity of the run."""
    every = "Every value" if ELSEWHERE.of(results) else "Every trial"
    noun = "value" if ELSEWHERE.of(results) else "trial"
    there = bool(results.trials) or not ELSEWHERE.of(results)
    whole = every if len(results.trials) == results.tally.trials else count_of(len(results.trials), noun)
    files = (
        *((Download("trials-csv", f"{whole} (CSV)", "csv", trials_csv(results)),) if there else ()),
        Download("results-json", "Everything (JSON)", "json", results.model_dump_json()),
    )
    listed = subset.trials[:_MOST_LISTED]
    which = every if len(listed) == results.tally.trials else f"The first {len(listed):,} that are drawn"
    table = _trials(subset, labels, f"{which} as a table") if there else None
    about = (
        "The digest covers every value that was read from the files."
        if ELSEWHERE.of(results)
        else "The digest covers all measurements and no time of the host. Under the virtual clock the same study "
        "and seed give the same digest."
    )
    origin = (("Study", results.study), ("Run", results.run)) if not ELSEWHERE.of(results) else ()
    facts = (*origin, ("Made", results.created), ("Ajuste", results.ajuste), ("Digest", results.digest))
    blocks = (
        Data(files, table),
        Facts(to_facts(*facts)),
        Paragraph(about, "dim"),
    )
    return Section("Data", blocks, "data", "Data", depth="reference", open=True)


def _trials(subset: Results, labels: Labels, title: str) -> Table:
    names = labels.by_name(subset)
    elsewhere = ELSEWHERE.of(subset) is not None
    listed = subset.trials[:_MOST_LISTED]
    there = [metric for metric in subset.metrics if any(metric.name in trial.metrics for trial in listed)]
    numbers = {metric.name: mean_format(subset, metric) for metric in there}
    headings = (place_word(subset).capitalize(), *(() if elsewhere else ("Place", "Seed")))
    columns = (
        Column(labels.heading or "Configuration", figure=False),
        *map(Column, headings),
        *(() if elsewhere else (Column("Status", figure=False),)),
        *(Column(title_with_unit(metric, numbers[metric.name])) for metric in there),
    )
    rows = []
    for trial in listed:
        reason = f": {trial.reason}" if trial.reason else ""
        run = () if elsewhere else (str(trial.position), str(trial.seed), f"{trial_kind(trial)}{reason}")
        figures = (
            Cell(numbers[name].text(trial.metrics[name]) if name in trial.metrics else NOTHING) for name in numbers
        )
        rows.append(Row((names.get(trial.configuration, trial.configuration), str(trial.block), *run, *figures)))
    return Table.of(columns, rows, "trials", title)
