"""Boots as replicates: an effect whose interval holds for the next boot too, not only for those that were measured.

A boot draws memory layouts, orders of devices and much else once, and all that is measured in it shares them. So a
boot counts as one value, however often it measured (Kalibera and Jones 2013, "Rigorous benchmarking in reasonable
time", ISMM). Where the scatter comes from is told by one-way random effects (Searle, Casella and McCulloch 1992,
Variance Components).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.diagnostics.order import variance_between
from ajuste.analysis.effects import Effect, effect, margin, paired
from ajuste.analysis.pairs import Pairs
from ajuste.analysis.sequence import fewest
from ajuste.analysis.verdict import more_blocks, of_effect, reason_of, unmeasured, word_of
from ajuste.model.boot import BootFindings, BootSpread, KeptBoots
from ajuste.model.measurements import Measurements
from ajuste.model.metric import Metric, Scale
from ajuste.model.verdict import Verdict
from ajuste.model.wording import change, number, percent
from ajuste.study.resolved import ResolvedStudy

Floats = NDArray[np.float64]

SEEN: Final = 0.05
"""Below this p-value boots certainly differ."""
REFINEMENTS: Final = 8
"""Each narrows down the ratio of two variances tenfold."""
TOO_SURE: Final = 1.5
"""From this factor on it is said how much too narrow an interval without boots would be."""


@dataclass(frozen=True)
class BootValue:
    """One measurement of one metric: in boot number ``boot`` of the machine, under ``configuration``, in ``block``.

    Boots are numbered in the order of time. A configuration that needs a reboot has whole boots to itself; one that
    does not can share them with others.
    """

    boot: int
    configuration: str
    block: int
    value: float


@dataclass(frozen=True)
class BootVariance:
    """Where the scatter of one configuration comes from, as standard deviations of the logarithm (or in the metric's
    unit, as ``scale`` says): ``within_sd`` within a boot, ``between_sd`` between boots. ``share`` is the part of the
    variance that is between boots, ``p_value`` that of boots which do not differ. All are ``None`` where they are not
    known: of one boot only, or of one value in each.

    With ``of_effect`` it is the scatter of the difference from the baseline, where both share boots.
    """

    configuration: str
    scale: Scale
    boots: int
    values: int
    within_sd: float | None = None
    between_sd: float | None = None
    share: float | None = None
    p_value: float | None = None
    of_effect: bool = False


@dataclass(frozen=True)
class BootJudgement:
    """``verdicts`` rest on boots as units: ``blocks`` of each is how many independent comparisons between or within
    boots it rests on, ``more_blocks`` counts the same. ``says`` has the findings in sentences.
    """

    metric: Metric
    verdicts: tuple[Verdict, ...]
    variances: tuple[BootVariance, ...]
    says: tuple[str, ...]


def judge_boots(
    values: Sequence[BootValue],
    metric: Metric,
    *,
    baseline: str,
    configurations: Sequence[str],
    comparisons: int = 1,
    confidence: float = 0.95,
    smallest_effect: float = 0.05,
    deciding: bool = True,
) -> BootJudgement:
    """The verdict of every configuration against the baseline, with boots as the units.

    What shares a boot or a block is one unit and gives one difference, so that blocks which were measured in the same
    two boots do not pass for several. The intervals are anytime-valid, as in ``analysis.effects``; all ``comparisons``
    hold together with ``confidence``.
    """
    alpha = (1 - confidence) / max(1, comparisons)
    scale = _scale(values, metric)
    verdicts: list[Verdict] = []
    variances = [
        _variance([one for one in values if one.configuration == name], name, scale) for name in configurations
    ]
    says: list[str] = []
    for name in configurations:
        if name == baseline:
            continue
        both = boot_pairs(values, baseline, name, scale)
        found = effect(both, metric, alpha)
        if found is None:
            reason = "no boots of both the baseline and this configuration belong together yet"
            verdicts.append(unmeasured(name, metric, confidence, reason, deciding=deciding))
            continue
        zone = margin(found, smallest_effect)
        word = word_of(found, metric, zone)
        verdicts.append(
            of_effect(
                found,
                name,
                metric,
                word,
                level=confidence,
                blocks=found.interval.n,
                more_blocks=more_blocks(found, zone, alpha) if word == "undecided" else None,
                deciding=deciding,
                reason=reason_of(word, found, metric, smallest_effect, _too_few(found, alpha)),
            )
        )
        says += _too_sure(values, both, baseline, name, scale)
        differences = _within_boots(values, baseline, name, scale)
        if differences:
            variances.append(_variance(differences, name, "difference", of=scale))
    return BootJudgement(
        metric, tuple(verdicts), tuple(variances), (*(_says(one, metric) for one in variances if _there(one)), *says)
    )


def boot_pairs(values: Sequence[BootValue], baseline: str, other: str, scale: Scale) -> Pairs:
    """For every unit that has both configurations the mean over boots of the mean within each."""
    own = [one for one in values if one.configuration in (baseline, other)]
    units = _units(own)
    rows: list[tuple[float, float, bool]] = []
    in_one_boot = False
    for unit in units:
        sides = [_by_boot([one for one in unit if one.configuration == name]) for name in (baseline, other)]
        if not all(sides):
            continue
        in_one_boot = in_one_boot or bool(sides[0].keys() & sides[1].keys())
        ones, others = ([_mean(measured, scale) for measured in side.values()] for side in sides)
        rows.append((_mean(ones, scale), _mean(others, scale), min(sides[0]) < min(sides[1])))
    first = None if in_one_boot else np.array([row[2] for row in rows], np.bool_)
    return Pairs(np.array([row[0] for row in rows]), np.array([row[1] for row in rows]), first)


def random_effects(values: Floats, groups: NDArray[np.int64]) -> tuple[float, float]:
    """The variances within and between ``groups`` by restricted maximum likelihood (REML).

    At least two groups, and one of at least two values.
    """
    _, groups = np.unique(groups, return_inverse=True)
    count = np.bincount(groups).astype(np.float64)
    means = np.bincount(groups, values) / count
    within = float(np.sum((values - means[groups]) ** 2))
    freedom = len(values) - 1

    def fit(ratios: Floats) -> tuple[Floats, Floats]:
        """For each ratio of the two variances the one within, and how unlikely the values are."""
        widened = 1 + count * ratios[:, None]
        weights = count / widened
        whole = np.sum(weights, axis=1)
        middle = np.sum(weights * means, axis=1) / whole
        variance = (within + np.sum(weights * (means - middle[:, None]) ** 2, axis=1)) / freedom
        with np.errstate(divide="ignore"):
            unlikely = freedom * np.log(variance) + np.sum(np.log(widened), axis=1) + np.log(whole)
        return variance, unlikely

    ratios = np.r_[0.0, np.geomspace(1e-6, 1e6, 121)]
    for _ in range(REFINEMENTS):
        best = int(np.argmin(fit(ratios)[1]))
        if best == 0 and ratios[0] == 0:
            break
        ratios = np.linspace(ratios[max(best - 1, 0)], ratios[min(best + 1, len(ratios) - 1)], 21)
    variance, unlikely = fit(ratios)
    best = int(np.argmin(unlikely))
    return float(variance[best]), float(ratios[best] * variance[best])


def values_a_boot(variance: BootVariance, *, boot_s: float, value_s: float) -> int | None:
    """How many values a boot are best, if a boot costs ``boot_s`` and a value ``value_s`` seconds: those for which an
    hour narrows the interval most (Kalibera and Jones 2013). ``None`` where the variances are not known.
    """
    if variance.within_sd is None or not variance.between_sd:
        return None
    return max(1, round(math.sqrt(boot_s / value_s) * variance.within_sd / variance.between_sd))


def _scale(values: Sequence[BootValue], metric: Metric) -> Scale:
    return "ratio" if metric.scale == "ratio" and all(one.value > 0 for one in values) else "difference"


def _mean(values: Sequence[float], scale: Scale) -> float:
    """The geometric mean where ratios are compared."""
    return math.exp(float(np.mean(np.log(values)))) if scale == "ratio" else float(np.mean(values))


def _by_boot(values: Sequence[BootValue]) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for one in values:
        found.setdefault(one.boot, []).append(one.value)
    return found


def _units(values: Sequence[BootValue]) -> list[list[BootValue]]:
    """``values`` in parts that share neither a boot nor a block, in order."""
    parts: list[tuple[set[int], set[int], list[BootValue]]] = []
    for one in values:
        joined: tuple[set[int], set[int], list[BootValue]] = ({one.boot}, {one.block}, [one])
        others = []
        for part in parts:
            if one.boot in part[0] or one.block in part[1]:
                joined = (joined[0] | part[0], joined[1] | part[1], [*part[2], *joined[2]])
            else:
                others.append(part)
        parts = [*others, joined]
    return [part[2] for part in sorted(parts, key=lambda part: min(part[0]))]


def _within_boots(values: Sequence[BootValue], baseline: str, other: str, scale: Scale) -> list[BootValue]:
    """The differences within blocks whose two trials ran in the same boot."""
    cells: dict[tuple[int, int], dict[str, list[float]]] = {}
    for one in values:
        cells.setdefault((one.boot, one.block), {}).setdefault(one.configuration, []).append(one.value)
    found = []
    for (boot, block), own in cells.items():
        if baseline in own and other in own:
            base, changed = _mean(own[baseline], scale), _mean(own[other], scale)
            found.append(
                BootValue(boot, other, block, math.log(changed / base) if scale == "ratio" else changed - base)
            )
    return found


def _variance(values: Sequence[BootValue], name: str, scale: Scale, of: Scale | None = None) -> BootVariance:
    boots = len({one.boot for one in values})
    known = BootVariance(name, of or scale, boots, len(values), of_effect=of is not None)
    if boots < 2 or len(values) == boots:
        return known
    measured = np.array([one.value for one in values])
    table = np.log(measured) if scale == "ratio" else measured
    _, groups = np.unique([one.boot for one in values], return_inverse=True)
    within, between = random_effects(table, groups.astype(np.int64))
    p_value, _ = variance_between(table, groups.astype(np.int64))
    share = between / (within + between) if within + between > 0 else 0.0
    return replace(known, within_sd=math.sqrt(within), between_sd=math.sqrt(between), share=share, p_value=p_value)


def _there(variance: BootVariance) -> bool:
    return variance.p_value is not None and variance.p_value < SEEN and bool(variance.between_sd)


def _says(variance: BootVariance, metric: Metric) -> str:
    between, within = (_amount(sd or 0.0, variance.scale, metric) for sd in (variance.between_sd, variance.within_sd))
    what = f"The effect of {variance.configuration}" if variance.of_effect else variance.configuration
    return (
        f"{what} differs from boot to boot by {between} (standard deviation), and within a boot by {within}: "
        f"{percent(round(variance.share or 0.0, 2))} of the variance of a value is between boots."
    )


def _too_sure(values: Sequence[BootValue], both: Pairs, baseline: str, other: str, scale: Scale) -> list[str]:
    """How much too narrow an interval would be that takes every value for a replicate."""
    if len(both) < 2:
        return []
    sides = [np.array([one.value for one in values if one.configuration == name]) for name in (baseline, other)]
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


def _too_few(found: Effect, alpha: float) -> str:
    count = found.interval.n
    comparisons = f"{count} comparison" if count == 1 else f"{count} comparisons"
    if found.one_order and count >= fewest(alpha):
        return f"the same configuration booted first in each of {comparisons}; one in the other order is needed"
    return f"{comparisons} of boots of the {fewest(alpha)} that an interval requires"


def _amount(sd: float, scale: Scale, metric: Metric) -> str:
    if scale == "ratio":
        return change(math.exp(sd), scale, metric.unit).lstrip("+")
    return change(sd, scale, metric.unit).lstrip("+")


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
