"""The results of an experiment on a running service: slices as units, and what they say."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median, stdev
from typing import Any, Final

from ajuste.analysis.answer import answer
from ajuste.analysis.record import Record, sort_trials
from ajuste.analysis.switchback.judge import SwitchbackJudgement, judge_slices
from ajuste.design.stopping import Why
from ajuste.model.live import (
    BEGIN,
    BREACH,
    END,
    LiveDesign,
    LiveLine,
    LiveRecord,
    LiveSlice,
    Slice,
    SwitchbackOrder,
    duration,
)
from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Point, Results, Summary
from ajuste.model.trial import Trial
from ajuste.model.verdict import Verdict
from ajuste.model.wording import listed
from ajuste.study.resolved import ResolvedStudy

MOST_POINTS: Final = 3000
"""Of a metric over time; more are averaged."""
_ORDERS: Final[dict[SwitchbackOrder, str]] = {
    "random": "In each block every configuration comes once, in random order.",
    "mirrored": "In each block every configuration comes once in random order, then once in its reverse.",
    "latin": "In each block every configuration follows every other equally often, in random order.",
}


def in_order(trials: Sequence[Trial]) -> list[Trial]:
    """Slices in the order of time, those that were never begun left out."""
    return sorted((one for one in trials if BEGIN in one.metrics), key=lambda one: one.metrics[BEGIN])


def slices_of(trials: Sequence[Trial], metric: str, control: str = "") -> list[Slice]:
    """What ``trials`` say of one metric, as slices in the order of time."""
    return [
        Slice(
            number=number,
            block=one.slot.block,
            configuration=one.slot.configuration,
            begin_s=one.metrics[BEGIN],
            end_s=one.metrics.get(END, one.metrics[BEGIN]),
            value=one.metrics.get(metric),
            control=one.metrics.get(control) if control else None,
            flags=_flags(one),
        )
        for number, one in enumerate(in_order(trials))
    ]


def _flags(one: Trial) -> tuple[str, ...]:
    return () if one.status == "ok" else (one.reason,)


def judge_live(resolved: ResolvedStudy, trials: Sequence[Trial]) -> tuple[SwitchbackJudgement, ...]:
    """What can be said now of each deciding metric; may be looked at after every slice."""
    live = resolved.live_design
    control = live.control.metric.name if live.control else ""
    names, analysis = resolved.names, resolved.study.analysis
    return tuple(
        judge_slices(
            slices_of(trials, metric.name, control),
            metric,
            baseline=resolved.baseline,
            configurations=names,
            comparisons=(len(names) - 1) * len(resolved.deciding),
            confidence=analysis.confidence,
            smallest_effect=analysis.smallest_effect,
        )
        for metric in resolved.deciding
    )


def breaches_of(trials: Sequence[Trial]) -> dict[str, str]:
    """The configurations that broke a guard, and how."""
    return {one.slot.configuration: one.reason for one in trials if one.metrics.get(BREACH)}


def live_answer(resolved: ResolvedStudy, judged: Sequence[SwitchbackJudgement], trials: Sequence[Trial]) -> str:
    """What is known, in a sentence or two; what broke a guard first."""
    broken = breaches_of(trials)
    unchanged = broken.pop(resolved.baseline, None)
    said = [f"{name} broke {_first(why)}: it was restored at once and not tried again." for name, why in broken.items()]
    if broken and unchanged:
        said.append(f"The baseline broke {_first(unchanged)} too: look at the guard and at the service.")
    verdicts = tuple(verdict for one in judged for verdict in one.verdicts if verdict.configuration not in broken)
    if verdicts:
        summaries = summaries_of(resolved, trials)
        own = [metric for metric in resolved.deciding if any(v.metric == metric.name for v in verdicts)]
        said.append(answer(own, verdicts, summaries, {}, smallest_effect=resolved.study.analysis.smallest_effect))
    return " ".join(said)


def _first(why: str) -> str:
    text = why.partition(";")[0].removeprefix("guard ")
    name, _, rest = text.partition(": ")
    return f"the guard {name} ({rest})" if rest else f"the guard {text}"


def summaries_of(resolved: ResolvedStudy, trials: Sequence[Trial]) -> tuple[Measured, ...]:
    """Each configuration over the slices that count."""
    metrics = [one.metric for one in resolved.live_design.all_metrics]
    found = []
    for one in resolved.configurations:
        own = [t for t in trials if t.slot.configuration == one.configuration.name and not _flags(t)]
        values = {metric.name: [t.metrics[metric.name] for t in own if metric.name in t.metrics] for metric in metrics}
        found.append(
            Measured(
                name=one.configuration.name,
                levels=one.configuration.levels,
                baseline=one.configuration.baseline,
                read_back={event.tunable: event.after for event in own[0].written} if own else {},
                metrics={name: _summary(given) for name, given in values.items() if given},
            )
        )
    return tuple(found)


def _summary(values: Sequence[float]) -> Summary:
    sd = stdev(values) if len(values) > 1 else None
    return Summary(
        n=len(values),
        mean=fmean(values),
        median=median(values),
        sd=sd,
        sem=None if sd is None else sd / math.sqrt(len(values)),
        minimum=min(values),
        maximum=max(values),
    )


def assemble_live(
    resolved: ResolvedStudy,
    trials: Sequence[Trial] | Record,
    *,
    run: str,
    stopped: Why,
    stopped_because: str,
    environment: Mapping[str, Any] | None = None,
    reproduce: Sequence[str] = (),
    notes: Sequence[str] = (),
    created: str = "",
    ajuste: str = "",
    **_: object,
) -> Results:
    """The results of the slices that ``trials`` are."""
    study, live = resolved.study, resolved.live_design
    record = sort_trials(trials) if isinstance(trials, Sequence) else trials
    slices = record.whole(range(len(record.measurements)))
    judged = judge_live(resolved, slices)
    verdicts = tuple(verdict for one in judged for verdict in one.verdicts)
    seen = {name for one in slices for name in one.metrics}
    described = [one.metric for one in live.all_metrics if one.metric not in resolved.deciding]
    kept = dict((environment or {}).get("live", {}))
    washout_s = float(kept.get("washout_s", live.first_washout_s))
    shown = _record(live, slices, judged, washout_s)
    facts = {name: value for name, value in (environment or {}).items() if name != "live"}
    return Results(
        study=study.name,
        title=study.title or study.name,
        question=study.question,
        answer=live_answer(resolved, judged, slices),
        run=run,
        seed=study.design.seed,
        clock=study.target.clock,
        digest=record.digest,
        stopped=stopped,
        stopped_because=stopped_because,
        level=study.analysis.confidence,
        smallest_effect=study.analysis.smallest_effect,
        correction=_correction(verdicts),
        design=_design(live, washout_s),
        blocks=_counted_blocks(resolved, slices),
        verdicts=verdicts,
        configurations=summaries_of(resolved, slices),
        factors=resolved.factors,
        metrics=(*resolved.deciding, *(metric for metric in described if metric.name in seen)),
        trials=tuple(_point(one, live) for one in slices),
        diagnostics=next((one.diagnostics for one in judged if one.diagnostics), None),
        explained=resolved.explained,
        environment=facts,
        reproduce=tuple(reproduce),
        live=shown,
        notes=(
            *_predicted(kept, slices, stopped),
            *resolved.notes,
            *shown.findings,
            *kept.get("notes", ()),
            *notes,
        ),
        created=created,
        ajuste=ajuste,
    )


def _correction(verdicts: Sequence[Verdict]) -> str:
    if len(verdicts) < 2:
        return ""
    return f"Bonferroni: {len(verdicts)} comparisons"


def _design(live: LiveDesign, washout_s: float) -> str:
    how = "" if live.washout_s is not None else ", as long as the metrics took to respond"
    slices = f"Slices of {duration(live.slice_s)}, of which the first {duration(washout_s)} do not count{how}."
    return f"{slices} {_ORDERS[live.order]}"


def _counted_blocks(resolved: ResolvedStudy, slices: Sequence[Trial]) -> int:
    there: dict[int, set[str]] = {}
    for one in slices:
        if not _flags(one):
            there.setdefault(one.slot.block, set()).add(one.slot.configuration)
    return sum(resolved.baseline in names and len(names) > 1 for names in there.values())


def _point(one: Trial, live: LiveDesign) -> Point:
    names = {metric.metric.name for metric in live.all_metrics}
    return Point(
        configuration=one.slot.configuration,
        block=one.slot.block,
        position=one.slot.position,
        seed=one.slot.seed,
        status=one.status,
        reason=one.reason,
        warm_up=one.slot.warm_up,
        attempt=one.attempt,
        metrics={name: value for name, value in one.metrics.items() if name in names},
    )


def _predicted(kept: Mapping[str, Any], slices: Sequence[Trial], stopped: Why) -> list[str]:
    """What was predicted first, beside what it took."""
    match kept.get("predicted"):
        case {"slices": int(predicted), "after": int(after)}:
            when = f"after {after} slices" if after else "before the start"
            took = {"interrupted": "So far there are", "decided": "It took"}.get(stopped, "The run had")
            return [f"Predicted {when}: {predicted:,} slices for the smallest effect. {took} {len(slices):,}."]
    return []


def _record(
    live: LiveDesign,
    trials: Sequence[Trial],
    judged: Sequence[SwitchbackJudgement],
    washout_s: float,
) -> LiveRecord:
    ordered = in_order(trials)
    findings = [f"{_titled(one, judged)}{sentence}" for one in judged for sentence in one.findings]
    adjusted = [one.metric.name for one in judged if one.adjusted]
    if adjusted and live.control:
        findings.append(f"Effects on {listed(adjusted)} are at equal load, by {live.control.metric.name}.")
    return LiveRecord(
        slices=tuple(
            LiveSlice(
                number=number,
                block=one.slot.block,
                configuration=one.slot.configuration,
                begin_s=one.metrics[BEGIN],
                end_s=max(one.metrics.get(END, 0.0), one.metrics[BEGIN]),
                flag=", ".join(_flags(one)),
            )
            for number, one in enumerate(ordered)
        ),
        lines=tuple(_line(one.metric, ordered) for one in live.all_metrics),
        slice_s=live.slice_s,
        washout_s=washout_s,
        guards=tuple(guard.text for guard in live.guards),
        breaches=breaches_of(trials),
        findings=tuple(findings),
    )


def _titled(one: SwitchbackJudgement, judged: Sequence[SwitchbackJudgement]) -> str:
    return f"{one.metric.title}: " if len(judged) > 1 else ""


def _line(metric: Metric, ordered: Sequence[Trial]) -> LiveLine:
    """The metric over time, averaged where there is too much of it, with a gap after each slice."""
    own = [readings_of(one, metric.name) for one in ordered]
    step = max(1, math.ceil(sum(map(len, own)) / MOST_POINTS))
    at_s: list[float] = []
    values: list[float | None] = []
    for readings in own:
        for begin in range(0, len(readings), step):
            some = [(at, value) for at, value in readings[begin : begin + step] if value is not None]
            if some:
                at_s.append(round(fmean(at for at, _ in some), 2))
                values.append(fmean(value for _, value in some))
        if at_s:
            at_s.append(at_s[-1])
            values.append(None)
    return LiveLine(metric=metric.name, at_s=tuple(at_s), values=tuple(values))


def readings_of(one: Trial, metric: str) -> list[tuple[float, float | None]]:
    """What was kept of a slice's readings; nothing of what was kept otherwise."""
    try:
        found = json.loads(one.console)["readings"].get(metric, [])
        return [(float(at), None if value is None else float(value)) for at, value in found]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
