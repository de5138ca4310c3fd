"""Findings on machines like those that measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ajuste.analysis.machines import Machines, by_machine, machine_values
from ajuste.analysis.pairs import Clean, clean_trials
from ajuste.analysis.results import configurations, mean_metrics
from ajuste.analysis.verdict import family
from ajuste.model.trial import compared
from ajuste.model.verdict import MACHINES, AcrossMachines
from ajuste.run.facets import MeasuredRun
from ajuste.study.resolved import ResolvedStudy
from ajuste_fleet.effects import fleet_effects, with_groups
from ajuste_fleet.model import FleetEffect


def find(measured: MeasuredRun) -> tuple[FleetEffect, ...] | None:
    """Return what holds of machines like those that measured, for the deciding means; None of fewer than three."""
    across = MACHINES.of(measured.results)
    if not across:
        return None
    machines = measured.store.machines(measured.run)
    clean = clean_trials(measured.record.measurements)
    return effects_of(measured.resolved, clean, machines, across, measured.run.environment) or None


def group_machines(
    resolved: ResolvedStudy,
    clean: Clean,
    machines: Machines,
    across: Sequence[AcrossMachines],
    environment: Mapping[str, Any],
) -> Sequence[AcrossMachines]:
    """Return the comparisons with the machines that differ from the others, and what they have in common."""
    return with_groups(across, effects_of(resolved, clean, machines, across, environment))


def effects_of(
    resolved: ResolvedStudy,
    clean: Clean,
    machines: Machines,
    across: Sequence[AcrossMachines],
    environment: Mapping[str, Any],
) -> tuple[FleetEffect, ...]:
    """Return the effects on machines like those that measured, of the deciding means; of at least three machines."""
    columns = {metric.name: metric.column for metric in mean_metrics(resolved.deciding)}
    comparisons = [comparison for comparison in across if comparison.metric in columns]
    if not comparisons:
        return ()
    parts = by_machine(clean, machines)
    references = {made.name: made.reference for made in compared(configurations(resolved))}
    known: Mapping[str, Mapping[str, Any]] = environment.get("machines", {})
    return fleet_effects(
        comparisons,
        lambda comparison: machine_values(
            parts, references[comparison.configuration], comparison, columns[comparison.metric]
        ),
        {name: about.get("inventory", {}) for name, about in known.items()},
        alpha=family(configurations(resolved), resolved.deciding, resolved.study.analysis.confidence).alpha,
    )
