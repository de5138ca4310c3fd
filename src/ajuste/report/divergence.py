"""Where two trials part: the first decision of the scheduler that differs, and what follows."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from ajuste.analysis.divergence import in_words
from ajuste.model.cost import ROLES
from ajuste.model.decision import DecisionPoint, Divergence
from ajuste.model.results import Results
from ajuste.model.scheduling import Explanation
from ajuste.model.wording import amount, visible_line
from ajuste.report.costs import called_in
from ajuste.report.document import (
    Block,
    Column,
    CommandBlock,
    Folded,
    Paragraph,
    Picture,
    Report,
    Row,
    RowGroup,
    Section,
    Table,
)
from ajuste.report.format import NOTHING, number
from ajuste.report.labels import Labels, labels_of
from ajuste.report.plots.divergence import divergence_plot

_ABOUT = (
    "One trial of each with the same seed, followed without disturbing it. A decision is a switch, a wake-up, a new "
    "task or that a task has to make way; when it is taken does not count. Those of several CPUs are in one order."
)


def divergence_sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """A section for each explanation of ``results`` whose decisions were followed."""
    several = len(results.explanations) > 1
    return tuple(
        _section(
            explanation.divergence,
            called_in(results, explanation, labels),
            place,
            several=several,
            trace=_trace(results.run, explanation),
        )
        for place, explanation in enumerate(results.explanations)
        if explanation.divergence is not None
    )


def divergence_report(results: Results, explanation: Explanation) -> Report:
    """Where the decisions of a configuration part from the baseline's; empty where they were not followed."""
    found = explanation.divergence
    if found is None:
        return Report(results.title, "", ())
    first, *others = found.sentences
    tables = _tables(found, called_in(results, explanation, labels_of(results)))
    notes = tuple(Paragraph(note, "dim") for note in found.notes)
    sections = tuple(Section(table.title, (table,)) for table in tables)
    return Report(results.title, first, (*sections, Section("", notes)), lead=tuple(map(Paragraph, others)))


def _trace(run: str, explanation: Explanation) -> tuple[Block, ...]:
    """How to get both trials as a trace for Perfetto, where they part."""
    if explanation.divergence is None or explanation.divergence.spread is None:
        return ()
    words = ["ajuste", "why", run, explanation.configuration, "--divergence", "--perfetto", "trace.pftrace"]
    return (
        Paragraph("To see both trials one above the other, open the file of this command at https://ui.perfetto.dev:"),
        CommandBlock("trace", (shlex.join(words),)),
    )


def _section(
    found: Divergence, called: tuple[str, str], place: int, *, several: bool, trace: tuple[Block, ...]
) -> Section:
    plot = divergence_plot(found, called, f"divergence-{place}")
    blocks: tuple[Block, ...] = (
        *map(Paragraph, found.sentences),
        *((Picture(plot, called[1]),) if plot is not None else ()),
        *(Folded(table.title, (table,)) for table in _tables(found, called)),
        *trace,
        *(Paragraph(note, "dim", detail=True) for note in found.notes),
    )
    under = f" under {called[1]}" if several else ""
    return Section(f"Where the decisions part{under}", blocks, f"divergence-{place}", "Divergence", about=_ABOUT)


def _tables(found: Divergence, called: tuple[str, str]) -> tuple[Table, ...]:
    """The decisions around the place, side by side; and who the tasks are. None where they never part."""
    if found.spread is None:
        return ()
    heads = (f"{called[0]} (baseline)", called[1])
    rows = (
        *(
            _row(place - found.alike, (point, point), on_cpu=found.cpus > 1)
            for place, point in enumerate(found.before, found.alike - len(found.before) + 1)
        ),
        *(
            _row(place, pair, parts=place == 1, on_cpu=found.cpus > 1)
            for place, pair in enumerate(zip_longest(found.baseline.following, found.own.following), 1)
        ),
    )
    columns = (Column("", figure=False), *(Column(head, figure=False) for head in heads))
    return (
        Table(columns, (RowGroup("", rows),), title="Decisions where they part"),
        *_tasks(found),
    )


def _row(place: int, pair: Sequence[DecisionPoint | None], *, on_cpu: bool, parts: bool = False) -> Row:
    """``place`` counts from the first decision that differs, which is 1; ``on_cpu`` says which CPU decides."""
    cells = (
        NOTHING
        if point is None
        else f"{f'CPU {point.cpu}: ' if on_cpu else ''}{in_words(point)}, {amount(point.time_ns, 'ns')}"
        for point in pair
    )
    return Row((number(place, 0), *map(visible_line, cells)), marked=parts)


def _tasks(found: Divergence) -> Iterable[Table]:
    rows = tuple(
        Row((visible_line(task.called), ROLES[task.role], visible_line(task.name) or NOTHING, task.made_by or NOTHING))
        for task in found.tasks
    )
    titles = ("Task", "Part of", "Carries out", "Made by")
    columns = tuple(Column(title, figure=False) for title in titles)
    return (Table(columns, (RowGroup("", rows),), title="Tasks around that place"),) if rows else ()
