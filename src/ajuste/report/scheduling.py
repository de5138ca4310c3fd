"""What the scheduler did: sentences, figures side by side, plots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ajuste.model.results import Results
from ajuste.model.scheduling import Explanation, Part, Recorded, Recording, Spread
from ajuste.model.wording import visible_line
from ajuste.report.costs import called_in, cost_sentences, cost_tables
from ajuste.report.document import Block, Column, Folded, Paragraph, Picture, Report, Row, RowGroup, Section, Table
from ajuste.report.format import NOTHING, count_of, number, shown_as
from ajuste.report.labels import Labels, labels_of
from ajuste.report.plots.scheduling import CAUSES, scheduling_plots

_PARTS: Final[dict[Part, str]] = {"workload": "the workload", "background": "the background load", "other": "others"}
_MOST_LINES: Final = 8
_QUANTILES: Final = (("median", "p50_ns", 1), ("p95", "p95_ns", 20), ("p99", "p99_ns", 100), ("longest", "max_ns", 1))
"""With how many values at least each says something."""


def scheduling_sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """A section for each explanation of ``results``."""
    several = len(results.explanations) > 1
    return tuple(
        _section(results, explanation, labels, f"scheduling-{place}", several=several)
        for place, explanation in enumerate(results.explanations)
    )


def explanation_report(results: Results, explanation: Explanation) -> Report:
    """What is known of one configuration."""
    labels = labels_of(results)
    section = _section(results, explanation, labels, "scheduling", several=False)
    costs = explanation.costs
    said = (*explanation.sentences, *(cost_sentences(costs) if costs else ()))
    first, *others = said or explanation.notes or ("Nothing was recorded.",)
    lead = tuple(Paragraph(sentence) for sentence in others)
    tables = [table for block in section.blocks if isinstance(block, Folded) for table in block.blocks]
    tables += cost_tables(costs, called_in(results, explanation, labels)) if costs else ()
    notes = tuple(Paragraph(note, "dim") for note in (*explanation.notes, *(costs.notes if costs else ())))
    sections = tuple(Section(table.title, (table,)) for table in tables if isinstance(table, Table))
    return Report(results.title, first, (*sections, Section("", notes)), lead=lead)


def _section(results: Results, explanation: Explanation, labels: Labels, name: str, *, several: bool) -> Section:
    called = called_in(results, explanation, labels)
    tables = _tables(explanation, (f"{called[0]} (baseline)", called[1]))
    said = explanation.sentences or explanation.notes
    notes = explanation.notes if explanation.sentences else ()
    blocks: tuple[Block, ...] = (
        *map(Paragraph, said),
        *(Picture(plot, called[1]) for plot in scheduling_plots(results, explanation, called, name)),
        *(Folded(table.title, (table,)) for table in tables),
        *(Paragraph(note, "dim", detail=True) for note in notes),
    )
    under = f" under {called[1]}" if several else ""
    return Section(f"Why: what the scheduler does{under}", blocks, name, "Why")


def _tables(explanation: Explanation, heads: tuple[str, ...]) -> tuple[Table, ...]:
    recordings = [one.recording for one in (explanation.baseline, explanation.own) if one.recording is not None]
    if len(recordings) < 2:
        return ()
    return (
        _table("What the workload did", heads, _figures(recordings, explanation)),
        *_named("CPU time by task", heads, recordings, _shares_of),
        *_named("Preemptions by task", heads, recordings, _preemptions_of),
    )


def _table(title: str, heads: tuple[str, ...], rows: tuple[Row, ...]) -> Table:
    return Table((Column("", figure=False), *map(Column, heads)), (RowGroup("", rows),), title=title)


def _figures(recordings: list[Recording], explanation: Explanation) -> tuple[Row, ...]:
    workloads = [one.workload for one in recordings]
    trials: tuple[Recorded, ...] = (explanation.baseline, explanation.own)
    return (
        _times("Elapsed time", [one.wall_ns or 0 for one in trials]),
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


def _counts(title: str, values: list[int]) -> Row:
    return Row((title, *(number(value, 0) for value in values)))


def _times(title: str, values_ns: list[float] | list[int]) -> Row:
    """Each in the unit that suits it: they can be far apart."""
    return Row((title, *map(_time, values_ns)))


def _time(value_ns: float) -> str:
    return shown_as([value_ns], "ns").with_unit(value_ns) if value_ns else NOTHING


_Of = Callable[[Recording], dict[str, str]]


def _named(title: str, heads: tuple[str, ...], recordings: list[Recording], of: _Of) -> tuple[Table, ...]:
    """What is told by name: the greatest of both."""
    found = [of(recording) for recording in recordings]
    names = list(dict.fromkeys(name for own in found for name in list(own)[:_MOST_LINES]))
    if not names:
        return ()
    return (_table(title, heads, tuple(Row((name, *(own.get(name, NOTHING) for own in found))) for name in names)),)


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
