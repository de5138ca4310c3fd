"""What the scheduler did, as the report and the terminal show it: sentences, figures side by side, plots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.text import Text

from ajuste.model.results import Results
from ajuste.model.scheduling import Explanation, Part, Recorded, Recording, Spread
from ajuste.model.wording import visible_line
from ajuste.report.format import NOTHING, count_of, number, shown_as
from ajuste.report.labels import Labels, labels_of
from ajuste.report.plots.plot import Plot
from ajuste.report.plots.scheduling import CAUSES, scheduling_plots
from ajuste.report.sheet import INDENT, Sheet, plain_table, sheet

_PARTS: Final[dict[Part, str]] = {"workload": "the workload", "background": "the background load", "other": "others"}
_MOST_LINES: Final = 8
_QUANTILES: Final = (("median", "p50_ns", 1), ("p95", "p95_ns", 20), ("p99", "p99_ns", 100), ("longest", "max_ns", 1))
"""With how many values at least each says something."""


@dataclass(frozen=True)
class FigureLine:
    """A figure of both configurations, the baseline's first."""

    title: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class FigureTable:
    """Figures below each other: ``heads`` are those of the columns after the first, whose head is ``title``."""

    title: str
    heads: tuple[str, ...]
    lines: tuple[FigureLine, ...]


@dataclass(frozen=True)
class SchedulingSection:
    """One explanation: of a configuration that is called ``title``."""

    name: str
    title: str
    sentences: tuple[str, ...]
    notes: tuple[str, ...]
    tables: tuple[FigureTable, ...]
    plots: tuple[Plot, ...]


def scheduling_sections(results: Results, labels: Labels) -> tuple[SchedulingSection, ...]:
    """A section for each explanation of ``results``."""
    return tuple(
        _section(results, explanation, labels, f"scheduling-{place}")
        for place, explanation in enumerate(results.explanations)
    )


def print_explanation(results: Results, explanation: Explanation, console: Console) -> None:
    """Print what is known of one configuration; nothing is cut off, at any width."""
    labels = labels_of(results)
    section = _section(results, explanation, labels, "scheduling")
    with sheet(console) as out:
        say_explanation(out, explanation)
        for table in section.tables:
            out.heading(table.title)
            _print_table(out, table)
        out.blank()
        for note in section.notes:
            out.say(note, style="dim")


def say_explanation(out: Sheet, explanation: Explanation, indent: int = 0) -> None:
    """The sentences; where nothing was recorded, why."""
    for sentence in explanation.sentences or explanation.notes:
        out.say(visible_line(sentence), indent=indent)


def _section(results: Results, explanation: Explanation, labels: Labels, name: str) -> SchedulingSection:
    configurations = {one.name: labels.short(one) for one in results.configurations}
    called = tuple(
        configurations.get(one.configuration, visible_line(one.configuration))
        for one in (explanation.baseline, explanation.own)
    )
    return SchedulingSection(
        name=name,
        title=called[1],
        sentences=tuple(map(visible_line, explanation.sentences)),
        notes=tuple(map(visible_line, explanation.notes)),
        tables=_tables(explanation, (f"{called[0]} (baseline)", called[1])),
        plots=scheduling_plots(results, explanation, called, name),
    )


def _tables(explanation: Explanation, heads: tuple[str, ...]) -> tuple[FigureTable, ...]:
    recordings = [one.recording for one in (explanation.baseline, explanation.own) if one.recording is not None]
    if len(recordings) < 2:
        return ()
    return (
        FigureTable("What the workload did", heads, _figures(recordings, explanation)),
        *_named("CPU time by task", heads, recordings, _shares_of),
        *_named("Preemptions by task", heads, recordings, _preemptions_of),
    )


def _figures(recordings: list[Recording], explanation: Explanation) -> tuple[FigureLine, ...]:
    workloads = [one.workload for one in recordings]
    trials: tuple[Recorded, ...] = (explanation.baseline, explanation.own)
    return (
        _times("Time that it took", [one.wall_ns or 0 for one in trials]),
        _counts("Tasks", [one.tasks for one in workloads]),
        _counts("Switches", [one.switches.total for one in workloads]),
        *(
            _counts(f"– {words}", [getattr(one.switches, name) for one in workloads])
            for name, words in CAUSES.items()
            if any(getattr(one.switches, name) for one in workloads)
        ),
        _counts("Wake-ups", [one.wakeups for one in workloads]),
        _counts("Migrations", [one.migrations for one in workloads]),
        _times("Run, mean", [one.runs.mean_ns for one in workloads]),
        *(
            _times(f"Run, {words}", _quantiles([one.runs for one in workloads], name, least))
            for words, name, least in _QUANTILES
        ),
        *(
            _times(f"Wake-up to run, {words}", _quantiles([one.latency for one in workloads], name, least))
            for words, name, least in _QUANTILES
        ),
    )


def _quantiles(spreads: list[Spread], name: str, least: int) -> list[int]:
    return [getattr(spread, name) if spread.count >= least else 0 for spread in spreads]


def _counts(title: str, values: list[int]) -> FigureLine:
    return FigureLine(title, tuple(number(value, 0) for value in values))


def _times(title: str, values_ns: list[float] | list[int]) -> FigureLine:
    """Each in the unit that suits it: they can be far apart."""
    return FigureLine(title, tuple(_time(value) for value in values_ns))


def _time(value_ns: float) -> str:
    return shown_as([value_ns], "ns").with_unit(value_ns) if value_ns else NOTHING


_Of = Callable[[Recording], dict[str, str]]


def _named(title: str, heads: tuple[str, ...], recordings: list[Recording], of: _Of) -> tuple[FigureTable, ...]:
    """What is told by name: the greatest of both."""
    found = [of(recording) for recording in recordings]
    names = list(dict.fromkeys(name for own in found for name in list(own)[:_MOST_LINES]))
    if not names:
        return ()
    lines = (FigureLine(name, tuple(own.get(name, NOTHING) for own in found)) for name in names)
    return (FigureTable(title, heads, tuple(lines)),)


def _shares_of(recording: Recording) -> dict[str, str]:
    whole = max(1, recording.covered_ns * recording.cpus)
    shares = {
        f"{visible_line(share.command)}, of {_PARTS[share.part]}": f"{number(100 * share.run_ns / whole, 2)} %"
        for share in recording.shares
    }
    return shares | {"nobody": f"{number(100 * recording.idle_ns / whole, 2)} %"} if recording.idle_ns else shares


def _preemptions_of(recording: Recording) -> dict[str, str]:
    return {
        f"{visible_line(one.preempted)} by {visible_line(one.by)}, of {_PARTS[one.part]}": count_of(one.count, "time")
        for one in recording.preemptions
    }


def _print_table(out: Sheet, table: FigureTable) -> None:
    made = plain_table()
    made.add_column("")
    for head in table.heads:
        made.add_column(Text(head), justify="right", overflow="fold")
    for line in table.lines:
        made.add_row(Text(line.title), *(Text(cell) for cell in line.cells))
    out.table(made, indent=INDENT)
