"""The results of a run: all that is known of it, as one document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from ajuste.analysis.answer import answer, factor_answer
from ajuste.analysis.assembly import put_together, source_of
from ajuste.analysis.diagnostics.diagnose import diagnose
from ajuste.analysis.diagnostics.residuals import outlier_notes
from ajuste.analysis.factor_effects import Effects, factor_effects
from ajuste.analysis.machines import (
    Machines,
    across_machines,
    machine_names,
    right_for_all,
    undisputed,
)
from ajuste.analysis.pairs import Clean, Trials, clean_trials, counted_blocks, units
from ajuste.analysis.prediction import agreement, predictions
from ajuste.analysis.ranking import rankings
from ajuste.analysis.record import NO_MACHINES, Record, select_points, sort_trials, tally
from ajuste.analysis.relevance import reasons, unrefuted, without_more_blocks
from ajuste.analysis.summary import (
    as_run,
    measured,
    precisions,
    with_intervals,
    with_quantile_columns,
    with_quantiles,
)
from ajuste.analysis.timelines import timelines
from ajuste.analysis.trend import Trend, trend
from ajuste.analysis.verdict import family, judge
from ajuste.model.diagnostic import DIAGNOSTICS
from ajuste.model.explained import EXPLAINED, Explained
from ajuste.model.facets import DESIGN
from ajuste.model.measurements import Measurements
from ajuste.model.metric import Metric
from ajuste.model.prediction import PREDICTIONS, RULE
from ajuste.model.relevance import NO_CHANCE, NoChance
from ajuste.model.results import Results
from ajuste.model.timeline import TIMELINES
from ajuste.model.trial import Configuration, Trial
from ajuste.model.verdict import (
    CELLS,
    EFFECTS,
    EFFECTS_CORRECTION,
    MACHINES,
    RANKINGS,
    AcrossMachines,
    Finding,
    Ranking,
    Verdict,
)
from ajuste.model.wording import listed, percent
from ajuste.study.explain import design_words
from ajuste.study.factors import line_sets
from ajuste.study.resolved import ResolvedStudy
from ajuste_stats.precision import Precision
from ajuste_stats.subsets import principal

MOST_NOTES = 4
"""Maximum number of notes of one kind; more are counted."""

VIRTUAL_CLOCK = (
    "Measured under a virtual clock on an emulated CPU, {time}: this shows what the kernel does, not how fast hardware "
    "is. Replicates differ by seed, which changes memory layouts and the start relative to the timer tick."
)


GroupMachines: TypeAlias = Callable[
    [ResolvedStudy, Clean, Machines, Sequence[AcrossMachines], Mapping[str, Any]], Sequence[AcrossMachines]
]
"""Adds to the comparisons of machines which groups of them differ: by the study, its clean trials, the machines of the
blocks, the comparisons, and the environment, which has the machines' inventories."""


def configurations(resolved: ResolvedStudy) -> tuple[Configuration, ...]:
    """Return the configurations of a study, in order; of an ablation those that a person would ask about."""
    made = tuple(c.configuration for c in resolved.configurations)
    return made[: len(principal(len(line_sets(resolved.study))))] if resolved.kind == "ablation" else made


def verdicts(resolved: ResolvedStudy, trials: Trials, across: Sequence[AcrossMachines] = ()) -> tuple[Verdict, ...]:
    """Return the verdicts after these trials, after any block; ``across`` compares the machines, if several."""
    analysis = resolved.study.analysis
    described = resolved.study.design.judges_effects
    judged = right_for_all(
        judge(
            configurations(resolved),
            units(resolved, trials),
            resolved.deciding,
            resolved.described,
            confidence=analysis.confidence,
            smallest_effect=analysis.smallest_effect,
            precision=analysis.precision,
            order_matters=_order_matters(resolved),
            limited=analysis.decide == "limit",
        ),
        across,
    )
    if resolved.study.allocation == "refine":
        return tuple(v for v in judged if v.blocks)  # Most points of the grid are not measured.
    return tuple(v.model_copy(update={"deciding": False}) for v in judged) if described else judged


def compared_machines(resolved: ResolvedStudy, trials: Trials, machines: Machines) -> tuple[AcrossMachines, ...]:
    """Compare the machines, where several have measured; nothing otherwise."""
    if len(machine_names(machines)) < 2:
        return ()
    return across_machines(
        configurations(resolved),
        clean_trials(trials),
        resolved.deciding,
        resolved.described,
        machines,
        confidence=resolved.study.analysis.confidence,
        smallest_effect=resolved.study.analysis.smallest_effect,
    )


def effects(resolved: ResolvedStudy, trials: Trials) -> Effects:
    """Return the effects of each factor on the means, where combinations of several are tried; nothing otherwise."""
    combine, analysis = resolved.study.design.combine, resolved.study.analysis
    several = sum(len(factor.levels) > 1 for factor in resolved.factors) > 1
    incomplete = combine in ("one-at-a-time", "ablation") or resolved.study.allocation == "refine"
    if not several or incomplete or not mean_metrics(resolved.deciding):
        return Effects()
    return factor_effects(
        resolved.factors,
        configurations(resolved),
        trials,
        mean_metrics(resolved.deciding),
        confidence=analysis.confidence,
        smallest_effect=analysis.smallest_effect,
        screening=combine == "screening",
    )


def findings(resolved: ResolvedStudy, trials: Trials, machines: Machines = NO_MACHINES) -> tuple[Finding, ...]:
    """Return what decides when to stop: the effects of a screening, or the verdicts."""
    if resolved.study.design.combine == "screening":
        return _effects(resolved, clean_trials(trials), machines).findings
    return verdicts(resolved, trials, compared_machines(resolved, trials, machines))


def _effects(resolved: ResolvedStudy, clean: Clean, machines: Machines) -> Effects:
    whole = effects(resolved, clean)
    return replace(
        whole, findings=undisputed(whole.findings, clean, machines, lambda part: effects(resolved, part).findings)
    )


def mean_precisions(resolved: ResolvedStudy, trials: Trials) -> tuple[Precision[Metric], ...]:
    """Return how well the deciding means are known, if nothing is compared; nothing otherwise."""
    if len(resolved.configurations) > 1:
        return ()
    analysis = resolved.study.analysis
    return precisions(
        trials,
        resolved.deciding,
        confidence=analysis.confidence,
        smallest_effect=analysis.precision or analysis.smallest_effect,
        order_matters=_order_matters(resolved),
    )


def assemble(
    resolved: ResolvedStudy,
    trials: Sequence[Trial] | Record,
    *,
    notes: Sequence[str] = (),
    machines: Machines = NO_MACHINES,
    no_chance: Sequence[NoChance] = (),
    group_machines: GroupMachines | None = None,
    decided: Sequence[Finding] = (),
    **run: Any,
) -> Results:
    """Return the results of ``trials``; ``run`` is what ``source_of`` takes.

    ``notes`` are added to those that follow from study and trials; ``machines`` are those of the blocks, where there
    are several, and ``group_machines`` says which of them differ; ``no_chance`` is what had no chance to matter.
    ``decided`` are findings of another kind, which decide instead of verdicts.
    """
    study = resolved.study
    record = sort_trials(trials) if isinstance(trials, Sequence) else trials
    source = source_of(resolved, record.digest, **run)
    all_metrics = (*resolved.deciding, *resolved.described)
    columns = with_quantile_columns(record.measurements, all_metrics)
    clean, every = units(resolved, columns), clean_trials(columns)
    made = configurations(resolved)
    across = compared_machines(resolved, clean, machines)
    if group_machines is not None:
        across = tuple(group_machines(resolved, clean, machines, across, source.environment))
    judged = verdicts(resolved, clean, across)
    idle = unrefuted(no_chance, judged, resolved)
    judged = without_more_blocks(judged, idle, resolved)
    known = mean_precisions(resolved, clean)
    summaries = with_intervals(with_quantiles(measured(made, every), every, all_metrics), known)
    group = family(made, resolved.deciding, study.analysis.confidence)
    seen = {*columns.metrics, *(name for reasons in columns.not_supported.values for name in reasons)}
    metrics = (*resolved.deciding, *(metric for metric in resolved.described if metric.name in seen))
    averaged = mean_metrics(resolved.deciding)
    comparison = answer(
        resolved.deciding,
        judged,
        summaries,
        _trends(resolved, made, clean, group.alpha),
        smallest_effect=study.analysis.smallest_effect,
        precisions=known,
    )
    factorial = _effects(resolved, clean, machines)
    factor_sentence = factor_answer(averaged, factorial.findings, study.analysis.smallest_effect)
    run_as = as_run(resolved.factors, made, summaries)
    described = study.design.judges_effects
    predicted = predictions(resolved, summaries)
    agreed = agreement(resolved.rule, predicted, resolved.deciding) if resolved.rule else ""
    first = (reasons(idle, resolved), agreed, "" if described else comparison)
    sentences = (*first, factor_sentence)
    return put_together(
        source,
        answer=" ".join(filter(None, sentences)),
        correction=factorial.correction if described else group.describe(len(resolved.deciding)),
        blocks=counted_blocks(clean, resolved.names, resolved.baseline),
        verdicts=judged,
        configurations=tuple(c for c in summaries if c.metrics) if study.allocation == "refine" else summaries,
        metrics=metrics,
        trials=select_points(columns, machines),
        tally=tally(columns),
        notes=(
            *_notes(resolved, every, idle),
            *_unseen(
                (*judged, *factorial.findings, *decided),
                one_boot=study.target.on_host and not study.across_boots,
            ),
            *_not_precise(resolved, judged),
            *_first(run_as.notes),
            *notes,
        ),
        facets={
            **DESIGN.document(design_words(study, made)),
            **RANKINGS.document(_rankings(resolved, made, clean, across)),
            **EFFECTS.document(factorial.findings),
            **EFFECTS_CORRECTION.document(factorial.correction),
            **CELLS.document(factorial.cells),
            **MACHINES.document(across),
            **DIAGNOSTICS.document(diagnose(clean, averaged, study.target.clock, study.analysis.smallest_effect)),
            **RULE.document(resolved.rule),
            **PREDICTIONS.document(predicted),
            **TIMELINES.document(timelines(resolved, record)),
            **EXPLAINED.document(tuple(_with_initial(e, columns) for e in resolved.explained)),
            **NO_CHANCE.document(idle),
        },
    )


def _trends(resolved: ResolvedStudy, made: Sequence[Configuration], clean: Clean, alpha: float) -> dict[str, Trend]:
    units = {explained.name: explained.unit for explained in resolved.explained}
    varied = next((factor.name for factor in resolved.factors if len(factor.levels) > 1), "")

    def of(metric: Metric) -> Trend | None:
        unit = units.get(varied, "")
        return trend(resolved.factors, made, clean, metric, alpha, unit, order_matters=_order_matters(resolved))

    return {metric.name: metric_trend for metric in resolved.deciding if (metric_trend := of(metric)) is not None}


def _rankings(
    resolved: ResolvedStudy, made: Sequence[Configuration], clean: Clean, across: Sequence[AcrossMachines]
) -> tuple[Ranking, ...]:
    # None where configurations are not compared one by one, or most of them are not measured.
    analysis = resolved.study.analysis
    if resolved.study.design.judges_effects or resolved.study.allocation == "refine":
        return ()
    return rankings(
        made,
        clean,
        resolved.deciding,
        family(made, resolved.deciding, analysis.confidence),
        smallest_effect=analysis.smallest_effect,
        order_matters=_order_matters(resolved),
        across=across,
    )


def mean_metrics(metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    """Return the metrics that are means, not quantiles."""
    return tuple(metric for metric in metrics if metric.quantile is None)


def _order_matters(resolved: ResolvedStudy) -> bool:
    # Under the virtual clock every trial starts from the same snapshot and feels nothing of those before it.
    return resolved.study.target.clock == "wall"


def _with_initial(explained: Explained, columns: Measurements) -> Explained:
    # Add the value that the kernel had before the first write, if it was the same in every trial.
    before = {write.before for writes in columns.written.values for write in writes if write.tunable == explained.name}
    return explained.model_copy(update={"initial_value": before.pop()}) if len(before) == 1 else explained


def _first(notes: Sequence[str]) -> list[str]:
    more = len(notes) - MOST_NOTES
    rest = [f"The same holds in {more} more {'case' if more == 1 else 'cases'}."] if more > 0 else []
    return [*notes[:MOST_NOTES], *rest]


def _notes(resolved: ResolvedStudy, clean: Clean, idle: Sequence[NoChance]) -> list[str]:
    notes = [*(row.note for row in idle), *resolved.notes]
    if resolved.study.target.clock == "virtual":
        machine = resolved.paced_by
        equal = "where every instruction takes the same time"
        notes.append(VIRTUAL_CLOCK.format(time=f"with the modelled time of a {machine.name}" if machine else equal))
    else:
        notes += _first(outlier_notes(clean, mean_metrics(resolved.deciding)))
    columns = clean.measured
    remarked = np.flatnonzero(columns.has_status("ok") & (columns.reason.codes != columns.reason.code("")))
    return [*notes, *(f"In clean trials: {reason}." for reason in columns.reason.among(remarked)[:MOST_NOTES])]


def _unseen(findings: Sequence[Finding], *, one_boot: bool) -> list[str]:
    decided = [f for f in findings if f.deciding and not f.is_undecided and f.cannot_see]
    # All trials of a boot share what it drew; no block of theirs differs by it.
    replicates = "boot to boot or build to build" if one_boot else "build to build"
    return [min(decided, key=lambda f: f.blocks).cannot_see_beyond(replicates)] if decided else []


def _not_precise(resolved: ResolvedStudy, judged: Sequence[Verdict]) -> list[str]:
    precision = resolved.study.analysis.precision
    wide = [f"{v.configuration} on {v.metric}" for v in judged if v.deciding and v.precise is False]
    if not wide or precision is None:
        return []
    more = [f"{len(wide) - MOST_NOTES} more"] if len(wide) > MOST_NOTES else []
    return [f"Not as precise as requested (±{percent(precision)}): {listed([*wide[:MOST_NOTES], *more])}."]
