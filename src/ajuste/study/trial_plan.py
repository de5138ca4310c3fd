"""What one trial writes and runs, and how what its programs say is read: from the study and its place in it alone."""

from __future__ import annotations

from ajuste.design.blocks import perturbation
from ajuste.model.plan import Perturbation, Plan, Write
from ajuste.model.trial import Slot
from ajuste.outputs.trial import TrialReading
from ajuste.study.resolved import ResolvedStudy


def plan_for(study: ResolvedStudy, slot: Slot, attempt: int) -> Plan:
    """What one trial writes, runs and counts. Follows from study, slot and attempt alone."""
    resolved = study.find(slot.configuration)
    table = study.study.workload
    disturbed = perturbation(slot.seed)
    on_host = study.study.target.kind == "host"
    return Plan(
        id=f"b{slot.block}p{slot.position}a{attempt}",
        writes=resolved.writes,
        scratch=resolved.scratch,
        before=resolved.before,
        background=resolved.background,
        settle_ns=round(table.settle_s * 1e9) if resolved.background or not on_host else 0,
        workload=resolved.workload,
        timeout_ns=round(table.timeout_s * 1e9),
        counters=study.counters,
        samplers=study.samplers,
        observe_ns=round(table.observe_s * 1e9),
        after=resolved.after,
        perturbation=_on_a_host(disturbed) if on_host else disturbed,
    )


def _on_a_host(perturbation: Perturbation) -> Perturbation:
    """A host's random pool is its own, and its trials start at any moment anyway."""
    return Perturbation(environment_bytes=perturbation.environment_bytes)


def reading_of(study: ResolvedStudy, configuration: str) -> TrialReading:
    """How the outputs of the study's workload are read under that configuration."""
    loads = study.find(configuration).loads
    return TrialReading(
        parser=study.parser,
        patterns=study.patterns,
        pointers=study.pointers,
        timelines=study.timelines,
        endless=tuple(load.endless for load in loads),
        shares_of=tuple(load.number for load in loads) if study.shares else None,
        any_exit=study.study.workload.ignore_failure,
        keep_output=study.study.workload.keep_output,
        rounded=frozenset(write.tunable for write in study.find(configuration).writes if _of_range(study, write)),
    )


def _of_range(study: ResolvedStudy, write: Write) -> bool:
    """Whether its value is of a range, or suggested by a search: the kernel's next one is as good as any."""
    if study.search is not None:
        return True
    names = (f"/{factor.name}/" for factor in study.factors if factor.span is not None and factor.span.points)
    return any(f"/{write.tunable}/" in name for name in names)
