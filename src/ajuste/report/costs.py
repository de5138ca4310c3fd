"""What costs what: which functions and system calls make up the difference of two trials, to the instruction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ajuste.model.cost import ROLES, CostComparison, CostRow
from ajuste.model.modelled import ModelledMachine
from ajuste.model.results import Results
from ajuste.model.scheduling import Explanation
from ajuste.model.wording import visible_line
from ajuste.report.document import Block, Column, Folded, Paragraph, Picture, Row, RowGroup, Section, Table
from ajuste.report.format import count_of, number, signed, significant
from ajuste.report.labels import Labels
from ajuste.report.modelled import modelled_plot, modelled_tables
from ajuste.report.plots.costs import costs_plots

_ABOUT = (
    "Instructions of one trial of each, from the workload's start to its end, counted without disturbing it. A frame's "
    "width is the instructions of both trials, its colour the difference."
)

_LONGEST_NAME = 30
"""Of a function in a table, so that its figures stand beside it also where there is little room."""

_MOST_COUNTED = 3
_MOST_MODELLED = 1
"""Sentences that stand in the short report of a terminal: the whole, the tasks, the functions; the modelled time."""


def costs_sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """A section for each explanation of ``results`` that has costs."""
    several = len(results.explanations) > 1
    return tuple(
        _section(explanation.costs, called_in(results, explanation, labels), place, several=several)
        for place, explanation in enumerate(results.explanations)
        if explanation.costs is not None
    )


def called_in(results: Results, explanation: Explanation, labels: Labels) -> tuple[str, str]:
    """How the baseline and the configuration are called."""
    names = {one.name: labels.short(one) for one in results.configurations}
    baseline, own = (
        names.get(one.configuration, visible_line(one.configuration)) for one in (explanation.baseline, explanation.own)
    )
    return baseline, own


def _section(costs: CostComparison, called: tuple[str, str], place: int, *, several: bool) -> Section:
    first, *others = cost_tables(costs, called)
    plots = [*costs_plots(costs, called, f"costs-{place}")]
    if costs.modelled and (bars := modelled_plot(costs.modelled, called, f"costs-{place}-modelled")):
        plots.append(bars)
    blocks: tuple[Block, ...] = (
        *_paragraphs(costs.sentences, _MOST_COUNTED),
        *(_paragraphs(costs.modelled.sentences, _MOST_MODELLED) if costs.modelled else ()),
        *(Picture(plot, called[1]) for plot in plots),
        Folded(first.title, (first,), open=True),
        *(Folded(table.title, (table,)) for table in others),
        *(Paragraph(note, "dim", detail=True) for note in costs.notes),
    )
    under = f" under {called[1]}" if several else ""
    about = f"{_ABOUT} {_modelled_words(costs.modelled.machine)}" if costs.modelled else _ABOUT
    return Section(f"What costs what{under}", blocks, f"costs-{place}", "Costs", about=about)


def _paragraphs(sentences: Sequence[str], most: int) -> Iterator[Paragraph]:
    """The first ``most`` for everybody, the others for who wants the details."""
    return (Paragraph(sentence, detail=place >= most) for place, sentence in enumerate(sentences))


def cost_sentences(costs: CostComparison) -> tuple[str, ...]:
    """What was counted, then what was modelled, if anything."""
    return (*costs.sentences, *(costs.modelled.sentences if costs.modelled else ()))


def _modelled_words(machine: ModelledMachine) -> str:
    return (
        f"Modelled figures are those of a model of {machine.title}, which sees every access of the guest. Time is "
        f"{machine.instructions_per_cycle} instructions a cycle at {machine.frequency_mhz} MHz, and the latency of "
        "every miss in full: a real processor does other things while it waits."
    )


def cost_tables(costs: CostComparison, called: tuple[str, str]) -> tuple[Table, ...]:
    """Functions that differ, all tasks, system calls, the functions that cost most, and what a modelled machine makes
    of it; empty ones are left out.
    """
    whole = CostRow(name="All", baseline_calls=0, own_calls=0, baseline=costs.baseline, own=costs.own)
    others = count_of(int(costs.others.name), "other function")
    functions = (*map(_function_row, costs.functions), _row(others, costs.others), _row("All", whole, calls=False))
    tasks = (*(_row(ROLES[part.name], part) for part in costs.parts), _row("All", whole, calls=False))
    return (
        _table("Functions that make up the difference", called, functions, "Calls"),
        *_each_table(called, costs.changed),
        _table("Instructions by task", called, tasks, "Switches to them"),
        *_filled("System calls, exceptions and interrupts, with all that they call", called, costs.entries, "Times"),
        *_filled("Functions that cost most", called, costs.most, "Calls"),
        *(modelled_tables(costs.modelled, called, _named) if costs.modelled else ()),
    )


def _filled(title: str, called: tuple[str, str], rows: Iterable[CostRow], calls: str) -> tuple[Table, ...]:
    made = tuple(map(_function_row, rows))
    return (_table(title, called, made, calls),) if made else ()


def _each_table(called: tuple[str, str], changed: Iterable[CostRow]) -> tuple[Table, ...]:
    """What a call costs, and how much of the difference that makes."""
    rows = tuple(
        Row(
            (
                _name_of(row),
                significant(row.baseline / row.baseline_calls, 4),
                significant(row.own / row.own_calls, 4),
                signed(row.by_each, 0),
            )
        )
        for row in changed
    )
    columns = (Column("", figure=False), Column(f"{called[0]} (baseline)"), Column(called[1]), Column("In all"))
    title = "Functions of which each call costs more or less"
    return (Table(columns, (RowGroup("", rows),), title=title),) if rows else ()


def _table(title: str, called: tuple[str, str], rows: tuple[Row, ...], calls: str) -> Table:
    columns = (
        Column("", figure=False),
        Column(f"{called[0]} (baseline)"),
        Column(called[1]),
        Column("Difference"),
        Column(calls, optional=True),
    )
    return Table(columns, (RowGroup("", rows),), title=title)


def _function_row(row: CostRow) -> Row:
    return _row(_name_of(row), row)


def _name_of(row: CostRow) -> str:
    return _named(row.name, row.file)


def _named(name: str, file: str) -> str:
    file, name = file.rpartition("/")[2], visible_line(name)
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    return f"{short} ({visible_line(file)})" if file else short


def _row(name: str, row: CostRow, *, calls: bool = True) -> Row:
    counted = [number(count, 0) for count in (row.baseline_calls, row.own_calls)]
    times = counted[0] if counted[0] == counted[1] else " → ".join(counted)
    figures = (number(row.baseline, 0), number(row.own, 0), signed(row.difference, 0))
    return Row((name, *figures, times if calls else ""))
