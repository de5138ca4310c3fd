"""Several runs side by side: their answers, their effects, and what differs between their environments."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ajuste.model.origin import IMPORTED
from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste.model.wording import count_of, visible_line
from ajuste.report.console import Console, Sheet, plain_table, sheet
from ajuste.report.document import Cell, Column, Entry, Fact, Paragraph, Report, Row, RowGroup, Section, Table
from ajuste.report.format import NOTHING, result_labels
from ajuste.report.headline import first_sentence, headlines
from ajuste.report.method import environment_facts

# Characters of a fact that is shown whole.
_LONG: Final = 120
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class SideBySide:
    """``effects`` has by configuration and metric the verdict of each run, if it has one; ``differing`` the facts that
    are not alike in all environments, by their way through these.
    """

    results: tuple[Results, ...]
    names: tuple[str, ...]
    effects: Mapping[tuple[str, str], Sequence[Verdict | None]]
    differing: tuple[tuple[str, Sequence[str | None]], ...]


def side_by_side(results: Sequence[Results]) -> SideBySide:
    """Return the comparison of those runs, which are called A, B, … in their order."""
    names = tuple(_LETTERS[place] if place < len(_LETTERS) else str(place + 1) for place in range(len(results)))
    flat = [dict(_flat(environment_facts(run.environment))) for run in results]
    facts = dict.fromkeys(fact for environment in flat for fact in environment)
    rows = [(fact, [environment.get(fact) for environment in flat]) for fact in facts]
    differing = tuple((fact, values) for fact, values in rows if len(set(values)) > 1)
    return SideBySide(tuple(results), names, _effects(results), differing)


def effect_text(verdict: Verdict | None) -> str | None:
    """Return ``−12.3 % improves``; ``None`` without a verdict."""
    if verdict is None:
        return None
    return f"{verdict.effect} {verdict.verdict}"


def side_by_side_document(compared: SideBySide) -> dict[str, Any]:
    """Return the comparison for programs."""
    names = ("run", "study", "created", "digest", "stopped", "answer")
    return {
        "runs": [
            {name: getattr(run, name) for name in names} | {IMPORTED.key: IMPORTED.of(run)} for run in compared.results
        ],
        "effects": [
            {
                "configuration": configuration,
                "metric": metric,
                "verdicts": [verdict and verdict.model_dump(mode="json") for verdict in verdicts],
            }
            for (configuration, metric), verdicts in compared.effects.items()
        ],
        "environment": [{"name": name, "values": values} for name, values in compared.differing],
    }


def print_side_by_side(compared: SideBySide) -> None:
    """Print the answers, their effects, and what differs between their environments."""
    effects = (
        (f"{metric}, {configuration}", [effect_text(verdict) for verdict in verdicts])
        for (configuration, metric), verdicts in compared.effects.items()
    )
    with sheet(Console(file=sys.stdout)) as page:
        for name, run in _named(compared):
            page.line(f"{name}  {run.run}  {visible_line(run.study)}{'  imported' if IMPORTED.of(run) else ''}")
            page.say(run.answer or run.stopped_because, indent=3)
        _print_table(page, "Effects", compared.names, effects, _why_no_effects(compared) or "Nothing.")
        _print_table(page, "What differs between their environments", compared.names, compared.differing, "Nothing.")


def _why_no_effects(compared: SideBySide) -> str:
    if any(len(run.configurations) > 1 for run in compared.results):
        return ""
    return "None: each run has one configuration. To compare settings, measure them in one run."


def _print_table(
    page: Sheet, title: str, runs: Sequence[str], rows: Iterable[tuple[str, Sequence[str | None]]], none: str
) -> None:
    page.heading(title)
    table = plain_table()
    for name in ("", *runs):
        table.add_column(name, overflow="fold")
    for name, values in rows:
        table.add_row(visible_line(name), *(NOTHING if value is None else visible_line(value) for value in values))
    if table.row_count:
        page.table(table)
    else:
        page.say(none, indent=2)


def side_by_side_report(compared: SideBySide) -> Report:
    """Return the comparison as a page: the answers, effects metric by metric, and environments."""
    studies = dict.fromkeys(run.title for run in compared.results)
    titles = {metric.name: metric.title for run in compared.results for metric in run.metrics}
    deciding = {verdict.metric for run in compared.results for verdict in run.verdicts if verdict.deciding}
    deciding_effects = [pair for pair in compared.effects.items() if pair[0][1] in deciding]
    effects = [pair for pair in deciding_effects if _is_shared(pair[1])]
    single = [pair for pair in deciding_effects if not _is_shared(pair[1])]
    others = [pair for pair in compared.effects.items() if pair[0][1] not in deciding]
    shared = _effect_table(compared, effects, titles, "effects")
    none_shared = _why_no_effects(compared) or "No two runs have a verdict on the same."
    return Report(
        title="Runs side by side",
        headline=_headline(compared, deciding),
        question=" · ".join(studies),
        lead=tuple(Paragraph(f"{name}: {_run_answer(run)}") for name, run in _named(compared)),
        sections=(
            Section(
                "Effects on what was asked",
                (shared if shared.size else Paragraph(none_shared),),
                "effects-section",
                "Effects",
                "Each configuration against its run's own baseline.",
            ),
            Section(
                "What differs between their environments",
                (
                    _environment_table(compared)
                    if compared.differing
                    else Paragraph("No fact of their environments differs."),
                ),
                "environment-section",
                "Environments",
                "Facts that are alike in all of them are left out.",
            ),
            *(
                Section(
                    title, (_effect_table(compared, pairs, titles, name),), f"{name}-section", short, depth="reference"
                )
                for title, short, name, pairs in (
                    ("Effects that only one run has", "Single", "single", single),
                    ("Other metrics", "Others", "others", others),
                )
                if pairs
            ),
        ),
        stem="runs-side-by-side",
    )


def _headline(compared: SideBySide, deciding: set[str]) -> str:
    shared = [
        [verdict.verdict for verdict in verdicts if verdict is not None]
        for (_, metric), verdicts in compared.effects.items()
        if metric in deciding and _is_shared(verdicts)
    ]
    if not shared:
        return "These runs have no effect in common."
    agreeing = sum(len(set(words)) == 1 for words in shared)
    if agreeing == len(shared):
        return f"The runs agree on {'the' if agreeing == 1 else 'all'} {count_of(agreeing, 'effect')} that they share."
    return f"The runs agree on {agreeing} of {count_of(len(shared), 'effect')} that they share."


def _is_shared(verdicts: Sequence[Verdict | None]) -> bool:
    return sum(verdict is not None for verdict in verdicts) > 1


def _run_answer(results: Results) -> str:
    answers = headlines(results, result_labels(results))
    return first_sentence(results, answers)


def _named(compared: SideBySide) -> Iterator[tuple[str, Results]]:
    return zip(compared.names, compared.results, strict=True)


def _effect_table(
    compared: SideBySide,
    effects: Iterable[tuple[tuple[str, str], Sequence[Verdict | None]]],
    titles: Mapping[str, str],
    name: str,
) -> Table:
    groups: dict[str, list[Row]] = {}
    settings = {
        measured.name: labels.setting(measured)
        for run in reversed(compared.results)
        for labels in (result_labels(run),)
        for measured in run.configurations
    }
    for (configuration, metric), verdicts in effects:
        cells: tuple[Entry, ...] = (
            settings.get(configuration, configuration),
            *(
                Cell(NOTHING, missing="this run has no such verdict")
                if verdict is None
                else Cell(verdict.effect, note=verdict.verdict)
                for verdict in verdicts
            ),
        )
        marked = len({verdict.verdict for verdict in verdicts if verdict is not None}) > 1
        groups.setdefault(titles.get(metric, metric), []).append(Row(cells, marked=marked))
    columns = (Column("Configuration", figure=False), *(Column(name) for name in compared.names))
    return Table(columns, tuple(RowGroup(title, tuple(rows)) for title, rows in groups.items()), name=name)


def _environment_table(compared: SideBySide) -> Table:
    rows = tuple(Row((name, *_apart(values))) for name, values in compared.differing)
    columns = (Column("Fact", figure=False), *(Column(name, figure=False) for name in compared.names))
    return Table.of(columns, rows, name="differing")


def _apart(values: Sequence[str | None]) -> list[str]:
    # The values as they are; of long ones, such as command lines, the words that are not in all of them.
    if all(value is None or len(value) <= _LONG for value in values):
        return [NOTHING if value is None else value for value in values]
    shared = set.intersection(*(set((value or "").split()) for value in values))
    distinct = [[word for word in (value or "").split() if word not in shared] for value in values]
    return [
        NOTHING if value is None else f"… {' '.join(words)} …" for value, words in zip(values, distinct, strict=True)
    ]


def _effects(results: Sequence[Results]) -> dict[tuple[str, str], list[Verdict | None]]:
    effects: dict[tuple[str, str], list[Verdict | None]] = {}
    for place, run in enumerate(results):
        for verdict in run.verdicts:
            verdicts = effects.setdefault((verdict.configuration, verdict.metric), [None] * len(results))
            verdicts[place] = verdict
    return effects


def _flat(facts: Iterable[Fact], way: str = "") -> Iterator[tuple[str, str]]:
    for fact in facts:
        name = f"{way}{fact.name}"
        if text := ", ".join(part for part in (fact.text, *fact.items) if part):
            yield name, text
        yield from _flat(fact.parts, f"{name} / ")
