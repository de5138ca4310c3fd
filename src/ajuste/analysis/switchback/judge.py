"""Verdicts on the slices of a live system."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from ajuste.analysis.diagnostics.diagnose import diagnose
from ajuste.analysis.switchback.stays import (
    HORIZON,
    PROJECTED,
    REACH,
    SETTLED,
    StayDifferences,
    both_sides,
    stay_differences,
    stay_noise,
    stays_of,
)
from ajuste.analysis.verdict import build_verdict, unmeasured, verdict_reason
from ajuste.design.switchback import STAY
from ajuste.model.live import Slice
from ajuste.model.measurements import Gathering
from ajuste.model.metric import Metric
from ajuste.model.results import Diagnostic, Diagnostics
from ajuste.model.verdict import Verdict
from ajuste.model.wording import change, count_of
from ajuste_stats.confidence_sequences import Interval, widened
from ajuste_stats.decision import deciding_width, verdict_word
from ajuste_stats.effects import Effect, margin
from ajuste_stats.rounding import figure_step, row_errors
from ajuste_stats.sign_intervals import (
    LONG,
    SHORT,
    Floats,
    Mixture,
    fewest_blocks,
    final_log_evidence,
    interval_around,
    log_evidence,
)
from ajuste_stats.terms import Scale

# Evidence against an effect on a live system: `analysis.sign_intervals` of the blocks of a switchback, with a control.


@dataclass(frozen=True)
class BlockDifferences:
    """Differences between a configuration and the baseline, one per block, in ``values``.

    They are of logarithms where ``scale`` is *ratio*. ``control`` has the same of the control figure, ``None`` where
    any is unknown. ``floor`` is the least standard deviation that is believed, from the resolution of the figures, and
    ``rounding`` how far their ``step`` may have moved the mean difference.
    ``follows`` is how much more often slices of the other configuration follow one of their own than slices of the
    baseline do; NaN where the slice before is unknown.
    """

    scale: Scale
    values: Floats
    control: Floats | None
    baseline_mean: float
    floor: float
    step: float
    rounding: float
    same: bool
    fell_back: bool
    follows: Floats


def block_differences(slices: Sequence[Slice], metric: Metric, baseline: str, other: str) -> BlockDifferences | None:
    """Return the differences of all blocks with clean slices of both, except of stays; ``None`` without any."""
    by_block: dict[int, tuple[list[Slice], list[Slice]]] = {}
    for time_slice in sorted(slices, key=lambda s: s.number):
        if time_slice.counts and not time_slice.stay and time_slice.configuration in (baseline, other):
            by_block.setdefault(time_slice.block, ([], []))[time_slice.configuration == other].append(time_slice)
    blocks = [pair for pair in by_block.values() if all(pair)]
    running = {time_slice.number: time_slice.configuration for time_slice in slices}
    if not blocks:
        return None
    sides = [np.array([_value(time_slice) for pair in blocks for time_slice in pair[side]]) for side in (0, 1)]
    averages = [float(np.mean(side)) for side in sides]
    positive = all(bool(np.all(side > 0)) for side in sides)
    as_ratio = metric.scale == "ratio" and positive
    step = figure_step(metric, np.concatenate(sides))
    relative = [1 / mean if as_ratio else 1.0 for mean in averages]
    controls = [time_slice.control for pair in blocks for side in pair for time_slice in side]
    known = all(control is not None and np.isfinite(control) for control in controls)
    log_load = known and all(control is not None and control > 0 for control in controls)
    return BlockDifferences(
        scale="ratio" if as_ratio else "difference",
        values=_differences(blocks, _value, logarithm=as_ratio),
        control=_differences(blocks, _control, logarithm=log_load) if known else None,
        baseline_mean=averages[0],
        floor=step * math.hypot(*relative) / math.sqrt(12),
        step=step,
        rounding=float(np.sum(row_errors(metric, sides, as_ratio=as_ratio))),
        same=bool(np.all(_differences(blocks, _value, logarithm=False) == 0)),
        fell_back=metric.scale == "ratio" and not as_ratio,
        follows=_differences(
            blocks, lambda time_slice: _follows(running.get(time_slice.number - 1), other), logarithm=False
        ),
    )


def _follows(before: str | None, other: str) -> float:
    return math.nan if before is None else float(before == other)


def _differences(
    blocks: Sequence[tuple[list[Slice], list[Slice]]], value: Callable[[Slice], float], *, logarithm: bool
) -> Floats:
    def mean(side: Sequence[Slice]) -> float:
        values = np.array([value(time_slice) for time_slice in side])
        return float(np.mean(np.log(values) if logarithm else values))

    return np.array([mean(others) - mean(baselines) for baselines, others in blocks])


def _value(time_slice: Slice) -> float:
    return math.nan if time_slice.value is None else time_slice.value


def _control(time_slice: Slice) -> float:
    return math.nan if time_slice.control is None else time_slice.control


@dataclass(frozen=True)
class CarryOver:
    """The difference of a slice after one of the other configuration from one after the baseline.

    ``size`` is on the scale of the differences, with its standard error and degrees of freedom. ``known`` is False
    where too few blocks follow each. ``settled`` is the effect of slices that follow their own configuration, with its
    standard error and its variance as a multiple of that of the mean of differences.
    """

    size: float
    error: float
    freedom: int
    settled: float = 0.0
    settled_error: float = math.inf
    settled_variance: float = math.inf

    @property
    def known(self) -> bool:
        return self.freedom > 0

    @property
    def p_value(self) -> float:
        """Return the two-sided p-value of no carry-over; 1 where unknown."""
        if not self.known:
            return 1.0
        if self.error == 0:
            return 0.0 if self.size else 1.0
        return float(2 * stdtr(self.freedom, -abs(self.size) / self.error))

    def settles(self, effect: float) -> bool:
        """Return whether the settled effect has the sign of ``effect`` at an error rate of ``TURNS``."""
        return math.copysign(1.0, effect) * self.settled > float(stdtrit(self.freedom, 1 - TURNS)) * self.settled_error

    @property
    def shows_settled(self) -> bool:
        """Return whether the order can show that: squares and mirrored blocks hardly vary what a slice follows."""
        return self.settled_variance <= MOST_VARIANCE

    @property
    def times_as_many(self) -> float:
        """Return about how many times as many blocks show that."""
        return (float(stdtrit(self.freedom, 1 - TURNS)) * self.settled_error / self.settled) ** 2


TURNS: Final = 0.1
"""The error rate, at each look, of an effect that changes sign when its configuration stays."""
MOST_VARIANCE: Final = 20.0


# Fewer blocks after the same or after the other configuration tell nothing of a carry-over.
_EACH: Final = 2


def carry_over(differences: BlockDifferences, control: Floats | None) -> CarryOver:
    """Estimate what the configuration of a slice does to the next; with a ``control``, at equal load.

    Which of the two came before is drawn at random, too: differences of blocks are regressed on it (two-period
    crossover designs; Grizzle 1965, "The two-period change-over design and its use in clinical trials", Biometrics 21).
    """
    known = ~np.isnan(differences.follows)
    values, follows = differences.values[known], differences.follows[known]
    if control is not None and len(values) > 1 and float(np.ptp(control[known])) > 0:
        load = control[known] - np.mean(control[known])
        values = values - float(np.sum(load * values) / np.sum(load**2)) * control[known]
    if (
        len(values) < 2 * _EACH + 1
        or np.sum(follows == follows.min()) < _EACH
        or np.sum(follows > follows.min()) < _EACH
    ):
        return CarryOver(0.0, math.inf, 0)
    away = follows - np.mean(follows)
    size = float(np.sum(away * values) / np.sum(away**2))
    left = values - np.mean(values) - size * away
    freedom = len(values) - 2
    variance, squares, beyond = float(np.sum(left**2)) / freedom, float(np.sum(away**2)), 1 - float(np.mean(follows))
    return CarryOver(
        size=size,
        error=math.sqrt(variance / squares),
        freedom=freedom,
        settled=float(np.mean(values)) + beyond * size,
        settled_error=math.sqrt(variance * (1 / len(values) + beyond**2 / squares)),
        settled_variance=1 + beyond**2 / (squares / len(values)),
    )


EXPLAINS: Final = 0.9
"""Below this share of the remaining variance the estimate is that at equal load."""


def adjusted(values: Floats, control: Floats) -> Floats:
    """Return ``values`` without what differences of a ``control`` explain, along the last axis.

    They are recursive residuals (Brown, Durbin and Evans 1975, "Techniques for testing the constancy of regression
    relationships over time", JRSS B 37). The slope of each is from those before it alone, and each is divided by how
    much the error of that slope widens it. Neither depends on signs, so these stay independent. The first has no slope
    yet and says nothing.
    """
    both, squares = _before(values * control), _before(control**2)
    known = squares > 0
    slope = np.divide(both, squares, out=np.zeros_like(both), where=known)
    leverage = np.divide(control**2, squares, out=np.zeros_like(squares), where=known)
    left = (values - slope * control) / np.sqrt(1 + leverage)
    return np.where(known | (control == 0), left, 0.0)


def _before(terms: Floats) -> Floats:
    return np.asarray(np.cumsum(terms, axis=-1) - terms)


def sequence_interval(
    differences: Floats,
    *,
    alpha: float,
    floor: float = 0.0,
    control: Floats | None = None,
    mixture: Mixture = LONG,
) -> Interval:
    """Return the effects that ``differences`` (at least one) do not refute; valid at all numbers of blocks together.

    With a ``control`` the evidence is the mean of that with and without the adjustment for it.
    """

    def against(effects: Floats) -> Floats:
        left = differences[None, :] - effects[:, None]
        plain = final_log_evidence(left, floor, mixture)
        if control is None:
            return plain
        also = final_log_evidence(adjusted(left, np.broadcast_to(control, left.shape)), floor, mixture)
        return np.asarray(np.logaddexp(plain, also) - math.log(2))

    return interval_around(differences, _estimate(differences, control), against, alpha=alpha, floor=floor)


def _estimate(differences: Floats, control: Floats | None) -> float:
    mean = float(np.mean(differences))
    if control is not None and len(differences) > 2 and float(np.sum(control**2)) > 0:
        away, load = differences - mean, control - np.mean(control)
        slope = float(np.sum(away * load) / np.sum(load**2)) if np.ptp(control) > 0 else 0.0
        if np.var(away - slope * load) < EXPLAINS * np.var(away):
            mean -= slope * float(np.mean(control))
    return mean


MOST: Final = 20_000
"""Beyond this many blocks a prediction is not worth giving."""
FEWEST: Final = 4
"""Fewer differences say nothing of their spread."""


def blocks_needed(noise: Floats, effect: float, alpha: float, *, shortfall: float = 0.0) -> int | None:
    """Return about how many blocks refute no effect; ``None`` beyond ``MOST``.

    Differences within blocks are taken as ``effect`` plus one of ``noise`` with either sign, the evidence of n blocks
    as normal. ``shortfall`` says how many standard deviations below its mean it may be: 0 for half of all experiments,
    1.645 for 95 of 100.
    """
    if len(noise) < FEWEST or effect == 0:
        return None
    values = np.concatenate([noise, -noise]) + effect
    z = LONG.slopes[:, None] * values / math.sqrt(float(np.mean(values**2)))
    gains = z - np.abs(z) - np.log1p(np.exp(-2 * np.abs(z))) + math.log(2)
    mean, sd = gains.mean(axis=1), gains.std(axis=1)
    threshold = math.log(2 * len(LONG.slopes)) - math.log(alpha)

    def enough(n: int) -> bool:
        return bool(np.logaddexp.reduce(n * mean - shortfall * math.sqrt(n) * sd) >= threshold)

    low, high = 0, fewest_blocks(alpha, "long")
    while not enough(high):
        if high >= MOST:
            return None
        low, high = high, min(2 * high, MOST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return max(high, fewest_blocks(alpha, "long"))


_TRIAL: Final = re.compile(r"\btrial(s?)\b")

_WHY: Final = {
    "autocorrelation": "The order of every block is drawn at random, so verdicts hold however slices resemble each "
    "other.",
    "carry-over": "The effect of a slice reaches into the next: use longer slices or a longer wash-out.",
}
CARRIES: Final = 0.01
"""The error rate of a carry-over, at each look."""
FEWEST_BLOCKS: Final = 20
SURE: Final = 3.0
"""Number of standard errors from nothing that count as a change of the effect."""


def diagnose_slices(slices: Sequence[Slice], metric: Metric) -> Diagnostics:
    """Diagnose the slices that count, except of stays."""
    single = [time_slice for time_slice in slices if not time_slice.stay]
    diagnostics = diagnose(_measurements(single, metric).measurements(), (metric,), "wall")
    return diagnostics.model_copy(
        update={
            "found": tuple(map(_finding_on_slices, diagnostics.found)),
            "naive": tuple(
                finding.model_copy(update={"says": _in_slices(finding.says)}) for finding in diagnostics.naive
            ),
        }
    )


def sentences(diagnostics: Diagnostics) -> tuple[str, ...]:
    """Return the findings that matter, and their consequences for the verdicts."""
    return (
        *(f"{finding.says} {finding.why}".strip() for finding in diagnostics.found if finding.matters),
        *(finding.says for finding in diagnostics.naive),
    )


def changes_over_time(differences: NDArray[np.float64]) -> bool:
    """Return whether the effect itself changes: whether differences of neighbouring blocks resemble each other.

    Under one and the same effect their signs around it are independent, so the products of neighbours add up to
    nothing, with the sum of their squares as variance, whatever the noise is.
    """
    if len(differences) < FEWEST_BLOCKS:
        return False
    away = differences - np.mean(differences)
    products = away[1:] * away[:-1]
    return float(np.sum(products)) > SURE * float(np.sqrt(np.sum(products**2)))


def _finding_on_slices(finding: Diagnostic) -> Diagnostic:
    why = _WHY.get(finding.kind, finding.why) if finding.present else finding.why
    return finding.model_copy(
        update={
            "says": _in_slices(finding.says),
            "measures": _in_slices(finding.measures),
            "why": _in_slices(why),
            "verdict_affected": finding.verdict_affected and finding.kind not in _WHY,
        }
    )


def _in_slices(text: str) -> str:
    return _TRIAL.sub(r"slice\1", text)


def _measurements(slices: Sequence[Slice], metric: Metric) -> Gathering:
    # Gather the slices as trials; a block with several slices of each configuration becomes as many blocks.
    counting = [time_slice for time_slice in sorted(slices, key=lambda s: s.number) if time_slice.counts]
    seen: Counter[tuple[int, str]] = Counter()
    numbers: dict[tuple[int, int], int] = {}
    positions: Counter[int] = Counter()
    blocks, places = [], []
    for time_slice in counting:
        part = (time_slice.block, seen[time_slice.block, time_slice.configuration])
        seen[time_slice.block, time_slice.configuration] += 1
        block = numbers.setdefault(part, len(numbers))
        blocks.append(block)
        places.append(positions[block])
        positions[block] += 1
    count = len(counting)
    gathering = Gathering(read_written=tuple, read_not_supported=dict)
    gathering.extend(
        block=blocks,
        position=places,
        attempt=[0] * count,
        seed=[0] * count,
        warm_up=[False] * count,
        metrics=[{metric.name: time_slice.value or 0.0} for time_slice in counting],
        configuration=[time_slice.configuration for time_slice in counting],
        status=["ok"] * count,
        reason=[""] * count,
        written=[()] * count,
        not_supported=[()] * count,
    )
    return gathering


ALPHA_OF_CONTROL: Final = 0.1
"""The part of the error rate for whether a configuration changes the control itself."""
HELPS: Final = 0.9
"""A control helps where less than this share of the variance is left with it."""


@dataclass(frozen=True)
class SwitchbackJudgement:
    """Verdicts on one metric for every configuration but the baseline.

    ``more_slices`` is about how many more slices decide the open ones: 0 where all are decided, ``None`` while that
    is unknown. ``findings`` are sentences on the noise, ``diagnostics`` the same with figures. ``adjusted`` names
    the configurations whose estimate is that at equal load, by the slices' ``control``. ``awaiting`` names those that
    improve at once and lack only stays.
    """

    metric: Metric
    verdicts: tuple[Verdict, ...]
    more_slices: int | None
    findings: tuple[str, ...] = ()
    diagnostics: Diagnostics | None = None
    adjusted: tuple[str, ...] = ()
    awaiting: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Judged:
    verdict: Verdict
    adjusted: bool = False
    awaits_stays: bool = False
    findings: tuple[str, ...] = ()


def judge_slices(
    slices: Sequence[Slice],
    metric: Metric,
    *,
    baseline: str,
    configurations: Sequence[str],
    comparisons: int = 1,
    confidence: float = 0.95,
    smallest_effect: float = 0.05,
    diagnose_noise: bool = True,
    stays: bool = False,
) -> SwitchbackJudgement:
    """Judge ``slices`` so far on ``metric`` for each of ``configurations`` (names; the baseline among them).

    The verdicts of all ``comparisons`` of the experiment (configurations besides the baseline × deciding metrics) hold
    together with ``confidence``, however often and whenever one looks. That rests on blocks whose order was drawn as in
    ``design.switchback``, also for the incomplete block at the end: any two configurations of it could as well have
    been exchanged. With ``stays`` nothing improves that does not when it stays (see ``judge_stays``).
    """
    alpha = (1 - confidence) / max(1, comparisons)
    outcomes = [
        _judged(
            block_differences(slices, metric, baseline, name),
            name,
            metric,
            stays_of(slices, (baseline, name)) if stays else None,
            alpha=alpha,
            confidence=confidence,
            smallest_effect=smallest_effect,
        )
        for name in configurations
        if name != baseline
    ]
    diagnostics = diagnose_slices(slices, metric) if diagnose_noise else None
    return SwitchbackJudgement(
        metric=metric,
        verdicts=tuple(outcome.verdict for outcome in outcomes),
        more_slices=_more_slices(outcomes, slices),
        findings=(
            *(finding for outcome in outcomes for finding in outcome.findings),
            *(sentences(diagnostics) if diagnostics is not None else ()),
        ),
        diagnostics=diagnostics,
        adjusted=tuple(outcome.verdict.configuration for outcome in outcomes if outcome.adjusted),
        awaiting=tuple(outcome.verdict.configuration for outcome in outcomes if outcome.awaits_stays),
    )


def _judged(
    differences: BlockDifferences | None,
    configuration: str,
    metric: Metric,
    stays: Sequence[tuple[list[Slice], list[Slice]]] | None,
    *,
    alpha: float,
    confidence: float,
    smallest_effect: float,
) -> _Judged:
    if differences is None:
        reason = "no block has a clean slice of both the baseline and this configuration yet"
        return _Judged(unmeasured(configuration, metric, confidence, reason))
    control, findings = differences.control, []
    if control is not None:
        if float(np.max(log_evidence(control))) >= -math.log(ALPHA_OF_CONTROL * alpha):
            control = None
            findings.append(f"{configuration} changes the control figure itself: the verdict does not use it.")
        alpha *= 1 - ALPHA_OF_CONTROL
    if changes_over_time(differences.values):
        findings.append(
            f"The effect of {configuration} changes over time: the verdict is about its mean over the experiment."
        )
    interval = sequence_interval(differences.values, alpha=alpha, floor=differences.floor, control=control)
    if differences.rounding > 0:
        interval = widened(interval, differences.rounding)
    effect = Effect(
        differences.scale,
        interval,
        differences.baseline_mean,
        differences.step,
        rounding=differences.rounding,
        same=differences.same,
        fell_back=differences.fell_back,
        baseline_level=differences.baseline_mean,
    )
    zone = margin(effect, smallest_effect)
    word = verdict_word(effect, metric, zone)
    carried = carry_over(differences, control)
    withheld = "" if word == "undecided" else _withheld(carried, effect, configuration, metric, zone)
    more = None
    differs = not withheld and word not in ("undecided", "equivalent")
    if differs and not carried.shows_settled:
        findings.append(
            f"Whether {configuration} does the same when it stays was not tested: the random order would show it."
        )
    elif differs and not carried.settles(effect.interval.mean):
        settled = change(effect.natural(carried.settled), effect.scale, metric.unit)
        withheld = f"with what it does to the next slice its effect is {settled}, and not certain yet"
        if carried.settled * effect.interval.mean > 0:
            more = max(1, math.ceil((carried.times_as_many - 1) * interval.n))
    staying = None
    if word == "improves" and not withheld and stays is not None:
        pairs = stays_of_values(stays, differences, use_control=control is not None)
        staying = judge_stays(*pairs, effect, configuration, metric, alpha=alpha, floor=differences.floor)
        findings += [staying.words] * staying.agrees
        withheld, more = ("" if staying.agrees else staying.words), staying.more_blocks
    if withheld:
        word = "undecided"
    if word == "equivalent":
        findings.append(
            f"If {configuration} takes two slices or longer to settle, its effect looks like none: use longer slices."
        )
    if word != "undecided" and len(differences.values) < FEWEST_BLOCKS:
        findings.append(
            f"Whether the effect of {configuration} changes with time or load was not tested: that takes "
            f"{FEWEST_BLOCKS} blocks, and the verdict rests on {len(differences.values)}."
        )
    noise = differences.values - float(np.mean(differences.values))
    helps = False
    if control is not None and len(noise) > 2:
        left = adjusted(noise, control)
        helps = float(np.var(left)) < HELPS * float(np.var(noise))
        noise = left if helps else noise
    if word == "undecided" and not withheld:
        needed = blocks_needed(noise, deciding_width(interval, zone), alpha)
        more = None if needed is None else max(1, needed - interval.n)
    too_few = f"{count_of(interval.n, 'block')} of the {fewest_blocks(alpha, 'long')} that an interval requires"
    return _Judged(
        build_verdict(
            effect,
            configuration,
            metric,
            word,
            level=confidence,
            blocks=interval.n,
            more_blocks=more,
            reverses=staying is not None and staying.reverses,
            reason=withheld
            or verdict_reason(word, effect, metric, smallest_effect, too_few)
            + (f"; {later_costs(stays=staying is not None)}" if word == "improves" else ""),
        ),
        adjusted=helps,
        awaits_stays=staying is not None and not (staying.agrees or staying.reverses),
        findings=tuple(findings),
    )


def _withheld(carried: CarryOver, effect: Effect, configuration: str, metric: Metric, zone: float) -> str:
    # Say why there is no verdict although the interval would give one; empty where there is.
    if not carried.known:
        return "too few slices follow each configuration to know whether the effect of one reaches into the next"
    if carried.p_value >= CARRIES or abs(carried.size) <= zone:
        return ""
    size = change(effect.natural(carried.size), effect.scale, metric.unit)
    return (
        f"{configuration} changes the slice after its own, too ({size}), by more than the smallest effect: use longer "
        f"slices and a longer wash-out"
    )


def later_costs(*, stays: bool) -> str:
    """Say which later costs were not tested."""
    return f"costs beyond {f'{REACH} slices, and slow leaks' if stays else 'one slice'}: not tested"


@dataclass(frozen=True)
class StayJudgement:
    """The effect of stays: it ``agrees`` with a gain at once, or ``reverses`` it for certain, in ``words``; about
    how many ``more_blocks`` of stays decide it.
    """

    words: str
    agrees: bool = False
    reverses: bool = False
    more_blocks: int | None = None


def stays_of_values(
    stays: Sequence[tuple[list[Slice], list[Slice]]], differences: BlockDifferences, *, use_control: bool
) -> tuple[StayDifferences, StayDifferences | None]:
    """Return the differences of ``stays`` on the scale of the blocks' ``differences``, and of their control."""

    def of(value: Callable[[Slice], float], *, logarithm: bool) -> StayDifferences:
        sides = [np.array([[value(s) for s in pair[side]] for pair in stays]).reshape(-1, STAY) for side in (0, 1)]
        return stay_differences(*(np.log(side) if logarithm else side for side in sides))

    controls = [_control(time_slice) for pair in stays for side in pair for time_slice in side]
    known = use_control and bool(np.all(np.isfinite(controls)))
    values = of(_value, logarithm=differences.scale == "ratio")
    return values, of(_control, logarithm=min(controls, default=0.0) > 0) if known else None


def judge_stays(
    values: StayDifferences,
    controls: StayDifferences | None,
    effect: Effect,
    configuration: str,
    metric: Metric,
    *,
    alpha: float,
    floor: float,
) -> StayJudgement:
    """Judge whether the gain of ``effect`` remains when its configuration stays.

    Two tests, each one-sided at error rate ``alpha`` at all looks together: the effect at the end of stays is a gain,
    and it would still be one if it grew once more by as much as within the stay. Both must succeed, so a gain that is
    none by either is found with probability at most ``alpha`` (intersection-union: Berger 1982, "Multiparameter
    hypothesis testing and acceptance sampling", Technometrics 24). Each is an interval of signs at twice the rate, of
    whose two sides only one can be wrong. ``floor`` is that of single differences.
    """
    rate = both_sides(alpha)
    fewest = fewest_blocks(rate)
    if not len(values.settled):
        words = (
            f"it improves at once; whether it does when it stays for {STAY} slices takes at least "
            f"{count_of(fewest, 'block')} of stays"
        )
        return StayJudgement(words, more_blocks=fewest)
    settled, projected = (
        sequence_interval(
            differences,
            alpha=rate,
            floor=stay_noise(floor, weights),
            control=control,
            mixture=SHORT,
        )
        for differences, control, weights in (
            (values.settled, None if controls is None else controls.settled, SETTLED),
            (values.projected, None if controls is None else controls.projected, PROJECTED),
        )
    )
    side = math.copysign(1.0, effect.interval.mean)
    at_end, later = (change(effect.natural(i.mean), effect.scale, metric.unit) for i in (settled, projected))
    blocks = f"{count_of(settled.n, 'block')} of stays"
    if _lies(settled, side) and _lies(projected, side):
        bound = change(effect.natural(settled.high if side < 0 else settled.low), effect.scale, metric.unit)
        words = (
            f"When {configuration} stays for {STAY} slices, its effect is {at_end} (at least {bound}), from {blocks}. "
            f"Costs that come more than {REACH} slices later, or eat the gain only after {HORIZON}, were not tested."
        )
        return StayJudgement(words, agrees=True)
    if _lies(settled, -side):
        words = f"it improves at once, but when it stays for {STAY} slices its effect is {at_end}: a cost comes later"
        return StayJudgement(words, reverses=True)
    if _lies(projected, -side):
        words = (
            f"it improves at once, but less the longer it stays: its effect is {at_end} after {STAY} slices, and at "
            f"this rate {later} after {HORIZON}"
        )
        return StayJudgement(words, reverses=True)
    staying = f"when it stays for {STAY} slices its effect is {at_end}"
    if _lies(settled, side):
        staying = f"as it changes while it stays, its effect after {HORIZON} slices is {later}"
    words = f"it improves at once; {staying}, and not certain yet ({blocks})"
    if settled.n < fewest:
        return StayJudgement(words, more_blocks=fewest - settled.n)
    needed = [
        blocks_needed(differences - interval.mean, interval.mean, rate) if side * interval.mean > 0 else None
        for differences, interval in ((values.settled, settled), (values.projected, projected))
    ]
    known = [count for count in needed if count is not None]
    return StayJudgement(words, more_blocks=max(1, max(known) - settled.n) if len(known) == len(needed) else None)


def _lies(interval: Interval, side: float) -> bool:
    # Whether all of it is above (+1) or below (−1) no effect.
    return (interval.low if side > 0 else -interval.high) > 0


def _more_slices(outcomes: Sequence[_Judged], slices: Sequence[Slice]) -> int | None:
    # Estimate how many more slices are needed, in blocks as long as the last whole one, or of stays.
    still_open = [outcome for outcome in outcomes if outcome.verdict.is_open]
    if not still_open:
        return 0
    if any(outcome.verdict.more_blocks is None for outcome in still_open) or not slices:
        return None
    lengths = Counter(time_slice.block for time_slice in slices if not time_slice.stay)
    last = lengths[max(lengths)] if lengths else 0
    of_stays = STAY * (1 + sum(outcome.awaits_stays for outcome in still_open))
    return max(
        (outcome.verdict.more_blocks or 0) * (of_stays if outcome.awaits_stays else last) for outcome in still_open
    )
