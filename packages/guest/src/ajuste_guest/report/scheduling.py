"""Report of the scheduler's decisions: sentences, figures side by side, plots."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from ajuste.model.explanation import EXPLANATIONS, Explanation, Recorded
from ajuste.model.results import Results
from ajuste.model.scheduling import Part, Recording, Spread
from ajuste.model.wording import count_of, visible_line
from ajuste.report.document import Block, Column, Folded, Paragraph, Picture, Report, Row, Section, Table
from ajuste.report.format import NOTHING, Labels, common_format, number, result_labels
from ajuste.report.plots.plot import LegendEntry, Mark, Plot, figure, plain, scatter
from ajuste.report.plots.trials import configuration_marks
from ajuste_guest.report.costs import called_in, cost_tables

CAUSES: Final = {
    "by_wakeup": "preempted by a wake-up",
    "by_turn": "its time slice expired",
    "slept": "waits",
    "blocked": "waits for a disk",
    "stopped": "stopped",
    "exited": "ended",
}
_TICKS_NS: Final = {
    10.0 ** (power + step): f"{10**step} {unit}"
    for power, unit in ((0, "ns"), (3, "µs"), (6, "ms"), (9, "s"))
    for step in range(3)
}
# CSS pixels of a cause, and of a bar.
_ROW: Final = 46
_BAR: Final = 11
# Parts of a row, of a bar's middle from the row's.
_APART: Final = 0.16
_HEIGHT: Final = 270
# Classes of a histogram of durations.
_PER_DOUBLING: Final = 4

_FEW: Final = 20

Pair = list[tuple[Recording, Mark, str]]

_PARTS: Final[dict[Part, str]] = {"workload": "the workload", "background": "the background load", "other": "others"}
_MOST_LINES: Final = 8
_MOST_CHANGED: Final = 10

# With how many values at least each says something.
_QUANTILES: Final = (("median", "p50_ns", 1), ("p95", "p95_ns", 20), ("p99", "p99_ns", 100), ("longest", "max_ns", 1))

_TaskFigures = Callable[[Recording], dict[str, str]]


def scheduling_plots(
    results: Results, explanation: Explanation, called: tuple[str, ...], name: str
) -> tuple[Plot, ...]:
    """Return the plots of both recordings; empty if one is missing. ``called`` are baseline and configuration."""
    marks = configuration_marks(results)
    both = (explanation.baseline, explanation.own)
    pair = [
        (trial.recording, marks[trial.configuration], words)
        for trial, words in zip(both, called, strict=True)
        if trial.recording is not None and trial.configuration in marks
    ]
    if len(pair) < len(both):
        return ()
    legend = tuple(
        LegendEntry(words + (" (baseline)" if place == 0 else ""), "square", mark.role)
        for place, (_, mark, words) in enumerate(pair)
    )
    plots = (
        _causes(pair, f"{name}-causes", legend),
        _durations(pair, "latency", "Time from wake-up to running", "wake-ups", f"{name}-latency", legend),
        _durations(pair, "runs", "Length of a run on the CPU", "runs", f"{name}-runs", legend),
        _queue(pair, f"{name}-queue", legend),
    )
    return tuple(plot for plot in plots if plot is not None)


def _causes(pair: Pair, name: str, legend: tuple[LegendEntry, ...]) -> Plot:
    causes = [cause for cause in CAUSES if any(getattr(recording.workload.switches, cause) for recording, _, _ in pair)]
    counts = [[getattr(recording.workload.switches, cause) for cause in causes] for recording, _, _ in pair]
    both = [" → ".join(number(trial_counts[place], 0) for trial_counts in counts) for place in range(len(causes))]
    texts = (f"{CAUSES[cause]} {words}" for cause, words in zip(causes, both, strict=True))
    return Plot(
        name=name,
        title="Why the workload's tasks left the CPU, number of switches",
        description=f"Switches by cause, {' and '.join(words for _, _, words in pair)}: {', '.join(texts)}.",
        figure=figure(
            [
                _bars(trial_counts, [place + _APART * (2 * side - 1) for place in range(len(causes))], mark, words)
                for side, (trial_counts, (_, mark, words)) in enumerate(zip(counts, pair, strict=True))
            ],
            xaxis={"range": [0, 1.05 * max(1, *itertools.chain(*counts))], "nticks": 4},
            yaxis={
                "tickmode": "array",
                "tickvals": list(range(len(causes))),
                "ticktext": [f"{CAUSES[cause]}<br>{words}" for cause, words in zip(causes, both, strict=True)],
                "range": [len(causes) - 0.5, -0.5],
                "showgrid": False,
            },
        ),
        height=60 + _ROW * max(2, len(causes)),
        legend=legend,
    )


def _bars(counts: list[int], places: list[float], mark: Mark, words: str) -> dict[str, Any]:
    return scatter(
        "lines",
        [end for count in counts for end in (0, count, None)],
        [end for place in places for end in (place, place, None)],
        [f"<b>{plain(words)}</b><br>{number(count, 0)}" for count in counts for _ in range(3)],
        line={"color": mark.colour, "width": _BAR},
    )


def _durations(
    pair: Pair, field: str, title: str, counted: str, name: str, legend: tuple[LegendEntry, ...]
) -> Plot | None:
    # `None` for so few that there is no distribution.
    spreads: list[tuple[Spread, Mark, str]] = [
        (getattr(recording.workload, field), mark, words) for recording, mark, words in pair
    ]
    if max(spread.count for spread, _, _ in spreads) < _FEW:
        return None
    floor = min(50 / spread.count for spread, _, _ in spreads if spread.count)  # half of what one is
    traces = [_outline(*_shares(spread, floor), mark, words) for spread, mark, words in spreads]
    ends = [end for trace in traces for end in (trace["x"][:1] + trace["x"][-1:])]
    ticks = {at: words for at, words in _TICKS_NS.items() if min(ends) / 1.25 <= at <= max(ends) * 1.25}
    summary = "; ".join(
        f"{words}: {number(spread.count, 0)} {counted}, median {number(spread.p50_ns / 1000, 1)} µs, p95 "
        f"{number(spread.p95_ns / 1000, 1)} µs, longest {number(spread.max_ns / 1000, 1)} µs"
        for spread, _, words in spreads
    )
    return Plot(
        name=name,
        title=f"{title}, share of the {counted}, logarithmic",
        description=f"{title}. {summary}.",
        figure=figure(
            traces,
            xaxis={
                "type": "log",
                "range": [math.log10(min(ends)) - 0.1, math.log10(max(ends)) + 0.1],
                "tickmode": "array",
                "tickvals": list(ticks),
                "ticktext": list(ticks.values()),
            },
            yaxis={"type": "log", "range": [math.log10(floor), 2], "dtick": 1, "ticksuffix": " %"},
        ),
        height=_HEIGHT,
        legend=legend,
    )


def _shares(spread: Spread, floor: float) -> tuple[list[float], list[float]]:
    # Where each class begins, and what share of all is in it: `floor` before the first, after the last and in gaps,
    # because a logarithmic axis has no 0.
    edges: list[float] = []
    shares: list[float] = []
    end = 0.0
    for least, count in spread.histogram:
        begin = float(max(1, least))
        if begin > end:
            edges.append(end or begin)
            shares.append(floor)
        edges.append(begin)
        shares.append(100 * count / spread.count)
        end = begin + max(1.0, 2.0 ** math.floor(math.log2(begin)) / _PER_DOUBLING)
    return [*edges, end or 1.0], [*shares, floor]


def _queue(pair: Pair, name: str, legend: tuple[LegendEntry, ...]) -> Plot:
    traces = []
    for recording, mark, words in pair:
        whole = sum(lasted for _, lasted in recording.queue) or 1
        by_length = {length: 100 * lasted / whole for length, lasted in recording.queue}
        lengths = range(max(by_length, default=0) + 2)
        traces.append(_outline([n - 0.5 for n in lengths], [by_length.get(n, 0.0) for n in lengths], mark, words))
    return Plot(
        name=name,
        title="Runnable tasks per CPU, share of the time",
        description="Runnable tasks per CPU, including the running one, of all tasks.",
        figure=figure(
            traces,
            xaxis={"nticks": 8, "title": {"text": "tasks"}},
            yaxis={"ticksuffix": " %", "rangemode": "tozero", "nticks": 5},
        ),
        height=_HEIGHT,
        legend=legend,
    )


def _outline(edges: list[float], shares: list[float], mark: Mark, words: str) -> dict[str, Any]:
    # A histogram's upper edge: each share from its edge to the next.
    return scatter(
        "lines",
        [edges[0], *(edge for edge in edges[1:] for _ in range(2))] if edges else [],
        [share for share in shares for _ in range(2)][:-1],
        f"<b>{plain(words)}</b>",
        line={"width": 2, "color": mark.colour},
        hoverinfo="y+text",
    )


def scheduling_sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Return a section for each explanation of ``results``."""
    several = len(EXPLANATIONS.of(results)) > 1
    return tuple(
        _section(results, _in_words(explanation, results, labels), labels, f"scheduling-{place}", several=several)
        for place, explanation in enumerate(EXPLANATIONS.of(results))
    )


def explanation_report(results: Results, explanation: Explanation, *, verbose: bool = False) -> Report:
    """Return what is known of one configuration: all of it if ``verbose``, or else a screenful."""
    labels = result_labels(results)
    explanation = _in_words(explanation, results, labels)
    section = _section(results, explanation, labels, "scheduling", several=False)
    costs = explanation.costs
    sentences = (*explanation.sentences, *(costs.all_sentences if costs else ()))
    if not verbose:
        sentences = (*explanation.sentences, *(costs.sentences[:2] if costs else ()))
    first, *others = sentences or explanation.notes or ("Nothing was recorded.",)
    lead = tuple(Paragraph(sentence) for sentence in others)
    tables = [table for block in section.blocks if isinstance(block, Folded) for table in block.blocks]
    tables += cost_tables(costs, called_in(results, explanation, labels)) if costs else ()
    if not verbose:
        return Report(results.title, first, (_changed(tables),), lead=lead)
    notes = tuple(Paragraph(note, "dim") for note in (*explanation.notes, *(costs.notes if costs else ())))
    sections = tuple(Section(table.title, (table,)) for table in tables if isinstance(table, Table))
    return Report(results.title, first, (*sections, Section("", notes)), lead=lead)


def _changed(tables: Sequence[Block]) -> Section:
    more = Paragraph("All tables with --verbose, pictures in the report.")
    whole = next((table for table in tables if isinstance(table, Table)), None)
    rows = [row for group in whole.groups for row in group.rows] if whole else []
    changed = [row for row in rows if row.cells[1] != row.cells[2] and NOTHING not in row.cells]
    if whole is None or not changed:
        return Section("", (more,))
    return Section(whole.title, (Table.of(whole.columns, tuple(changed[:_MOST_CHANGED])), more))


def _section(results: Results, explanation: Explanation, labels: Labels, name: str, *, several: bool) -> Section:
    called = called_in(results, explanation, labels)
    tables = _tables(explanation, (f"{called[0]} (baseline)", called[1]))
    sentences = explanation.sentences or explanation.notes
    notes = explanation.notes if explanation.sentences else ()
    blocks: tuple[Block, ...] = (
        *map(Paragraph, sentences),
        *(Picture(plot, called[1]) for plot in scheduling_plots(results, explanation, called, name)),
        *(Folded(table.title, (table,)) for table in tables),
        *(Paragraph(note, "dim", detail=True) for note in notes),
    )
    under = f" under {called[1]}" if several else ""
    return Section(f"Why: what the scheduler does{under}", blocks, name, "Why", brief=1)


def _in_words(explanation: Explanation, results: Results, labels: Labels) -> Explanation:
    # The same with configurations by their settings: `base_slice_ns = 3 ms` for `base_slice_ns=3000000`.
    settings = {c.name: labels.setting(c) for c in results.configurations if "=" in c.name}
    names = {trial.configuration for trial in (explanation.baseline, explanation.own)} & settings.keys()
    if not names:
        return explanation
    name = re.compile(rf"(?<![^\s(])({'|'.join(map(re.escape, names))})(?![^\s,:)])")

    def with_settings(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(name.sub(lambda match: settings[match[0]], text) for text in texts)

    return explanation.model_copy(
        update={"sentences": with_settings(explanation.sentences), "notes": with_settings(explanation.notes)}
    )


def _tables(explanation: Explanation, heads: tuple[str, ...]) -> tuple[Table, ...]:
    recordings = [trial.recording for trial in (explanation.baseline, explanation.own) if trial.recording is not None]
    if len(recordings) < 2:
        return ()
    return (
        _table("What the workload did", heads, _figures(recordings, explanation)),
        *_named("CPU time by task", heads, recordings, _cpu_shares),
        *_named("Preemptions by task", heads, recordings, _preemption_counts),
    )


def _table(title: str, heads: tuple[str, ...], rows: tuple[Row, ...]) -> Table:
    return Table.of((Column("", figure=False), *map(Column, heads)), rows, title=title)


def _figures(recordings: list[Recording], explanation: Explanation) -> tuple[Row, ...]:
    workloads = [recording.workload for recording in recordings]
    trials: tuple[Recorded, ...] = (explanation.baseline, explanation.own)
    return (
        _times("Elapsed time", [trial.wall_ns or 0 for trial in trials]),
        _counts("Tasks", [workload.tasks for workload in workloads]),
        _counts("Switches", [workload.switches.total for workload in workloads]),
        *(
            _counts(f"– {words}", [getattr(workload.switches, name) for workload in workloads])
            for name, words in CAUSES.items()
            if any(getattr(workload.switches, name) for workload in workloads)
        ),
        _counts("Wake-ups", [workload.wakeups for workload in workloads]),
        _counts("Migrations", [workload.migrations for workload in workloads]),
        _times("Run, mean", [workload.runs.mean_ns for workload in workloads]),
        *(
            _times(f"Run, {words}", _quantiles([workload.runs for workload in workloads], name, least))
            for words, name, least in _QUANTILES
        ),
        *(
            _times(f"Wake-up to run, {words}", _quantiles([workload.latency for workload in workloads], name, least))
            for words, name, least in _QUANTILES
        ),
    )


def _quantiles(spreads: list[Spread], name: str, least: int) -> list[int]:
    return [getattr(spread, name) if spread.count >= least else 0 for spread in spreads]


def _counts(title: str, values: list[int]) -> Row:
    return Row((title, *(number(value, 0) for value in values)))


def _times(title: str, values_ns: list[float] | list[int]) -> Row:
    # Each in the unit that suits it: they can be far apart.
    return Row((title, *(common_format([value], "ns").with_unit(value) if value else NOTHING for value in values_ns)))


def _named(
    title: str, heads: tuple[str, ...], recordings: list[Recording], task_figures: _TaskFigures
) -> tuple[Table, ...]:
    # The largest entries of either trial.
    both = [task_figures(recording) for recording in recordings]
    names = dict.fromkeys(name for figures in both for name in list(figures)[:_MOST_LINES])
    rows = tuple(Row((name, *(figures.get(name, NOTHING) for figures in both))) for name in names)
    return (_table(title, heads, rows),) if rows else ()


def _cpu_shares(recording: Recording) -> dict[str, str]:
    whole = max(1, recording.covered_ns * recording.cpus)
    shares = {
        f"{visible_line(share.command)}, of {_PARTS[share.part]}": f"{number(100 * share.run_ns / whole, 2)} %"
        for share in recording.shares
    }
    return shares | {"nobody": f"{number(100 * recording.idle_ns / whole, 2)} %"} if recording.idle_ns else shares


def _preemption_counts(recording: Recording) -> dict[str, str]:
    return {
        f"{visible_line(p.preempted)} by {visible_line(p.by)}, of {_PARTS[p.part]}": count_of(p.count, "time")
        for p in recording.preemptions
    }
