"""Verdicts on the slices of a live system."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ajuste.analysis.diagnostics.diagnose import diagnose
from ajuste.analysis.verdict import build_verdict, unmeasured, verdict_reason
from ajuste.model.diagnostic import Diagnostic, Diagnostics
from ajuste.model.measurements import Gathering
from ajuste.model.metric import Metric
from ajuste.model.verdict import Verdict
from ajuste.model.wording import change, count_of
from ajuste_stats.effects import Effect
from ajuste_stats.multiplicity import bonferroni
from ajuste_stats.sign_intervals import fewest_blocks
from ajuste_stats.switchback.design import STAY
from ajuste_stats.switchback.evidence import FEWEST_BLOCKS
from ajuste_stats.switchback.judge import SliceJudgement, StayJudgement, judge_treatment, lies
from ajuste_stats.switchback.slices import Slice
from ajuste_stats.switchback.stays import HORIZON, REACH

_TRIAL: Final = re.compile(r"\btrial(s?)\b")

_WHY: Final = {
    "autocorrelation": "The order of every block is drawn at random, so verdicts hold however slices resemble each "
    "other.",
    "carry-over": "The effect of a slice reaches into the next: use longer slices or a longer wash-out.",
}


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
        part = (time_slice.block, seen[time_slice.block, time_slice.treatment])
        seen[time_slice.block, time_slice.treatment] += 1
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
        configuration=[time_slice.treatment for time_slice in counting],
        status=["ok"] * count,
        reason=[""] * count,
        written=[()] * count,
        not_supported=[()] * count,
    )
    return gathering


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
    ``ajuste_stats.switchback.design``, also for the incomplete block at the end: any two configurations of it could as
    well have been exchanged. With ``stays`` nothing improves that does not when it stays.
    """
    alpha = bonferroni(confidence, comparisons)
    outcomes = []
    for name in configurations:
        if name != baseline:
            judgement = judge_treatment(
                slices,
                metric,
                baseline=baseline,
                treatment=name,
                alpha=alpha,
                smallest_effect=smallest_effect,
                stays=stays,
            )
            outcomes.append(_judged(judgement, metric, confidence, smallest_effect))
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


def _judged(judgement: SliceJudgement, metric: Metric, confidence: float, smallest_effect: float) -> _Judged:
    configuration, effect, word = judgement.treatment, judgement.effect, judgement.word
    if effect is None:
        reason = "no block has a clean slice of both the baseline and this configuration yet"
        return _Judged(unmeasured(configuration, metric, confidence, reason))
    staying, blocks = judgement.stays, effect.interval.n
    too_few = f"{count_of(blocks, 'block')} of the {fewest_blocks(judgement.alpha, 'long')} that an interval requires"
    return _Judged(
        build_verdict(
            effect,
            configuration,
            metric,
            word,
            level=confidence,
            blocks=blocks,
            more_blocks=judgement.more_blocks,
            reverses=staying is not None and staying.reverses,
            reason=_withheld(judgement, effect, metric)
            or verdict_reason(word, effect, metric, smallest_effect, too_few)
            + (f"; {later_costs(stays=staying is not None)}" if word == "improves" else ""),
        ),
        adjusted=judgement.adjusted,
        awaits_stays=judgement.awaits_stays,
        findings=tuple(_findings(judgement, effect, metric)),
    )


def _findings(judgement: SliceJudgement, effect: Effect, metric: Metric) -> Iterator[str]:
    configuration, word = judgement.treatment, judgement.word
    if judgement.changes_control:
        yield f"{configuration} changes the control figure itself: the verdict does not use it."
    if judgement.changes:
        yield f"The effect of {configuration} changes over time: the verdict is about its mean over the experiment."
    if judgement.untested:
        yield f"Whether {configuration} does the same when it stays was not tested: the random order would show it."
    if judgement.stays is not None and judgement.stays.agrees:
        yield _stays_in_words(judgement.stays, effect, configuration, metric)
    if word == "equivalent":
        yield f"If {configuration} takes two slices or longer to settle, its effect looks like none: use longer slices."
    if word != "undecided" and effect.interval.n < FEWEST_BLOCKS:
        yield (
            f"Whether the effect of {configuration} changes with time or load was not tested: that takes "
            f"{FEWEST_BLOCKS} blocks, and the verdict rests on {effect.interval.n}."
        )


def _withheld(judgement: SliceJudgement, effect: Effect, metric: Metric) -> str:
    # Say why there is no verdict although the interval would give one; empty where there is.
    configuration, carried = judgement.treatment, judgement.carried

    def words(value: float) -> str:
        return change(effect.natural(value), effect.scale, metric.unit)

    match judgement.withheld:
        case "unknown carry-over":
            return "too few slices follow each configuration to know whether the effect of one reaches into the next"
        case "carry-over" if carried is not None:
            return (
                f"{configuration} changes the slice after its own, too ({words(carried.size)}), by more than the "
                "smallest effect: use longer slices and a longer wash-out"
            )
        case "not settled" if carried is not None:
            return f"with what it does to the next slice its effect is {words(carried.settled)}, and not certain yet"
        case "stays" if judgement.stays is not None:
            return _stays_in_words(judgement.stays, effect, configuration, metric)
    return ""


def later_costs(*, stays: bool) -> str:
    """Say which later costs were not tested."""
    return f"costs beyond {f'{REACH} slices, and slow leaks' if stays else 'one slice'}: not tested"


def _stays_in_words(judged: StayJudgement, effect: Effect, configuration: str, metric: Metric) -> str:
    settled, projected = judged.settled, judged.projected
    if settled is None or projected is None:
        return (
            f"it improves at once; whether it does when it stays for {STAY} slices takes at least "
            f"{count_of(judged.fewest, 'block')} of stays"
        )
    side = math.copysign(1.0, effect.interval.mean)
    at_end, later = (change(effect.natural(i.mean), effect.scale, metric.unit) for i in (settled, projected))
    blocks = f"{count_of(settled.n, 'block')} of stays"
    if judged.agrees:
        bound = change(effect.natural(settled.high if side < 0 else settled.low), effect.scale, metric.unit)
        return (
            f"When {configuration} stays for {STAY} slices, its effect is {at_end} (at least {bound}), from {blocks}. "
            f"Costs that come more than {REACH} slices later, or eat the gain only after {HORIZON}, were not tested."
        )
    if lies(settled, -side):
        return f"it improves at once, but when it stays for {STAY} slices its effect is {at_end}: a cost comes later"
    if judged.reverses:
        return (
            f"it improves at once, but less the longer it stays: its effect is {at_end} after {STAY} slices, and at "
            f"this rate {later} after {HORIZON}"
        )
    staying = f"when it stays for {STAY} slices its effect is {at_end}"
    if lies(settled, side):
        staying = f"as it changes while it stays, its effect after {HORIZON} slices is {later}"
    return f"it improves at once; {staying}, and not certain yet ({blocks})"


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
