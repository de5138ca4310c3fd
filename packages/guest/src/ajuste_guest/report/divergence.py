"""Divergence of two trials: the scheduler's first decision that differs, what follows, and who has each CPU then."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any, Final

from ajuste.model.cost import ROLES
from ajuste.model.decision import DecisionLane, DecisionMark, DecisionPoint, Divergence
from ajuste.model.explanation import EXPLANATIONS, Explanation
from ajuste.model.origin import IMPORTED
from ajuste.model.results import Results
from ajuste.model.wording import amount, visible_line
from ajuste.report.document import Block, Column, CommandBlock, Folded, Paragraph, Picture, Report, Row, Section, Table
from ajuste.report.format import NOTHING, Labels, common_format, number, result_labels
from ajuste.report.plots.plot import SERIES, LegendEntry, Plot, figure, plain, plain_lines, scatter, variable
from ajuste_guest.analysis.divergence import in_words
from ajuste_guest.report.costs import called_in

# CSS pixels of a lane, and of a run in it.
_LANE: Final = 64
_BAR: Final = 22
# Parts of a lane, of a mark's middle from the lane's.
_ABOVE: Final = 0.36
_IDLE: Final = "idle"
# How decisions between switches are drawn: symbol, colour, words.
_MARKS: Final = {
    "wakeup": ("triangle-up", "ink", "wakes up"),
    "new": ("star", "ink", "new task"),
    "resched": ("diamond", "worsens", "is preempted"),
    "timer": ("line-ns", "muted", "timer interrupt"),
}


def divergence_plot(divergence: Divergence, called: tuple[str, str], name: str) -> Plot | None:
    """Return the task on each CPU where the decisions part; ``None`` if they never do."""
    if divergence.spread is None:
        return None
    lanes = (divergence.baseline, divergence.own)
    cpus = sorted({run.cpu for lane in lanes for run in lane.runs})
    places = {(cpu, which): 2 * row + which for row, cpu in enumerate(cpus) for which in range(2)}
    # Tasks beyond the number of series share one colour.
    tasks = list(dict.fromkeys(run.task for lane in lanes for run in lane.runs if run.task != _IDLE))
    roles = {task: f"series-{1 + place}" if place < SERIES - 1 else "muted" for place, task in enumerate(tasks)}
    if any(run.task == _IDLE for lane in lanes for run in lane.runs):
        roles[_IDLE] = "still"
    ends = [end for lane in lanes for run in lane.runs for end in (run.begin_ns, run.end_ns)]
    unit = common_format(ends, "ns")
    traces = [_runs(lane, task, places, which, roles[task], unit.divisor)
              for which, lane in enumerate(lanes) for task in roles
              if any(run.task == task for run in lane.runs)]  # fmt: skip
    drawn = [kind for kind in _MARKS if any(mark.kind == kind for lane in lanes for mark in lane.marks)]
    traces += [_marks(lane, kind, places, which, unit.divisor)
               for which, lane in enumerate(lanes) for kind in drawn
               if any(mark.kind == kind for mark in lane.marks)]  # fmt: skip
    zero = {"type": "line", "x0": 0, "x1": 0, "y0": 0, "y1": 1, "yref": "y domain"}
    labels = [(f"CPU {cpu}, " if len(cpus) > 1 else "") + called[which] for cpu in cpus for which in range(2)]
    return Plot(
        name=name,
        title=f"Who has the CPU where they part, {unit.unit} since the last decision in common",
        description=" ".join(divergence.sentences[:3]),
        figure=figure(
            traces,
            shapes=[{**zero, "line": {"color": variable("ink"), "width": 1}}],
            xaxis={"nticks": 6, "range": [min(ends, default=0) / unit.divisor, max(ends, default=1) / unit.divisor]},
            yaxis={
                "tickmode": "array",
                "tickvals": list(places.values()),
                "ticktext": [plain_lines(label, 14) for label in labels],
                "range": [len(places) - 0.4, -0.6],
                "showgrid": False,
            },
        ),
        height=60 + _LANE * len(places),
        legend=(
            *(LegendEntry(visible_line(task), "square", role) for task, role in roles.items()),
            *(LegendEntry(_MARKS[kind][2], _MARKS[kind][0], _MARKS[kind][1]) for kind in drawn),
        ),
        wide=True,
    )


def _runs(
    lane: DecisionLane, task: str, places: dict[tuple[int, int], int], which: int, role: str, divisor: float
) -> dict[str, Any]:
    runs = [run for run in lane.runs if run.task == task]
    return scatter(
        "lines",
        [end for run in runs for end in (run.begin_ns / divisor, run.end_ns / divisor, None)],
        [end for run in runs for end in (places[run.cpu, which], places[run.cpu, which], None)],
        [f"<b>{plain(run.task)}</b><br>{amount(run.end_ns - run.begin_ns, 'ns')}" for run in runs for _ in range(3)],
        line={"color": variable(role), "width": _BAR},
    )


def _marks(
    lane: DecisionLane, kind: str, places: dict[tuple[int, int], int], which: int, divisor: float
) -> dict[str, Any]:
    marks: list[DecisionMark] = [mark for mark in lane.marks if mark.kind == kind]
    symbol, role, words = _MARKS[kind]
    return scatter(
        "markers",
        [mark.at_ns / divisor for mark in marks],
        [places[mark.cpu, which] - _ABOVE for mark in marks],
        [f"<b>{plain(mark.task)}</b><br>{words}" if mark.task else words for mark in marks],
        marker={"symbol": symbol, "size": 9, "color": variable(role), "line": {"width": 1, "color": variable(role)}},
    )


_ABOUT = (
    "One trial of each with the same seed, followed without disturbing it. A decision is a switch, a wake-up, a new "
    "task or that a task is preempted; when it is taken does not count. Those of several CPUs are in one order."
)


def divergence_sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Return a section for each explanation whose decisions were followed."""
    several = len(EXPLANATIONS.of(results)) > 1
    return tuple(
        _section(
            explanation.divergence,
            called_in(results, explanation, labels),
            place,
            several=several,
            trace=_trace_command(results, explanation),
        )
        for place, explanation in enumerate(EXPLANATIONS.of(results))
        if explanation.divergence is not None
    )


def divergence_report(results: Results, explanation: Explanation) -> Report:
    """Return where a configuration's decisions part from the baseline's; empty if they were not followed."""
    divergence = explanation.divergence
    if divergence is None:
        return Report(results.title, "", ())
    first, *others = divergence.sentences
    tables = _tables(divergence, called_in(results, explanation, result_labels(results)))
    notes = tuple(Paragraph(note, "dim") for note in divergence.notes)
    sections = tuple(Section(table.title, (table,)) for table in tables)
    return Report(results.title, first, (*sections, Section("", notes)), lead=tuple(map(Paragraph, others)))


def _trace_command(results: Results, explanation: Explanation) -> tuple[Block, ...]:
    # The configuration's name in an imported run is a stranger's text.
    if IMPORTED.of(results) or explanation.divergence is None or explanation.divergence.spread is None:
        return ()
    words = ["ajuste", "why", results.run, explanation.configuration, "--divergence", "--perfetto", "trace.pftrace"]
    return (
        Paragraph("To see both trials one above the other, open the file of this command at https://ui.perfetto.dev:"),
        CommandBlock("trace", (shlex.join(words),)),
    )


def divergence_blocks(
    divergence: Divergence, called: tuple[str, str], name: str, trace: tuple[Block, ...] = ()
) -> tuple[Block, ...]:
    """Return what tells of it: sentences, a picture of that ``name``, and tables; the trials are ``called`` so."""
    plot = divergence_plot(divergence, called, name)
    return (
        *map(Paragraph, divergence.sentences),
        *((Picture(plot, called[1]),) if plot is not None else ()),
        *(Folded(table.title, (table,)) for table in _tables(divergence, called)),
        *trace,
        *(Paragraph(note, "dim", detail=True) for note in divergence.notes),
    )


def _section(
    divergence: Divergence, called: tuple[str, str], place: int, *, several: bool, trace: tuple[Block, ...]
) -> Section:
    blocks = divergence_blocks(divergence, (f"{called[0]} (baseline)", called[1]), f"divergence-{place}", trace)
    under = f" under {called[1]}" if several else ""
    return Section(
        f"Where the decisions part{under}", blocks, f"divergence-{place}", "Divergence", about=_ABOUT, brief=1
    )


def _tables(divergence: Divergence, called: tuple[str, str]) -> tuple[Table, ...]:
    if divergence.spread is None:
        return ()
    rows = (
        *(
            _row(place - divergence.alike, (point, point), on_cpu=divergence.cpus > 1)
            for place, point in enumerate(divergence.before, divergence.alike - len(divergence.before) + 1)
        ),
        *(
            _row(place, pair, parts=place == 1, on_cpu=divergence.cpus > 1)
            for place, pair in enumerate(zip_longest(divergence.baseline.following, divergence.own.following), 1)
        ),
    )
    columns = (Column("", figure=False), *(Column(head, figure=False) for head in called))
    return (
        Table.of(columns, rows, title="Decisions where they part"),
        *_tasks(divergence),
    )


def _row(place: int, pair: Sequence[DecisionPoint | None], *, on_cpu: bool, parts: bool = False) -> Row:
    # `place` counts from the first decision that differs, which is 1; `on_cpu` says which CPU decides.
    cells = (
        NOTHING
        if point is None
        else f"{f'CPU {point.cpu}: ' if on_cpu else ''}{in_words(point)}, {amount(point.time_ns, 'ns')}"
        for point in pair
    )
    return Row((number(place, 0), *map(visible_line, cells)), marked=parts)


def _tasks(divergence: Divergence) -> Iterable[Table]:
    rows = tuple(
        Row((visible_line(task.called), ROLES[task.role], visible_line(task.name) or NOTHING, task.made_by or NOTHING))
        for task in divergence.tasks
    )
    titles = ("Task", "Part of", "Carries out", "Made by")
    columns = tuple(Column(title, figure=False) for title in titles)
    return (Table.of(columns, rows, title="Tasks around that place"),) if rows else ()
