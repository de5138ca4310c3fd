"""What the trials of a run say of its boots: how much differs within a boot, and how much from boot to boot."""

from __future__ import annotations

import math

import numpy as np

from ajuste.analysis.boots import BootValue, judge_boots
from ajuste.model.boot import BootFindings, BootSpread, KeptBoots
from ajuste.model.measurements import Measurements
from ajuste.model.metric import Metric
from ajuste.study.resolved import ResolvedStudy


def boot_findings(resolved: ResolvedStudy, measured: Measurements, kept: KeptBoots) -> BootFindings:
    """Of the deciding metrics that are compared by their mean."""
    spreads: list[BootSpread] = []
    says: list[str] = []
    for metric in resolved.deciding:
        if metric.quantile is not None or not (values := _values(measured, metric, kept)):
            continue
        judged = judge_boots(values, metric, baseline=resolved.baseline, configurations=resolved.names)
        several = len(resolved.deciding) > 1
        says += [f"{metric.title}: {sentence}" if several else sentence for sentence in judged.says]
        spreads += [
            BootSpread(
                configuration=one.configuration,
                metric=metric.name,
                scale=one.scale,
                boots=one.boots,
                values=one.values,
                within=one.within_sd,
                between=one.between_sd,
                share=one.share,
                of_effect=one.of_effect,
            )
            for one in judged.variances
        ]
    return BootFindings(kept=kept, spreads=tuple(spreads), says=tuple(says))


def _values(measured: Measurements, metric: Metric, kept: KeptBoots) -> list[BootValue]:
    """Those of clean trials."""
    column, boots = measured.metrics.get(metric.column), kept.boot_of()
    if column is None:
        return []
    found = []
    for row in np.flatnonzero(measured.has_status("ok") & ~measured.warm_up):
        place = (int(measured.block[row]), int(measured.position[row]), int(measured.attempt[row]))
        value = float(column[row])
        if place in boots and not math.isnan(value):
            found.append(BootValue(boots[place], measured.configuration[int(row)], place[0], value))
    return found
