"""The results of a run: everything that is known of it, as one document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ajuste.analysis.ablation import Lines, Rates, ablation
from ajuste.analysis.answer import answer, factor_answer, lines_answer
from ajuste.analysis.diagnostics.diagnose import diagnose
from ajuste.analysis.diagnostics.residuals import outlier_notes
from ajuste.analysis.effects import Trend, trend
from ajuste.analysis.factor_effects import Effects, factor_effects
from ajuste.analysis.machines import Machines, across_machines, names_of, right_for_all, undisputed
from ajuste.analysis.pairs import Clean, Trials, clean_trials, counted_blocks, units
from ajuste.analysis.prediction import agreement, predictions
from ajuste.analysis.ranking import rankings
from ajuste.analysis.record import Record, points_of, record_of, tally
from ajuste.analysis.relevance import reasons, unrefuted, without_more_blocks
from ajuste.analysis.sequence import with_quantile_columns, with_quantiles
from ajuste.analysis.summary import AsRun, Precision, as_run, measured, precisions, with_intervals
from ajuste.analysis.three_sigma import three_sigma
from ajuste.analysis.timelines import timelines
from ajuste.analysis.verdict import family, judge
from ajuste.design.combinations import principal
from ajuste.design.stopping import Why
from ajuste.model.measurements import Measurements
from ajuste.model.metric import Metric
from ajuste.model.relevance import NoChance
from ajuste.model.results import Explained, History, Measured, Results
from ajuste.model.surface import Correlation, Surface
from ajuste.model.trial import Configuration, Trial
from ajuste.model.verdict import AcrossMachines, Finding, LineEffect, Ranking, Verdict
from ajuste.model.wording import listed, percent
from ajuste.study.explain import design_words
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.settings import line_sets

ONE_MACHINE: Machines = MappingProxyType({})

MOST_NOTES = 4
"""Of one kind; more are counted."""

VIRTUAL_CLOCK = (
    "Measured under a virtual clock on an emulated CPU, {time}: this shows what the kernel does, not how fast hardware "
    "is. Replicates differ by seed, which changes memory layouts and the start relative to the timer tick."
)


def configurations(resolved: ResolvedStudy) -> tuple[Configuration, ...]:
    """The configurations of a study, in order; of an ablation those that a person would ask about."""
    made = tuple(c.configuration for c in resolved.configurations)
    return made[: len(principal(len(line_sets(resolved.study))))] if _is_ablation(resolved) else made


def verdicts(resolved: ResolvedStudy, trials: Trials, across: Sequence[AcrossMachines] = ()) -> tuple[Verdict, ...]:
    """What can be said after these trials. May be looked at after every block. ``across`` is what several machines
    have to say.
    """
    analysis = resolved.study.analysis
    described = resolved.study.design.judges_effects
    found = right_for_all(
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
        return tuple(v for v in found if v.blocks)  # Most points of the grid are not measured.
    return tuple(v.model_copy(update={"deciding": False}) for v in found) if described else found


def compared_machines(resolved: ResolvedStudy, trials: Trials, machines: Machines) -> tuple[AcrossMachines, ...]:
    """What each machine says, where several have measured; nothing otherwise."""
    if len(names_of(machines)) < 2:
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
    """What each factor does to the means, where combinations of several are tried; nothing otherwise."""
    combine, analysis = resolved.study.design.combine, resolved.study.analysis
    several = sum(len(factor.levels) > 1 for factor in resolved.factors) > 1
    incomplete = combine in ("one-at-a-time", "ablation") or resolved.study.allocation == "refine"
    if not several or incomplete or not _means_of(resolved.deciding):
        return Effects()
    return factor_effects(
        resolved.factors,
        configurations(resolved),
        trials,
        _means_of(resolved.deciding),
        confidence=analysis.confidence,
        smallest_effect=analysis.smallest_effect,
        screening=combine == "screening",
    )


def lines(resolved: ResolvedStudy, trials: Trials) -> tuple[LineEffect, ...]:
    """What each line of a profile does, if it is taken apart; nothing otherwise."""
    if not _is_ablation(resolved):
        return ()
    analysis = resolved.study.analysis
    return ablation(
        Lines(line_sets(resolved.study), resolved.names),
        trials,
        resolved.deciding,
        confidence=analysis.confidence,
        smallest_effect=analysis.smallest_effect,
    )


def rates_of(resolved: ResolvedStudy) -> Rates:
    """The error rates of an ablation."""
    return Rates(len(line_sets(resolved.study)), len(resolved.deciding), resolved.study.analysis.confidence)


def _is_ablation(resolved: ResolvedStudy) -> bool:
    return resolved.study.design.combine == "ablation"


def findings(resolved: ResolvedStudy, trials: Trials, machines: Machines = ONE_MACHINE) -> tuple[Finding, ...]:
    """What decides when to stop: the effects of a screening design or of a profile's lines, otherwise the verdicts.
    ``machines`` are those of the blocks, where there are several.
    """
    if _is_ablation(resolved):
        return _lines(resolved, clean_trials(trials), machines)
    if resolved.study.design.combine == "screening":
        return _effects(resolved, clean_trials(trials), machines).found
    return verdicts(resolved, trials, compared_machines(resolved, trials, machines))


def _lines(resolved: ResolvedStudy, clean: Clean, machines: Machines) -> tuple[LineEffect, ...]:
    return undisputed(lines(resolved, clean), clean, machines, lambda own: lines(resolved, own))


def _effects(resolved: ResolvedStudy, clean: Clean, machines: Machines) -> Effects:
    found = effects(resolved, clean)
    return replace(found, found=undisputed(found.found, clean, machines, lambda own: effects(resolved, own).found))


def means(resolved: ResolvedStudy, trials: Trials) -> tuple[Precision, ...]:
    """How well the deciding means are known, if nothing is compared; nothing otherwise."""
    if len(resolved.configurations) > 1:
        return ()
    analysis = resolved.study.analysis
    return precisions(
        trials,
        resolved.deciding,
        confidence=analysis.confidence,
        smallest_effect=analysis.precision or analysis.smallest_effect,
    )


def assemble(
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
    machines: Machines = ONE_MACHINE,
    no_chance: Sequence[NoChance] = (),
) -> Results:
    """The results of ``trials``. ``notes`` are added to those that follow from study and trials; ``machines`` are those
    of the blocks, where there are several; ``no_chance`` is what had no chance to matter.
    """
    study = resolved.study
    record = record_of(trials) if isinstance(trials, Sequence) else trials
    all_metrics = (*resolved.deciding, *resolved.described)
    columns = with_quantile_columns(record.measurements, all_metrics)
    clean, every = units(resolved, columns), clean_trials(columns)
    made = configurations(resolved)
    across = compared_machines(resolved, clean, machines)
    found = verdicts(resolved, clean, across)
    idle = unrefuted(no_chance, found, resolved)
    found = without_more_blocks(found, idle, resolved)
    known = means(resolved, clean)
    summaries = with_intervals(with_quantiles(measured(made, every), every, all_metrics), known)
    group = family(made, resolved.deciding, study.analysis.confidence)
    seen = {*columns.metrics, *(name for reasons in columns.not_supported.values for name in reasons)}
    all_means = _means_of([*resolved.deciding, *(m for m in resolved.described if m.name in seen)])
    said = answer(
        resolved.deciding,
        found,
        summaries,
        _trends(resolved, made, clean, group.alpha),
        smallest_effect=study.analysis.smallest_effect,
        means=known,
    )
    worked = _effects(resolved, clean, machines)
    of_factors = factor_answer(_means_of(resolved.deciding), worked.found, study.analysis.smallest_effect)
    run_as = as_run(resolved.factors, made, summaries)
    shapes = _surfaces(resolved, run_as, clean, found)
    apart = _lines(resolved, clean, machines)
    correction = worked.correction or (rates_of(resolved).words if apart else "")
    described = study.design.judges_effects
    predicted = predictions(resolved, summaries)
    agreed = agreement(resolved.rule, predicted, resolved.deciding) if resolved.rule else ""
    first = (reasons(idle, resolved), agreed, "" if described else said)
    sentences = (*first, of_factors, lines_answer(apart, resolved.deciding))
    return Results(
        study=study.name,
        title=study.title or study.name,
        question=study.question,
        answer=" ".join(filter(None, sentences)),
        run=run,
        seed=study.design.seed,
        clock=study.target.clock,
        digest=record.digest,
        stopped=stopped,
        stopped_because=stopped_because,
        level=study.analysis.confidence,
        smallest_effect=study.analysis.smallest_effect,
        correction=correction if described else group.describe(len(made) - 1, len(resolved.deciding)),
        design=design_words(study, made),
        blocks=counted_blocks(clean, resolved.names, resolved.baseline),
        verdicts=found,
        rankings=_rankings(resolved, made, clean, across),
        configurations=tuple(c for c in summaries if c.metrics) if study.allocation == "refine" else summaries,
        factors=resolved.factors,
        metrics=(*resolved.deciding, *(m for m in resolved.described if m.name in seen)),
        trials=points_of(columns, machines),
        machines=across,
        tally=tally(columns),
        effects=worked.found,
        effects_correction=correction,
        cells=worked.cells,
        surfaces=shapes,
        correlations=_correlations(resolved, summaries, all_means) if shapes else (),
        histories=_histories(resolved, made, clean),
        lines=apart,
        diagnostics=diagnose(clean, _means_of(resolved.deciding), study.target.clock),
        three_sigma=three_sigma(made, clean, _means_of(resolved.deciding), found, study.analysis.confidence)
        if study.analysis.three_sigma
        else (),
        rule=resolved.rule,
        predictions=predicted,
        timelines=timelines(resolved, record),
        explained=tuple(_with_initial(e, columns) for e in resolved.explained),
        environment=dict(environment or {}),
        reproduce=tuple(reproduce),
        no_chance=idle,
        notes=tuple(
            dict.fromkeys(
                (
                    *_notes(resolved, every, idle),
                    *_unseen((*found, *worked.found, *apart)),
                    *_not_precise(resolved, found),
                    *_first(run_as.notes),
                    *notes,
                )
            )
        ),
        created=created,
        ajuste=ajuste,
    )


def _trends(resolved: ResolvedStudy, made: Sequence[Configuration], clean: Clean, alpha: float) -> dict[str, Trend]:
    units = {explained.name: explained.unit for explained in resolved.explained}
    varied = next((factor.name for factor in resolved.factors if len(factor.levels) > 1), "")

    def of(metric: Metric) -> Trend | None:
        unit = units.get(varied, "")
        return trend(resolved.factors, made, clean, metric, alpha, unit, order_matters=_order_matters(resolved))

    return {metric.name: found for metric in resolved.deciding if (found := of(metric)) is not None}


def _surfaces(resolved: ResolvedStudy, run_as: AsRun, clean: Clean, found: Sequence[Verdict]) -> tuple[Surface, ...]:
    """None of a screening design or an ablation: these have only the corners. Fewer than three levels span none."""
    few = all(len(factor.levels) < 3 for factor in run_as.factors)
    if few or resolved.study.design.judges_effects:
        return ()
    from ajuste.analysis.surface.surfaces import Promise, surfaces

    analysis = resolved.study.analysis
    return surfaces(
        run_as.factors,
        run_as.configurations,
        clean,
        _means_of(resolved.deciding),
        _means_of(resolved.described),
        found,
        Promise(analysis.confidence, analysis.smallest_effect, _order_matters(resolved)),
    )


def _correlations(
    resolved: ResolvedStudy, summaries: Sequence[Measured], means: Sequence[Metric]
) -> tuple[Correlation, ...]:
    from ajuste.analysis.surface.blocks import correlations

    return tuple(correlations(summaries, _means_of(resolved.deciding), means, resolved.study.analysis.confidence))


def _rankings(
    resolved: ResolvedStudy, made: Sequence[Configuration], clean: Clean, across: Sequence[AcrossMachines]
) -> tuple[Ranking, ...]:
    """None where configurations are not compared one by one, or most of them are not measured."""
    analysis = resolved.study.analysis
    if resolved.study.design.judges_effects or resolved.study.allocation == "refine":
        return ()
    return rankings(
        made,
        clean,
        resolved.deciding,
        confidence=analysis.confidence,
        smallest_effect=analysis.smallest_effect,
        order_matters=_order_matters(resolved),
        across=across,
    )


def _histories(resolved: ResolvedStudy, made: Sequence[Configuration], clean: Clean) -> tuple[History, ...]:
    analysis = resolved.study.analysis
    if not any(factor.has_versions for factor in resolved.factors) or resolved.study.design.judges_effects:
        return ()
    from ajuste.analysis.history import histories
    from ajuste.analysis.surface.surfaces import Promise

    promise = Promise(analysis.confidence, analysis.smallest_effect, _order_matters(resolved))
    return histories(resolved.factors, made, clean, _means_of(resolved.deciding), promise)


def _means_of(metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    """Those of ``metrics`` that are compared by their mean."""
    return tuple(metric for metric in metrics if metric.quantile is None)


def _order_matters(resolved: ResolvedStudy) -> bool:
    """Under the virtual clock every trial starts from the same snapshot and feels nothing of those before it."""
    return resolved.study.target.clock == "wall"


def _with_initial(explained: Explained, columns: Measurements) -> Explained:
    """With the value that the kernel had before the first write, if it was the same in every trial."""
    before = {write.before for own in columns.written.values for write in own if write.tunable == explained.name}
    return explained.model_copy(update={"initial_value": before.pop()}) if len(before) == 1 else explained


def _first(notes: Sequence[str]) -> list[str]:
    """Not one for each of many configurations."""
    more = len(notes) - MOST_NOTES
    said = [f"The same holds in {more} more {'case' if more == 1 else 'cases'}."] if more > 0 else []
    return [*notes[:MOST_NOTES], *said]


def _notes(resolved: ResolvedStudy, clean: Clean, idle: Sequence[NoChance]) -> list[str]:
    notes = [*(one.note for one in idle), *resolved.notes]
    if resolved.study.target.clock == "virtual":
        machine = resolved.paced_by
        equal = "where every instruction takes the same time"
        notes.append(VIRTUAL_CLOCK.format(time=f"with the modelled time of a {machine.name}" if machine else equal))
    else:
        notes += _first(outlier_notes(clean, _means_of(resolved.deciding)))
    columns = clean.measured
    remarked = np.flatnonzero(columns.has_status("ok") & (columns.reason.codes != columns.reason.code("")))
    return [*notes, *(f"In clean trials: {reason}." for reason in columns.reason.among(remarked)[:MOST_NOTES])]


def _unseen(found: Sequence[Finding]) -> list[str]:
    """What the decided verdict of the fewest blocks cannot see."""
    decided = [one for one in found if one.deciding and not one.is_undecided and one.cannot_see]
    return [min(decided, key=lambda one: one.blocks).cannot_see] if decided else []


def _not_precise(resolved: ResolvedStudy, found: Sequence[Verdict]) -> list[str]:
    """What is still wider than was asked for."""
    precision = resolved.study.analysis.precision
    wide = [f"{one.configuration} on {one.metric}" for one in found if one.deciding and one.precise is False]
    if not wide or precision is None:
        return []
    more = [f"{len(wide) - MOST_NOTES} more"] if len(wide) > MOST_NOTES else []
    return [f"Not as precise as requested (±{percent(precision)}): {listed([*wide[:MOST_NOTES], *more])}."]
