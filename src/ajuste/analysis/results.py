"""The results of a run: everything that is known of it, as one document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ajuste.analysis.answer import answer
from ajuste.analysis.digest import digest
from ajuste.analysis.outliers import outlier_notes
from ajuste.analysis.pairs import complete_blocks
from ajuste.analysis.precision import Precision, precisions
from ajuste.analysis.prediction.registry import agreement, predictions
from ajuste.analysis.summary import measured, with_intervals
from ajuste.analysis.three_sigma import three_sigma
from ajuste.analysis.timelines import timelines
from ajuste.analysis.trend import Trend, trend
from ajuste.analysis.verdict import family, judge
from ajuste.design.stopping import Why
from ajuste.model.configuration import Configuration
from ajuste.model.metric import Metric
from ajuste.model.results import Explained, Point, Results
from ajuste.model.trial import Trial
from ajuste.model.verdict import Verdict
from ajuste.study.resolved import ResolvedStudy

VIRTUAL_CLOCK = (
    "Measured under a virtual clock on an emulated CPU, where every instruction takes the same time: this shows what "
    "the kernel does, not how fast any hardware is. Replicates are seeds, which move memory layouts and the start "
    "against the timer tick."
)


def configurations(resolved: ResolvedStudy) -> tuple[Configuration, ...]:
    """The configurations of a study, in order."""
    return tuple(c.configuration for c in resolved.configurations)


def verdicts(resolved: ResolvedStudy, trials: Sequence[Trial]) -> tuple[Verdict, ...]:
    """What can be said after these trials. May be looked at after every block."""
    analysis = resolved.study.analysis
    return judge(
        configurations(resolved),
        trials,
        resolved.deciding,
        resolved.described,
        confidence=analysis.confidence,
        smallest_effect=analysis.smallest_effect,
    )


def means(resolved: ResolvedStudy, trials: Sequence[Trial]) -> tuple[Precision, ...]:
    """How well the deciding means are known, if nothing is compared; nothing otherwise."""
    if len(resolved.configurations) > 1:
        return ()
    analysis = resolved.study.analysis
    return precisions(
        trials, resolved.deciding, confidence=analysis.confidence, smallest_effect=analysis.smallest_effect
    )


def assemble(
    resolved: ResolvedStudy,
    trials: Sequence[Trial],
    *,
    run: str,
    stopped: Why,
    stopped_because: str,
    environment: Mapping[str, Any] | None = None,
    reproduce: Sequence[str] = (),
    notes: Sequence[str] = (),
    created: str = "",
    ajuste: str = "",
) -> Results:
    """The results of ``trials``. ``notes`` are added to those that follow from study and trials."""
    study = resolved.study
    made = configurations(resolved)
    found = verdicts(resolved, trials)
    known = means(resolved, trials)
    summaries = with_intervals(measured(made, trials), known)
    in_order = sorted(trials, key=lambda t: (t.slot.block, t.slot.position, t.attempt))
    group = family(made, resolved.deciding, study.analysis.confidence)
    seen = {name for trial in trials for name in (*trial.metrics, *trial.not_supported)}
    said = answer(
        resolved.deciding,
        found,
        summaries,
        _trends(resolved, made, trials, group.alpha),
        smallest_effect=study.analysis.smallest_effect,
        means=known,
    )
    predicted = predictions(resolved, summaries)
    agreed = agreement(resolved.rule, predicted, resolved.deciding) if resolved.rule else ""
    return Results(
        study=study.name,
        title=study.title or study.name,
        question=study.question,
        answer=" ".join(filter(None, (agreed, said))),
        run=run,
        seed=study.design.seed,
        clock=study.target.clock,
        digest=digest(trials),
        stopped=stopped,
        stopped_because=stopped_because,
        level=study.analysis.confidence,
        smallest_effect=study.analysis.smallest_effect,
        correction=group.describe(len(made) - 1, len(resolved.deciding)),
        blocks=complete_blocks(trials, resolved.names),
        verdicts=found,
        configurations=summaries,
        factors=resolved.factors,
        metrics=(*resolved.deciding, *(m for m in resolved.described if m.name in seen)),
        trials=tuple(_point(trial) for trial in in_order),
        three_sigma=three_sigma(made, trials, resolved.deciding, found, study.analysis.confidence)
        if study.analysis.three_sigma
        else (),
        rule=resolved.rule,
        predictions=predicted,
        timelines=timelines(resolved, trials),
        explained=tuple(_with_initial(e, in_order) for e in resolved.explained),
        environment=dict(environment or {}),
        reproduce=tuple(reproduce),
        notes=tuple(dict.fromkeys((*_notes(resolved, in_order), *notes))),
        created=created,
        ajuste=ajuste,
    )


def _trends(
    resolved: ResolvedStudy, made: Sequence[Configuration], trials: Sequence[Trial], alpha: float
) -> dict[str, Trend]:
    units = {explained.name: explained.unit for explained in resolved.explained}
    varied = next((factor.name for factor in resolved.factors if len(factor.levels) > 1), "")

    def of(metric: Metric) -> Trend | None:
        return trend(resolved.factors, made, trials, metric, alpha, units.get(varied, ""))

    return {metric.name: found for metric in resolved.deciding if (found := of(metric)) is not None}


def _point(trial: Trial) -> Point:
    return Point(
        configuration=trial.slot.configuration,
        block=trial.slot.block,
        position=trial.slot.position,
        seed=trial.slot.seed,
        status=trial.status,
        reason=trial.reason,
        warm_up=trial.slot.warm_up,
        attempt=trial.attempt,
        metrics=trial.metrics,
    )


def _with_initial(explained: Explained, trials: Sequence[Trial]) -> Explained:
    """With the value that the kernel had before the first write, if it was the same in every trial."""
    before = {write.before for trial in trials for write in trial.written if write.tunable == explained.name}
    return explained.model_copy(update={"initial_value": before.pop()}) if len(before) == 1 else explained


def _notes(resolved: ResolvedStudy, trials: Sequence[Trial]) -> list[str]:
    notes = list(resolved.notes)
    if resolved.study.target.clock == "virtual":
        notes.append(VIRTUAL_CLOCK)
    else:
        notes += outlier_notes(trials, resolved.deciding)
    for status, left in (("flagged", "were not clean and are left out of the verdicts"), ("failed", "failed")):
        bad = [trial for trial in trials if trial.status == status]
        if bad:
            reasons = dict.fromkeys(trial.reason for trial in bad)
            shown = "; ".join(list(reasons)[:3]) + (" …" if len(reasons) > 3 else "")
            notes.append(f"{len(bad)} of {len(trials)} trials {left}: {shown}.")
    return notes
