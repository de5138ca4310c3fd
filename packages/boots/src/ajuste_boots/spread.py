"""Variation of the trials of a run within a boot and from boot to boot.

A boot draws memory layouts, orders of devices and much else once, and all that is measured in it shares them. So a boot
counts as one value (see ``analysis.pairs``), however often it measured (Kalibera and Jones 2013, "Rigorous benchmarking
in reasonable time", ISMM). One-way random effects tell where the scatter comes from (Searle, Casella and McCulloch
1992, Variance Components).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.model.measurements import Measurements
from ajuste.model.metric import Metric
from ajuste.model.wording import change, number, percent
from ajuste.study.resolved import ResolvedStudy
from ajuste_boots.model import BootFindings, BootSpread, KeptBoots
from ajuste_stats.fixed_samples import paired
from ajuste_stats.heterogeneity import variance_between
from ajuste_stats.pairs import Pairs
from ajuste_stats.random_effects import variance_components
from ajuste_stats.terms import Scale

Floats = NDArray[np.float64]

SEEN: Final = 0.05
"""Below this p-value boots certainly differ."""
TOO_SURE: Final = 1.5
"""Least factor from which a finding says how much too narrow an interval without boots would be."""


@dataclass(frozen=True)
class BootValue:
    """A measurement of one metric: in boot number ``boot`` of the machine, under ``configuration``, in ``block``.

    Boots are numbered in the order of time. A configuration that needs a reboot has whole boots to itself; one that
    does not can share them with others.
    """

    boot: int
    configuration: str
    block: int
    value: float


def scatter(
    values: Sequence[BootValue], metric: Metric, *, baseline: str, configurations: Sequence[str]
) -> tuple[list[BootSpread], list[str]]:
    """Return where the scatter of each configuration and of its effect comes from, and the findings in sentences."""
    as_ratio = metric.scale == "ratio" and all(sample.value > 0 for sample in values)
    scale: Scale = "ratio" if as_ratio else "difference"
    spreads = [
        _spread([sample for sample in values if sample.configuration == name], name, metric, scale)
        for name in configurations
    ]
    too_sure: list[str] = []
    for name in configurations:
        if name == baseline or not len(both := boot_pairs(values, baseline, name, scale)):
            continue
        too_sure += _too_sure(values, both, baseline, name, scale)
        if differences := _within_boots(values, baseline, name, scale):
            spreads.append(_spread(differences, name, metric, "difference", of=scale))
    sentences = [_scatter_sentence(spread, metric) for spread, p_value in spreads if p_value < SEEN and spread.between]
    return [spread for spread, _ in spreads], [*sentences, *too_sure]


def boot_pairs(values: Sequence[BootValue], baseline: str, other: str, scale: Scale) -> Pairs:
    """Return for every unit that has both configurations the mean over boots of the mean within each."""
    samples = [sample for sample in values if sample.configuration in (baseline, other)]
    units = _units(samples)
    rows: list[tuple[float, float]] = []
    for unit in units:
        by_boot: dict[str, dict[int, list[float]]] = {baseline: {}, other: {}}
        for sample in unit:
            by_boot[sample.configuration].setdefault(sample.boot, []).append(sample.value)
        if not all(by_boot.values()):
            continue
        baselines, others = ([_mean(measured, scale) for measured in side.values()] for side in by_boot.values())
        rows.append((_mean(baselines, scale), _mean(others, scale)))
    return Pairs(np.array([row[0] for row in rows]), np.array([row[1] for row in rows]))


def _mean(values: Sequence[float], scale: Scale) -> float:
    return math.exp(float(np.mean(np.log(values)))) if scale == "ratio" else float(np.mean(values))


def _units(values: Sequence[BootValue]) -> list[list[BootValue]]:
    # Return `values` in parts that share neither a boot nor a block, in order.
    parts: list[tuple[set[int], set[int], list[BootValue]]] = []
    for sample in values:
        joined: tuple[set[int], set[int], list[BootValue]] = ({sample.boot}, {sample.block}, [sample])
        others = []
        for part in parts:
            if sample.boot in part[0] or sample.block in part[1]:
                joined = (joined[0] | part[0], joined[1] | part[1], [*part[2], *joined[2]])
            else:
                others.append(part)
        parts = [*others, joined]
    return [part[2] for part in sorted(parts, key=lambda part: min(part[0]))]


def _within_boots(values: Sequence[BootValue], baseline: str, other: str, scale: Scale) -> list[BootValue]:
    cells: dict[tuple[int, int], dict[str, list[float]]] = {}
    for sample in values:
        cells.setdefault((sample.boot, sample.block), {}).setdefault(sample.configuration, []).append(sample.value)
    differences = []
    for (boot, block), by_name in cells.items():
        if baseline in by_name and other in by_name:
            base, changed = _mean(by_name[baseline], scale), _mean(by_name[other], scale)
            differences.append(
                BootValue(boot, other, block, math.log(changed / base) if scale == "ratio" else changed - base)
            )
    return differences


def _spread(
    values: Sequence[BootValue], name: str, metric: Metric, scale: Scale, of: Scale | None = None
) -> tuple[BootSpread, float]:
    # Return also the p-value of boots that do not differ: 1 if unknown, of one boot only or one value in each.
    boots = len({sample.boot for sample in values})
    known = BootSpread(
        configuration=name,
        metric=metric.name,
        scale=of or scale,
        boots=boots,
        values=len(values),
        of_effect=of is not None,
    )
    if boots < 2 or len(values) == boots:
        return known, 1.0
    measured = np.array([sample.value for sample in values])
    table = np.log(measured) if scale == "ratio" else measured
    _, groups = np.unique([sample.boot for sample in values], return_inverse=True)
    within, between = variance_components(table, groups.astype(np.int64))
    p_value, _ = variance_between(table, groups.astype(np.int64))
    share = between / (within + between) if within + between > 0 else 0.0
    return known.model_copy(
        update={"within": math.sqrt(within), "between": math.sqrt(between), "share": share}
    ), p_value


def _scatter_sentence(spread: BootSpread, metric: Metric) -> str:
    between, within = (
        change(math.exp(sd) if spread.scale == "ratio" else sd, spread.scale, metric.unit).lstrip("+")
        for sd in (spread.between or 0.0, spread.within or 0.0)
    )
    what = f"The effect of {spread.configuration}" if spread.of_effect else spread.configuration
    return (
        f"{what} differs from boot to boot by {between} (standard deviation), and within a boot by {within}: "
        f"{percent(round(spread.share or 0.0, 2))} of the variance of a value is between boots."
    )


def _too_sure(values: Sequence[BootValue], both: Pairs, baseline: str, other: str, scale: Scale) -> list[str]:
    if len(both) < 2:
        return []
    sides = [
        np.array([sample.value for sample in values if sample.configuration == name]) for name in (baseline, other)
    ]
    if scale == "ratio":
        sides = [np.log(side) for side in sides]
        pairs = paired(np.log(both.baseline), np.log(both.other))
    else:
        pairs = paired(both.baseline, both.other)
    naive = math.hypot(
        *(float(np.std(side, ddof=1)) / math.sqrt(len(side)) if len(side) > 1 else 0.0 for side in sides)
    )
    if not naive or pairs.error / naive < TOO_SURE:
        return []
    return [
        f"If every value of {other} counted as a replicate, the interval would be {number(pairs.error / naive)} times "
        f"too narrow."
    ]


def boot_findings(resolved: ResolvedStudy, measured: Measurements, recorded: KeptBoots) -> BootFindings:
    """Return the findings on the deciding metrics that are compared by their mean."""
    spreads: list[BootSpread] = []
    texts: list[str] = []
    for metric in resolved.deciding:
        if metric.quantile is not None or not (values := _values(measured, metric, recorded)):
            continue
        metric_spreads, sentences = scatter(values, metric, baseline=resolved.baseline, configurations=resolved.names)
        several = len(resolved.deciding) > 1
        texts += [f"{metric.title}: {sentence}" if several else sentence for sentence in sentences]
        spreads += metric_spreads
    return BootFindings(kept=recorded, spreads=tuple(spreads), says=tuple(texts))


def _values(measured: Measurements, metric: Metric, recorded: KeptBoots) -> list[BootValue]:
    column, boots = measured.metrics.get(metric.column), recorded.boot_by_trial()
    if column is None:
        return []
    samples = []
    for row in np.flatnonzero(measured.has_status("ok") & ~measured.warm_up):
        place = (int(measured.block[row]), int(measured.position[row]), int(measured.attempt[row]))
        value = float(column[row])
        if place in boots and not math.isnan(value):
            samples.append(BootValue(boots[place], measured.configuration[int(row)], place[0], value))
    return samples
