"""The results of an ablation: the effect of the whole profile, and each line's share of it."""

from __future__ import annotations

from typing import Any

from ajuste.analysis.machines import Machines, undisputed
from ajuste.analysis.pairs import Clean, Trials, units
from ajuste.analysis.record import NO_MACHINES, Record
from ajuste.analysis.results import assemble
from ajuste.analysis.summary import with_quantile_columns
from ajuste.model.results import Results
from ajuste.model.verdict import EFFECTS_CORRECTION, LINES, LineEffect
from ajuste.run.facets import group_machines
from ajuste.study.factors import line_sets
from ajuste.study.resolved import ResolvedStudy
from ajuste_search.ablation.answer import lines_answer
from ajuste_search.ablation.effects import Lines, Rates, ablation


def lines(resolved: ResolvedStudy, trials: Trials) -> tuple[LineEffect, ...]:
    """Return the effects of the whole profile and of each of its lines."""
    analysis = resolved.study.analysis
    return ablation(
        Lines(line_sets(resolved.study), resolved.names),
        trials,
        resolved.deciding,
        confidence=analysis.confidence,
        smallest_effect=analysis.smallest_effect,
    )


def undisputed_lines(resolved: ResolvedStudy, clean: Clean, machines: Machines) -> tuple[LineEffect, ...]:
    """Return the same, decided only where all machines agree."""
    return undisputed(lines(resolved, clean), clean, machines, lambda part: lines(resolved, part))


def ablation_rates(resolved: ResolvedStudy) -> Rates:
    """Return the error rates of an ablation."""
    return Rates(len(line_sets(resolved.study)), len(resolved.deciding), resolved.study.analysis.confidence)


def assemble_ablation(
    resolved: ResolvedStudy, record: Record, *, machines: Machines = NO_MACHINES, **more: Any
) -> Results:
    """Return the results of an ablation; arguments as of ``analysis.results.assemble``."""
    columns = with_quantile_columns(record.measurements, (*resolved.deciding, *resolved.described))
    effects = undisputed_lines(resolved, units(resolved, columns), machines)
    results = assemble(resolved, record, machines=machines, group_machines=group_machines, decided=effects, **more)
    correction = ablation_rates(resolved).words if effects else ""
    sentences = (results.answer, lines_answer(effects, resolved.deciding))
    return results.model_copy(
        update={
            "answer": " ".join(filter(None, sentences)),
            "correction": correction,
            **EFFECTS_CORRECTION.document(correction),
            **LINES.document(effects),
        }
    )
