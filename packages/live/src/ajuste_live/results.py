"""The results of an experiment on a running service, with slices as units."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median, stdev
from typing import Any, Final

from ajuste.analysis.answer import answer
from ajuste.analysis.assembly import put_together, source_of
from ajuste.analysis.record import Record, sort_trials
from ajuste.design.stopping import Why
from ajuste.model.diagnostic import DIAGNOSTICS
from ajuste.model.explained import EXPLAINED
from ajuste.model.facets import DESIGN
from ajuste.model.live import LiveDesign, duration
from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Point, Results, Summary
from ajuste.model.trial import Trial
from ajuste.model.verdict import Verdict
from ajuste.model.wording import listed, sentence_start
from ajuste.study.resolved import ResolvedStudy
from ajuste_live.judge import SwitchbackJudgement, judge_slices, later_costs
from ajuste_live.record import BEGIN, BREACH, END, RECORD, STAYED, LiveLine, LiveRecord, LiveSlice, is_computable
from ajuste_stats.switchback.design import STAY
from ajuste_stats.switchback.slices import Slice
from ajuste_stats.terms import SwitchbackOrder

MOST_POINTS: Final = 3000
"""Maximum number of points of a metric over time; more are averaged."""
_ORDERS: Final[dict[SwitchbackOrder, str]] = {
    "random": "In each block every configuration comes once, in random order.",
    "mirrored": "In each block every configuration comes once in random order, then once in its reverse.",
    "latin": "In each block every configuration follows every other equally often, in random order.",
}


def computable(trials: Sequence[Trial]) -> list[Trial]:
    """Return ``trials`` without figures that are too large or not a number, which earlier versions stored."""
    return [
        trial.model_copy(update={"metrics": {name: v for name, v in trial.metrics.items() if is_computable(v)}})
        for trial in trials
    ]


def in_order(trials: Sequence[Trial]) -> list[Trial]:
    """Return slices in the order of time, without those that never began."""
    return sorted((trial for trial in trials if BEGIN in trial.metrics), key=lambda trial: trial.metrics[BEGIN])


def trial_slices(trials: Sequence[Trial], metric: str, control: str = "") -> list[Slice]:
    """Return the values of one metric in ``trials``, as slices in the order of time."""
    return [
        Slice(
            number=number,
            block=trial.slot.block,
            treatment=trial.slot.configuration,
            begin_s=trial.metrics[BEGIN],
            end_s=trial.metrics.get(END, trial.metrics[BEGIN]),
            value=trial.metrics.get(metric),
            control=trial.metrics.get(control) if control else None,
            flags=_flags(trial),
            stay=int(trial.metrics.get(STAYED, 0)),
        )
        for number, trial in enumerate(in_order(trials))
    ]


def _flags(trial: Trial) -> tuple[str, ...]:
    return () if trial.status == "ok" else (trial.reason,)


def judge_live(resolved: ResolvedStudy, trials: Sequence[Trial]) -> tuple[SwitchbackJudgement, ...]:
    """Judge each deciding metric; valid after every slice."""
    live = resolved.live_design
    control = live.control.metric.name if live.control else ""
    names, analysis = resolved.names, resolved.study.analysis
    return tuple(
        judge_slices(
            trial_slices(trials, metric.name, control),
            metric,
            baseline=resolved.baseline,
            configurations=names,
            comparisons=(len(names) - 1) * len(resolved.deciding),
            confidence=analysis.confidence,
            smallest_effect=analysis.smallest_effect,
            stays=live.stays,
        )
        for metric in resolved.deciding
    )


def breaches_by_name(trials: Sequence[Trial]) -> dict[str, str]:
    """Return the configurations that broke a guard, and how."""
    return {trial.slot.configuration: trial.reason for trial in trials if trial.metrics.get(BREACH)}


def awaits_stays(resolved: ResolvedStudy, trials: Sequence[Trial]) -> bool:
    """Return whether every undecided verdict waits only for stays."""
    broken = breaches_by_name(trials)
    still_open = [
        verdict.configuration in judged.awaiting
        for judged in judge_live(resolved, trials)
        for verdict in judged.verdicts
        if verdict.is_open and verdict.configuration not in broken
    ]
    return bool(still_open) and all(still_open)


def live_answer(resolved: ResolvedStudy, judged: Sequence[SwitchbackJudgement], trials: Sequence[Trial]) -> str:
    """Answer in a sentence or two; what broke a guard first."""
    broken = breaches_by_name(trials)
    unchanged = broken.pop(resolved.baseline, None)
    sentences = [
        f"{name} broke {_first(why)}: it was restored at once and not tried again." for name, why in broken.items()
    ]
    if broken and unchanged:
        sentences.append(f"The baseline broke {_first(unchanged)} too: look at the guard and at the service.")
    verdicts = tuple(
        verdict for judgement in judged for verdict in judgement.verdicts if verdict.configuration not in broken
    )
    if verdicts:
        summaries = summarise_slices(resolved, trials)
        metrics = [metric for metric in resolved.deciding if any(v.metric == metric.name for v in verdicts)]
        sentences.append(
            answer(metrics, verdicts, summaries, {}, smallest_effect=resolved.study.analysis.smallest_effect)
        )
        sentences.append(untested_costs(resolved.live_design, verdicts))
    return " ".join(filter(None, sentences))


def untested_costs(live: LiveDesign, verdicts: Sequence[Verdict]) -> str:
    """Return a sentence on later costs that were not tested; empty where nothing improves."""
    if all(verdict.verdict != "improves" for verdict in verdicts):
        return ""
    return f"{sentence_start(later_costs(stays=live.stays))}{'' if live.stays else ' (--adopt tests them)'}."


def _first(why: str) -> str:
    text = why.partition(";")[0].removeprefix("guard ")
    name, _, rest = text.partition(": ")
    return f"the guard {name} ({rest})" if rest else f"the guard {text}"


def summarise_slices(resolved: ResolvedStudy, trials: Sequence[Trial]) -> tuple[Measured, ...]:
    """Summarise each configuration over the slices that count."""
    metrics = [row.metric for row in resolved.live_design.all_metrics]
    summaries = []
    for configuration in (c.configuration for c in resolved.configurations):
        counting = [t for t in trials if t.slot.configuration == configuration.name and not _flags(t)]
        values = {
            metric.name: [t.metrics[metric.name] for t in counting if metric.name in t.metrics] for metric in metrics
        }
        summaries.append(
            Measured(
                name=configuration.name,
                levels=configuration.levels,
                baseline=configuration.baseline,
                read_back={event.tunable: event.after for event in counting[0].written} if counting else {},
                metrics={name: _summary(numbers) for name, numbers in values.items() if numbers},
            )
        )
    return tuple(summaries)


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
    environment: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    **run: Any,
) -> Results:
    """Return the results of ``trials``, which are slices; ``run`` is what ``source_of`` takes."""
    live = resolved.live_design
    record = sort_trials(trials) if isinstance(trials, Sequence) else trials
    slices = computable(record.whole(range(len(record.measurements))))
    judged = judge_live(resolved, slices)
    verdicts = tuple(verdict for judgement in judged for verdict in judgement.verdicts)
    seen = {name for trial in slices for name in trial.metrics}
    described = [row.metric for row in live.all_metrics if row.metric not in resolved.deciding]
    live_facts = dict((environment or {}).get("live", {}))
    washout_s = float(live_facts.get("washout_s", live.first_washout_s))
    live_record = _record(live, slices, judged, washout_s)
    facts = {name: value for name, value in (environment or {}).items() if name != "live"}
    source = source_of(resolved, record.digest, environment=facts, **run)
    diagnostics = next((judgement.diagnostics for judgement in judged if judgement.diagnostics), None)
    return put_together(
        source,
        answer=live_answer(resolved, judged, slices),
        correction=f"Bonferroni: {len(verdicts)} comparisons" if len(verdicts) > 1 else "",
        blocks=_counted_blocks(resolved, slices),
        verdicts=verdicts,
        configurations=summarise_slices(resolved, slices),
        metrics=(*resolved.deciding, *(metric for metric in described if metric.name in seen)),
        trials=tuple(_point(trial, live) for trial in slices),
        notes=(
            *_predicted(live_facts, slices, source.stopped),
            *resolved.notes,
            *live_record.findings,
            *live_facts.get("notes", ()),
            *notes,
        ),
        facets={
            **DESIGN.document(_design(live, washout_s)),
            **DIAGNOSTICS.document(diagnostics),
            **EXPLAINED.document(resolved.explained),
            **RECORD.document(live_record),
        },
    )


def _design(live: LiveDesign, washout_s: float) -> str:
    how = "" if live.washout_s is not None else ", as long as the metrics took to respond"
    slices = f"Slices of {duration(live.slice_s)}, of which the first {duration(washout_s)} do not count{how}."
    stays = f" Blocks of stays of {STAY} slices follow once a configuration improves." if live.stays else ""
    return f"{slices} {_ORDERS[live.order]}{stays}"


def _counted_blocks(resolved: ResolvedStudy, slices: Sequence[Trial]) -> int:
    there: dict[int, set[str]] = {}
    for trial in slices:
        if not _flags(trial):
            there.setdefault(trial.slot.block, set()).add(trial.slot.configuration)
    return sum(resolved.baseline in names and len(names) > 1 for names in there.values())


def _point(trial: Trial, live: LiveDesign) -> Point:
    names = {metric.metric.name for metric in live.all_metrics}
    return Point(
        configuration=trial.slot.configuration,
        block=trial.slot.block,
        position=trial.slot.position,
        seed=trial.slot.seed,
        status=trial.status,
        reason=trial.reason,
        warm_up=trial.slot.warm_up,
        attempt=trial.attempt,
        metrics={name: value for name, value in trial.metrics.items() if name in names},
    )


def _predicted(live_facts: Mapping[str, Any], slices: Sequence[Trial], stopped: Why | None) -> list[str]:
    match live_facts.get("predicted"):
        case {"slices": int(predicted), "after": int(after)}:
            when = f"after {after} slices" if after else "before the start"
            took = {"interrupted": "So far there are", "decided": "It took"}.get(stopped or "", "The run had")
            return [f"Predicted {when}: {predicted:,} slices for the smallest effect. {took} {len(slices):,}."]
    return []


def _record(
    live: LiveDesign,
    trials: Sequence[Trial],
    judged: Sequence[SwitchbackJudgement],
    washout_s: float,
) -> LiveRecord:
    ordered = in_order(trials)
    findings = [
        f"{judgement.metric.title}: {sentence}" if len(judged) > 1 else sentence
        for judgement in judged
        for sentence in judgement.findings
    ]
    adjusted = [judgement.metric.name for judgement in judged if judgement.adjusted]
    if adjusted and live.control:
        findings.append(f"Effects on {listed(adjusted)} are at equal load, by {live.control.metric.name}.")
    return LiveRecord(
        slices=tuple(
            LiveSlice(
                number=number,
                block=trial.slot.block,
                configuration=trial.slot.configuration,
                begin_s=trial.metrics[BEGIN],
                end_s=max(trial.metrics.get(END, 0.0), trial.metrics[BEGIN]),
                flag=", ".join(_flags(trial)),
            )
            for number, trial in enumerate(ordered)
        ),
        lines=tuple(_line(row.metric, ordered) for row in live.all_metrics),
        slice_s=live.slice_s,
        washout_s=washout_s,
        guards=tuple(guard.text for guard in live.guards),
        breaches=breaches_by_name(trials),
        findings=tuple(findings),
        untested=untested_costs(live, [verdict for judgement in judged for verdict in judgement.verdicts]),
    )


def _line(metric: Metric, ordered: Sequence[Trial]) -> LiveLine:
    # Return the metric over time, averaged where there are too many readings, with a gap after each slice.
    by_slice = [kept_readings(trial, metric.name) for trial in ordered]
    step = max(1, math.ceil(sum(map(len, by_slice)) / MOST_POINTS))
    at_s: list[float] = []
    values: list[float | None] = []
    for readings in by_slice:
        for begin in range(0, len(readings), step):
            some = [(at, value) for at, value in readings[begin : begin + step] if value is not None]
            if some:
                at_s.append(round(fmean(at for at, _ in some), 2))
                values.append(fmean(value for _, value in some))
        if at_s:
            at_s.append(at_s[-1])
            values.append(None)
    return LiveLine(metric=metric.name, at_s=tuple(at_s), values=tuple(values))


def kept_readings(trial: Trial, metric: str) -> list[tuple[float, float | None]]:
    """Return the stored readings of a slice; none if they have another format."""
    try:
        readings = json.loads(trial.console)["readings"].get(metric, [])
        figures = [(float(at), None if value is None else float(value)) for at, value in readings]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
    return [(at, value if value is not None and is_computable(value) else None) for at, value in figures]
