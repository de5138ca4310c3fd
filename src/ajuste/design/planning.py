"""The plan of one trial: a place in the design, and what its configuration writes and runs."""

from __future__ import annotations

from ajuste.design.perturbation import perturbation
from ajuste.model.plan import Plan
from ajuste.model.trial import Slot
from ajuste.study.resolved import ResolvedStudy

NS = 1_000_000_000


def plan(resolved: ResolvedStudy, slot: Slot, attempt: int = 0) -> Plan:
    """The plan for the ``attempt``-th run (from 0) of ``slot``. Its ``id`` is unique in the study."""
    configuration = resolved.find(slot.configuration)
    workload = resolved.study.workload
    return Plan(
        id=f"b{slot.block}p{slot.position}" + (f"a{attempt}" if attempt else ""),
        writes=configuration.writes,
        background=configuration.background,
        settle_ns=round(workload.settle_s * NS) if configuration.background else 0,
        workload=configuration.workload,
        timeout_ns=round(workload.timeout_s * NS),
        counters=resolved.counters,
        perturbation=perturbation(slot.seed),
    )
