"""Costs: the functions and system calls that make up the difference of two trials, to the instruction.

Their call trees are drawn one over the other, as a differential flame graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ajuste.model.cost import ROLES, CostComparison, CostGraph, CostRow
from ajuste.model.explanation import EXPLANATIONS, Explanation
from ajuste.model.results import Results
from ajuste.model.wording import count_of, visible_line
from ajuste.report.document import Block, Column, Folded, Paragraph, Picture, Row, Section, Table
from ajuste.report.format import Labels, number, signed, significant
from ajuste.report.plots.plot import LegendEntry, Plot, figure, plain, variable
from ajuste_guest.report.modelled import both_beside, modelled_plot, modelled_tables

# CSS pixels of a frame, and so many frames at most are shown one below the other.
_ROW: Final = 21
_MOST_ROWS: Final = 30
# Rows end where no frame is one part in so many any more; a click on a frame shows those below it.
_SEEN: Final = 300
_LEGEND: Final = (
    LegendEntry("fewer by half or more", "square", "fall-3"),
    LegendEntry("fewer by a tenth", "square", "fall-2"),
    LegendEntry("fewer", "square", "fall-1"),
    LegendEntry("within 1 %", "square", "still"),
    LegendEntry("more", "square", "rise-1"),
    LegendEntry("more by a tenth", "square", "rise-2"),
    LegendEntry("more by half or more", "square", "rise-3"),
)
# From which part of the greater figure a difference has which colour.
_STEPS: Final = ((0.5, 3), (0.1, 2), (0.01, 1))

_ABOUT = (
    "Instructions of one trial of each, from the workload's start to its end, counted without disturbing it. A frame's "
    "width is the instructions of both trials, its colour the difference."
)

# Of a function in a table, so that its figures stand beside it also where there is little room.
_LONGEST_NAME = 30

# Sentences that stand in the short report of a terminal: the whole, the tasks, the functions; the modelled time.
_MOST_COUNTED = 3

_MOST_MODELLED = 1


def costs_plots(costs: CostComparison, called: tuple[str, ...], name: str) -> tuple[Plot, ...]:
    """Return the call tree of both trials, and the kernel's part where programs did more."""
    whole = _plot(costs, costs.graph, called, f"{name}-tree", "Call tree of both trials, instructions")
    of_kernel = sum(costs.kernel_graph.baseline) + sum(costs.kernel_graph.own)
    if not 0 < 2 * of_kernel < costs.baseline + costs.total:
        return (whole,)
    title = "What the kernel did in both trials, instructions"
    return whole, _plot(costs, costs.kernel_graph, called, f"{name}-kernel", title)


def _plot(costs: CostComparison, graph: CostGraph, called: tuple[str, ...], name: str, title: str) -> Plot:
    # A frame is as wide as both trials together.
    wholes = [_subtree_totals(graph, trial) for trial in (graph.baseline, graph.own)]
    depths: list[int] = []
    for parent in graph.parents:
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
    shades = [_shade(before, after) for before, after in zip(*wholes, strict=True)]
    values = [before + after for before, after in zip(*wholes, strict=True)]
    rows = min(_MOST_ROWS, 1 + max(d for d, value in zip(depths, values, strict=True) if _SEEN * value >= values[0]))
    labels = [plain(_label(graph, place, depths[place])) for place in range(len(graph.parents))]
    both = plain(called[0]), plain(called[1])
    drawn = {
        "type": "icicle",
        "ids": [str(place) for place in range(len(labels))],
        "labels": labels,
        "parents": ["" if parent < 0 else str(parent) for parent in graph.parents],
        "values": values,
        "branchvalues": "total",
        "maxdepth": rows,
        "tiling": {"orientation": "v", "pad": 1},
        "pathbar": {"visible": False},
        "marker": {"colors": [variable(shade) for shade in shades], "line": {"width": 0}},
        "textinfo": "label",
        "textposition": "middle left",
        "textfont": {"color": [variable("card" if shade.endswith("3") else "ink") for shade in shades], "size": 11},
        "hoverinfo": "text",
        "hovertext": [_hover(label, both, before, after) for label, before, after in zip(labels, *wholes, strict=True)],
    }
    return Plot(
        name=name,
        title=title,
        description=_description(costs, called),
        figure=figure([drawn], uniformtext={"minsize": 10, "mode": "hide"}, margin={"l": 0, "r": 0, "t": 4, "b": 4}),
        height=20 + _ROW * rows,
        legend=_LEGEND,
        legend_title=f"Instructions under {called[1]}, compared with {called[0]}",
        wide=True,
    )


def _subtree_totals(graph: CostGraph, itself: tuple[int, ...]) -> list[int]:
    totals = list(itself)
    for place in range(len(totals) - 1, 0, -1):
        totals[graph.parents[place]] += totals[place]
    return totals


def _shade(before: int, after: int) -> str:
    share = (after - before) / max(before, after, 1)
    step = next((step for least, step in _STEPS if abs(share) >= least), 0)
    return f"{'rise' if share > 0 else 'fall'}-{step}" if step else "still"


def _label(graph: CostGraph, place: int, depth: int) -> str:
    name = graph.names[graph.labels[place]]
    if depth == 0:
        return "all tasks"
    if depth == 1:
        return ROLES.get(name, "others")
    return name or "others"


def _hover(label: str, called: tuple[str, str], before: int, after: int) -> str:
    # `label` and `called` are escaped already.
    figures = f"{called[0]}: {number(before, 0)}<br>{called[1]}: {number(after, 0)}"
    return f"<b>{label}</b><br>{figures}<br>difference: {signed(after - before, 0)} instructions"


def _description(costs: CostComparison, called: tuple[str, ...]) -> str:
    rows = costs.functions[:3]
    most = "; ".join(f"{row.name} {number(row.baseline, 0)} → {number(row.own, 0)}" for row in rows)
    totals = " and ".join(number(total, 0) for total in (costs.baseline, costs.total))
    return f"Call tree of {called[0]} and {called[1]}: {totals} instructions. " + (
        f"Greatest differences: {most}." if most else "No function differs."
    )


def costs_sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Return a section for each explanation that has costs."""
    several = len(EXPLANATIONS.of(results)) > 1
    return tuple(
        _section(explanation.costs, called_in(results, explanation, labels), place, several=several)
        for place, explanation in enumerate(EXPLANATIONS.of(results))
        if explanation.costs is not None
    )


def called_in(results: Results, explanation: Explanation, labels: Labels) -> tuple[str, str]:
    """Return the names of the baseline and the configuration."""
    names = labels.by_name(results)
    baseline, alternative = (
        names.get(trial.configuration, visible_line(trial.configuration))
        for trial in (explanation.baseline, explanation.own)
    )
    return baseline, alternative


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
    about = _ABOUT
    if costs.modelled:
        machine = costs.modelled.machine
        about += (
            f" Modelled figures are those of a model of {machine.title}, which sees every access of the guest. Time is "
            f"{machine.instructions_per_cycle} instructions a cycle at {machine.frequency_mhz} MHz, and the latency of "
            "every miss in full: a real processor does other things while it waits."
        )
    return Section(f"What costs what{under}", blocks, f"costs-{place}", "Costs", about=about, brief=0)


def _paragraphs(sentences: Sequence[str], most: int) -> Iterator[Paragraph]:
    # All but the first `most` are details.
    return (Paragraph(sentence, detail=place >= most) for place, sentence in enumerate(sentences))


def cost_tables(costs: CostComparison, called: tuple[str, str]) -> tuple[Table, ...]:
    """Return functions, tasks and system calls, then their modelled costs; no empty tables."""
    whole = CostRow(name="All", baseline_calls=0, own_calls=0, baseline=costs.baseline, own=costs.total)
    others = count_of(int(costs.others.name), "other function")
    functions = (*map(_function_row, costs.functions), _row(others, costs.others), _row("All", whole, calls=False))
    tasks = (*(_row(ROLES[part.name], part) for part in costs.parts), _row("All", whole, calls=False))
    return (
        both_beside("Functions that make up the difference", called, functions, Column("Calls", optional=True)),
        *_per_call_table(called, costs.changed),
        both_beside("Instructions by task", called, tasks, Column("Switches to them", optional=True)),
        *_filled("System calls, exceptions and interrupts, with all that they call", called, costs.entries, "Times"),
        *_filled("Functions that cost most", called, costs.most, "Calls"),
        *(modelled_tables(costs.modelled, called, _function_name) if costs.modelled else ()),
    )


def _filled(title: str, called: tuple[str, str], rows: Iterable[CostRow], calls: str) -> tuple[Table, ...]:
    made = tuple(map(_function_row, rows))
    return (both_beside(title, called, made, Column(calls, optional=True)),) if made else ()


def _per_call_table(called: tuple[str, str], changed: Iterable[CostRow]) -> tuple[Table, ...]:
    rows = tuple(
        Row(
            (
                _function_name(row.name, row.file),
                significant(row.baseline / row.baseline_calls, 4),
                significant(row.own / row.own_calls, 4),
                signed(row.by_each, 0),
            )
        )
        for row in changed
    )
    columns = (Column("", figure=False), Column(f"{called[0]} (baseline)"), Column(called[1]), Column("In all"))
    title = "Functions of which each call costs more or less"
    return (Table.of(columns, rows, title=title),) if rows else ()


def _function_row(row: CostRow) -> Row:
    return _row(_function_name(row.name, row.file), row)


def _function_name(name: str, file: str) -> str:
    file, name = file.rpartition("/")[2], visible_line(name)
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    return f"{short} ({visible_line(file)})" if file else short


def _row(name: str, row: CostRow, *, calls: bool = True) -> Row:
    counted = [number(count, 0) for count in (row.baseline_calls, row.own_calls)]
    times = counted[0] if counted[0] == counted[1] else " → ".join(counted)
    figures = (number(row.baseline, 0), number(row.own, 0), signed(row.difference, 0))
    return Row((name, *figures, times if calls else ""))
