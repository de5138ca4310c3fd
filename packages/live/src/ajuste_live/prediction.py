"""Prediction of the number of slices of a live experiment, from the noise of its metrics: in Prometheus' past, in
earlier runs with the same metrics and slices, or in its own first blocks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from ajuste.model.live import LiveDesign, LiveMetric, duration
from ajuste.model.metric import Metric
from ajuste.model.trial import Trial
from ajuste.model.wording import percent
from ajuste.study.resolved import ResolvedStudy
from ajuste_live.reading import NothingShownError, Source
from ajuste_live.record import LARGEST
from ajuste_live.results import computable, trial_slices
from ajuste_stats.switchback.design import STAY, slices_a_block
from ajuste_stats.switchback.judge import ALPHA_OF_CONTROL
from ajuste_stats.switchback.plan import (
    FEWEST_BLOCKS,
    POWER,
    BlockNoise,
    SwitchbackPlan,
    fewest_in_stays,
    noise_of_blocks,
    noise_of_pilot,
    plan_slices,
)

if TYPE_CHECKING:
    from ajuste.store.store import Store

OWN_BLOCKS: Final = 10
"""Number of a run's own blocks from which on they replace earlier knowledge."""
# Latest first.
_MOST_RUNS: Final = 5


@dataclass(frozen=True)
class Known:
    """The noise of a metric and its source, in words."""

    noise: BlockNoise
    source: str


@dataclass(frozen=True)
class SlicesPrediction:
    """The slices needed to find an ``effect`` on ``metric``; without a ``plan`` the noise is unknown yet. At least
    ``fewest_in_stays`` of them are in stays.
    """

    metric: Metric
    effect: float
    design: LiveDesign
    block_slices: int
    plan: SwitchbackPlan | None = None
    source: str = ""
    fewest_in_stays: int = 0

    @property
    def slices(self) -> int | None:
        """Return the number of slices in which it is found in 95 of 100 runs."""
        return self.plan.slices if self.plan else None

    @property
    def words(self) -> str:
        """Describe the prediction in a few sentences."""
        return f"{self._of_noise} {self._stays()}".strip()

    @property
    def _of_noise(self) -> str:
        effect = f"a change of {percent(self.effect)} of {self.metric.name}"
        if self.plan is None:
            slices = FEWEST_BLOCKS * self.block_slices
            needed = f"{slices} slices, {duration(slices * self.design.slice_s)}"
            return (
                f"Not predicted yet: nothing is known of the noise of {self.metric.name} in slices of "
                f"{duration(self.design.slice_s)}. The first {FEWEST_BLOCKS} blocks ({needed}) will show it."
            )
        if self.plan.slices is None:
            return f"Predicted: no number of slices worth giving finds {effect}, by {self.source}. {self._cure()}"
        length = f"{self.plan.slices:,} slices ({duration(self.plan.slices * self.design.slice_s)})"
        high = "or far more" if self.plan.high is None else f"to {self.plan.high:,}"
        text = (
            f"Predicted: {length} find {effect} in {100 * POWER:.0f} of 100 runs, {self.plan.typical:,} in half of "
            f"them. By {self.source} it may be {self.plan.low:,} {high}, under a load like theirs."
        )
        return text if self.plan.slices * self.design.slice_s <= self.design.for_s else f"{text} {self._cure()}"

    def _stays(self) -> str:
        if not self.design.stays:
            return ""
        count = max(self.fewest_in_stays, self.plan.in_stays if self.plan else 0)
        length = f"{count:,} slices ({duration(count * self.design.slice_s)})"
        if self.plan is None or self.plan.slices is None:
            return f"At least {length} more are stays of {STAY} slices each, which test costs that come later."
        return f"{length} of them are stays of {STAY} slices each, which test costs that come later."

    def _cure(self) -> str:
        return (
            f"The run ends before, after {duration(self.design.for_s)}: give a longer --for or a larger --min-effect."
        )

    def as_json(self) -> dict[str, object]:
        """Return the prediction for programs; ``slices`` is null if the noise is unknown or no number suffices."""
        plan = self.plan
        return {
            "metric": self.metric.name,
            "effect": self.effect,
            "slices": self.slices,
            "seconds": None if self.slices is None else self.slices * self.design.slice_s,
            "half_of_runs": plan.typical if plan else None,
            "low": plan.low if plan else None,
            "high": plan.high if plan else None,
            **({"in_stays": plan.in_stays if plan else self.fewest_in_stays} if self.design.stays else {}),
            "source": self.source,
        }


def predictions(
    resolved: ResolvedStudy, known: Mapping[str, Known], trials: Sequence[Trial] = ()
) -> tuple[SlicesPrediction, ...]:
    """Predict every deciding metric from the slices so far if they suffice, else from earlier knowledge."""
    return tuple(_predicted(resolved, metric, known.get(metric.name), trials) for metric in resolved.deciding)


def longest(predicted: Sequence[SlicesPrediction]) -> SlicesPrediction:
    """Return the prediction with the most slices; an unknown number counts as most."""
    return max(predicted, key=lambda prediction: math.inf if prediction.slices is None else prediction.slices)


def known_before(
    resolved: ResolvedStudy, sources: Mapping[str, Source], store: Store, machine: Mapping[str, str], apart: str = ""
) -> dict[str, Known]:
    """Return the known noise of deciding metrics before the run ``apart`` begins on ``machine``."""
    design = resolved.live_design
    noises = {
        metric.metric.name: _from_past(resolved, metric, sources[metric.metric.name]) for metric in design.metrics
    }
    missing = [metric for metric in design.metrics if noises[metric.metric.name] is None]
    runs = _alike(design, store, machine, apart) if missing else []
    for metric in missing:
        noises[metric.metric.name] = _from_runs(
            metric, [(then, trials) for then, trials in runs if _reads(then, metric)]
        )
    return {name: metric for name, metric in noises.items() if metric is not None}


def _predicted(
    resolved: ResolvedStudy, metric: Metric, known: Known | None, trials: Sequence[Trial]
) -> SlicesPrediction:
    design, names = resolved.live_design, resolved.names
    analysis = resolved.study.analysis
    length = slices_a_block(len(names), design.order)
    alpha = (1 - analysis.confidence) / max(1, (len(names) - 1) * len(resolved.deciding))
    alpha *= (1 - ALPHA_OF_CONTROL) if design.control else 1
    prediction = SlicesPrediction(
        metric,
        analysis.smallest_effect,
        design,
        length,
        fewest_in_stays=fewest_in_stays(alpha) if design.stays else 0,
    )
    observed = noise_of_blocks(trial_slices(trials, metric.name), metric, resolved.baseline, _others(resolved))
    if observed is not None and observed.blocks >= (FEWEST_BLOCKS if known is None else OWN_BLOCKS):
        known = Known(observed, f"the first {observed.blocks} blocks")
    if known is None:
        return prediction
    noise = known.noise
    effect = math.log1p(prediction.effect) if noise.scale == "ratio" else prediction.effect * abs(noise.mean)
    plan = plan_slices(noise, effect or metric.resolution, alpha, len(names), design.order, stays=design.stays)
    return replace(prediction, plan=plan, source=known.source)


def _others(resolved: ResolvedStudy) -> list[str]:
    return [name for name in resolved.names if name != resolved.baseline]


def _from_past(resolved: ResolvedStudy, metric: LiveMetric, source: Source) -> Known | None:
    if source.past is None:
        return None
    design = resolved.live_design
    try:
        values = np.array(source.past(design.slice_s, design.slice_s - design.first_washout_s))
    except NothingShownError:
        return None
    values = values[np.abs(values) < LARGEST]
    noise = noise_of_pilot(values, len(resolved.names), design.order, ratio=metric.metric.scale == "ratio")
    if noise is None or noise.blocks < FEWEST_BLOCKS:
        return None
    return Known(noise, f"{duration(len(values) * design.slice_s)} that Prometheus remembers")


def _alike(
    design: LiveDesign, store: Store, machine: Mapping[str, str], apart: str
) -> list[tuple[ResolvedStudy, list[Trial]]]:
    # Noise is comparable only on the same machine, in slices of the same length and order.
    alike: list[tuple[ResolvedStudy, list[Trial]]] = []
    for head in store.runs():
        if head.imported or head.workload != "live" or head.id == apart or len(alike) == _MOST_RUNS:
            continue
        run = store.find_run(head.id)
        try:
            then = ResolvedStudy.model_validate_json(run.resolved)
        except ValueError:  # Another version of Ajuste wrote it.
            continue
        if (
            then.live is not None
            and then.live_design.slice_s == design.slice_s
            and then.live_design.order == design.order
            and run.environment.get("this machine") == machine
            and any(_reads(then, candidate) for candidate in design.metrics)
        ):
            alike.append((then, computable(store.trials(run))))
    return alike


def _reads(then: ResolvedStudy, metric: LiveMetric) -> bool:
    place = (metric.kind, metric.where, metric.metric.name, metric.metric.unit, metric.metric.scale)
    others = then.live_design.metrics
    return any(place == (two.kind, two.where, two.metric.name, two.metric.unit, two.metric.scale) for two in others)


def _from_runs(metric: LiveMetric, runs: Sequence[tuple[ResolvedStudy, list[Trial]]]) -> Known | None:
    noises = [
        noise
        for then, trials in runs
        if (
            noise := noise_of_blocks(
                trial_slices(trials, metric.metric.name), metric.metric, then.baseline, _others(then)
            )
        )
    ]
    comparable = [noise for noise in noises if noise.scale == noises[0].scale]
    blocks = sum(noise.blocks for noise in comparable)
    if blocks < FEWEST_BLOCKS:
        return None
    values = np.concatenate([noise.values for noise in comparable])
    runs_words = "an earlier run" if len(comparable) == 1 else f"{len(comparable)} earlier runs"
    return Known(
        BlockNoise(comparable[0].scale, values, blocks, comparable[0].mean), f"{blocks} blocks of {runs_words}"
    )
