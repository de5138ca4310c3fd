"""Several runs side by side, as a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste.model.wording import count_of
from ajuste.report.document import Cell, Column, Entry, Paragraph, Report, Row, RowGroup, Section, Table
from ajuste.report.format import NOTHING, result_labels
from ajuste.report.headline import first_sentence, headlines
from ajuste.report.side_by_side import SideBySide, named_runs, why_no_effects

# Characters of a fact that is shown whole.
_LONG: Final = 120


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
    none_shared = why_no_effects(compared) or "No two runs have a verdict on the same."
    return Report(
        title="Runs side by side",
        headline=_headline(compared, deciding),
        question=" · ".join(studies),
        lead=tuple(Paragraph(f"{name}: {_run_answer(run)}") for name, run in named_runs(compared)),
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
