"""Many machines in a report: the effect on machines like them, which of them differ, and the progress of a canary
order. Up to a few dozen machines have a line each; of more, only both ends and the spread of the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.verdict import MACHINES, AcrossMachines, Verdict
from ajuste.model.wording import change, count_of, listed, percent, sentence_start, visible_line
from ajuste.report.document import Block, Column, Entry, Paragraph, Picture, Row, RowGroup, Section, Table
from ajuste.report.format import NOTHING, Labels
from ajuste.report.listings import MOST_MACHINES, estimate_of, shown_machines
from ajuste.report.plots.forest import effect_axis, finding_traces, in_words, x_axis, zone_shapes
from ajuste.report.plots.plot import Plot, figure, level_axis
from ajuste.report.plots.trials import ROW_HEIGHT
from ajuste.report.verdicts import effect_style, known
from ajuste_fleet.model import CanaryRecord, FleetEffect, canary_of, fleet_of
from ajuste_stats.terms import Direction, Word

_SPREAD: Final = "Spread between machines"
_QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
_SOURCE: Final = (
    "Machines as a sample: DerSimonian and Laird, Controlled Clinical Trials 7, 1986, with the interval of Hartung and "
    "Knapp, Statistics in Medicine 20, 2001. Facts: permutations, Westfall and Young, Resampling-Based Multiple "
    "Testing, 1993."
)


def fleet_section(results: Results, labels: Labels) -> Section:
    """Return the section on machines like these, and on the order in which they began."""
    metrics = {metric.name: metric for metric in results.metrics}
    groups = tuple(_group(results, effect, metrics[effect.metric], labels) for effect in fleet_of(results))
    columns = ("Machines", *(("Effect", "Interval") if groups else ()))
    heads = (Column("", figure=False), *(Column(title) for title in columns))
    table = Table(heads, groups, "fleet", "Machines like these")
    pictures = tuple(
        Picture(_plot(results, effect, metrics[effect.metric], f"fleet-{place}"), _subject(results, effect, labels))
        for place, effect in enumerate(fleet_of(results))
    )
    canary = canary_of(results)
    sentences = [canary_says(canary)] if canary is not None else []
    for effect in fleet_of(results):
        text = sentence_start(effect.says)
        if len(fleet_of(results)) > 1:
            text = f"{_subject(results, effect, labels)}: {effect.says}"
        sentences.append(f"{text}. {_new_machine(effect)}")
    blocks: list[Block] = [Paragraph(visible_line(sentence)) for sentence in sentences]
    if groups:
        blocks += [table, *pictures, Paragraph(_SOURCE, "dim", detail=True)]
    return Section("Machines like these", tuple(blocks), "fleet-section", "Machines")


def headline_of(results: Results, name: str, title: str, verdict: Verdict) -> str:
    """Return a sentence on the number of machines with each effect of ``name``; empty for few machines."""
    fleet_effect = next((effect for effect in fleet_of(results) if _is_of(effect, verdict)), None)
    across = next((comparison for comparison in MACHINES.of(results) if _is_of(comparison, verdict)), None)
    if fleet_effect is None or across is None:
        return ""
    differing = fleet_effect.differing
    sides: list[str] = []
    for word in ("improves", "worsens"):
        names = {machine.machine for machine in across.machines if machine.verdict == word}
        if names:
            where = f"{title} on {len(names):,} of {count_of(fleet_effect.machines, 'machine')}"
            fact = ""
            if differing is not None and names <= set(differing.machines):
                fact = f", {'all with' if len(names) > 1 else 'with'} {differing.fact}"
            sides.append(f"{word} {f'it on {len(names):,}' if sides else where}{fact}")
    return f"{name} {' and '.join(sides)}." if sides else ""


def _is_of(effect: FleetEffect | AcrossMachines, verdict: Verdict) -> bool:
    return (effect.configuration, effect.metric) == (verdict.configuration, verdict.metric)


def _subject(results: Results, effect: FleetEffect, labels: Labels) -> str:
    configuration = next(c for c in results.configurations if c.name == effect.configuration)
    title = next(metric.title for metric in results.metrics if metric.name == effect.metric)
    return f"{title}, {labels.short(configuration)}"


def _new_machine(effect: FleetEffect) -> str:
    low, high = (
        change(end, effect.scale, effect.unit, like=effect.estimate) for end in (effect.new_low, effect.new_high)
    )
    text = f"On {percent(effect.level)} of machines like these it is between {low} and {high}."
    if effect.differing is not None and effect.differing.also:
        also = listed(list(effect.differing.also))
        text += f" Those with {effect.differing.fact} also have {also}, and no others do: either may be why."
    return text


def canary_says(canary: CanaryRecord) -> str:
    """Return a sentence on the order in which machines began, and on its end."""
    stages = listed(["all" if stage is None else f"{stage:,}" for stage in canary.stages])
    began = "All machines began at once" if canary.stages == (None,) else f"Machines began in stages of {stages}"
    order = f"{began}, with {count_of(canary.each, 'block')} on each"
    if canary.stopped:
        where = f"in stage {canary.reached} of {len(canary.stages)}, after {count_of(canary.machines, 'machine')}"
        return f"Stopped {where}: {canary.stopped}. {order}."
    guards = f"; no guard was broken ({'; '.join(canary.guards)})" if canary.guards else ""
    return f"{order}; {count_of(canary.machines, 'machine')} measured{guards}."


# The machines as a table, and as a plot with all estimates one below the other.


def _group(results: Results, effect: FleetEffect, metric: Metric, labels: Labels) -> RowGroup:
    lines = list(_summary(results, effect))
    style = effect_style([line for _, _, line in lines], metric.unit)[effect.scale]

    def cells(name: str, count: str, line: Verdict) -> tuple[Entry, ...]:
        interval = NOTHING if line.low is None and line.high is None else style.interval(line)
        estimate = style.estimate(line)
        return (name, count, estimate.replace("+", "±") if name == _SPREAD else estimate, interval)

    return RowGroup(_subject(results, effect, labels), tuple(Row(cells(*line)) for line in lines))


def _summary(results: Results, effect: FleetEffect) -> Iterator[tuple[str, str, Verdict]]:
    # Names, numbers of machines, and effects in the order to be shown.
    count = f"{effect.machines:,}"
    yield "Mean of all machines", count, _line(results, effect, effect.estimate, effect.low, effect.high)
    yield "A new machine", "", _line(results, effect, None, effect.new_low, effect.new_high)
    yield _SPREAD, count, _line(results, effect, effect.spread)
    if (group := effect.differing) is not None:
        yield f"With {group.fact}", f"{len(group.machines):,}", _line(results, effect, group.estimate)
        yield "All others", f"{group.others:,}", _line(results, effect, group.others_estimate)
    across = next(
        comparison
        for comparison in MACHINES.of(results)
        if (comparison.configuration, comparison.metric) == (effect.configuration, effect.metric)
    )
    if len(across.machines) > MOST_MACHINES:
        estimates = [estimate for machine in across.machines if (estimate := known(machine.estimate)) is not None]
        for share, value in zip(_QUANTILES, np.quantile(estimates, _QUANTILES), strict=True):
            yield f"{percent(share)} of machines have less than", count, _line(results, effect, float(value))


def _line(
    results: Results,
    effect: FleetEffect,
    estimate: float | None,
    low: float | None = None,
    high: float | None = None,
    word: Word | None = None,
) -> Verdict:
    verdict = next(v for v in results.verdicts if (v.configuration, v.metric) == (effect.configuration, effect.metric))
    none = 1.0 if effect.scale == "ratio" else 0.0
    outcome = word or _word(verdict.direction, low, high, none)
    return verdict.model_copy(
        update={"estimate": estimate, "low": low, "high": high, "scale": effect.scale, "verdict": outcome, "reason": ""}
    )


def _word(direction: Direction, low: float | None, high: float | None, none: float) -> Word:
    if low is None or high is None or low <= none <= high:
        return "undecided"
    if direction == "none":
        return "differs"
    return "improves" if (low > none) == (direction == "higher") else "worsens"


def _plot(results: Results, effect: FleetEffect, metric: Metric, name: str) -> Plot:
    across = next(
        comparison
        for comparison in MACHINES.of(results)
        if (comparison.configuration, comparison.metric) == (effect.configuration, effect.metric)
    )
    machines, omitted = shown_machines(sorted(across.machines, key=estimate_of))
    lines = [
        ("Mean", _line(results, effect, effect.estimate, effect.low, effect.high)),
        ("A new machine", _line(results, effect, None, effect.new_low, effect.new_high)),
        *(
            (each.machine, _line(results, effect, each.estimate, each.low, each.high, each.verdict))
            for each in machines
        ),
    ]
    axis = effect_axis(results, metric, [line for _, line in lines])
    traces = [
        trace
        for place, (title, line) in enumerate(lines)
        for trace in finding_traces(len(lines) - 1 - place, title, line, axis, line.verdict)
    ]
    without = f" Of {count_of(len(across.machines), 'machine')} those at both ends are shown." if omitted else ""
    return Plot(
        name=name,
        title=f"Effect by machine{in_words(axis.style)}",
        description=f"{metric.title}: the mean over machines, where a new machine lies, and the effect on each machine "
        f"with the interval that holds for all machines together; the band is too small to matter.{without}",
        figure=figure(
            traces,
            xaxis=x_axis(axis, metric),
            yaxis=level_axis([visible_line(title) for title, _ in reversed(lines)]),
            shapes=zone_shapes(axis),
        ),
        height=70 + ROW_HEIGHT * len(lines),
    )
